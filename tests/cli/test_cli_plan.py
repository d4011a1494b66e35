"""`lengthwise plan` and `lengthwise inspect`."""

import json
import warnings

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.cli.strategies import DEFAULT_STRATEGY


def test_a_saved_plan_is_the_plan(run, tmp_path):
    path = tmp_path / "plan.npz"
    words = (
        "--strategy",
        "semi-sorted:0.1,arrange=longest-first,deal=mixed,tail=repeat",
        "--budget",
        9000,
        "--world-size",
        4,
    )
    words += ("--micro-batches", 2, "--seed", 5, "--epoch", 7)
    done = run("plan", *words, "--output", path, "--json", "-")
    lengths = lw.example_lengths()
    batching = lw.Batching(
        order=lw.SemiSorted(randomization_factor=0.1),
        cut=lw.Budget(9000.0),
        arrange=lw.ShortestFirst(reverse=True),
        deal=lw.Mixed(tail="repeat"),
    )
    expected = lw.make_plan(lengths, batching, seed=5, epoch=7, world_size=4, micro_batches=2)
    loaded = lw.Plan.load(path)
    assert loaded.fingerprint() == expected.fingerprint() == done.json["plan"]["fingerprint"]
    assert np.array_equal(loaded.grid, expected.grid)
    assert done.json["measures"] == lw.measure(expected, lengths).as_dict()


def test_batches_are_padded_to_multiples(run, tmp_path):
    path = tmp_path / "plan.npz"
    done = run("plan", "--cut", "budget:20000,multiple-of=8", "--output", path)
    assert "batches of at most 20,000 padded frames, padded to multiples of 8" in done.out
    plan = lw.Plan.load(path)
    assert (plan.padded_lengths % 8 == 0).all()
    cut = lw.Budget(20_000, multiple_of=8)
    assert plan.fingerprint() == lw.make_plan(lw.example_lengths(), lw.Batching(cut=cut)).fingerprint()


def test_four_lengths_by_hand(run, four):
    found = run("plan", four, "--strategy", "sorted", "--batch-size", 2, "--json", "-").json
    assert set(found) == {"lengths", "plan", "measures", "report"}
    assert found["measures"]["largest_cost"] == 18.0
    assert found["report"] == {"dropped": [], "repeated": [], "over_max_cost": []}
    facts = {key: found["plan"][key] for key in ("seed", "epoch", "world_size")}
    assert facts == {"seed": 0, "epoch": 0, "world_size": 1}


@pytest.mark.parametrize("deal", ["random-steps", "stratified", "balanced", "mixed", "in-turn", "portions"])
def test_every_deal_gives_all_ranks_the_same_number_of_steps(run, deal, tmp_path):
    path = tmp_path / "plan.npz"
    done = run("plan", "--subset", 200, "--strategy", f"random,deal={deal}", "--world-size", 3, "--output", path)
    plan = lw.Plan.load(path)
    assert done.status == 0
    assert plan.world_size == 3
    taken = np.concatenate([batch for rank in range(3) for batch in plan.batches(rank)])
    assert np.array_equal(np.sort(taken), np.arange(200))


@pytest.mark.parametrize(
    ("words", "deal"),
    [
        ("", lw.Balanced()),
        (",tail=drop", lw.Balanced(tail="drop")),
        (",deal=mixed", lw.Mixed()),
        (",deal=in-turn,tail=repeat", lw.InTurn(tail="repeat")),
    ],
)
def test_the_tail_is_that_of_the_strategy_unless_one_is_asked_for(run, words, deal):
    lengths, order = lw.example_lengths(), lw.Bucketed(buckets=4, by="uniform", pad_to_edge=True)
    batching = lw.Batching(cut=lw.FixedSize(100, drop_incomplete=True), order=order, deal=deal)
    expected = lw.make_plan(lengths, batching, world_size=7)
    words = (
        "--strategy",
        f"mxnet:4{words}",
        "--cut",
        "fixed:100,drop-incomplete=true",
        "--world-size",
        7,
        "--json",
        "-",
    )
    found = run("plan", *words).json
    assert found["plan"]["fingerprint"] == expected.fingerprint()


