"""The rerun of Khomenko et al. 2016: what lengths allow and verdicts by hand, and the whole in miniature."""

import dataclasses
import itertools
import json
import math
import multiprocessing
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = [pytest.mark.slow, pytest.mark.processes, pytest.mark.usefixtures("forked_ranks")]

torch = pytest.importorskip("torch")
pytest.importorskip("HersheyFonts")
pytest.importorskip("jiwer")
pytest.importorskip("altair")

from lengthwise.cli import main  # noqa: E402
from lengthwise_recipes.khomenko2016.bounds import bound_of, families, log_normal, sigma_that_allows, speed_up_bound  # noqa: E402
from lengthwise_recipes.khomenko2016.claims import (  # noqa: E402
    BUCKETS,
    SHUFFLED,
    bucket_claims,
    claims_of,
    epoch_seconds,
    hardware,
    label,
    loss_at,
    process_claim,
    rows_on,
    speed_ups,
)
from lengthwise_recipes.khomenko2016.page import (  # noqa: E402
    FIGURES,
    by_processes,
    headline,
    page,
    series,
    times_table,
    write_figures,
)
from lengthwise_recipes.khomenko2016.rerun import FULL, SMALL, Size, batchings, reproduce, settings  # noqa: E402
from lengthwise_recipes.record import read  # noqa: E402
from lengthwise_recipes.study.results import EpochRow, flat  # noqa: E402

PATIENCE = 120.0  # seconds after which a hang is a failure
EXPECTED_LOSS = 1.1  # nats a symbol
MINIATURE = Size(
    name="miniature", count=140, epochs=3, seeds=1, hidden=16, layers=1, batch_size=4, processes=(1, 2)
)  # 30 steps an epoch


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("khomenko2016")


@pytest.fixture(scope="module")
def document(corpus, folder):
    timer = threading.Timer(PATIENCE, lambda: [child.kill() for child in multiprocessing.active_children()])
    timer.start()
    try:
        made = reproduce(corpus, MINIATURE, folder=folder, command="by hand")
    finally:
        timer.cancel()
    return json.loads(json.dumps(made, allow_nan=False))


def names_of(document):
    """What each row is of: its run, its number of processes and its epoch."""
    return [(each["strategy"].split(",")[0], each["processes"], each["epoch"]) for each in document["study"]["rows"]]


def row(name, *, seed=0, epoch=1, seconds=1.0, loss=1.0, processes=1):
    """An epoch after others that took as long."""
    rest = dict.fromkeys(("planning_seconds", "padding_share", "mixing", "straggler_waste", "training_loss"), 0.0)
    return EpochRow(
        strategy=name,
        processes=processes,
        averaging="none",
        seed=seed,
        epoch=epoch,
        steps=1,
        seconds=seconds,
        elapsed_seconds=epoch * seconds,
        sequences=1,
        useful_frames=1,
        metrics={"validation_loss": loss, "character_error_rate": 0.0},
        **rest,
    )


def rows_of(seconds, losses, *, seeds=1):
    """Three epochs of each number of buckets under each seed, all as long, the loss halved in each; random as Q = 2."""
    names = [*map(label, BUCKETS), "random"]
    return [
        row(name, seed=seed, epoch=epoch, seconds=time, loss=loss / 2**epoch)
        for seed in range(seeds)
        for name, time, loss in zip(names, (*seconds, seconds[1]), (*losses, losses[1]), strict=True)
        for epoch in (1, 2, 3)
    ]


# The padded frames fall to a fifth with 3 buckets, to a half, and not at all.
FIFTH, HALF, EQUAL = np.array([1] * 8 + [10]), np.array([1, 1, 1, 3]), np.array([5, 5])


def test_what_lengths_allow_by_hand():
    assert speed_up_bound(np.array([1, 2, 9, 10]), 1) == 1.0
    assert speed_up_bound(np.array([1, 2, 9, 10]), 2) == 40 / 24
    assert speed_up_bound(families()["uniform from 1 on"], 3) == pytest.approx(1.5, rel=1e-6)  # 3 n L / (n (1+2+3) L/3)
    assert speed_up_bound(families()["one in ten 10 times as long"], 2) == pytest.approx(10_000 / (0.9 * 1000 + 1000))
    assert speed_up_bound(families()["all alike"], 3) == 1.0


