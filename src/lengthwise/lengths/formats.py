"""The formats of files, in one table, and the readers of those with one value for each sequence.

To add a format, write its line in `FORMATS`, and a function. For a format of text with one value a sequence, the
function yields the number of a line, and the value that begins there, a number or a text to count: see `kaldi_values`.
For others it finds the rows and the columns: see `parse_table` of `text`. A file of an unknown name is told by its
first lines.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import NamedTuple, TextIO

from lengthwise.checks import source_error, value_error
from lengthwise.lengths import arrow, audio, text
from lengthwise.lengths.arrays import read_numpy
from lengthwise.lengths.cells import is_number
from lengthwise.lengths.columns import Kind, Unit, Wanted
from lengthwise.lengths.text import NOT_TEXT, Numbered, Parts, Rows, check_widths, line_error, split_words


class Format(NamedTuple):
    """A format of files.

    Attributes:
        name: Its name for people.
        endings: The suffixes of its files; or, without a dot, their names up to the first dot.
        read: The function that yields the columns of a file, part by part. It takes a path, the wanted columns, the
            most rows of a part, and a function that opens the file; see `read_text`.
        is_text: True if files may be packed as .gz.
        is_large: True if `write_lengths` reads it too.
    """

    name: str
    endings: tuple[str, ...]
    read: Callable[..., Parts]
    is_text: bool = True
    is_large: bool = False


def _refuse(path: Path, *_: object, rule: str = "of lengths or of one text a line, not {}", remedy: str) -> Parts:
    name = PurePath(path.name.lower().removesuffix(".gz"))
    raise source_error(rule.format(name.suffix or name), path, remedy)


# As utt1, 84-121123-0000 and spk_a, and unlike most words that begin a sentence. A number before a text is no id.
_ID = re.compile(r"(?![\d.]+\s)\S*[\d_-]")
_PATH = re.compile(r"\S*[/\\]\S+\.\w{2,5}\s*$")


def one_column(
    name: str, unit: Unit, values: Callable[[TextIO, Path], Numbered], kind: Kind = "untyped"
) -> Callable[..., Rows]:
    """Returns the function that finds the rows of a format of one column; `read_text` takes it.

    Args:
        name: The name of the column.
        unit: The unit of its values.
        values: The function that yields the values of an open file; it takes the path, too.
        kind: "untyped" for numbers, "numbers" for texts that need `count`, "texts" for those that are always counted.
    """

    def parse(file: TextIO, path: Path, column: Wanted) -> Rows:
        if isinstance(column, str):
            remedy = f"It does not apply to {path}, which has one column."
            raise value_error("column", "left out here", column, remedy)
        return Rows(values(file, path), [(name, lambda value: value)], {"unit": unit, "kind": kind})

    return parse


def text_lines(file: TextIO, _: Path) -> Numbered:
    """Yields the text of each line."""
    return ((number, line.rstrip("\r\n")) for number, line in enumerate(file, start=1))


def kaldi_values(file: TextIO, path: Path) -> Numbered:
    """Yields the value on each line of `id value`."""
    return ((number, words[1]) for number, words in check_widths(split_words(file), 2, path, NOT_TEXT))


def espnet_shapes(file: TextIO, path: Path) -> Numbered:
    """Yields the first number of the shape on each line, as 1234 of `id 1234,80`."""
    return ((number, value.partition(",")[0]) for number, value in kaldi_values(file, path))


def kaldi_segments(file: TextIO, path: Path) -> Numbered:
    """Yields the seconds on each line of `id recording start end`, to eight decimals; or times that are no numbers."""
    for number, (_, _, start, end) in check_widths(split_words(file), 4, path):
        yield number, round(float(end) - float(start), 8) if is_number(start) and is_number(end) else f"{start} {end}"


def kaldi_texts(file: TextIO, path: Path) -> Numbered:
    """Yields the text on each line of `id text`; refuses a line without a new id."""
    ids = set[str]()
    for number, line in enumerate(file, start=1):
        name, *words = line.split(maxsplit=1) or [""]
        if not _ID.match(name) or name in ids:
            remedy = "Repair or drop the line; if the file has texts alone, name it .txt."
            raise line_error("an id and a text on every line", line, number, path, remedy)
        ids.add(name)
        yield number, "".join(words).rstrip()


def has_ids(lines: Sequence[str]) -> bool:
    """Tells if lines begin with ids, each another one, or are paths.

    >>> has_ids(["utt1 so it begins", "utt2 and ends"]), has_ids(["2 cats", "2 dogs"]), has_ids(["C1CC1", "C1CCC1"])
    (True, False, False)
    >>> has_ids(["/data/a.wav", "/data/b.wav"]), has_ids(["and/or.", "and so on."])
    (True, False)
    """
    names = {line.split()[0] for line in lines if _ID.match(line)}
    return (len(names) == len(lines) and any(" " in line for line in lines)) or all(map(_PATH.match, lines))


def fasta_texts(file: TextIO, path: Path) -> Numbered:
    """Yields the letters below each line that begins with `>`; lines that begin with `;` are comments."""
    start, letters = 0, list[str]()
    for number, line in enumerate(itertools.chain(file, ">"), start=1):
        if line.startswith(">"):
            if start:
                yield start, "".join(letters)
            start, letters = number, []
        elif line.strip() and not line.startswith(";"):
            if not start or re.search(r"\d", line):
                remedy = "Below each > write letters without numbers; if these are lines of text, name the file .txt."
                raise line_error("FASTA, which begins with >", line, number, path, remedy)
            letters += line.split()


def fastq_texts(file: TextIO, path: Path) -> Numbered:
    """Yields the bases of each record of four lines; refuses other records."""
    lines = ((number, line.strip()) for number, line in enumerate(file, start=1))
    for number, head in lines:
        record = [head, *(line for _, line in itertools.islice(lines, 3))]
        if [line[:1] for line in record[::2]] != ["@", "+"] or list(map(len, record[1::2])) != 2 * [len(record[1])]:
            remedy = "Write a record on four lines: @name, bases, +, as many qualities."
            raise line_error("FASTQ", head, number, path, remedy)
        yield number, record[1]


_HEAD = 8192  # bytes by which a file of an unknown name is told
_fasta = one_column("residues", "counts", fasta_texts, "texts")
_SIGNS: dict[str, Callable[..., Rows]] = {
    r'\s*(\{\s*("|\n|$)|\[\s*([{"]|-?[\d.]+,|\n|$))': text.parse_records,
    r">[^\s>].*\n[A-Za-z*.-]+\s*(\n|$)": _fasta,
}
_lines = one_column("lines", "unknown", text_lines, "numbers")


def _parse_unknown(file: TextIO, path: Path, column: Wanted, *, counts: bool) -> Rows:
    """Finds the rows of a file whose name tells nothing, by its first lines.

    Args:
        file: The file.
        path: Its path.
        column: The wanted columns.
        counts: True if texts are counted: then it is no file of numbers.

    Raises:
        ValueError: The file is binary, or its texts follow ids.
    """
    head = file.buffer.peek(_HEAD)[:_HEAD].decode("utf-8-sig", "ignore")  # pyrefly: ignore[missing-attribute]
    if "\0" in head:
        raise source_error("UTF-8 text, not binary", path, "Save texts as UTF-8; or give a list of lengths.")
    lines = [line for line in head.split("\n") if line.strip()]
    lines = lines[: max(1, len(lines) - (len(head) > _HEAD // 2))]  # the last may be cut
    if parsers := [parse for sign, parse in _SIGNS.items() if re.match(sign, head)]:
        return parsers[0](file, path, column)
    if column and not column[0].isdecimal() and re.search("[,;\t|]", head.partition("\n")[0]):
        return text.parse_table(file, path, column)  # a name needs a header, as in captions.txt of Flickr8k
    for mark in "|\t" if counts else "|":
        if len(lines) > 1 and len(widths := {line.count(mark) for line in lines}) == 1 and widths != {0}:
            return text.parse_table(file, path, column, mark)
    # Comments stand above the ids of IAM's lines.txt.
    if counts and len(lines) > 1 and has_ids([line for line in lines if line[0] != "#"] or lines):
        remedy = "With ids, name it `text`, as in Kaldi; of paths, give their folder; or write JSON lines."
        raise source_error("of one text a line, without ids or paths", path, remedy)
    return _lines(file, path, column) if counts else text.parse_lines(file, path, column)


_text = partial(partial, text.read_text)  # a function that finds rows -> the reader of a format
_AUDIO = {"rule": "a table, an array or a folder of audio files", "remedy": "Give the folder it is in."}
FORMATS = (
    Format("NumPy", (".npy", ".npz"), read_numpy, is_text=False),
    Format("Parquet or Arrow", (".parquet", ".pq", ".arrow", ".feather"), arrow.read_arrow, False, is_large=True),
    Format("CSV or TSV", (".csv", ".tsv"), _text(text.parse_table), is_large=True),
    Format("JSON lines", (".jsonl", ".ndjson"), _text(text.parse_records), is_large=True),
    Format("JSON", (".json",), _text(text.parse_records)),
    Format("FASTA", (".fasta", ".fa", ".faa", ".fna"), _text(_fasta), is_large=True),
    Format("FASTQ", (".fastq", ".fq"), _text(one_column("bases", "counts", fastq_texts, "texts")), is_large=True),
    Format("frames", ("utt2num_frames",), _text(one_column("utt2num_frames", "counts", kaldi_values))),
    Format("samples", ("utt2num_samples",), _text(one_column("utt2num_samples", "samples", kaldi_values))),
    Format("shapes", ("_shape",), _text(one_column("shape", "samples", espnet_shapes))),
    Format("durations", ("utt2dur", "reco2dur"), _text(one_column("utt2dur", "seconds", kaldi_values))),
    Format("texts", ("text",), _text(one_column("text", "unknown", kaldi_texts, "numbers"))),
    Format("segments", ("segments",), _text(one_column("segments", "seconds", kaldi_segments))),
    Format("audio", audio.AUDIO_SUFFIXES, partial(_refuse, **_AUDIO), is_text=False),
)

# Formats that hold neither lengths nor one text a line: the remedy, and the endings.
_LIST = "data, and give a list of lengths."
_REFUSED = {
    f"Load the HDF5 {_LIST}": ".h5 .hdf5 .nc",
    f"Load the PyTorch {_LIST}": ".pt .pth .ckpt .safetensors",
    f"Load the pickled {_LIST}": ".pkl .pickle .joblib",
    f"Load the binary {_LIST}": ".tfrecord .tfrecords .mat .bin .idx .ark .mdb .lmdb .msgpack .png .jpg .gif .mp4 .mkv",
    f"Load the biological {_LIST}": ".pdb .cif .gb .gbk .gff .gtf .vcf .bam .sam .sdf .smi .sto",
    "Save the table as .csv or .parquet.": ".xlsx .xls .ods .db .sqlite .sqlite3 .avro .orc .yaml .yml .arff",
    "Unpack it, or pack it as .gz.": ".zip .tar .tgz .bz2 .xz .zst .7z .rar",
    "Write one text a line, or JSON lines.": ".pdf .doc .docx .rtf .html .xml .tmx .tex .md .srt .vtt .stm .conllu",
    "Give the folder of the audio files, or utt2num_frames or utt2dur.": ".scp utt2spk spk2utt utt2lang .ctm .rttm",
    "Convert the audio to .wav or .flac, and give the folder it is in.": ".m4a .aac .wma .amr .sph .pcm",
}
# Files of other names.
NUMBERS = Format("lines of numbers", (), _text(partial(_parse_unknown, counts=False)))
TEXTS = Format("lines of text", (), _text(partial(_parse_unknown, counts=True)))
PACKED = Format("packed", (), partial(_refuse, rule="a {} file that is not packed", remedy="Unpack it: gunzip FILE."))

_REFUSALS = [Format("", tuple(kinds.split()), partial(_refuse, remedy=remedy)) for remedy, kinds in _REFUSED.items()]
BY_ENDING = {
    ending + packing: PACKED if packing and not format.is_text else format
    for format in (*FORMATS, *_REFUSALS)
    for ending in format.endings
    for packing in ("", ".gz")
}


def find_format(path: str | PurePath) -> Format:
    """Returns the format of a file, by its name.

    >>> find_format("a.CSV.gz").name, find_format("utt2dur.1").name
    ('CSV or TSV', 'durations')
    """
    name = PurePath(path).name
    suffix = "".join(PurePath(name.lower()).suffixes[-2 if name.lower().endswith(".gz") else -1 :])
    stem = name.partition(".")[0]
    stems = () if suffix == ".txt" and not stem.startswith("utt2") else (stem, stem[stem.rfind("_") :])  # text.txt
    return next((BY_ENDING[key] for key in (suffix, *stems) if key in BY_ENDING), NUMBERS)
