"""Every file format, each from a tiny file, the splitting of FILE:COLUMN, and the units in names of columns."""

import gzip
import json
import os
import sys
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.lengths import read_lengths, split_source
from lengthwise.lengths.columns import unit_of
from lengthwise.lengths.formats import BY_ENDING, FORMATS, Format, one_column
from lengthwise.lengths.text import read_text
from table_files import write_table

NEMO = [{"audio_filepath": "a.wav", "duration": 1.234, "text": "x"}, {"audio_filepath": "b.wav", "duration": 2}]
CUTS = [
    {"id": "a", "start": 0, "duration": 1.5, "channel": 0, "type": "MonoCut", "supervisions": [{"duration": 1.0}]},
    {"id": "b", "start": 0, "duration": 0.25, "channel": 0, "type": "MonoCut", "supervisions": [{"duration": 0.125}]},
]
# The tracks end after 1.5, 2.5 and 2.75 seconds; 0.1 + 0.2 is 0.30000000000000004, which Lhotse rounds to 0.3.
MIXED = [
    {"id": "c", "type": "MixedCut", "tracks": [
        {"cut": {**CUTS[0], "type": "MonoCut"}, "type": "MonoCut", "offset": 0.0},
        {"cut": CUTS[1], "type": "MonoCut", "offset": 2.25, "snr": 10},
        {"cut": {"id": "p", "duration": 1.25, "sampling_rate": 16000}, "type": "PaddingCut", "offset": 1.5},
    ]},
    {"id": "d", "type": "MixedCut", "tracks": [{"cut": {"duration": 0.2}, "type": "MonoCut", "offset": 0.1}]},
]  # fmt: skip
RECORDINGS = [{"id": "a", "sampling_rate": 16000, "num_samples": 24000, "duration": 1.5, "channel_ids": [0]}]
FEATURES = [{"type": "fbank", "num_frames": 150, "num_features": 80, "frame_shift": 0.01, "duration": 1.5}]


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


