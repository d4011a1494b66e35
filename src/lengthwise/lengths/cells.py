"""The cells of a column in a file: numbers, lists and texts.

Texts are parsed as numbers, or counted in characters, words, or the tokens of a tokenizer.json.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import checks
from lengthwise.checks import brief, value_error
from lengthwise.lengths.columns import Column, Kind, missing_column
from lengthwise.lengths.rules import LONGEST, bad_value

_PUT = "Put one there or drop the sequence."
_ITEMS = {int, float, bool, NoneType}  # types of the items of a list that is counted
COUNTS = ("characters", "words", "tokens")
COUNT_REMEDY = 'give `count` as "characters", "words" or "tokens" (on the command line: --count characters, or words)'
_TOKENIZER = 'Give the path of a tokenizer.json, as tokenizer="tokenizer.json" (on the command line: --tokenizer).'
# As in {"role": "user", "content": "..."}, {"from": "human", "value": "..."}, {"type": "text", "text": "..."}.
_TURN_FIELDS = ("content", "value", "text")
_TEXTS = 1024  # texts to tokenize together


def count_list(column: Column, count: TextCount | None) -> Column:
    """Turns the cells of a table, or the values of JSON, into numbers.

    Args:
        column: A column of numbers, texts or lists.
        count: The function that counts texts, or None.

    Raises:
        ValueError: A cell is absent, has another kind than the first, or cannot be turned into a length.
    """
    cells, types = column.values, set(map(type, column.values))
    for at, cell in enumerate(cells if KeyError in types else ()):
        if isinstance(cell, KeyError):  # a record without the field
            raise missing_column(*cell.args, at=column.place(at)) from cell
    if tuple in types:
        return _add_parts(column, count)
    # The first cell decides the kind. A later cell of another kind raises an error that names its line.
    kind = type(cells[0]) if cells else float
    count = TextCount("characters") if column.kind == "texts" and count is None else count
    is_text = count is not None and kind is str and not (column.kind == "untyped" and all(map(_is_decimal, cells)))
    if (kind is list or is_text) and types != {kind}:
        at = next(at for at, cell in enumerate(cells) if type(cell) is not kind)
        rule, remedy = f"a {'list' if kind is list else 'text'}, as at the first sequence", _PUT
        raise value_error(column.name, rule, cells[at], remedy, at=column.place(at))
    if kind is list:
        return _count_lists(column, count)
    if count is not None and is_text:
        if column.kind == "unnamed":
            remedy = f'Give column="{column.name}" if the first line is the header, column="0" if it is a text.'
            raise value_error("column", "given for texts", None, remedy, at=column.place(0))
        return replace(column, values=count(cells), unit="counts", kind="texts")
    return replace(column, values=_numbers(column, types), kind="numbers")


def _add_parts(column: Column, count: TextCount | None) -> Column:
    """Adds up the lengths in the parts of a sum; an empty text and a null have none.

    >>> _add_parts(Column(name="a+b", values=[("so it", ""), ("on", "we go")], place=str), TextCount("words")).values
    array([2, 3])
    """
    total, kinds, unit = np.zeros(len(column.values), dtype=np.int64), set[Kind](), column.unit
    for part in zip(*column.values, strict=True):
        rows = [row for row, cell in enumerate(part) if cell is not None and cell != ""]
        cells = [part[row] for row in rows]
        counted = count_list(replace(column, values=cells, place=lambda at, rows=rows: column.place(rows[at])), count)
        values = np.zeros(len(part), counted.values.dtype)
        values[rows] = counted.values
        total, kinds, unit = total + values, kinds | {counted.kind}, counted.unit
    kind: Kind = "texts" if "texts" in kinds else "numbers"
    return replace(column, values=total, kind=kind, unit=unit)


def _is_decimal(text: str) -> bool:
    return text.isascii() and "_" not in text and is_number(text)


def _count_lists(column: Column, count: TextCount | None) -> Column:
    """Counts the items of each list, or, with `count`, the texts in it."""
    # The first item decides the kind. A list of another kind raises an error that names its line.
    name, cells = column.name, column.values
    item = next((item for cell in cells for item in cell if item is not None), None)
    if count is not None and (field := turn_field(item)):
        name, item = f"{name}.*.{field}", ""
        cells = [[turn.get(field) if type(turn) is dict else turn for turn in cell] for cell in cells]
    if count is not None and type(item) is str:
        for at, text in [(at, text) for at, cell in enumerate(cells) for text in cell if type(text) is not str]:
            raise value_error(name, "a text in every item", text, _PUT, at=column.place(at))
        # Counts [1, 3, 5] in lists of 2, 0 and 1 texts give [4, 0, 5].
        counts = iter(count(list(itertools.chain.from_iterable(cells))).tolist())
        sums = [sum(itertools.islice(counts, len(cell))) for cell in cells]
        return replace(column, name=name, values=np.array(sums, dtype=np.int64), unit="counts", kind="texts")
    for at, cell in enumerate(cells):
        if not _ITEMS.issuperset(map(type, cell)):
            raise nested_lists(cell, name=name, at=column.place(at), item=item)
    return replace(column, values=np.fromiter(map(len, cells), np.int64, len(cells)), unit="counts", kind="lists")


def _numbers(column: Column, types: set[type]) -> NDArray[Any]:
    cells = column.values
    if types == {str}:
        cells, types = _parse(column)
    # Looks for a bad cell only if some type is not a number.
    for at, cell in enumerate(cells if types - {int, float} else ()):
        if type(cell) not in (int, float):
            raise not_a_number(column, at, cell)
    try:
        return np.array(cells, dtype=np.int64 if types == {int} else np.float64)
    except OverflowError as error:
        at = next(at for at, value in enumerate(cells) if abs(value) > LONGEST)
        raise bad_value(np.array(cells, dtype=object), at, name=column.name, place=column.place) from error


def _parse(column: Column) -> tuple[list[float], set[type]]:
    """Reads texts as numbers: as int if all are whole, else as float.

    Refuses texts that only Python reads as numbers: 1_000, and the digits of other scripts.

    >>> _parse(Column(name="dur", values=["3", "1.5"], place=str))
    ([3.0, 1.5], {<class 'float'>})
    """
    # Checking all texts together is much faster than one by one.
    texts, all_texts = column.values, "".join(column.values)
    for convert in (int, float) if all_texts.isascii() and "_" not in all_texts else ():
        with suppress(ValueError):  # not whole, perhaps seconds; or not a number, which is found below
            return list(map(convert, texts)), {convert}
    at = next(at for at, text in enumerate(texts) if not _is_decimal(text))
    raise not_a_number(column, at, texts[at])


def is_number(text: str) -> bool:
    """Tells if Python reads a text as a number; `count_list` is stricter."""
    with suppress(ValueError):
        float(text)
        return True
    return False


def not_a_number(column: Column, at: int, value: object) -> ValueError:
    """Returns the error for cell `at`, whose value is not a number, with advice for its kind."""
    remedy = column.remedy
    if isinstance(value, dict) and value:
        remedy = f"Name one of its fields, as {column.name}.{turn_field(value) or next(iter(value))}."
    elif isinstance(value, str) and is_number(value.replace(",", ".")):  # "7" among numbers in JSON; 1_000; 1,25
        remedy = "Write it with the digits 0 to 9 and a point only, as 1250 or 1.25; in JSON without quotes."
    elif isinstance(value, str) and any(map(str.isalpha, value)):
        remedy = f"{remedy.removesuffix('.')}; if these are texts, {COUNT_REMEDY}."
    return value_error(column.name, "a number", value, remedy, at=column.place(at))


def nested_lists(value: object, *, name: str, at: str, item: object = None) -> ValueError:
    """Returns the error for a list whose length may not be its number of items: a chat, sentences, features [80, 3000].

    Args:
        value: The list, or its type.
        name: The name of the column.
        at: The place of the list.
        item: One item, which decides the advice.
    """
    remedy = "Add a column with the lengths, and name that column."
    if field := turn_field(item):
        texts = f"{name}.*.{field}"
        remedy = f'Count the texts in the list: column="{texts}", count="words" '
        remedy += f'(on the command line: "FILE:{texts}" --count words).'
    elif isinstance(item, str):
        remedy = f"These are texts: {COUNT_REMEDY}."
    return value_error(name, "a list of numbers, which are then counted", value, remedy, at=at)


@dataclass(frozen=True, slots=True)
class TextCount:
    """A function that counts texts in a unit. It holds only the path of a tokenizer, so that it can be pickled.

    Attributes:
        count: "characters", "words" or "tokens".
        tokenizer: The path of a tokenizer.json, for tokens only.
    """

    count: str
    tokenizer: str = ""

    def __call__(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Counts each of [n] texts; an empty text has 0.

        >>> TextCount("words")(["so it begins", "", "now"])
        array([3, 0, 1])
        """
        if self.count == "tokens":
            return _count_tokens(self.tokenizer, texts)
        parts = texts if self.count == "characters" else map(str.split, texts)
        return np.fromiter(map(len, parts), dtype=np.int64, count=len(texts))


