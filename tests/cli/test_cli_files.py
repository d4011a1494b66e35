"""The files that a command is given: samples and seconds, pipes and devices."""

import pytest

import lengthwise as lw
from table_files import write_table


def lengths_of(done):
    facts = done.json["lengths"]
    return facts["count"], facts["min"], facts["max"]


def test_texts_are_counted_and_samples_become_frames(run, tmp_path):
    path = write_table(tmp_path / "a.jsonl", text=["so it begins", "so"], num_samples=[48_000, 160])
    assert lengths_of(run("inspect", f"{path}:text", "--count", "words", "--json", "-")) == (2, [1], [3])
    assert "(on the command line: --count words)" in run("inspect", f"{path}:text").err
    assert lengths_of(run("inspect", f"{path}:num_samples", "--frame-shift", 160, "--json", "-")) == (2, [1], [300])
    told = "`frame_shift` must be in samples, as num_samples is, but is 0.01. Give 160 for 0.01 s at 16 kHz"
    assert told in run("inspect", f"{path}:num_samples", "--frame-shift", 0.01).err


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_column_may_have_a_comma_or_a_point_in_its_name(run, tmp_path, kind):
    """Its whole name is meant, though two other columns have the names between the commas."""
    columns = {"source,target": [3, 1, 2], "source": [9, 9, 9], "target": [8, 8, 8]}
    path = write_table(tmp_path / f"a.{kind}", **columns)
    assert lw.read_lengths(path, column="source,target").tolist() == [3, 1, 2]
    assert lengths_of(run("inspect", f"{path}:source,target", "--json", "-")) == (3, [1], [3])
    assert lengths_of(run("inspect", f"{path}:target,source", "--json", "-")) == (3, [8, 9], [8, 9])
    dotted = write_table(tmp_path / f"b.{kind}", **{"audio.frames": [3, 1, 2], "audio": [9, 9, 9]})
    assert lw.read_lengths(dotted, column="audio.frames").tolist() == [3, 1, 2]


@pytest.mark.parametrize("command", ["inspect", "compare", "plan", "buckets --buckets 2", "advise"])
def test_a_name_in_brackets_is_printed_as_it_is_and_code_is_never_broken(run, tmp_path, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "60")
    path = tmp_path / f"[red]a [bold]{80 * 'b'}.csv"
    path.write_text("n\n" + "4\n9\n2\n7\n" * 9)
    done = run(*command.split(), f"{path}:n")
    assert (done.status, done.err) == (0, "")
    assert f"{path}:n" in done.out.replace("\n", "")
    code = f"lengths = lw.read_lengths({str(path)!r}, column='n')\n"
    assert (code in done.out) == (command in ("advise", "buckets --buckets 2"))