WORDS = {"count": "words"}
TEXTS = [
    ("a.txt", "3\n1\n\n2\n", {}, [3, 1, 2]),
    ("a.txt", "\ufeff3\n1\n", {}, [3, 1]),
    ("a.txt", "a 10\nb 20\n", {"column": "1"}, [10, 20]),
    ("a.txt", "# source target\n3 10\n #two of them, 2020\n1 20\n", {}, [[3, 10], [1, 20]]),
    ("utt2num_frames", "#a 30\nb 10\n", {}, [30, 10]),
    ("a.txt", "0.5 7\n1 9\n", {"frame_shift": 0.01}, [[50, 7], [100, 9]]),
    ("utt2dur", "a 0.3\nb 1\n", {"frame_shift": 0.1}, [3, 10]),
    ("a.csv", 'id,frames,text\na,3,"x, y"\nb,1,"x\ny"\n\nc,2,z\n', {"column": "frames"}, [3, 1, 2]),
    ("a.csv", "id, source, target\na,3,4\nb,1,5\n", {"column": "target, source"}, [[4, 3], [5, 1]]),
    ("a.csv", "id,duration\na,0.145\nb,0.144\nc,0.001\n", {"column": "duration", "frame_shift": 0.01}, [15, 14, 1]),
    ("a.csv", 'id,"source, target",source,target\na,3,4,9\nb,1,5,9\n', {"column": "source, target"}, [3, 1]),
    ("a.tsv", 'id\ttext\tn\na\t"oh\t3\nb\tx, y\t1\n', {"column": "n"}, [3, 1]),
    ("a.csv", "a;b,n\nx;y,3\n", {"column": "n"}, [3]),
    ("a.csv", "\n\n\nid;n\na;5\nb;9\n", {"column": "n"}, [5, 9]),
    ("a.csv", "n\n9007199254740993\n", {}, [2**53 + 1]),
    ("a.csv", "n\n 1e3\n+5\n", {}, [1000, 5]),
    ("a.csv", "samples\n48000\n16000\n", {"frame_shift": 160}, [300, 100]),
    ("a.csv", "samples\n160\n80\n", {"frame_shift": 160}, [1, 1]),
    ("a.csv", "duration_ms\n20\n10\n", {"frame_shift": 1}, [20, 10]),
    ("a.csv", "samples,words\n3,4\n", {"column": "samples,words", "frame_shift": 1}, [[3, 4]]),
    ("utt2num_frames", "a\xa0b 3\n", {}, [3]),
    ("a.json", '{\n "n": 3\n}\n', {}, [3]),
    ("a.jsonl", "3\n1\n", {}, [3, 1]),
    ("a.jsonl", lines([{"ids": [5, 6, 7], "n": 1}, {"ids": [5], "n": 1}]), {"column": "ids"}, [3, 1]),
    ("a.jsonl", lines([{"a.b": 3, "a": {"b": 9}}]), {"column": "a.b"}, [3]),
    ("a.json", "[3, 1]", {}, [3, 1]),
    ("a.json", '[{"ids": [5, 6, 7]}]', {}, [3]),
    ("a.json", '{"ids": [5, 6, 7]}\n{"ids": [5]}', {}, [3, 1]),
    ("a.json", lines(NEMO), {"frame_shift": 0.01}, [123, 200]),
    ("a.jsonl", lines(CUTS), {"frame_shift": 0.01}, [150, 25]),
    ("a.jsonl", lines(CUTS), {"column": "supervisions.0.duration", "frame_shift": 0.125}, [8, 1]),
    ("a.jsonl", lines(CUTS + MIXED), {"frame_shift": 0.01}, [150, 25, 275, 30]),
    ("a.jsonl", lines(RECORDINGS), {"frame_shift": 0.01}, [150]),
    ("a.jsonl", lines(FEATURES), {}, [150]),
    ("a.json", '{"duration": 1.5, "n": 3}', {"frame_shift": 0.5}, [3]),  # one record of a known manifest
    ("a.json", '{"utt1": 312, "utt2": 87}', {"column": "utt2"}, [87]),
    ("a.csv", "id\tframes\na\t3\nb\t1\n", {"column": "frames"}, [3, 1]),
    # Formats of fields. FASTA and FASTQ are counted in letters.
    ("a.fasta", ">x y\nMKVLAA\nGGH\n;note\n\n>z\nMM \n", {}, [9, 2]),
    ("a.faa", ">x\nMKV*\n>z\nM-\n", {"count": "characters"}, [4, 2]),
    ("a.dat", ">x\nMKVLAA\nGGH\n>z\nMM\n", {"count": "characters"}, [9, 2]),
    ("a.fq", "@x\nACGT\n+\n@>II\n@y\nAC\n+y\n+I\n", {}, [4, 2]),
    ("text", "utt1 so it begins\nutt2\tand ends\n", WORDS, [3, 2]),
    ("segments", "u1 r1 0.5 2.31\nu2 r1 2.31 3.0\n", {"frame_shift": 0.01}, [181, 69]),
    ("reco2dur", "a 0.3\nb 1\n", {"frame_shift": 0.1}, [3, 10]),
    ("speech_shape", "u1 1234,80\nu2 99,80\n", {}, [1234, 99]),
    ("text_shape.bpe", "u1 12,30\nu2 9,30\n", {}, [12, 9]),
    ("utt2num_samples", "a 16000\nb 320\n", {"frame_shift": 160}, [100, 2]),
    ("a.tsv", "/data/train\na/b.flac\t16000\nc.flac\t320\n", {}, [16000, 320]),
    ("a.tsv", "/data/train\na/b.flac\t16000\nc.flac\t320\n", {"frame_shift": 160}, [100, 2]),
    ("a.tsv", ".\na/b.flac\t16000\nc.flac\t320\n", {}, [16000, 320]),
    ("a.tsv", "/\nid\tv.mp4\ta.wav\t75\t48000\n", {"column": "3"}, [75]),
    ("a.list", '{"key": "a", "wav": "a.wav", "duration": 1.5}\n', {"frame_shift": 0.01}, [150]),
    ("a.txt", '{"key": "a", "txt": "so it begins"}\n', {"column": "txt", **WORDS}, [3]),
    ("a.txt", "# so it\n#begins\n", WORDS, [3, 1]),
    # Tables of other names, if a column is named.
    ("a.txt", 'image,caption\n1.jpg,"so, it begins"\n1.jpg,go on\n', {"column": "caption", **WORDS}, [3, 2]),
    ("a.dat", "name;frames\na;3\nb;5\n", {"column": "frames"}, [3, 5]),
    # Without a header, a column is a number.
    ("a.csv", 'LJ1|in "being, x|in being\nLJ2|so, it|so it is\n', {"column": "2", **WORDS}, [2, 3]),
    ("a.txt", "wavs/1.wav|so it begins\nwavs/2.wav|and ends\n", {"column": "1", **WORDS}, [3, 2]),
    ("a.csv", "file|text\n1.wav|so it begins\n", {"column": "text", **WORDS}, [3]),
    ("a.csv", "the cat sat\nhello world\n", {"column": "0", **WORDS}, [3, 2]),
    ("a.csv", "the cat sat\nhello world\n", {"column": "the cat sat", **WORDS}, [2]),
    ("a.tsv", "a b c\tx\nd\ty z\n", {"column": "0,1", **WORDS}, [[3, 1], [1, 2]]),
    ("a.txt", "Go on.\tGeh.\tCC\nHi.\tHallo du!\tCC\n", {"column": "1", **WORDS}, [1, 2]),
    ("a.csv", "3,4\n5,6\n", {"column": "1"}, [4, 6]),
    # Sums.
    ("a.csv", "a,b,c\nso it,,begins\n,,x\n", {"column": "a + b+c", **WORDS}, [3, 1]),
    ("a.csv", "a,b,c\n1,2,9\n3,,9\n", {"column": "a+b,c"}, [[3, 9], [3, 9]]),
    ("a.jsonl", lines([{"a": [1, 2], "b": [3]}, {"a": [1], "b": None}]), {"column": "a+b"}, [3, 1]),
    ("a.csv", "a+b,a,b\n3,1,1\n", {"column": "a+b"}, [3]),
]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize(("name", "text", "options", "expected"), TEXTS, ids=[str(k) for k in range(len(TEXTS))])
def test_text_formats(tmp_path, name, text, options, expected, packed):
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    lengths = read_lengths(path, **options)
    assert lengths.dtype == np.int64
    assert not lengths.flags.writeable
    assert lengths.tolist() == expected


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_a_cell_may_be_as_long_as_it_likes(tmp_path, name):
    path, gap = tmp_path / name, "," if name == "a.csv" else "\t"
    rows = [("n", "text"), ("3", 200_000 * "x"), ("1", "y")]
    path.write_text("".join(f"{gap.join(row)}\n" for row in rows))
    assert read_lengths(path, column="n").tolist() == [3, 1]
    path.write_text(f"n{gap}text\n3\n")
    with pytest.raises(ValueError, match="`source` must be 2 columns on every line"):
        read_lengths(path, column="n")


