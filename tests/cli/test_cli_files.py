"""The files that a command is given: samples and seconds, pipes and devices."""

import os

import pytest


def lengths_of(done):
    facts = done.json["lengths"]
    return facts["count"], facts["min"], facts["max"]


@pytest.fixture
def samples(tmp_path):
    path = tmp_path / "samples.csv"
    path.write_text("id;samples\na;48000\nb;16000\n")
    return f"{path}:samples"


def test_samples_are_not_taken_for_seconds(run, samples):
    done = run("inspect", samples, "--frame-shift", 0.01)
    assert (done.status, done.out) == (2, "")
    assert "`frame_shift` must be in samples, as samples is, but is 0.01. Give 160 for 0.01 s at 16 kHz" in done.err
    assert lengths_of(run("inspect", samples, "--frame-shift", 160, "--json", "-")) == (2, [100], [300])


def test_a_shift_in_samples_is_not_taken_for_seconds(run, tmp_path):
    (tmp_path / "utt2dur").write_text("a 1.5\nb 2.25\n")
    done = run("inspect", tmp_path / "utt2dur", "--frame-shift", 160)
    assert (done.status, done.out) == (2, "")
    assert "`frame_shift` must be at most the longest duration, 2.25, but is 160.0." in done.err


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no /dev/zero here")
def test_a_device_is_one_sentence(run):
    done = run("inspect", "/dev/zero")
    assert (done.status, done.out) == (2, "")
    assert "`source` must be a file or folder, not a device or a named pipe, but is '/dev/zero'." in done.err


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="no /dev/fd here")
def test_the_output_of_a_command_is_read(run):
    """What the shell gives for `lengthwise inspect <(command)`."""
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, b"3\n1\n2\n")
        os.close(write_end)
        assert lengths_of(run("inspect", f"/dev/fd/{read_end}", "--batch-size", 1, "--json", "-")) == (3, [1], [3])
    finally:
        os.close(read_end)


def test_texts_are_counted_and_samples_become_frames(run, tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"text": "so it begins", "num_samples": 48000}\n{"text": "so", "num_samples": 160}\n'
    )
    done = run("inspect", f"{tmp_path / 'a.jsonl'}:text", "--count", "words", "--json", "-")
    assert (done.status, done.json["lengths"]["mean"], done.json["lengths"]["max"]) == (0, [2.0], [3])
    done = run("inspect", f"{tmp_path / 'a.jsonl'}:text")
    assert done.status == 2
    assert "(on the command line: --count words)" in " ".join(done.err.split())
    done = run("inspect", f"{tmp_path / 'a.jsonl'}:num_samples", "--frame-shift", "160", "--json", "-")
    assert done.json["lengths"]["max"] == [300]
    done = run("inspect", "--frame-shift", "160")
    assert "`frame-shift` must be given with a file, but is 160.0." in done.err


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
