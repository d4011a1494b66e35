"""The formats of files, in one table.

To add a format, write its line in `FORMATS`, and a function. For a format of text with one value a sequence, the
function yields the number of each line and its value: see `kaldi_values` of `one_column`. For others it finds the rows
and the columns: see `parse_table` of `text`. A file of an unknown name is told by its first lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePath
from typing import NamedTuple, TextIO

from lengthwise import checks
from lengthwise.lengths import arrow, audio, one_value, text
from lengthwise.lengths.arrays import read_numpy
from lengthwise.lengths.columns import Wanted
from lengthwise.lengths.one_value import one_column
from lengthwise.lengths.text import Parts, Rows


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
    raise checks.source_error(rule.format(name.suffix or name), path, remedy)


_HEAD = 8192  # bytes by which a file of an unknown name is told
_JSON = re.compile(r'\s*(\{\s*("|$)|\[\s*([{"]|-?[\d.]+,|$))')
_FASTA = re.compile(r">[^\s>].*\n[A-Za-z*.-]+\s*(\n|$)")
_fasta = one_column("residues", "counts", one_value.fasta_texts, "texts")
_fastq = one_column("bases", "counts", one_value.fastq_texts, "texts")
_lines = one_column("lines", "unknown", one_value.text_lines, "numbers")


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
        raise checks.source_error("UTF-8 text, not binary", path, "Save texts as UTF-8; or give a list of lengths.")
    lines = [line for line in head.split("\n") if line.strip()]
    lines = lines[: max(1, len(lines) - (len(head) > _HEAD // 2))]  # the last may be cut
    if lines and _JSON.match(lines[0]):
        return text.parse_records(file, path, column)
    if _FASTA.match(head):
        return _fasta(file, path, column)
    for mark in "|\t" if counts else "|":
        if len(widths := {line.count(mark) for line in lines}) == 1 and widths != {0}:
            return text.parse_table(file, path, column, mark)
    if counts and len(lines) > 1 and one_value.has_ids(lines):
        remedy = "Name it `text`, as in Kaldi, and the ids are left out; or write JSON lines."
        raise checks.source_error("of one text a line, without ids", path, remedy)
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
    Format("FASTQ", (".fastq", ".fq"), _text(_fastq), is_large=True),
    Format("frames", ("utt2num_frames",), _text(one_column("utt2num_frames", "counts", one_value.kaldi_values))),
    Format("samples", ("utt2num_samples",), _text(one_column("utt2num_samples", "samples", one_value.kaldi_values))),
    Format("shapes", ("_shape",), _text(one_column("shape", "samples", one_value.espnet_shapes))),
    Format("durations", ("utt2dur", "reco2dur"), _text(one_column("utt2dur", "seconds", one_value.kaldi_values))),
    Format("texts", ("text",), _text(one_column("text", "unknown", one_value.kaldi_texts, "numbers"))),
    Format("segments", ("segments",), _text(one_column("segments", "seconds", one_value.kaldi_segments))),
    Format("audio", audio.AUDIO_SUFFIXES, partial(_refuse, **_AUDIO), is_text=False),
)

# Formats that hold neither lengths nor one text a line: the remedy, and the endings.
_DATA = {
    "HDF5": ".h5 .hdf5 .nc",
    "PyTorch": ".pt .pth .ckpt .safetensors",
    "pickled": ".pkl .pickle .joblib",
    "binary": ".tfrecord .tfrecords .mat .bin .idx .ark .mdb .lmdb .msgpack .rds .png .jpg .jpeg .gif .mp4 .mkv .mov",
    "biological": ".pdb .cif .mmcif .gb .gbk .gff .gtf .vcf .bam .sam .sdf .smi .sto",
}
_REFUSED = {
    **{f"Load the {name} data, and give a list of lengths.": endings for name, endings in _DATA.items()},
    "Save the table as .csv or .parquet.": ".xlsx .xls .ods .db .sqlite .sqlite3 .avro .orc",
    "Unpack it, or pack it as .gz.": ".zip .tar .tgz .bz2 .xz .zst .7z .rar",
    "Write one text a line, or JSON lines.": (
        ".pdf .doc .docx .odt .rtf .epub .html .htm .xml .tmx .sgm .tex .md .yaml .yml .srt .vtt .textgrid .ctm .stm "
        ".rttm .lab .eaf .conll .conllu .iob"
    ),
    "Give the folder of the audio files, or utt2num_frames or utt2dur.": ".scp utt2spk spk2utt utt2lang",
    "Convert the audio to .wav or .flac, and give the folder it is in.": ".m4a .aac .wma .amr .sph .pcm",
}
# Files of other names.
NUMBERS = Format("lines of numbers", (), _text(partial(_parse_unknown, counts=False)))
TEXTS = Format("lines of text", (), _text(partial(_parse_unknown, counts=True)))
PACKED = Format("packed", (), partial(_refuse, rule="a {} file that is not packed", remedy="Unpack it: gunzip FILE."))

_REFUSALS = [
    Format("", tuple(names.split()), partial(_refuse, remedy=remedy), False) for remedy, names in _REFUSED.items()
]
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