def test_a_kaldi_folder_is_refused_by_its_files(tmp_path):
    (tmp_path / "utt2dur").write_text("b 0.3\na 1\n")
    with pytest.raises(ValueError, match=r"^`source` must be a folder with audio files, .* give the file utt2"):
        read_lengths(tmp_path, frame_shift=0.1)


def test_npy(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[3, 10], [1, 20]], dtype=np.int32))
    np.save(tmp_path / "b.npy", np.array([0.5, 1.0]))
    assert read_lengths(tmp_path / "a.npy").tolist() == [[3, 10], [1, 20]]
    assert read_lengths(tmp_path / "a.npy", column="1").tolist() == [10, 20]
    with pytest.raises(ValueError, match="`column` must be one of 1, 0, but is "):
        read_lengths(tmp_path / "a.npy", column="2")
    assert read_lengths(str(tmp_path / "b.npy"), frame_shift=0.25).tolist() == [2, 4]


VIEWS = {}  # pyarrow writes them to Parquet since 21
if int(pa.__version__.partition(".")[0]) >= 21:
    VIEWS = {
        "list view": pa.array([[1, 2], [3], [4, 5, 6]], pa.list_view(pa.int64())),
        "large list view": pa.array([[1, 2], [3], [4, 5, 6]], pa.large_list_view(pa.int64())),
    }
