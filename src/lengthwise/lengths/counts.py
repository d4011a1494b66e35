"""Lengths of texts, and of lists of texts: characters, words, or the tokens of a tokenizer.json."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import brief, check_choice, sentence, type_error, value_error
from lengthwise.lengths.rules import Place

COUNTS = ("characters", "words", "tokens")
COUNT_REMEDY = 'give `count` as "characters", "words" or "tokens" (on the command line: --count words)'
_TOKENIZER_REMEDY = (
    'Give the path of a tokenizer.json, as tokenizer="tokenizer.json" (on the command line: --tokenizer).'
)
# Of {"role": "user", "content": "..."}, {"from": "human", "value": "..."}, {"type": "text", "text": "..."}.
_TURN_FIELDS = ("content", "value", "text")
_TEXTS = 1024  # texts that are tokenized together


@dataclass(frozen=True, slots=True)
class TextCount:
    """A count of each text. It holds no tokenizer, only its path: so it travels to other processes.

    Attributes:
        count: "characters", "words" or "tokens".
        tokenizer: The path of a tokenizer.json, for tokens alone.
    """

    count: str
    tokenizer: str = ""

    def __call__(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Counts each of [n] texts; an empty one has 0.

        >>> TextCount("words")(["so it begins", "", "now"])
        array([3, 0, 1])
        """
        if self.count == "tokens":
            return _count_tokens(self.tokenizer, texts)
        measure = len if self.count == "characters" else _count_words
        return np.fromiter(map(measure, texts), dtype=np.int64, count=len(texts))


def check_count(count: str | None, tokenizer: str | os.PathLike[str] | None) -> TextCount | None:
    """Checks the two options together; None where texts are not counted.

    Raises:
        ValueError: No such count; tokens without a tokenizer; a tokenizer without tokens.
        TypeError: `tokenizer` is no path.
        FileNotFoundError: The tokenizer is not there.
        ModuleNotFoundError: The package `tokenizers` is needed and not installed.
    """
    if count is not None:
        check_choice("count", count, COUNTS)
    if count != "tokens":
        if tokenizer is not None:
            remedy = 'Give count="tokens" with it (on the command line: --count tokens).'
            raise value_error("tokenizer", "left out unless tokens are counted", tokenizer, remedy)
        return None if count is None else TextCount(count)
    if tokenizer is None:
        raise value_error("tokenizer", "given, because tokens are counted", None, _TOKENIZER_REMEDY)
    if not isinstance(tokenizer, str | os.PathLike):
        raise type_error("tokenizer", "a path", type(tokenizer), _TOKENIZER_REMEDY)
    path = os.path.abspath(tokenizer)
    if not os.path.isfile(path):
        raise FileNotFoundError(sentence("tokenizer", "a file that is there", str(tokenizer), _TOKENIZER_REMEDY))
    _load_tokenizer(path)
    return TextCount(count, path)


def check_counted(texts: Iterable[bool], count: TextCount | None) -> None:
    """Refuses `count` where no column holds `texts`.

    Raises:
        ValueError: There is none.
    """
    if count is not None and not any(texts):
        remedy = "Leave it out, or name a column of texts."
        raise value_error("count", "given for texts only", count.count, remedy)


def turn_field(fields: Iterable[str]) -> str | None:
    """Finds which field of a turn of a chat holds its text: `content`, `value` as in ShareGPT, or `text`."""
    return next((field for field in _TURN_FIELDS if field in fields), None)


def count_items(parts: Sequence[Sequence[Any]], *, name: str, place: Place, count: TextCount) -> NDArray[np.int64]:
    """Counts all texts of each list: of the turns "hello", "how are you" 4 words.

    Raises:
        ValueError: At the first item that is no text.
    """
    for at, part in enumerate(parts):
        for text in part:
            if type(text) is not str:
                remedy = "Put one there or drop the sequence."
                raise value_error(name, "a text in every item", text, remedy, at=place(at))
    counts = count(list(itertools.chain.from_iterable(parts)))
    # Texts counted as [1, 3, 5] in lists of 2, 0 and 1: the sums up to each end, [4, 4, 9], differ by [4, 0, 5].
    sums = np.concatenate([[0], np.cumsum(counts)])
    ends = np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)))
    return np.diff(sums[ends], prepend=0)


def _count_words(text: str) -> int:
    return len(text.split())


def _count_tokens(path: str, texts: Sequence[str]) -> NDArray[np.int64]:
    tokenizer = _load_tokenizer(path)
    try:
        parts = [
            # The special tokens that the file adds are counted: the network sees them too.
            [len(tokens) for tokens in tokenizer.encode_batch_fast(list(texts[start : start + _TEXTS]))]
            for start in range(0, len(texts), _TEXTS)
        ]
    except Exception as error:  # it raises no class of its own
        # A word that is not in its vocabulary, for example, where it has no token for unknown ones.
        remedy = f"Give the one of your model ({brief(error)})."
        raise value_error("tokenizer", "one that takes these texts", path, remedy) from error
    return np.fromiter((length for part in parts for length in part), dtype=np.int64, count=len(texts))


def _load_tokenizer(path: str) -> Any:
    status = os.stat(path)
    # By more than its path: a file that was written anew is another tokenizer.
    return _load_version(path, (status.st_mtime_ns, status.st_size, status.st_ino))


@functools.lru_cache(maxsize=2)
def _load_version(path: str, _version: tuple[int, ...]) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        remedy = "Install it: pip install tokenizers."
        raise ModuleNotFoundError(sentence("tokenizers", "installed to count tokens", None, remedy)) from error
    try:
        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # it raises no class of its own
        remedy = f"Save it by `tokenizer.save(path)` ({brief(error)})."
        raise value_error("tokenizer", "a tokenizer.json", path, remedy) from error
    # Both may be set in the file, and would give every text of a batch the same length.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
