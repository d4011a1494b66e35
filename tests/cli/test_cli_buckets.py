"""`lengthwise buckets`: shapes, what padding to them costs, and their code."""

import pytest

import lengthwise as lw


def test_shapes_by_hand(run, tmp_path):
    path = tmp_path / "lengths.txt"
    path.write_text("1\n1\n1\n1\n2\n9\n9\n")
    found = run("buckets", path, "--buckets", 2, "--budget", 18, "--json", "-").json
    assert found == {
        "shapes": [[5, 2], [2, 9]],
        "computed": 28,
        "padding_share": pytest.approx(4 / 28),
        "padding_by_shapes": [pytest.approx(48 / 72), pytest.approx(4 / 28)],
    }
    lines = run("buckets", path, "--buckets", 2, "--budget", 18).out.splitlines()
    assert lines[2] == "2 shapes of batches of at most 18 padded frames"
    assert ["5", "2", "5", "1", "40.00", "%"] in [line.split() for line in lines]
    assert ["2", "9", "2", "1", "0.00", "%"] in [line.split() for line in lines]
    assert "28 frames when every batch is padded to its shape, 14.29 % of them padding." in lines


def test_shapes_of_multiples_are_those_of_the_library(run):
    given = ("--buckets", 8, "--cut", "budget:20000,count-multiple-of=8,multiple-of=8")
    found = run("buckets", *given, "--json", "-").json
    cut = lw.Budget(20_000, multiple_of=8, count_multiple_of=8)
    assert found["shapes"] == lw.optimal_shapes(lw.example_lengths(), 8, cut).tolist()


def test_shapes_of_what_is_dropped(run, tmp_path):
    path = tmp_path / "lengths.txt"
    path.write_text("4\n4\n30\n")
    found = run("buckets", path, "--buckets", 2, "--cut", "budget:20,oversize=drop", "--json", "-").json
    assert (found["shapes"], found["padding_share"]) == ([[2, 4]], 0.0)


@pytest.mark.parametrize(
    "words", [("--cut", "fixed:2,multiple-of=8"), ("--cut", "budget:30,oversize=drop")], ids=["multiples", "drop"]
)
def test_the_printed_code_makes_the_printed_shapes(run, tmp_path, words):
    path = tmp_path / "lengths.txt"
    path.write_text("\n".join(map(str, [3, 4, 4, 5, 9, 9, 10, 28, 29, 55])))
    asked = ("buckets", path, "--buckets", 3, *words)
    out, names = run(*asked).out, {}
    exec(out[out.index("import lengthwise as lw") :], names)
    plan = lw.make_plan(names["lengths"], names["batching"])
    shapes = run(*asked, "--json", "-").json["shapes"]
    assert set(plan.padded_lengths[:, 0].tolist()) <= {padded for _, padded in shapes}
    left_out = "1 of 10 sequences are over the budget, and left out." in out
    assert left_out == (len(plan.sequences) == 9) == ("oversize=drop" in str(words))