@given(st.lists(st.integers(1, 300), min_size=1, max_size=60))
def test_more_buckets_allow_more_up_to_longest_over_mean(lengths):
    bound = bound_of("drawn", np.array(lengths), (1, 2, 3, 60))
    ups = list(bound["speed_ups"].values())
    assert ups[0] == 1.0
    assert ups == sorted(ups)
    assert ups[-1] == pytest.approx(bound["limit"], abs=0.0011)  # a bucket for each length, of three digits


def test_the_sigma_that_allows_4_times():
    sigma = sigma_that_allows(4.0, buckets=3)
    assert speed_up_bound(log_normal(sigma), 3) >= 4.0 > speed_up_bound(log_normal(sigma - 0.002), 3)
    assert 0.5 < sigma < 0.53
    assert sigma_that_allows(4.0, buckets=3, count=100) > sigma  # of fewer the longest is shorter


def test_every_batch_is_padded_to_its_bucket_and_short_buckets_come_first(corpus):
    import lengthwise as lw

    lengths = corpus.train.lengths
    plan = lw.make_plan(lengths, batchings(MINIATURE)["Q = 3"], seed=0, epoch=1)
    padded = plan.padded_lengths[plan.grid[:, 0, 0], 0]
    assert sorted(set(padded.tolist())) == lw.optimal_edges(lengths, 3).tolist()
    assert (np.diff(padded) >= 0).all()


def test_a_paper_that_holds_holds_whole():
    rows = rows_of(seconds=(8, 4, 2, 1.9, 1.8, 1.7), losses=(4, 3, 2, 3, 3, 3), seeds=2)
    speed, falls, proportional, least, early = bucket_claims(rows, lengths=FIFTH)
    # The gain of Q = 3 is the same at the end. Time falls less than the frames: 4 of 5 times, 4.7 of 5.
    assert [each.holds for each in (speed, falls, proportional, least, early)] == [
        *["whole"] * 2,
        "none",
        "whole",
        "part",
    ]
    assert proportional.mean == pytest.approx(2 / 5)  # at Q = 2
    assert speed.ours == [4.0, 4.0]
    frames = "With 3 buckets 5.00 times fewer frames are computed, without the longest sequence 1.00 times; "
    assert speed.why.startswith(f"{frames}the runs reach 80% of the former.")
    assert "Over random batches padded to their own longest, Q = 3 is 2.00 times as fast." in speed.why
    assert falls.mean == pytest.approx(8 / 1.7)
    assert least.ours == [pytest.approx(100 / 3)] * 2
    # When the first epoch of Q = 1 is done, at 8 s, its loss is 2; Q = 3 has done three, and has 2 / 8.
    assert early.mean == pytest.approx(100 * (1 - 0.25 / 2))
    assert early.why.endswith(
        "After as many epochs of both, a third of all, it differs from that of Q = 1 by -50.00 % (-50.00 to -50.00)."
    )


def test_a_gain_is_greatest_at_the_beginning_if_it_is_less_at_the_end():
    others = [each for each in rows_of(seconds=(8,) * 6, losses=(4,) * 6) if each.strategy not in ("Q = 1", "Q = 3")]
    slow = [
        row("Q = 1", epoch=epoch, seconds=8.0, loss=loss) for epoch, loss in ((1, 4.0), (2, 1.0), (3, 0.5), (4, 0.5))
    ]
    fast = [row("Q = 3", epoch=epoch, seconds=2.0, loss=1.0 if epoch < 12 else 0.4) for epoch in range(1, 13)]
    early = bucket_claims([*slow, *fast, *others], lengths=HALF)[-1]
    # After 4 of 12 epochs of Q = 3, at 8 s: 1 and 4; at its end, at 24 s: 0.4 and 0.5.
    assert (early.mean, early.holds) == (75.0, "whole")
    assert "At the end of Q = 3 its loss is lower by 20.00 %." in early.why


def test_short_sequences_first_are_compared_with_a_random_order():
    ordered = rows_of(seconds=(6,) * 6, losses=(3, 3, 3, 3, 3, 3))
    shuffled = [
        dataclasses.replace(each, strategy=SHUFFLED, metrics={"validation_loss": 4.0})
        for each in ordered
        if each.strategy == "Q = 6"
    ]
    *_, last = bucket_claims([*ordered, *shuffled], lengths=HALF)
    assert last.ours == [62.5]
    assert "After the last epoch it is lower by +90.62 %" in last.why