COLUMNS = {
    "n": pa.array([3, 1, 2], pa.int32()),
    "seconds": pa.array([0.5, 1.0, 0.25], pa.float32()),
    "ids": [[1, 2], [3], [4, 5, 6]],
    "pair": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int64(), 2)),
    "coded": pa.array([7, 8, 7]).dictionary_encode(),
    "exact": [Decimal("1.50"), Decimal("2.00"), Decimal("0.25")],
    **VIEWS,
    "nested": [{"deep": {"m": 4}}, {"deep": {"m": 5}}, {"deep": {"m": 6}}],
    "dot.ted": [1, 2, 3],
}
ARROW = [
    ("n", None, [3, 1, 2]),
    ("seconds", 0.25, [2, 4, 1]),
    ("ids", None, [2, 1, 3]),
    ("pair", None, [2, 2, 2]),
    ("coded", None, [7, 8, 7]),
    ("exact", 0.25, [6, 8, 1]),
    *((name, None, [2, 1, 3]) for name in VIEWS),
    ("nested.deep.m", None, [4, 5, 6]),
    ("dot.ted", None, [1, 2, 3]),
    ("n, ids", None, [[3, 2], [1, 1], [2, 3]]),
]


@pytest.mark.parametrize(("column", "frame_shift", "expected"), ARROW, ids=[row[0] for row in ARROW])
def test_parquet_and_arrow(tmp_path, column, frame_shift, expected):
    for name in ("a.parquet", "a.arrow"):
        path = write_table(tmp_path / name, **COLUMNS)
        assert read_lengths(path, column=column, frame_shift=frame_shift).tolist() == expected


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz", "a.pq", "a.feather"])
def test_other_suffixes_are_read_and_one_column_needs_no_name(tmp_path, name):
    assert read_lengths(write_table(tmp_path / name, n=[3, 1])).tolist() == [3, 1]


COMMAS = {"x,y": [3, 1], "n": [5, 6], "x": [7, 8], "x,y,z": [9, 9]}


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_name_may_hold_commas(tmp_path, name):
    path = write_table(tmp_path / name, **COMMAS)
    names = {"x,y": ["x,y"], "x,y,z": ["x,y,z"], "n, x,y": ["n", "x,y"], "x,n,x,y": ["x", "n", "x,y"]}
    for column, dims in names.items():
        expected = np.array([COMMAS[dim] for dim in dims]).T.tolist() if len(dims) > 1 else COMMAS[dims[0]]
        assert read_lengths(path, column=column).tolist() == expected
        assert lw.write_lengths(path, tmp_path / "o.npy", column=column).lengths.tolist() == expected


def test_a_nested_name_may_hold_commas(tmp_path):
    path = write_table(tmp_path / "a.jsonl", **{"a,b": [{"n": 3}, {"n": 4}], "m": [1, 2]})
    assert read_lengths(path, column="m,a,b.n").tolist() == [[1, 3], [2, 4]]


def tag_lengths(file, _):
    """Yields the line of each tag, and the letters below it."""
    for number, line in enumerate(file, start=1):
        if line.startswith("#"):
            yield number, len(next(file).strip())


