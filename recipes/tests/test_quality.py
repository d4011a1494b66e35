"""The study of what mixing is worth: comparisons and sentences by hand, and the whole in miniature."""

import dataclasses
import html
import json
import math
import re

import numpy as np
import pytest

from lengthwise.cli.strategies import parse_strategy

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
pytest.importorskip("jiwer")
pytest.importorskip("matplotlib")
pytest.importorskip("soundfile")

import lengthwise as lw  # noqa: E402
from lengthwise.cli import main  # noqa: E402
from lengthwise_recipes.intervals import Interval  # noqa: E402
from lengthwise_recipes.pages import percent  # noqa: E402
from lengthwise_recipes.quality.answers import (  # noqa: E402
    Tally,
    answers,
    below_random,
    by_padding,
    conclusion,
    difference_to_random,
    record,
    tally,
)
from lengthwise_recipes.quality.comparisons import compare, correlate, losses_of, rank_correlations  # noqa: E402
from lengthwise_recipes.quality.outcomes import equal_seconds, outcomes  # noqa: E402
from lengthwise_recipes.quality.page import page  # noqa: E402
from lengthwise_recipes.quality.power import detectable_shares, mean_detectable_share, power_sentence  # noqa: E402
from lengthwise_recipes.quality.strategies import (  # noqa: E402
    FITTED,
    TOLERANCE,
    Candidate,
    Compared,
    candidates,
    choose_setups,
    list_left_out,
)
from lengthwise_recipes.quality.tasks import KINDS, Source  # noqa: E402
from lengthwise_recipes.study.results import EpochRow, RunRow  # noqa: E402
from lengthwise_recipes.study.setups import Setup  # noqa: E402
from letter_tones import write_folder  # noqa: E402
from tones import store, tones  # noqa: E402

CUT = lw.FixedSize(16)
JUDGED = {"validation": "validation_loss", "test": "test_loss"}
LENGTHS = lw.example_lengths("speech")[:256]


def row(strategy, *, seed, epoch, loss, seconds=1.0):
    """An epoch that took `seconds` in all, a tenth of it for its plan."""
    rest = dict.fromkeys(("mixing", "straggler_waste", "training_loss"), 0.0)
    return EpochRow(
        strategy=strategy,
        processes=1,
        averaging="none",
        seed=seed,
        epoch=epoch,
        steps=4,
        seconds=0.9 * seconds,
        planning_seconds=0.1 * seconds,
        elapsed_seconds=0.9 * seconds * epoch,
        sequences=64,
        useful_frames=640,
        padding_share=0.2,
        metrics={"validation_loss": loss, "test_loss": 2 * loss, "character_error_rate": loss / 10},
        **rest,
    )


def rows_of(losses, *, seconds=None):
    """By strategy, the losses of each seed's epochs; `seconds` of an epoch by strategy, 1 where not given."""
    return [
        row(strategy, seed=seed, epoch=epoch, loss=loss, seconds=(seconds or {}).get(strategy, 1.0))
        for strategy, runs in losses.items()
        for seed, run in enumerate(runs)
        for epoch, loss in enumerate(run, start=1)
    ]


def entry(strategy, *, padding, mixing, cut=CUT):
    candidate = Candidate(
        order=strategy.partition(":")[0], strategy=strategy, padding=padding, padding_share=padding or 0.0, cut=cut
    )
    setup = Setup(batching=parse_strategy(strategy, cut=cut))
    return Compared(candidate=candidate, label=strategy, mixing=mixing, setup=setup)


ENTRIES = [
    entry("random", padding=None, mixing=0.9),
    entry("max-entropy:0.1", padding=0.1, mixing=0.3),
    entry("semi-sorted:0.1", padding=0.1, mixing=0.2),
    entry("bucketed:32", padding=0.1, mixing=0.1),
]
LOSSES = {
    "random": [[4.0, 2.0], [5.0, 3.0]],
    "max-entropy:0.1": [[4.0, 1.0], [5.0, 1.9]],
    "semi-sorted:0.1": [[3.0, 2.0], [5.0, 3.0]],
    "bucketed:32": [[4.0, 3.0], [6.0, 2.5]],
}
SECONDS = {"random": 2.0, "max-entropy:0.1": 1.0, "semi-sorted:0.1": 1.25, "bucketed:32": 1.0}