def test_chunks(run, four):
    # 4, 2, 9 and 5 frames in chunks of at most 4: 1 + 1 + 3 + 2 of them.
    found = run("plan", four, "--chunk", 4, "--strategy", "random", "--json", "-").json
    assert found["measures"]["sequences"] == 7


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        ("--chunk 100", {"chunks": lw.Chunks(100)}),
        ("--strategy random,tail=drop", {"deal": lw.Balanced(tail="drop")}),
    ],
)
def test_options_make_the_batching_that_they_name(run, words, choices):
    asked = (
        "plan",
        "--batch-size",
        16,
        "--subset",
        300,
        "--seed",
        2,
        "--epoch",
        5,
        "--strategy",
        "random",
        "--world-size",
        3,
    )
    lengths = lw.example_lengths()[np.sort(lw.Key(seed=2, stage="subset").permutation(10_480)[:300])]
    plan = lw.make_plan(
        lengths, lw.Batching(cut=lw.FixedSize(16), order=lw.Shuffled(), **choices), seed=2, epoch=5, world_size=3
    )
    facts = run(*asked, *words.split(), "--json", "-").json["plan"]
    assert facts.pop("batching") == plan.batching
    assert facts == {"fingerprint": plan.fingerprint(), "seed": 2, "epoch": 5, "world_size": 3}


def test_what_is_lost_is_counted_and_listed(run, tmp_path):
    path = tmp_path / "lengths.txt"
    path.write_text("9\n" * 21 + "3\n")
    for policy, fact, head in (("drop", "dropped", "dropped"), ("alone", "over_max_cost", "over the budget")):
        words = ("plan", path, "--strategy", "sorted", "--cut", f"budget:8,oversize={policy}")
        assert [*head.split(), "21"] in [line.split() for line in run(*words).out.splitlines()]
        report = run(*words, "--json", "-").json["report"]
        assert {name: len(numbers) for name, numbers in report.items() if numbers} == {fact: 21}


def test_the_table_and_what_stands_below_it(run, four):
    words = ("plan", four, "--strategy", "sorted", "--cut", "budget:8,oversize=drop")
    lines = run(*words).out.splitlines()
    assert lines[2] == "batches of at most 8 padded frames"
    assert ["padding", "15.4", "%"] in [line.split() for line in lines]  # (2, 4) and (5): 11 of 13 used
    assert ["dropped", "1"] in [line.split() for line in lines]


def test_plan_writes_json_to_a_file(run, tmp_path):
    path = tmp_path / "plan.json"
    assert "max-entropy" not in run("plan", "--subset", 100, "--json", path).err
    assert json.loads(path.read_text())["lengths"]["count"] == 100


def test_links_are_written_through(run, tmp_path):
    for name in ("plan.npz", "plan.json"):
        (tmp_path / name).symlink_to(f"real-{name}")
    words = ("plan", "--subset", 100, "--output", tmp_path / "plan.npz", "--json", tmp_path / "plan.json")
    assert run(*words).status == 0
    facts = json.loads((tmp_path / "real-plan.json").read_text())["plan"]
    assert lw.Plan.load(tmp_path / "real-plan.npz").fingerprint() == facts["fingerprint"]
    assert (tmp_path / "plan.npz").is_symlink()
    assert (tmp_path / "plan.json").is_symlink()


def test_inspect_by_hand(run, four):
    found = run("inspect", four, "--batch-size", 4, "--json", "-").json
    assert (
        found["random_batches"].items()
        >= {
            "batches": 1,
            "padding_share": 1 - 20 / 36,
            "largest_cost": 36.0,
            "dropped": 0,
            "over_max_cost": 0,
        }.items()
    )
    assert found["lengths"] == lw.describe([4, 2, 9, 5]).as_dict()
    out = run("inspect", four, "--batch-size", 4).out
    assert "Random batches of 4 sequences would be 44.4 % padding: 1.80 frames computed for every frame of data." in out