def test_a_format_of_one_column_needs_a_line_and_a_small_function(tmp_path, monkeypatch):
    tagged = Format("tags", (".tag",), partial(read_text, one_column("lengths", "counts", tag_lengths)), is_large=True)
    monkeypatch.setitem(BY_ENDING, ".tag", tagged)
    for name, text in (("a.tag", "#x\nACGT\n#y\nAC\n"), ("b.tag", "#z\nA\n")):
        (tmp_path / name).write_text(text)
    assert read_lengths(tmp_path / "a.tag").tolist() == [4, 2]
    assert read_lengths(tmp_path).tolist() == [4, 2, 1]
    assert lw.write_lengths(tmp_path, tmp_path / "o.npy", batch_size=1).lengths.tolist() == [4, 2, 1]
    with pytest.raises(ValueError, match=r"^`frame_shift` must be given for durations only"):
        read_lengths(tmp_path / "a.tag", frame_shift=0.01)


def test_every_format_is_on_the_page_of_files():
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    endings = [ending for format in FORMATS for ending in format.endings]
    assert [ending for ending in endings if f"`{ending}`" not in page] == []


def test_arrays_are_read_as_lengths():
    assert read_lengths([3, 1]).tolist() == [3, 1]
    assert read_lengths(np.array([[0.5, 7.0]]), frame_shift=0.1).tolist() == [[5, 7]]
    assert len(read_lengths([])) == 0
    # In float32, 1234.565 / 0.01 would be rounded to 123457.
    assert read_lengths(np.array([1234.565], np.float32), frame_shift=0.01).tolist() == [123_456]


@given(st.integers(1, 10**6), st.sampled_from([0.01, 0.0125, 0.016, 0.02]))
def test_durations_written_with_three_decimals_round_half_up_as_written(milliseconds, frame_shift):
    expected = max(1, int(Decimal(milliseconds) / Decimal(str(frame_shift * 1000)) + Decimal("0.5")))
    assert read_lengths([milliseconds / 1000], frame_shift=frame_shift).tolist() == [expected]


SPLITS = [
    ("a.csv:frames", ("a.csv", "frames")),
    ("a.jsonl:supervisions.0.duration", ("a.jsonl", "supervisions.0.duration")),
    (r"C:\data\a.csv", (r"C:\data\a.csv", None)),
    (r"C:\data\a.csv:frames", (r"C:\data\a.csv", "frames")),
    ("C:a.csv", ("C:a.csv", None)),
    ("1:frames", ("1", "frames")),  # no drive has a number
    ("gone:12/a.npy", ("gone:12/a.npy", None)),
    ("there:12.csv", ("there:12.csv", None)),
    ("there:12.csv:n", ("there:12.csv", "n")),
    ("there:12.csv:n.csv:n", ("there:12.csv:n.csv", "n")),
]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no colons in file names")
@pytest.mark.parametrize(("text", "expected"), SPLITS, ids=[row[0] for row in SPLITS])
def test_split_source(tmp_path, monkeypatch, text, expected):
    monkeypatch.chdir(tmp_path)
    for name in ("there:12.csv", "there:12.csv:n.csv"):
        (tmp_path / name).write_text("n\n1\n")
    assert split_source(text) == expected
    for one_sided in ("a.csv:", ":frames"):
        with pytest.raises(ValueError, match=f"`source` must be FILE or FILE:COLUMN, but is '{one_sided}'"):
            split_source(one_sided)


def test_absent_pyarrow_is_named(tmp_path, monkeypatch):
    path = write_table(tmp_path / "a.parquet", n=[3])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pyarrow"):
        read_lengths(path)


def test_a_packed_file_may_be_named_in_capitals(tmp_path):
    path = tmp_path / "A.CSV.GZ"
    path.write_bytes(gzip.compress(b"n\n5\n9\n"))
    assert read_lengths(path).tolist() == [5, 9]


# Units in names of columns: an option in another unit is refused, and never guessed.

UNITS = {
    "milliseconds": ["duration_ms", "duration[ms]", "Duration (ms)", "durationMs", "DURATION_MS", "audio.dur.ms"],
    "seconds": ["duration_s", "len_sec", "n_seconds", "seconds", "Duration (s)"],
    "samples": ["num_samples", "samples"],
    "counts": ["num_frames", "tokens", "n_tokens"],
    "unknown": ["duration", "len_s", "ms", "s", "frames_12p5ms", "frames_10_ms", "length", "7", "", "ids", "class_s"],
}