@pytest.fixture
def losses():
    return losses_of(outcomes(rows_of(LOSSES, seconds=SECONDS), [], losses=JUDGED))


def test_losses_after_as_many_epochs_and_in_as_much_time(losses):
    assert losses["random"]["last"].tolist() == [2.0, 3.0]
    assert losses["bucketed:32"]["test_last"].tolist() == [6.0, 5.0]
    assert losses["random"]["test_equal_seconds"].tolist() == [8.0, 10.0]
    assert losses["max-entropy:0.1"]["equal_seconds"].tolist() == [1.0, 1.9]  # the fastest: all of its 2 seconds
    assert losses["random"]["equal_seconds"].tolist() == [4.0, 5.0]  # its first epoch ends then
    assert losses["semi-sorted:0.1"]["equal_seconds"] == pytest.approx([3.0 - 0.6, 5.0 - 1.2])  # (2 - 1.25) / 1.25


def test_a_strategy_has_no_loss_before_its_first_epoch_ends():
    found = outcomes(rows_of({"fast": [[1.0]], "slow": [[2.0]]}, seconds={"slow": 3.0}), [], losses=JUDGED)
    assert equal_seconds(found) == 1.0
    assert math.isnan(found["slow"].loss_at("validation", 1.0)[0])
    assert found["slow"].loss_at("test", 9.0).tolist() == [4.0]


def test_one_slow_epoch_makes_no_strategy_slow():
    rows = rows_of({"a": [[4.0, 2.0, 1.0]], "b": [[4.0, 2.0, 1.0]]})
    rows[0] = row("a", seed=0, epoch=1, loss=4.0, seconds=50.0)  # the machine did something else
    found = outcomes(rows, [], losses=JUDGED)
    assert found["a"].seconds_per_epoch == found["b"].seconds_per_epoch == 1.0
    assert equal_seconds(found) == 3.0


def test_minutes_in_which_the_machine_is_busy_make_no_strategy_slow():
    losses = [[4.0, 3.0, 2.0, 1.0]]
    rows = rows_of({"a": losses, "b": losses, "c": losses}, seconds={"c": 0.5})
    busy = {("a", 1), ("b", 1), ("c", 1), ("a", 2), ("b", 2), ("c", 2), ("a", 3)}  # of four epochs three of one alone
    slowed = [
        dataclasses.replace(each, seconds=9 * each.seconds, planning_seconds=9 * each.planning_seconds)
        if (each.strategy, each.epoch) in busy
        else each
        for each in rows
    ]
    found = outcomes(slowed, [], losses=JUDGED)
    assert found["a"].seconds_per_epoch == pytest.approx(found["b"].seconds_per_epoch)
    assert found["a"].seconds_per_epoch == pytest.approx(2 * found["c"].seconds_per_epoch)


def test_the_metrics_are_those_of_the_last_epoch_and_of_the_test():
    tests = [
        RunRow(strategy="a", processes=1, averaging="none", seed=seed, metrics={"word_error_rate": rate})
        for seed, rate in ((1, 0.5), (0, 0.25))
    ]
    found = outcomes(rows_of({"a": [[4.0, 2.0], [5.0, math.inf]]}), tests, losses=JUDGED)["a"]
    assert found.metrics["word_error_rate"].tolist() == [0.25, 0.5]
    assert found.metrics["character_error_rate"][0] == 0.2
    assert math.isnan(found.last("validation")[1])
    assert set(found.metrics) == {"character_error_rate", "word_error_rate"}


def test_differences_are_taken_seed_by_seed(losses):
    everything = {(each.one, each.other, each.measure): each.difference for each in compare(ENTRIES, losses)}
    pairs = [(one, other) for one, other, measure in everything if measure == "last"]
    ours = [("max-entropy:0.1", "semi-sorted:0.1"), ("max-entropy:0.1", "bucketed:32")]
    assert pairs == [*ours, ("semi-sorted:0.1", "bucketed:32")]  # random was fitted to no padding
    found = {(other, measure): everything[one, other, measure] for one, other, measure in everything if "max" in one}
    beside = found["semi-sorted:0.1", "last"]  # -1.0 and -1.1
    assert beside.mean == pytest.approx(-1.05)
    assert beside.high == pytest.approx(-1.05 + 12.706 * 0.05, abs=1e-3)
    assert beside.excludes_zero
    assert not found["bucketed:32", "last"].excludes_zero  # -2.0 and -0.6
    assert found["semi-sorted:0.1", "test_last"].mean == pytest.approx(2 * beside.mean)
    assert found["semi-sorted:0.1", "test_last"].negative.low == -found["semi-sorted:0.1", "test_last"].high