def check_options(
    column: object, frame_shift: float | None, count: str | None, tokenizer: str | os.PathLike[str] | None
) -> tuple[float | None, TextCount | None]:
    """Returns the frame shift, and the function that counts texts in the unit `count`; None if it is None.

    Raises:
        ValueError: `frame_shift` is not above 0, or `count` is unknown. `tokenizer` is missing for "tokens", or given
            for another unit. Or its file is not a tokenizer.json.
        TypeError: `column` is not a text, or `tokenizer` is not a path.
        FileNotFoundError: The file of the tokenizer does not exist.
        ModuleNotFoundError: The package `tokenizers` is needed and not installed.
    """
    if column is not None:
        checks.check_text("column", column, remedy='Write a dimension as "0", several columns as "source,target".')
    if frame_shift is not None:
        frame_shift = checks.check_number("frame_shift", frame_shift, remedy="Give seconds, as 0.01.", above=True)
    if count is not None:
        checks.check_choice("count", count, COUNTS)
    if count != "tokens":
        if tokenizer is not None:
            remedy = 'Give count="tokens" with it (on the command line: --count tokens).'
            raise value_error("tokenizer", "left out unless tokens are counted", tokenizer, remedy)
        return frame_shift, None if count is None else TextCount(count)
    if tokenizer is None:
        raise value_error("tokenizer", "given, because tokens are counted", None, _TOKENIZER)
    if not isinstance(tokenizer, str | os.PathLike):
        raise checks.type_error("tokenizer", "a path", type(tokenizer), _TOKENIZER)
    path = os.path.abspath(os.path.join(tokenizer, "tokenizer.json") if os.path.isdir(tokenizer) else tokenizer)
    if not os.path.isfile(path):
        raise FileNotFoundError(checks.sentence("tokenizer", "a file that exists", str(tokenizer), _TOKENIZER))
    _load_tokenizer(path, os.stat(path).st_mtime_ns)
    return frame_shift, TextCount(count, path)


