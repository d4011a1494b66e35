"""Units in the names of columns: an option in another unit is refused, and never guessed."""

import pytest

import lengthwise as lw
from lengthwise.lengths.columns import unit_of
from table_files import write_table

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