@pytest.mark.parametrize("unit", UNITS)
def test_the_last_word_of_a_name_is_a_unit(unit):
    assert {name: unit_of(name) for name in UNITS[unit]} == dict.fromkeys(UNITS[unit], unit)


@pytest.fixture(params=["read", "write"])
def lengths_of(request, tmp_path):
    def lengths_of(name, values, **options):
        path = write_table(tmp_path / "a.csv", **{name: values})
        if request.param == "read":
            return lw.read_lengths(path, column=name, **options).tolist()
        return lw.write_lengths(path, tmp_path / "a.npy", column=name, **options).lengths.tolist()

    return lengths_of


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("duration_ms", {"frame_shift": 0.01}, "in milliseconds, as duration_ms is, but is 0.01. Give 10 for 0.01 s."),
        ("duration[ms]", {"frame_shift": 0.0125}, "in milliseconds, .* is 0.0125. Give 12.5 for 0.0125 s."),
        ("n_samples", {"frame_shift": 0.01}, "in samples, as n_samples is, but is 0.01. Give 160 for 0.01 s at 16 k"),
        ("n_tokens", {"frame_shift": 0.01}, "given for durations only, but is 0.01. It does not apply to counts"),
        ("duration_ms", {}, "given, because duration_ms is in milliseconds, but is None. Give .*, as 10 "),
        ("duration_sec", {}, "given, because duration_sec is in seconds, but is None. Give the .*, as 0.01 "),
    ],
)
def test_a_shift_in_another_unit_than_the_name_says_is_refused(lengths_of, name, options, message):
    with pytest.raises(ValueError, match=f"^`frame_shift` must be {message.replace('[', '.').replace(']', '.')}"):
        lengths_of(name, [1500, 48], **options)


def test_a_shift_in_the_unit_of_the_name_gives_frames(lengths_of):
    assert lengths_of("duration_ms", [1500, 48], frame_shift=10) == [150, 5]
    assert lengths_of("duration_ms", [1500, 48], frame_shift=1) == [1500, 48]
    assert lengths_of("duration_sec", [15, 48], frame_shift=0.01) == [1500, 4800]
    assert lengths_of("num_samples", [1600, 480], frame_shift=160) == [10, 3]


def test_of_several_columns_the_shift_is_for_the_one_in_a_unit_of_time(tmp_path):
    path = write_table(tmp_path / "a.csv", dur_sec=[15, 48], length=[7, 8], num_samples=[9, 10])
    lengths = lw.read_lengths(path, column="dur_sec,length,num_samples", frame_shift=0.5)
    assert lengths.tolist() == [[30, 7, 9], [96, 8, 10]]


@pytest.mark.skipif(os.name == "nt", reason="Windows makes links for administrators only")
def test_a_pattern_reads_links_to_files_and_a_folder_warns_of_links_to_folders(tmp_path):
    blobs, data = tmp_path / "blobs", tmp_path / "data"
    write_table(blobs / "a.jsonl", n=[3, 1]).rename(blobs / "a")  # a cache of the Hugging Face Hub
    write_table(data / "1.jsonl", n=[2])
    (data / "0.jsonl").symlink_to(blobs / "a")
    for source in (data, data / "*.jsonl", tmp_path / "*" / "**" / "*.jsonl"):
        assert read_lengths(source, column="n").tolist() == [3, 1, 2]
        assert lw.write_lengths(source, tmp_path / "n.npy", column="n").lengths.tolist() == [3, 1, 2]
    (data / "more").symlink_to(blobs)
    with pytest.warns(UserWarning, match=r"must be without links to folders, but is '.*more'. Left out: 1 such links"):
        assert read_lengths(data, column="n").tolist() == [3, 1, 2]