def test_inspect_measures_random_batches_of_the_seed(run):
    lengths = lw.example_lengths()
    found = run("inspect", "--budget", 20_000, "--seed", 4, "--json", "-").json["random_batches"]
    plan = lw.make_plan(lengths, lw.Batching(budget=20_000, order=lw.Shuffled()), seed=4)
    measures = lw.measure(plan, lengths).as_dict()
    assert found == {name: measures[name] for name in found}


def test_inspect_draws_a_bar_of_equal_width_for_each_span(run, tmp_path):
    path = tmp_path / "lengths.txt"
    path.write_text("\n".join(map(str, range(1, 41))))  # 40 lengths in bars of 3: the last is not full
    lines = [line.split() for line in run("inspect", path).out.splitlines()]
    assert ["1-3", "█" * 48, "3"] in lines
    assert ["40-42", "█" * 16, "1"] in lines


def test_inspect_draws_wider_bars_for_a_long_tail(run, tmp_path):
    path = tmp_path / "lengths.txt"
    path.write_text("\n".join(map(str, [*range(1, 16), *range(1, 16), 65_535])))  # 16 bars, each twice as wide
    lines = [line.split() for line in run("inspect", path).out.splitlines()]
    assert ["1", "█" * 6, "2"] in lines
    assert ["8-15", "█" * 48, "16"] in lines
    assert ["32,768-65,535", "█" * 3, "1"] in lines
    assert "Bars are wider further down" in run("inspect", path).out


def test_inspect_without_a_file_says_that_its_lengths_are_generated(run):
    done = run("inspect", "--batch-size", 8)
    assert done.out.endswith("    lengthwise advise --batch-size 8\n")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("long-tailed example, generated\n")
    assert "A first budget: 9,205 padded frames a batch, 16 x the mean length / 0.9, or the longest." in done.out
    assert "Random batches of 8 sequences would be" in done.out


def test_inspect_shows_every_dimension(run, pairs):
    done = run("inspect", pairs)
    lines = [line.split() for line in done.out.splitlines()]
    assert ["length", "1", "length", "2"] in lines
    facts = run("inspect", pairs, "--json", "-").json["lengths"]
    for name, key in (("shortest", "min"), ("longest", "max"), ("total", "total")):
        assert [name, *(f"{value:,}" for value in facts[key])] in lines
    assert ["mean", *(f"{value:,.1f}" for value in facts["mean"])] in lines
    for share in ("5", "50", "95"):
        assert [share, "%", "are", "at", "most", *(f"{each[share]:,}" for each in facts["quantiles"])] in lines


def test_each_dimension_of_inspect_has_its_own_bars(run, tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join(f"{1 + n % 15} {n % 15 + 10 ** (n % 5)}" for n in range(45)))
    first, second = run("inspect", path).out.split("length 2 ")[-2:]
    assert ("Bars are wider" in first, "Bars are wider" in second) == (False, True)


def test_without_a_strategy_the_plan_is_that_of_a_batching_without_an_order(run):
    expected = lw.make_plan(lw.example_lengths(), lw.Batching(budget=20_000))
    done = run("plan", "--budget", 20_000)
    assert f"plan {expected.fingerprint()}, lw.Batching(budget=20_000, order=lw.MaxEntropy(0.1))" in done.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("plan", "--budget", 90_000), 0),
        (("compare",), 0),
        (("plan", "--strategy", DEFAULT_STRATEGY), 1),
        (("compare", "--strategies", DEFAULT_STRATEGY), 1),
    ],
)
def test_only_a_padding_that_was_asked_for_warns_where_it_is_missed(run, tmp_path, words, told):
    path = tmp_path / "lengths.npy"
    np.save(path, np.arange(len("".join(map(str, words))), 80) ** 2)  # others each time: it is said once
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = run(words[0], path, *words[1:])
    assert done.status == 0
    assert done.err.count("`padding` must be within") == told


def test_a_title_says_chunks_and_ranks(run):
    done = run("plan", "--budget", 20_000, "--chunk", 50, "--world-size", 2, "--micro-batches", 3)
    said = "batches of at most 20,000 padded frames; chunks of at most 50 frames; 2 ranks x 3 micro-batches a step"
    assert said in done.out.splitlines()
