"""Units in the names of columns: an option in another unit is refused, and never guessed."""

import pytest

import lengthwise as lw
from lengthwise.cli import main
from lengthwise.lengths.columns import unit_of

UNITS = {
    "milliseconds": ["duration_ms", "duration[ms]", "Duration (ms)", "durationMs", "DURATION_MS", "audio.dur.ms"],
    "seconds": ["duration_s", "len_sec", "n_seconds", "seconds", "Duration (s)"],
    "samples": ["num_samples", "samples"],
    "counts": ["num_frames", "tokens", "n_tokens"],
    "unknown": ["duration", "len_s", "ms", "s", "frames_12p5ms", "frames_10_ms", "length", "7", "", "ids", "class_s"],
}
NAMES = [(unit, name) for unit, names in UNITS.items() for name in names]


@pytest.mark.parametrize(("unit", "name"), NAMES)
def test_the_last_word_of_a_name_is_a_unit(unit, name):
    assert unit_of(name) == unit


@pytest.fixture
def read(tmp_path):
    def read(name, values, **options):
        path = tmp_path / "a.csv"
        path.write_text("\n".join([f'"{name}"', *map(str, values)]) + "\n")
        return lw.read_lengths(path, column=name, **options).tolist()

    return read


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("duration_ms", {"frame_shift": 0.01}, "in milliseconds, as duration_ms is, but is 0.01. Give 10 for 0.01 s."),
        ("duration[ms]", {"frame_shift": 0.0125}, "in milliseconds, .* is 0.0125. Give 12.5 for 0.0125 s."),
        ("n_samples", {"frame_shift": 0.01}, "in samples, as n_samples is, but is 0.01. Give 160 for 0.01 s at 16 k"),
        ("n_tokens", {"frame_shift": 0.01}, "given for seconds only, but is 0.01. It does not apply to counts"),
        ("duration_ms", {}, "given, because duration_ms is in milliseconds, but is None. Give .*, as 10 "),
        ("duration_sec", {}, "given, because duration_sec is in seconds, but is None. Give the .*, as 0.01 "),
    ],
)
def test_a_shift_in_another_unit_than_the_name_says_is_refused(read, name, options, message):
    with pytest.raises(ValueError, match=f"^`frame_shift` must be {message.replace('[', '.').replace(']', '.')}"):
        read(name, [1500, 48], **options)


def test_a_shift_in_the_unit_of_the_name_gives_frames(read):
    assert read("duration_ms", [1500, 48], frame_shift=10) == [150, 5]
    assert read("duration_ms", [1500, 48], frame_shift=1) == [1500, 48]
    assert read("duration_sec", [15, 48], frame_shift=0.01) == [1500, 4800]
    assert read("num_samples", [1600, 480], frame_shift=160) == [10, 3]


def test_of_several_columns_the_shift_is_for_the_one_in_a_unit_of_time(tmp_path):
    (tmp_path / "a.csv").write_text("dur_sec,length\n15,7\n48,8\n")
    lengths = lw.read_lengths(tmp_path / "a.csv", column="dur_sec,length", frame_shift=0.5)
    assert lengths.tolist() == [[30, 7], [96, 8]]


def test_lengths_of_large_data_sets_ask_too(tmp_path):
    (tmp_path / "a.csv").write_text("duration_ms\n1500\n48\n")
    source, out = tmp_path / "a.csv", tmp_path / "lengths.npy"
    for options, message in ({"frame_shift": 0.01}, "in milliseconds, as "), ({}, "given, because "):
        with pytest.raises(ValueError, match=f"^`frame_shift` must be {message}duration_ms is"):
            lw.write_lengths(source, out, column="duration_ms", **options)
    assert lw.write_lengths(source, out, column="duration_ms", frame_shift=10).lengths.tolist() == [150, 5]


def test_the_command_line_asks_too(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("duration_ms\n1500\n48\n")
    assert main(["inspect", f"{tmp_path / 'a.csv'}:duration_ms", "--frame-shift", "0.01"]) == 2
    assert "`frame_shift` must be in milliseconds, as duration_ms is" in capsys.readouterr().err
