"""The lengths of large files of text: those that the reader finds, row by row, or the same refusal."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import dataset

import lengthwise as lw

JSON = [{"n": n, "t": "word " * n, "m": [0] * n} for n in (1, 2, 3, 4)]
LINES = [json.dumps(record) for record in JSON]
TABLE = ["n,t", *(f"{n},some words" for n in (1, 2, 3, 4))]
# Each as `read_lengths` has it: the same lengths, or refused.
TEXTS = {
    "csv": (".csv", "\n".join(TABLE)),
    "open quote": (".csv", "\n".join([*TABLE[:3], '3,"an open quotation mark', *TABLE[3:]])),
    "quotes across lines": (".csv", 'n,t\n1,"some\nwords, and ""more"""\n2,"\n\n\n"\n3,"4,a\n5,b"\n'),
    "a cell more": (".csv", "\n".join([*TABLE[:3], "3,some,words", *TABLE[3:]])),
    "a cell less": (".csv", "\n".join([*TABLE[:3], "3", *TABLE[3:]])),
    "an empty cell": (".csv", "\n".join([*TABLE[:3], ",words", *TABLE[3:]])),
    "a text for a number": (".csv", "\n".join([*TABLE[:3], "many,words", *TABLE[3:]])),
    "blank lines": (".csv", "\n\n" + "\n\n".join(TABLE) + "\n\n\n"),
    "byte order mark": (".csv", "\ufeff" + "\n".join(TABLE)),
    "windows": (".csv", "\r\n".join(TABLE)),
    "semicolons": (".csv", "\n".join(TABLE).replace(",", ";")),
    "no header": (".csv", "\n".join(TABLE[1:])),
    "tsv": (".tsv", "\n".join(TABLE).replace(",", "\t")),
    "quotes of tsv": (".tsv", 'n\tt\n1\t"open\n2\t"open, too\n3\ta""b\n'),
    "jsonl": (".jsonl", "\n".join(LINES)),
    "a broken line": (".jsonl", "\n".join([*LINES[:2], LINES[2][:-9], LINES[3]])),
    "a last line that is cut": (".jsonl", "\n".join(LINES)[:-9]),
    "a record over lines": (".jsonl", "\n".join([LINES[0], LINES[1].replace(",", ",\n"), LINES[2]])),
    "a null": (".jsonl", '{"n": 1}\n{"n": null}\n{"n": 2}\n'),
    "a field that is absent": (".jsonl", '{"n": 1}\n{"t": 1}\n{"n": 2}\n'),
    "a text beside numbers": (".jsonl", '{"n": 1}\n{"n": "one"}\n{"n": 2}\n'),
    "a number beside lists": (".jsonl", '{"n": [1, 2]}\n{"n": 1}\n'),
    "lists of lists": (".jsonl", '{"n": [[1], [2]]}\n'),
    "one array": (".jsonl", "[" + ",".join(LINES) + "]"),
}


def outcome(read, *arguments, **options):
    try:
        lengths = read(*arguments, column="n", **options)
    except ValueError:
        return "refused"
    return getattr(lengths, "lengths", lengths).tolist()


@pytest.mark.parametrize("case", TEXTS)
def test_a_file_of_text_has_the_lengths_that_the_reader_finds_or_is_refused(tmp_path, out, case):
    suffix, text = TEXTS[case]
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(text.encode())
    expected = outcome(lw.read_lengths, path)
    for batch_size in (1, 4096):
        assert outcome(lw.write_lengths, path, out, batch_size=batch_size) == expected
        assert out.exists() == (expected != "refused")
    assert len(list(tmp_path.iterdir())) == 1 + out.exists()


CELLS = st.lists(st.text(st.sampled_from('ab",\n\r ;\t'), max_size=6), min_size=1, max_size=6)


@settings(max_examples=50)
@given(CELLS, st.integers(0, 60), st.sampled_from(["", '"', ",", "\n"]), st.integers(1, 4))
def test_any_csv_has_the_lengths_that_the_reader_finds_or_is_refused(tmp_path_factory, cells, at, typo, size):
    folder = tmp_path_factory.mktemp("any")
    rows = [f'{n},"{cell.replace(chr(34), chr(34) * 2)}"\n' for n, cell in enumerate(cells, 1)]
    text = "".join(rows)
    (folder / "rows.csv").write_bytes(("n,t\n" + text[:at] + typo + text[at:]).encode())
    written = outcome(lw.write_lengths, folder / "rows.csv", folder / "a.npy", batch_size=size)
    assert written == outcome(lw.read_lengths, folder / "rows.csv")
    if not typo:
        assert written == list(range(1, len(cells) + 1))


@pytest.mark.parametrize("blank", ["", "\n", " \n\n"])
@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_a_later_file_of_text_may_be_empty(tmp_path, suffix, blank):
    (tmp_path / f"0.{suffix}").write_text("n\n3\n" if suffix == "csv" else '{"n": 3}')
    (tmp_path / f"1.{suffix}").write_text(blank)
    (tmp_path / f"2.{suffix}").write_text("m,n\n7,4\n" if suffix == "csv" else '{"m": 7, "n": 4}')
    assert lw.write_lengths(tmp_path / f"*.{suffix}", tmp_path / "a.npy", column="n").lengths.tolist() == [3, 4]


def test_manifests_need_no_column(tmp_path):
    cuts = [{"type": "MixedCut", "tracks": [{"cut": {"duration": 2}, "offset": 1}]}, {"duration": 1.5}, {"id": "a"}]
    for name, records in (("a.jsonl", cuts), ("b.jsonl", cuts[1:])):
        (tmp_path / name).write_text("\n".join(map(json.dumps, records)))
    written = lw.write_lengths(tmp_path, tmp_path / "a.npy", frame_shift=0.5, bad="one", batch_size=2)
    assert written.lengths.tolist() == [6, 3, 1, 3, 1]
    assert [row for row, _ in written.bad_rows] == [2, 4]
    with pytest.raises(ValueError, match=r"^`frame_shift` must be given, because duration is in seconds"):
        lw.write_lengths(tmp_path / "b.jsonl", tmp_path / "a.npy", bad="one")


def test_an_empty_cell_is_a_bad_row_on_request(tmp_path):
    (tmp_path / "a.csv").write_text("n,t\n3,a\n,b\n4,c\n")
    written = lw.write_lengths(tmp_path / "a.csv", tmp_path / "a.npy", column="n", bad="one")
    assert written.lengths.tolist() == [3, 1, 4]
    assert written.bad_rows[0].reason.startswith("`n` must be given, but is None at line 3 of ")


def test_functions_see_rows_of_text_as_pyarrow_reads_them(tmp_path, out):
    (tmp_path / "rows.jsonl").write_text('{"t": "a b"}\n{"t": "c"}\n')

    def words(batch):
        return [len(text.split()) for text in batch["t"].to_pylist()]

    source = dataset.dataset(str(tmp_path / "rows.jsonl"), format="json")
    assert lw.write_lengths(source, out, length=words).lengths.tolist() == [2, 1]
    with pytest.raises(ValueError, match=r"^`length` must be left out for files of \w+.*Give the files as "):
        lw.write_lengths(tmp_path / "rows.jsonl", out, length=words)