def test_more_mixing_goes_with_less_loss_where_it_does(losses):
    (found,) = [each for each in correlate(ENTRIES, losses) if each.measure == "last"]
    assert found.strategies == 3
    assert found.correlation.mean == pytest.approx((-1.0 - 0.5) / 2)  # seed 1: semi-sorted's is the greatest loss
    assert (found.correlation.low, found.correlation.high) == (-1.0, 1.0)
    assert correlate(ENTRIES[:3], losses) == []


def test_rank_correlations_of_ties_and_of_runs_that_diverged():
    values = np.array([1.0, 2.0, 3.0])
    found = rank_correlations(values, np.array([[1.0, 1.0, 2.0], [1.0, 1.0, 1.0], [1.0, math.nan, 2.0]]))
    assert found[0] == pytest.approx(1.5 / math.sqrt(2.0 * 1.5))  # ranks 0, 1, 2 against 0.5, 0.5, 2
    assert np.isnan(found[1:]).all()


def test_the_conclusion_follows_the_greater_count():
    assert conclusion(Tally(lower=2, higher=1, total=8)).startswith("These results speak for")
    assert conclusion(Tally(lower=0, higher=1, total=8)).startswith("These results speak against")
    assert conclusion(Tally(lower=0, higher=0, total=8)).startswith("These results do not say")
    assert conclusion(Tally(lower=0, higher=1, total=24)).startswith("These results do not say")  # chance: 1.2
    assert "in 0 of 8 comparisons, and higher in 1." in conclusion(Tally(lower=0, higher=1, total=8))
    unknown = Interval(mean=math.nan, low=math.nan, high=math.nan, runs=2)
    assert tally([Interval(mean=2.0, low=1.0, high=3.0, runs=2), unknown]) == Tally(lower=0, higher=1, total=2)


def known(padding, one, other, mean):
    difference = {"mean": mean, "low": mean - 1.0, "high": mean + 1.0, "runs": 2}
    measure = "test_equal_seconds"
    return {"padding": padding, "one": one, "other": other, "measure": measure, "difference": difference}


def told(paddings, comparisons):
    strategies = [{"label": f"{order}!", "order": order} for order in ("max-entropy", "sorted-like", "windowed")]
    return {"ours": "max-entropy", "paddings": paddings, "strategies": strategies, "comparisons": comparisons}


def test_what_is_told_apart_is_counted_for_each_order_and_at_each_padding():
    ours, *others = "max-entropy!", "sorted-like!", "windowed!"
    at_small = [known(0.05, ours, others[0], 2.0), known(0.05, ours, others[1], 0.5), known(0.05, *others, -3.0)]
    first = told([0.05, 0.1], [*at_small, known(0.1, ours, others[0], -2.0)])
    second = told([0.055, 0.1], [known(0.055, ours, others[0], 3.0), known(0.1, ours, others[0], 0.0)])
    (sentence,) = by_padding([first, second])
    assert "at the smallest (5 to 5.5 %) lower in 0 of 3, higher in 2" in sentence
    assert "at the largest (10 %) lower in 1 of 2, higher in 0" in sentence
    measure = "test_equal_seconds"
    assert record([first, second], "sorted-like", measure) == Tally(lower=3, higher=1, total=5)
    assert record([first, second], "windowed", measure, 0) == Tally(lower=0, higher=1, total=2)
    assert record([first, second], "windowed", "last") == Tally(lower=0, higher=0, total=0)
    assert by_padding([told([0.1], [])]) == []


def test_every_strategy_that_is_compared_pads_what_it_should():
    found = candidates(LENGTHS, (0.1,), batch_size=16)
    assert [each.order for each in found if each.padding == 0.1 and not each.dynamic] == list(FITTED)
    chosen = choose_setups(LENGTHS, found, base_batch=16.0)
    for each in chosen:
        shares = [lw.measure(lw.make_plan(LENGTHS, each.setup.batching, epoch=epoch), LENGTHS) for epoch in range(16)]
        if each.candidate.padding is not None:
            assert np.mean([share.padding_share for share in shares]) == pytest.approx(0.1, abs=TOLERANCE + 0.001)
    dynamic = [each for each in chosen if each.candidate.dynamic]
    assert [each.setup.learning_rate_scaling for each in dynamic[:3]] == ["none", "linear", "root"]
    assert [each.setup.base_batch for each in dynamic[:3]] == [None, 16.0, 16.0]
    assert len({each.label for each in chosen}) == len(chosen)
    assert len(list_left_out(found)) == len([each for each in found if not each.near])


