"""`lengthwise reproduce ge2021-table1`: on the real lengths every number of the paper, on others ours alone."""

import os
from pathlib import Path

import numpy as np
import pytest

import lengthwise as lw
from lengthwise_recipes.ge2021.table1 import read_row

DATA = Path(os.environ.get("LENGTHWISE_DATA", Path(__file__).parents[3] / "shared" / "data"))
CLIPS = DATA / "ljspeech" / "ljspeech_lengths.csv"
ROW = {"strategy", "sizes", "quantity", "paper", "mean", "least", "greatest", "values"}


def write_lengths(path, lengths):
    np.savetxt(path, lengths, fmt="%d")
    return path


def test_every_number_of_the_paper_on_the_real_lengths(run):
    if not CLIPS.exists():
        pytest.skip(f"no {CLIPS}: set LENGTHWISE_DATA to the folder with the real lengths")
    found = run("reproduce", "ge2021-table1", "--lengths", f"{CLIPS}:frames_12p5ms", "--json", "-").json
    assert (found["lengths"]["count"], found["generated"], found["comparable"]) == (13_100, False, True)
    assert found["seeds"] == list(range(20))
    rows = list(map(read_row, found["rows"]))
    *ours, random, semi_sorted, in_order = rows
    assert [row for row in ours if not row.in_range] == [rows[16]]
    assert (rows[16].strategy, rows[16].paper, len(ours)) == ("semi-sorted:0.1", 449, 22)
    # By the rule that the paper prints: 606, 449 and 419 in the paper.
    assert not any(row.in_range for row in (random, semi_sorted, in_order))
    assert [round(row.mean) for row in (random, semi_sorted, in_order)] == [645, 462, 437]
    printed = {(row["strategy"], row["sizes"], row["quantity"]): row["paper"] for row in found["rows"]}
    assert printed["random", "fixed", "zpr"] == 32.02
    assert printed["semi-sorted:0.1", "fixed", "abl"] == 556.22
    assert printed["sorted", "dynamic", "batches"] == 419


def test_without_a_file_the_lengths_are_generated_and_it_says_so(run):
    done = run("reproduce", "ge2021-table1", "--seeds", 2)
    text = " ".join(done.out.split())
    assert (done.status, done.err) == (0, "")
    assert text.startswith("speech example, generated 13,100 sequences")
    assert "These lengths are generated, so nothing here can be compared with the paper. To compare, give" in text
    assert "One epoch of a random 10,480 of the 13,100 lengths, under 2 seeds." in text
    assert "reproduced" not in text
    assert "verdict" not in text


def test_rows_hold_the_spread_over_seeds(run, tmp_path):
    table = write_lengths(tmp_path / "like.txt", lw.example_lengths("speech", count=10_480))
    found = run("reproduce", "ge2021-table1", "--lengths", table, "--seeds", 3, "--seed", 4, "--json", "-").json
    assert (found["generated"], found["comparable"]) == (False, True)
    assert found["seeds"] == [4, 5, 6]
    for row in found["rows"]:
        assert set(row) == ROW
        assert row["least"] <= row["mean"] <= row["greatest"]
        assert (len(row["values"]), min(row["values"]), max(row["values"])) == (3, row["least"], row["greatest"])
    random = next(row for row in found["rows"] if row["quantity"] == "zpr")
    assert random["least"] < random["greatest"]


def test_fewer_lengths_than_the_paper_trains_on_are_all_taken(run, four):
    done = run("reproduce", "ge2021-table1", "--lengths", four, "--seeds", 2)
    assert "One epoch of all 4 lengths, under 2 seeds." in done.out
    assert "generated" not in done.out


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda lengths: lengths[:10_479], id="too few"),
        pytest.param(lambda lengths: np.tile(lengths, 2), id="too many"),
        pytest.param(lambda lengths: lengths * 12, id="in other units"),
        pytest.param(lambda lengths: lengths[:300], id="a part"),
    ],
)
def test_on_other_lengths_than_the_papers_nothing_is_compared(run, tmp_path, change):
    table = write_lengths(tmp_path / "other.txt", change(lw.example_lengths("speech", count=10_480)))
    asked = ("reproduce", "ge2021-table1", "--lengths", table, "--seeds", 1)
    text = " ".join(run(*asked).out.split())
    assert "These are not the lengths of the paper, so nothing here can be compared with it. To compare," in text
    assert "with --lengths FILE:COLUMN: at least 10,480 of its 13,100 clips, in frames of 12.5 ms." in text
    assert "ours over seeds" in text
    for word in ("verdict", "reproduced", "773.82"):  # the last is a number of the paper
        assert word not in text
    found = run(*asked, "--json", "-").json
    assert found["comparable"] is False


def test_the_plot_is_a_picture(run, tmp_path):
    path = tmp_path / "knobs.png"
    done = run("reproduce", "ge2021-table1", "--subset", 400, "--seeds", 1, "--plot", path)
    assert (done.status, done.err) == (0, "")
    assert path.read_bytes().startswith(b"\x89PNG")