def check_counted(columns: Sequence[Column], count: TextCount | None) -> None:
    """Refuses `count` if no column has texts. A column without values may have some.

    Raises:
        ValueError: All columns have numbers or lists.
    """
    if count is not None and not any(column.kind == "texts" or not len(column.values) for column in columns):
        raise value_error("count", "given for texts only", count.count, "Leave it out, or name a column of texts.")


def turn_field(turn: object) -> str | None:
    """Returns the field that holds the text of a chat turn: `content`, `value` as in ShareGPT, or `text`."""
    return next((field for field in _TURN_FIELDS if isinstance(turn, dict) and field in turn), None)


def _count_tokens(path: str, texts: Sequence[str]) -> NDArray[np.int64]:
    tokenizer = _load_tokenizer(path, os.stat(path).st_mtime_ns)
    batches = (list(texts[start : start + _TEXTS]) for start in range(0, len(texts), _TEXTS))
    try:
        # Special tokens are counted, because the model gets them too.
        lengths = [len(tokens) for batch in batches for tokens in tokenizer.encode_batch_fast(batch)]
    except Exception as error:  # the package raises plain exceptions
        # For example a word for which the tokenizer has no token.
        remedy = f"Give the tokenizer of your model ({brief(error)})."
        raise value_error("tokenizer", "a tokenizer that takes these texts", path, remedy) from error
    return np.array(lengths, dtype=np.int64)


@functools.lru_cache(maxsize=2)
def _load_tokenizer(path: str, _changed: int) -> Any:
    """Returns the tokenizer in a file; the time of its last change makes a changed file be loaded again."""
    package = checks.load_package("tokenizers", "count tokens")
    try:
        tokenizer = package.Tokenizer.from_file(path)
    except Exception as error:  # the package raises plain exceptions
        remedy = f"Save it by `tokenizer.save(path)` ({brief(error)})."
        raise value_error("tokenizer", "a tokenizer.json", path, remedy) from error
    # The file may turn on padding and truncation, which would give all texts of a batch the same length.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