def test_a_part_of_a_claim_is_told_from_none():
    half = bucket_claims(rows_of(seconds=(6, 4, 3, 3.3, 2, 2), losses=(2, 3, 3, 3, 3, 3)), lengths=HALF)
    assert [each.holds for each in half] == ["part", "part", "none", "none", "part"]
    first = rows_of(seconds=(6,) * 6, losses=(3, 3, 2, 3, 3, 3))
    second = [dataclasses.replace(each, seed=1) for each in rows_of(seconds=(6,) * 6, losses=(1, 3, 4, 3, 3, 3))]
    assert bucket_claims([*first, *second], lengths=HALF)[3].holds == "none"  # least under one of the seeds
    assert half[1].why.endswith("Not told apart from the next: Q = 3, Q = 6.")
    none = bucket_claims(rows_of(seconds=(2,) * 6, losses=(1, 2, 3, 4, 5, 6)), lengths=EQUAL)
    assert [each.holds for each in none] == ["none", "none", "whole", "none", "none"]  # equal lengths, equal times
    assert none[3].mean == pytest.approx(-200.0)  # three times the least
    assert none[4].mean == pytest.approx(-200.0)  # at 2 s one epoch of each is done: losses 0.5 and 1.5


def test_of_a_run_that_diverged_nothing_holds():
    rows = rows_of(seconds=(8, 4, 2, 2, 2, 2), losses=(4, 3, math.nan, 3, 3, 3))
    *_, least, early = bucket_claims(rows, lengths=FIFTH)
    assert (least.holds, least.mean) == ("none", -math.inf)
    assert early.holds == "none"


def test_processes_are_compared_at_the_end_of_the_faster():
    one = [row("Q = 6", epoch=epoch, seconds=3.0, loss=loss) for epoch, loss in ((1, 4.0), (2, 2.0), (3, 1.0))]
    many = [
        row("Q = 6, 4 processes, parameter", epoch=epoch, seconds=2.0, loss=loss, processes=4)
        for epoch, loss in ((1, 3.0), (2, 2.0), (3, 1.5))
    ]
    found = process_claim(one + many, HALF, "had a GPU each")  # at 6 s: losses 2 and 1.5
    assert (found.mean, found.holds) == (25.0, "whole")
    assert found.why == (
        "The 4 processes had a GPU each. Their epoch took 0.67 times as long as that of one process. "
        "In an epoch each of them takes 1 steps; one process alone takes 1."
    )
    slower = [dataclasses.replace(each, elapsed_seconds=10 * each.elapsed_seconds) for each in many]
    assert math.isnan(process_claim(one + slower, HALF, "shared 2 cores").mean)  # not one epoch done
    assert process_claim(one + slower, HALF, "shared 2 cores").holds == "none"


def test_the_loss_at_a_time_is_that_of_the_last_epoch_done():
    run = [row("Q = 3", epoch=epoch, seconds=2.0, loss=1 / epoch) for epoch in (1, 2)]
    assert (loss_at(run, 2.0), loss_at(run, 3.9), loss_at(run, 99.0)) == (1.0, 1.0, 0.5)
    assert math.isnan(loss_at(run, 1.9))


def test_the_miniature_learns_as_expected(document):
    losses = dict(zip(names_of(document), (each["validation_loss"] for each in document["study"]["rows"]), strict=True))
    assert all(losses[name, processes, 3] < losses[name, processes, 1] for name, processes, _ in losses)
    assert losses["Q = 3", 1, 3] == pytest.approx(EXPECTED_LOSS, rel=0.2)


def test_every_number_of_buckets_is_trained_once_on_every_number_of_processes(document):
    names = names_of(document)
    runs = {*itertools.product(map(label, BUCKETS), MINIATURE.processes), (SHUFFLED, 1), ("random", 1)}
    assert len(names) == len(set(names)) == 3 * len(runs)
    assert set(names) == {(*run, epoch) for run in runs for epoch in (1, 2, 3)}


def test_seconds_and_speed_ups_are_of_as_many_processes(document):
    for processes in MINIATURE.processes:
        seconds, ups = (by_processes(document, measure)[processes] for measure in (epoch_seconds, speed_ups))
        rows = [each for each in document["study"]["rows"] if each["processes"] == processes]
        for name in seconds:
            taken = [each["seconds"] for each in rows if each["strategy"].split(",")[0] == name]
            assert seconds[name] == [sorted(taken)[1]]
            assert ups[name] == [pytest.approx(seconds["Q = 1"][0] / seconds[name][0])]