def test_what_pads_otherwise_is_left_out_and_named():
    far = Candidate(order="bucketed", strategy="bucketed:16", padding=0.1, padding_share=0.04, cut=CUT)
    assert choose_setups(LENGTHS, [far], base_batch=16.0) == []
    assert list_left_out([far, *(each.candidate for each in ENTRIES)]) == [
        "bucketed at 10 %, since the nearest is 4.0 %, by bucketed:16"
    ]


@pytest.mark.parametrize("paddings", [(), (0.1, 0.05), (0.1, 0.105), (0.0,), (1.5,)])
def test_shares_that_nothing_can_be_compared_at_are_refused(paddings):
    with pytest.raises(ValueError, match="`paddings` must be"):
        candidates(LENGTHS, paddings, batch_size=16)


def test_less_than_sorting_pads_is_refused():
    with pytest.raises(ValueError, match="what sorted batches pad"):
        candidates(LENGTHS, (0.01,), batch_size=16)


def test_a_task_that_needs_speech_says_so():
    with pytest.raises(ValueError, match="`data` must be the path of speech"):
        KINDS["acoustic"].make(Source(data=None, count=8))


@pytest.mark.parametrize("name", KINDS)
def test_a_task_measures_what_it_is_judged_by(name, tmp_path, characters):
    texts = {f"LJ{number}": "abc hgfe dcb"[: 4 + number] for number in range(8)}
    data = {
        "handwriting": lambda: characters,
        "acoustic": lambda: store(tones(takes=7), tmp_path / "digits.npz"),
        "synthesis": lambda: write_folder(tmp_path / "voice", texts),
    }
    kind = KINDS[name]
    task = kind.make(Source(data=data[name](), count=8, folder=tmp_path / "kept"))
    model = task.model().eval()
    with torch.no_grad():
        found = {**task.validate(model), **task.test(model)}
    assert {kind.loss, kind.test_loss, *kind.metrics} <= set(found)
    assert task.lengths.ndim == 1


@pytest.fixture(scope="module")
def characters(tmp_path_factory):
    """Three characters, each a vertical line and a dash, by each of four drawers."""
    drawn = [[[drawer, 10], [0, 4 + label], [3, 1], [5, 0]] for drawer in range(4) for label in range(3)]
    path = tmp_path_factory.mktemp("characters") / "characters.npz"
    np.savez(
        path,
        dxy=np.array(drawn, np.int16).reshape(-1, 2),
        pen_up=np.tile(np.array([0, 1, 0, 1], np.uint8), 12),
        offsets=np.arange(0, 49, 4),
        label=np.tile(np.arange(3, dtype=np.int16), 4),
        drawer=np.repeat(np.arange(4, dtype=np.int16), 3),
        vocab=np.frombuffer(b"Greek/1\nGreek/2\nGreek/3", np.uint8),
    )
    return path


@pytest.fixture(scope="module")
def command(tmp_path_factory, characters):
    """The command on 80 words to learn, 5 steps an epoch, and the folder that it writes to."""
    folder = tmp_path_factory.mktemp("quality")
    words = ["study", "quality", "--task", "handwriting", "--data", str(characters), "--count", "120"]
    words += ["--padding", "0.25", "--seeds", "2", "--epochs", "2", "--checkpoints", str(folder / "kept"), "--quiet"]
    written = {"--json": "out.json", "--plot": "out.png", "--html": "out.html"}
    return [*words, *(word for option, name in written.items() for word in (option, str(folder / name)))], folder


@pytest.fixture(scope="module")
def document(command):
    words, folder = command
    assert main(words) == 0
    return json.loads((folder / "out.json").read_text())


