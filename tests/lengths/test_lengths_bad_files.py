"""Everything that can be wrong with a file: one row each, and the file, place and value that the error must name."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lengthwise as lw
from lengthwise.lengths import read_lengths
from table_files import as_bytes, npy, npz


def parquet(**columns):
    return as_bytes(lambda file: pq.write_table(pa.table(columns), file))


MIXED = '{"type": "MixedCut", "tracks": %s}'
EXACT = "Floats round larger whole numbers: give integers, which in a file have digits only."
DIGITS = "Write it with the digits 0 to 9 and a point only, as 1250 or 1.25; in JSON without quotes."
TEXTS = (
    'if these are texts, give `count` as "characters", "words" or "tokens" (on the command line: --count characters, '
    "or words)."
)

# Headers of .npy files with one byte changed: NumPy raises errors of tokenize, of the parser, and of comparisons.
HEADER = npy([3, 1, 2])
DAMAGED = [
    HEADER.replace(b"}", b"\x90"),
    HEADER.replace(b"'<i8'", b"',i8'"),
    HEADER.replace(b" 'fort", b"b'fort"),
    HEADER.replace(b"(3,)", b"(9,)"),
    HEADER[:90],
]

WORDS = {"count": "words"}

# File name, content, options, and what the message holds in this order; {} is the path.
BAD = [
    # Values that are no lengths.
    ("a.csv", "id,n\na,3\nb,0\n", {"column": "n"}, ["`n` must be at least 1, but is 0 at line 3 of {}."]),
    ("a.csv", "id,n\na,3\nb,three\n", {"column": "n"}, ["`n` must be a number, but is 'three' at line 3 of {}."]),
    ("a.txt", "utt1 30\n", {}, ["`lengths` must be a number, but is 'utt1' at line 1 of {}.", "utt2num_frames"]),
    ("a.jsonl", '{"n": 3}\n{"n": null}\n', {}, ["`n` must be a number, but is None at line 2 of {}."]),
    ("a.jsonl", '{"n": {"m": 3}}\n', {}, ["`n` must be a number, but is {{'m': 3}} at line 1 of {}."]),
    ("a.jsonl", f'{{"n": 3}}\n{{"n": {2**70}}}\n', {}, ["`n` must be at most 2**63 - 1, but is ", "at line 2 of {}."]),
    ("a.jsonl", '{"n": 1' + "0" * 5000 + "}", {}, ["`source` must be valid JSON, but is ", "at line 1 of {}."]),
    ("a.jsonl", '{"n": 1.5}\n{"n": 1' + "0" * 400 + "}", {"frame_shift": 1}, ["but is ", "at line 2 of {}."]),
    ("a.txt", "1" + "0" * 5000, {}, ["`lengths` must be finite, but is inf at line 1 of {}."]),
    ("a.jsonl", '{"n": [1, 2]}\n{"n": []}\n', {}, ["`n` must be at least 1, but is 0 at line 2 of {}."]),
    ("a.jsonl", '{"n": [1, 2]}\n{"n": 7}\n', {}, ["`n` must be a list,", "but is 7 at line 2 of {}."]),
    ("a.json", '{"n": [5, 6]}', {}, ["`n` must be a number in the only record of a .json file, but is [5, 6]"]),
    ("a.json", '{\n "lengths": [5,\n 6]\n}', {}, ["is [5, 6] at line 1 of {}.", "as [5, 6]", "name the file .jsonl."]),
    (
        "a.json",
        '{"u1": 5, "u2": 6}',
        {},
        ["must be an array of numbers or objects, but is {{'u1': 5, 'u2': 6}} at line"],
    ),
    (
        "a.json",
        '{"n": {"0": 5}, "m": {}}',
        {"column": "n"},
        ["a number in the only record", "Give one record or number"],
    ),
    ("a.json", '{\n "a": 5,\n "b" 6\n}\n', {}, ["must be valid JSON, but is '\"b\" 6' at line 3 of {}."]),
    ("a.npy", npy([[3, 1], [2, -1]]), {}, ["but is -1 at sequence 1, dimension 1 of {}."]),
    ("a.npy", npy([True]), {}, ["`lengths` must be whole numbers, but is True at sequence 0 of {}."]),
    ("a.parquet", parquet(n=[3, None]), {}, ["`n` must be a number, but is None at row 1 of {}."]),
    ("a.parquet", parquet(n=["3", "x"]), {}, ["`n` must be a number, but is '3' at row 0 of {}. " + DIGITS]),
    # What Python takes for a number and no other program does; what a float cannot hold.
    ("a.txt", "7\n1_000\n", {}, ["`lengths` must be a number, but is '1_000' at line 2 of {}. " + DIGITS]),
    ("a.csv", "n\n7\n１２\n", {}, ["`n` must be a number, but is '１２' at line 3 of {}. " + DIGITS]),
    ("a.jsonl", '{"n": 5}\n{"n": "7"}', {}, ["`n` must be a number, but is '7' at line 2 of {}. " + DIGITS]),
    ("a.txt", "1\xa0234\n", {}, ["`lengths` must be a number, but is '1\\xa0234' at line 1 of {}."]),
    ("a.jsonl", '{"n": 1.0}\n{"n": 9007199254740993}', {}, ["but is 9007199254740992.0 at line 2 of {}. " + EXACT]),
    ("a.parquet", parquet(n=np.array([2**24], np.float32)), {}, ["2**24 as a float, but is 16777216.0 at"]),
    # Texts, and lists of lists.
    ("a.csv", "id;dur\na;1,25\n", {"column": "dur"}, ["is '1,25'", "Write it with the digits 0 to 9"]),
    ("a.csv", "id,text\na,hello you\n", {"column": "text"}, ["or drop the sequence; " + TEXTS]),
    ("a.parquet", parquet(n=[{"m": 3}]), {}, ["but is {{'m': 3}} at row 0 of {}. Name one of its fields, as n.m."]),
    ("a.jsonl", '{"n": [[1, 2, 3], [4, 5, 6]]}', {}, ["a list of numbers, which are then counted, but is [[1,"]),
    ("a.jsonl", '{"n": [1]}\n{"n": [[1]]}', {}, ["a list of numbers", "at line 2 of {}. Add a column with the"]),
    ("a.jsonl", "[1, 2, 3]\n", {}, ["is [1, 2, 3] at line 1 of {}.", "name it .json"]),
    ("a.npy", npy(np.ones((2, 9), int)), {}, ["`lengths` must be at most 8 for each sequence, but is 9. If these are"]),
    # Samples and seconds.
    ("a.csv", "dur\n1.5\n2.25\n", {"frame_shift": 160}, ["at most the longest duration, 2.25, but"]),
    # Seconds.
    ("a.csv", "dur\n2\n0\n", {"frame_shift": 0.1}, ["finite and above 0, but is 0 at line 3 of {}."]),
    ("a.csv", "dur\n1e300\n", {"frame_shift": 1e-300}, ["of fewer than 2**53 frames, but is 1e+300 at"]),
    ("utt2dur", "a 2\n", {}, ["`frame_shift` must be given, because utt2dur is in seconds, but is None."]),
    ("a.jsonl", '{"num_frames": 3}', {"frame_shift": 0.1}, ["It does not apply to counts (num_frames)"]),
    ("a.csv", "n\n1\n", {"frame_shift": 0}, ["`frame_shift` must be finite and above 0, but is 0."]),
    # Columns.
    ("a.csv", "id,frames\na,1\n", {"column": "frame"}, ["one of frames, ", "is 'frame' at line 1 of {}. Did you mean"]),
    ("a.csv", "id,n\na,3\n", {}, ["`column` must be one of id, n, but is None at line 1 of {}.", "FILE:id"]),
    ("a.csv", "id,frames\na,3\n", {}, ["one of id, frames, but is None", 'Give column="frames" (on', "FILE:frames"]),
    ("a.csv", f"{','.join('abcdefghijklmnopqrst')}\n", {}, ["one of a, b, ", "s, t, but is None at line 1 of {}."]),
    ("a.csv", f"{','.join('abcdefghijklmnopqrstu')}\n", {}, ["one of a, b, ", "s, t, ..., but is None at line 1"]),
    ("a.csv", "n,n\n3,3\n", {"column": "n"}, ["`column` must be the name of one column, but is 'n' at line 1 of {}."]),
    ("a.csv", "3,4\n5,6\n", {}, ["`source` must be a table with a header, but is ['3', '4'] at line 1 of {}."]),
    ("a.jsonl", '{"n": 3}\n{"m": 3}\n', {"column": "n"}, ["`column` must be one of m, but is 'n' at line 2 of {}."]),
    ("a.jsonl", '{"a": 1, "b": 2}', {}, ["`column` must be one of a, b, but is None at line 1 of {}."]),
    ("a.jsonl", "{{}}", {"column": "a"}, ["`source` must be valid JSON, but is '{{{{}}}}' at line 1 of {}."]),
    ("a.jsonl", MIXED % "[]", {}, ["`column` must be one of tracks, type, but is 'duration' at line 1 of {}."]),
    ("a.parquet", parquet(s=[{"n": 3}]), {"column": "s.m"}, ["must be one of n, but is 'm' at s of {}."]),
    ("a.npz", npz(x=[3]), {}, ["`source` must be a .npy file, but is '{}'. Give one array of the archive, as"]),
    ("a.txt", "3\n", {"column": "n"}, ["`column` must be one of 0, but is 'n' at {}. Give"]),
    ("utt2dur", "a 3\n", {"count": "words"}, ["`count` must be given for texts only, but is 'words'."]),
    ("utt2dur", "a 3\n", {"column": "1"}, ["`column` must be left out here, but is '1'.", "{}"]),
    ("a.csv", "a,b\n1,2\n", {"column": 1}, ['`column` must be a text, but is 1. Write a dimension as "0", several']),
    # Files that are damaged or not what they say.
    ("a.csv", "a,b\n1,2\n3\n", {"column": "a"}, ["2 columns on every line", "but is ['3'] at line 3 of {}."]),
    ("a.csv", 'a,b\n1,"x\n2,y\n', {"column": "a"}, ["unexpected end of data", "at line 3 of {}."]),
    ("a.txt", "3 1\n3\n", {}, ["`source` must be 2 columns on every line, but is ['3'] at line 2 of {}."]),
    ("a.json", '[\n{"n": 3},\n{"n" 3}]', {}, ["valid JSON, but is '{{\"n\" 3}}]' at line 3 of {}.", "delimiter"]),
    ("a.jsonl", '{"n": 3}\n"x"\n', {}, ["`source` must be JSON objects or numbers, but is 'x' at line 2 of {}."]),
    ("a.parquet", parquet(n=pa.array([], pa.int64())), {}, ["`source` must be a file with sequences, but is '{}'."]),
    ("a.npy", npy(np.array([{"a": 1}])), {}, ["must be an array of numbers, not of Python objects, but is '{}'."]),
    ("a.npy.gz", gzip.compress(npy([3])), {}, ["a .npy file that is not packed, but is '{}'. Unpack it: gunzip"]),
    ("a.npz", b"PK\x03\x04junk", {}, ["`source` must be a .npy file, but is '{}'."]),
    *(("a.npy", damaged, {}, ["`source` must be a .npy file, but is '{}'."]) for damaged in DAMAGED),
    ("a.json", 100_000 * "[", {}, ["`source` must be valid JSON, but is '[[[[", "at line 1 of {}. Drop it."]),
    ("a.jsonl", '{"n": ' + 100_000 * '{"n": ', {}, ["`source` must be valid JSON, but is ", "at line 1 of {}."]),
    ("a.jsonl", '{"n": ' + 500 * "[" + 500 * "]" + "}", {}, ["`n` must be a list of numbers, which are then counted"]),
    ("a.jsonl", '{"n": [[1]]}', {"column": "n" + 2_000 * ".*"}, ["`column` must be one of n, but is 'n.*.*"]),
    # Names that hold a comma.
    ("a.csv", '"x,y",n\n1,2\n', {"column": "x,z"}, ["`column` must be one of x,y, n, but is 'x' at line 1 of {}."]),
    ("a.csv.gz", b"n\n3\n", {}, ["`source` must be a whole gzip file, but is '{}'.", "Not a gzipped file"]),
    ("a.txt.gz", gzip.compress(b"3\n" * 9999)[:-12], {}, ["`source` must be a whole gzip file, but is '{}'."]),
    ("a.csv", "n,text\n3,x\n4,é\n".encode("latin-1"), {"column": "n"}, ["but is b'n,text\\n3,x\\n4,\\xe9\\n' at {}."]),
    # What is neither lengths nor one text a line.
    ("a.csv", "the cat sat\nhello you\n", WORDS, ["`column` must be given for texts, but is None at line 2 of {}."]),
    ("a.csv", "LJ1|a b|a b\nLJ2|c|c\n", WORDS, ["is None at line 1 of {}.", "Without a header, give their numbers"]),
    ("a.txt", "a b\tc\nd\te\n", WORDS, ["is None at line 1 of {}.", "Without a header, give their numbers"]),
    ("a.csv", ",0,1\n0,5,6\n", {"column": "1"}, ["a table with a header, but is ['', '0', '1'] at line 1 of {}."]),
    ("a.csv", "a,b\nx,y\n", {"column": "a+c", **WORDS}, ["`column` must be one of b, a, but is 'c' at line 1 of {}."]),
    ("a.fa", "salam donya\nhi\n", WORDS, ["FASTA, which begins with >, but is 'salam donya\\n' at line 1 of {}."]),
    ("a.fa", ">x\nMK VL\n11 A\n", {}, ["but is '11 A\\n' at line 3 of {}. Below each > write letters without numbers"]),
    ("a.fq", "@x\nACGT\nAAA\n+\nIIII\n", {}, ["`source` must be FASTQ, but is '@x' at line 1 of {}. Write a"]),
    ("text", "utt1 so\nutt1 it\n", WORDS, ["an id and a text on every line, but is 'utt1 it\\n' at line 2 of {}."]),
    ("text", "the cat\nhello you\n", WORDS, ["an id and a text on every line", "has texts alone, name it .txt."]),
    ("a.txt", "utt1 so it\nutt2 ends\n", WORDS, ["one text a line, without ids or paths, but is '{}'."]),
    ("a.lst", "/data/a.wav\n/data/b.wav\n", WORDS, ["one text a line, without ids or paths, but is '{}'."]),
    ("a.txt", "[1, 2]\n[3]\n", WORDS, ["`source` must be JSON objects or numbers, but is [1, 2] at line 1 of {}."]),
    ("segments", "u1 r1 0.5 x\n", {"frame_shift": 1}, ["`segments` must be a number, but is '0.5 x' at line 1 of {}."]),
    ("a.dat", b"\1\0\0\0", {"count": "characters"}, ["`source` must be UTF-8 text, not binary, but is '{}'."]),
    ("a.txt", "# IAM\nu01 ok A|B\nu02 ok C|D|E\n", WORDS, ["one text a line, without ids or paths, but is '{}'."]),
    ("a.rttm", "SPEAKER u1 1 0.0 1.2\n", WORDS, ["not .rttm, but is '{}'."]),
    ("a.yaml", "- n: 3\n", WORDS, ["not .yaml, but is '{}'. Save the table"]),
    ("a.h5", b"\x89HDF", WORDS, ["of one text a line, not .h5, but is '{}'. Load the HDF5 data, and give a list"]),
    ("a.xlsx", b"PK", {}, ["not .xlsx, but is '{}'. Save the table as .csv or .parquet."]),
    ("feats.scp", "utt1 a.ark:5\n", WORDS, ["not .scp, but is '{}'. Give the folder of the audio files"]),
    ("utt2spk", "utt1 spk1\n", WORDS, ["not utt2spk, but is '{}'. Give the folder of the audio files"]),
    ("a.jsonl.zst", b"(", WORDS, ["not .zst, but is '{}'. Unpack it, or pack it as .gz."]),
    ("a.wav", b"RIFF", {}, ["`source` must be a table, an array or a folder of audio files, but is '{}'."]),
]


@pytest.mark.parametrize(
    ("name", "content", "options", "parts"), BAD, ids=[f"{k}-{row[0]}" for k, row in enumerate(BAD)]
)
def test_bad_file_gets_one_sentence_with_its_place(tmp_path, name, content, options, parts):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises((ValueError, TypeError)) as caught:
        read_lengths(path, **options)
    message = str(caught.value)
    assert message.startswith("`")
    assert message.endswith((".", "?"))
    assert "\n" not in message
    for part in parts:
        assert part.format(path) in message


@pytest.mark.parametrize("damaged", DAMAGED)
def test_a_damaged_header_is_refused_where_the_file_is_mapped_too(tmp_path, damaged):
    (tmp_path / "a.npy").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"^`lengths` must be the path of a \.npy file, but is .*a\.npy"):
        lw.Windows(tmp_path / "a.npy", lw.Batching(budget=9))


def test_what_is_no_file_is_refused_too(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"^`source` must be a file or folder that exists, but is 'no/a.csv'"):
        read_lengths("no/a.csv")
    with pytest.raises(ValueError, match=r"`column` must be left out here, but is 'n'. It does not apply to an array"):
        read_lengths([3, 1], column="n")
    with pytest.raises(ValueError, match=r"`column` must be left out here, but is 'n'."):
        read_lengths(tmp_path, column="n")