def test_the_shuffled_run_has_the_buckets_of_its_neighbour_in_another_order(document):
    strategies = document["study"]["strategies"]
    assert strategies[SHUFFLED] | {"arrange": None} == strategies["Q = 6"] | {"arrange": None}
    assert strategies[SHUFFLED].get("arrange") != strategies["Q = 6"].get("arrange")
    text = page(document, json_link="khomenko2016.json")
    assert f"| {SHUFFLED}, batches in random order | {', '.join(map(str, document['edges']['6']))} |" in text


def test_the_document_says_what_was_trained(document, corpus):
    *times, _, _, _, process = claims_of(document)
    assert all(each.verdict.endswith(", in one run") and each.size is None for each in times)
    assert process.size.ours == sum(corpus.train.lengths)
    assert process.sized_verdict.endswith(f"with {process.size.percent} of the data; at our size {process.at_our_size}")
    trained = document["study"]["settings"]
    assert (trained["optimizer"], trained["alpha"], trained["beta"]) == ("adadelta", 1.0, 1e-6)
    lengths = np.repeat(document["lengths"]["values"], document["lengths"]["counts"])
    assert sorted(lengths) == sorted(corpus.train.lengths)


def test_the_page_and_the_figures_are_made_from_the_json(document, tmp_path):
    text = page(document, json_link="khomenko2016.json")
    for number, each in enumerate(claims_of(document), 1):
        assert f"| {number}. {each.claim} | {each.sized_verdict} | {each.where} |" in text
        assert f"\n{number}. {each.reason}\n" in text
    assert headline(document) in text
    write_figures(document, tmp_path)
    named = [f"khomenko2016-{name}.svg" for name in FIGURES]
    files = [f"khomenko2016-{name}{page}.svg" for name in FIGURES for page in ("", "-dark")]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)
    assert all(f"({name})" in text for name in named)
    alone = document | {"size": document["size"] | {"processes": [1]}}
    assert "khomenko2016-processes.svg" not in page(alone, json_link="khomenko2016.json")


def test_the_page_tells_seconds_and_speed_ups_of_every_number_of_buckets_and_processes(document):
    text = page(document, json_link="khomenko2016.json")
    names = [label(buckets) for buckets in BUCKETS]
    assert "| buckets | 2 processes, s / epoch | speed-up |" in text
    alone, both = (by_processes(document, epoch_seconds)[processes]["Q = 6"][0] for processes in (1, 2))
    assert f"| {both:.2f} | {alone / both:.2f} |" in text
    rows = [
        row(name, seed=seed, processes=processes, seconds=seconds * (1.5 if name == "Q = 1" else 1.0))
        for processes, times in ((1, (2.0, 4.0)), (2, (1.0, 1.0)))
        for seed, seconds in enumerate(times)
        for name in names
    ]
    made = times_table({"study": {"rows": [flat(each) for each in rows]}})
    assert "\n| Q = 3 | 1.00 | 1.50 |\n" in made


def test_times_apart_from_training_take_the_place_of_those_of_training(document):
    rows = [each | {"seconds": 6.0 / (1 + index % 3)} for index, each in enumerate(document["study"]["rows"])]
    timed = [row for row in rows if row["epoch"] == 1]
    apart = document | {"study": document["study"] | {"timed": timed}, "size": document["size"] | {"timed": 1}}
    seconds = {row["strategy"]: row["seconds"] for row in timed}
    speed, *_, early = claims_of(apart)[:5]
    assert speed.ours == [pytest.approx(seconds["Q = 1"] / seconds["Q = 3"])]
    assert early == claims_of(document)[4]  # losses go with the seconds of training
    assert "those of a first epoch, run anew 1 times in turn" in page(apart, json_link="")


def test_compiled_models_have_a_table_and_a_curve(document):
    times = {
        str(buckets): {"compile_seconds": 9.0 * buckets, "load_seconds": 0.5, "seconds": [8.0, 6.0 / buckets, 1.0]}
        for buckets in BUCKETS
    }
    compiled = document | {"compiled": times, "size": document["size"] | {"compiled": 3}}
    text = page(compiled, json_link="")
    bound = document["bounds"][0]["speed_ups"]["3"]
    assert f"| Q = 3 | 27.0 | 0.5 | 2.00 | 3.00 | {bound:.2f} |" in text
    assert series(compiled)["compiled"][3] == [2.0]
    assert "compiled" not in series(document)