def test_the_whole_in_miniature(document):
    strategies = {each["label"]: each for each in document["strategies"]}
    assert document["sequences"] == 80
    assert len(document["runs"]) == 2 * len(strategies)
    for each in strategies.values():
        assert each["padding"] is None or abs(each["padding_share"] - each["padding"]) < 0.03  # 4 plans of 5 batches
    assert strategies["random"]["to_random"]["last"] == {"mean": 0.0, "low": 0.0, "high": 0.0, "runs": 2}
    assert strategies["sorted"]["mixing"] < strategies["random"]["mixing"]
    first, last = (np.mean([run["losses"][epoch] for run in document["runs"]]) for epoch in (0, 1))
    assert last < first
    assert min(second for run in document["runs"] for second in run["seconds"]) > 0
    assert {each["padding"] for each in document["comparisons"]} == {0.25}


def test_the_page_says_what_was_learned(command, document):
    pytest.importorskip("jinja2")
    page = (command[1] / "out.html").read_text(encoding="utf-8")
    text = html.unescape(re.sub(r"<[^>]*>", "", page))
    assert answers([document])[0] in " ".join(text.split())
    assert "What was learned" in text
    assert "test loss" in text
    compared = [each for each in document["strategies"] if not each["dynamic"]]
    assert all(each["label"] in text for each in compared)
    # The curve of random batches ends where the mean over its seeds does.
    ends = [run["test_losses"][-1] for run in document["runs"] if run["strategy"] == "random"]
    assert f"{np.mean(ends):.4g}" in text


def test_the_comparisons_are_those_of_the_runs(document):
    losses = {(run["strategy"], run["seed"]): run["losses"][-1] for run in document["runs"]}
    for each in (each for each in document["comparisons"] if each["measure"] == "last"):
        differences = [losses[each["one"], seed] - losses[each["other"], seed] for seed in (0, 1)]
        assert each["difference"]["mean"] == pytest.approx(np.mean(differences), abs=1e-5)
        reach = 12.7062 * np.std(differences, ddof=1) / math.sqrt(2)
        assert each["difference"]["high"] == pytest.approx(np.mean(differences) + reach, rel=1e-3, abs=1e-3)


def test_called_again_nothing_is_trained_and_all_is_the_same(command, document, capsys):
    words, folder = command
    assert main(words) == 0
    again = json.loads((folder / "out.json").read_text())
    assert again["runs"] == document["runs"]  # seconds too: they are those that were measured once
    assert again["comparisons"] == document["comparisons"]
    shown = capsys.readouterr().out
    assert "80 sequences of words joined from the characters" in shown


def test_the_picture_is_drawn(command, document):
    assert document["strategies"]
    assert (command[1] / "out.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_says_what_the_intervals_say(document):
    text = page({"results/a.json": document, "results/b.json": {**document, "task": "acoustic"}})
    _, question, first, others, *_ = text.split("\n\n")
    assert question.endswith("?")
    assert [first, *others.removeprefix("- ").split("\n- ")] == answers([document, document | {"task": "acoustic"}])
    ours = [each for each in document["comparisons"] if each["one"].startswith("max-entropy")]
    last = [each["difference"] for each in ours if each["measure"] == "test_equal_seconds"]
    known = [each for each in last if each["mean"] is not None]  # a slow strategy may have ended no epoch by then
    lower, higher = 2 * sum(each["high"] < 0.0 for each in known), 2 * sum(each["low"] > 0.0 for each in known)
    assert f"order's in {lower} of {2 * len(last)} comparisons, and higher in {higher}." in first
    assert "| `max-entropy` | " in text
    assert "## Handwriting" in text
    assert "## Acoustic" in text
    assert text.count("![") == 2
    for each in document["strategies"]:
        assert f"| `{each['strategy']}" in text
    seconds = [each["seconds_per_epoch"] for each in document["strategies"] if each["padding"] and not each["dynamic"]]
    assert f"seconds of an epoch differ by up to {percent(max(seconds) / min(seconds) - 1.0)}." in text


def test_earlier_results_stand_below_and_count_for_nothing_above(document):
    lone = page({"results/a.json": document})
    text = page({"results/a.json": document}, {"results/before.json": {**document, "date": "2025-01-02T03:04:05"}})
    assert text.startswith(lone.rstrip("\n"))
    below = text.removeprefix(lone.rstrip("\n"))
    assert below.startswith("\n\n## Earlier results")
    assert below.count("| handwriting, [2025-01-02](results/before.json) |") == len(document["paddings"])
    ours = [each for each in document["comparisons"] if each["one"].startswith("max-entropy")]
    first = [each for each in ours if each["padding"] == document["paddings"][0] and each["measure"] == "last"]
    assert f"of {len(first)} |" in below


def test_ours_difference_to_random_is_that_of_the_largest_padding():
    def strategy(padding, mean):
        bounds = {"mean": mean, "low": mean - 1.0, "high": mean + 1.0, "runs": 2}
        return {
            "order": "max-entropy",
            "dynamic": False,
            "padding": padding,
            "to_random": {"test_equal_seconds": bounds},
        }

    document = {"ours": "max-entropy", "strategies": [strategy(0.1, -2.0), strategy(0.05, -3.0)]}
    assert difference_to_random(document).mean == -2.0


def test_what_is_below_random_batches_is_counted_on_both_parts():
    def strategy(padding, validation, test, *, dynamic=False):
        means = {"equal_seconds": validation, "test_equal_seconds": test, "last": test, "test_last": validation}
        bounds = {
            name: {"mean": mean, "low": mean - 1.0, "high": mean + 1.0, "runs": 2} for name, mean in means.items()
        }
        return {"dynamic": dynamic, "padding": padding, "to_random": bounds}

    counted = [strategy(0.1, -2.0, -2.0), strategy(0.1, -2.0, 0.5), strategy(0.05, -0.5, 2.0)]
    others = [strategy(None, -2.0, -2.0), strategy(0.1, -2.0, -2.0, dynamic=True)]
    sentence = below_random([{"task": "speech", "strategies": [*counted, *others]}])
    assert "In equal training time: speech 2 of 3 and 1 of 3. After" in sentence
    assert sentence.endswith("After equally many epochs: speech 1 of 3 and 2 of 3.")


def test_the_smallest_difference_is_that_of_the_paired_runs_over_the_other_loss():
    known = {"mean": 0.0, "low": -4.3027, "high": 4.3027, "runs": 3}  # differences -s, 0, s with s = sqrt(3)
    other = {"mean": 56.535, "low": 50.0, "high": 60.0, "runs": 3}
    strategies = [
        {"label": "ours", "order": "max-entropy", "losses": {"last": known}},
        {"label": "theirs", "order": "windowed", "losses": {"last": other}},
    ]
    pair = {"measure": "last", "difference": known, "padding": 0.1}
    comparisons = [
        {**pair, "one": "ours", "other": "theirs"},
        {**pair, "one": "theirs", "other": "ours"},  # of another order: not counted
        {**pair, "one": "ours", "other": "theirs", "measure": "test_last"},
    ]
    document = {"task": "speech", "ours": "max-entropy", "strategies": strategies, "comparisons": comparisons[:2]}
    # Noncentrality 5.6535, s / sqrt(3) = 1.
    assert detectable_shares(document, "last") == pytest.approx([0.1], rel=1e-3)
    assert mean_detectable_share(document, "last") == "10.0 %"
    assert "speech 10.0 %." in power_sentence([document], "last")


def test_a_run_that_diverged_could_tell_nothing():
    unknown = {"mean": None, "low": None, "high": None, "runs": 2}
    strategies = [{"label": name, "order": "max-entropy", "losses": {"last": unknown}} for name in ("one", "other")]
    pair = {"one": "one", "other": "other", "measure": "last", "difference": unknown}
    document = {"task": "speech", "ours": "max-entropy", "strategies": strategies, "comparisons": [pair]}
    assert mean_detectable_share(document, "last") == "nothing"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--task", "acoustic"], "`data` must be the path of speech"),
        (["--task", "handwriting", "--padding", "0.1,0.05"], "`paddings` must be rising"),
        (["--task", "handwriting", "--count", "1"], "`count` must be at least 2"),
        (["--task", "handwriting", "--seeds", "0"], "`seeds` must be at least 1"),
    ],
)
def test_what_cannot_be_studied_is_told_in_a_sentence(words, complaint, capsys):
    assert main(["study", "quality", *words]) == 2
    assert complaint in capsys.readouterr().err


def test_shares_that_are_no_numbers_are_refused_by_the_parser(capsys):
    with pytest.raises(SystemExit):
        main(["study", "quality", "--task", "handwriting", "--padding", "0.1,little"])
    assert "must be numbers such as 0.05,0.1" in capsys.readouterr().err