def test_processes_have_a_core_each_or_share_them():
    size = {"device": "cpu", "processes": [1, 2]}
    assert hardware({"size": size, "machine": {"cores": 2}}) == "had a core each"
    assert hardware({"size": size, "machine": {"cores": 1}}) == "shared 1 cores"
    assert hardware({"size": size | {"device": "cuda"}, "machine": {"cores": 1}}) == "had a GPU each"


def test_the_headline_sorts_lengths_by_what_they_allow(document):
    before, after = headline(document).split("It is less for these")
    assert "example long-tailed (6.2)" in before
    assert "uniform from 1 on (1.5)" in after
    assert f"sigma of {sigma_that_allows(4.0, buckets=3):.3f} on" in before


def test_the_command_writes_all_and_goes_on_where_it_was(tmp_path, capsys):
    words = f"reproduce khomenko2016 --small --count 30 --epochs 1 --seeds 1 --processes 1 --quiet --output {tmp_path}"
    assert main(words.split()) == 0
    first = read(tmp_path / "khomenko2016-small.json")
    assert "IV.B, figure 4: an epoch with Q = 3 is close to 4 times shorter" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(words.split()) == 0
    again = read(tmp_path / "khomenko2016-small.json")
    assert again["study"]["rows"] == first["study"]["rows"]  # seconds too
    assert {each["processes"] for each in first["study"]["rows"]} == {1}
    assert len(claims_of(first)) == 6
    assert (tmp_path / "khomenko2016.md").read_text().startswith("# Khomenko et al. 2016")
    assert (tmp_path / "khomenko2016-speed-up.svg").exists()
    assert main([*words.split(), "--data-seed", "1"]) == 2
    assert "`checkpoints` must be of the same data, strategies and settings" in capsys.readouterr().err


def test_bad_data_is_named(tmp_path, capsys):
    (tmp_path / "empty.inkml").write_text("<ink><annotation type='truth'>to</annotation></ink>")
    words = ["reproduce", "khomenko2016", "--data", str(tmp_path), "--strict", "--output", str(tmp_path / "out")]
    assert main(words) == 2
    assert "`data` must be ink with at least one trace, but is 'empty'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_what_the_machine_lacks_is_told_before_anything_is_read(tmp_path, capsys):
    words = ["reproduce", "khomenko2016", "--full", "--data", str(tmp_path / "gone.npz"), "--output", str(tmp_path)]
    assert main(words) == 2
    assert "`device` must be available, but is 'cuda'" in capsys.readouterr().err


def test_several_processes_average_parameters_alone():
    several = settings(MINIATURE)
    assert (several.optimizer, several.processes, several.averaging) == ("adadelta", (1, 2), ("parameter",))
    alone = settings(dataclasses.replace(MINIATURE, processes=(1,)))
    assert (alone.optimizer, alone.processes) == ("adadelta", (1,))


def test_sizes_that_cannot_be_compared_are_refused():
    assert (SMALL.processes, FULL.processes) == ((1, 2), (1, 2, 4))
    with pytest.raises(ValueError, match=r"`processes` must be 1 and then others, but is \(2, 4\)"):
        dataclasses.replace(SMALL, processes=(2, 4))


def test_a_slow_epoch_does_not_change_the_speed_up_of_a_run():
    rows = [row("Q = 1", epoch=epoch, seconds=seconds) for epoch, seconds in enumerate((4.0, 900.0, 3.0), 1)]
    assert speed_ups([*rows, row("Q = 2", seconds=2.0)], "Q = 2") == [2.0]


def test_rows_of_several_processes_are_called_as_those_of_one():
    rows = [row("Q = 2"), row("Q = 2, 4 processes, parameter", processes=4, seconds=3.0)]
    assert rows_on(rows, 1) == rows[:1]
    assert rows_on(rows, 4) == [dataclasses.replace(rows[1], strategy="Q = 2")]


def test_claims_of_buckets_are_of_one_process_alone():
    rows = rows_of(seconds=(8, 4, 2, 1.9, 1.8, 1.7), losses=(4, 3, 2, 3, 3, 3))
    others = [dataclasses.replace(each, strategy=f"{each.strategy}, 2 processes, parameter") for each in rows]
    slow = [dataclasses.replace(each, processes=2, seconds=9.0, elapsed_seconds=9.0 * each.epoch) for each in others]
    assert bucket_claims(rows + slow, lengths=FIFTH) == bucket_claims(rows, lengths=FIFTH)
