"""The loop of the studies, on a line that one weight learns: what a step is by hand, for chunks, rates and ranks."""

import dataclasses
import itertools
import json
import multiprocessing
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from damages import DAMAGES, flip

pytestmark = pytest.mark.processes

torch = pytest.importorskip("torch")

import lengthwise as lw  # noqa: E402
from lengthwise_recipes.study.checkpoints import Checkpoints  # noqa: E402
from lengthwise_recipes.study.results import EpochRow, RunRow, plain, timed_rows  # noqa: E402
from lengthwise_recipes.study.settings import Settings  # noqa: E402
from lengthwise_recipes.study.setups import Setup, costliest_batch, setups  # noqa: E402
from lengthwise_recipes.study.study import run_study  # noqa: E402
from lengthwise_recipes.study.task import weights  # noqa: E402
from lengthwise_recipes.study.training import in_turn, train  # noqa: E402

PATIENCE = 120.0  # seconds after which a hang is a failure
LENGTHS = np.array([3, 9, 4, 12, 5, 7, 2, 8, 6, 10, 1, 11])
SETTINGS = Settings(epochs=3, learning_rate=0.05)
WHOLE = lw.Batching(cut=lw.FixedSize(4))
CHUNKED = lw.Batching(cut=lw.Budget(12), chunks=lw.Chunks(4))


@dataclass(frozen=True, kw_only=True)
class Line:
    """Frames of each sequence lie on a line of slope 2, and each sequence a little above the one before."""

    lengths: np.ndarray = field(default_factory=LENGTHS.copy)
    counts: str = "frames"
    noted: list[Any] = field(default_factory=list)

    def model(self):
        return torch.nn.Linear(1, 1).double()

    def loss(self, model, batch, width):
        self.noted.append((batch.tolist(), width))
        lengths = self.lengths if self.lengths.ndim == 1 else self.lengths[:, 0]
        spans = batch if batch.ndim == 2 else [(number, 0, lengths[number]) for number in batch]
        means = torch.stack([self._error(model, *span) for span in spans])
        counted = torch.tensor([stop - start if self.counts == "frames" else 1 for _, start, stop in spans])
        return (means * counted).sum() / counted.sum()

    def _error(self, model, number, start, stop):
        places = torch.sin(torch.arange(int(start), int(stop), dtype=torch.float64) + float(number))[:, None]
        return (model(places) - 2.0 * places - 0.1 * float(number)).square().mean()

    def validate(self, model):
        assert not model.training
        return {"validation_loss": self._error(model, 3, 0, 12), "slope": model.weight}

    def test(self, model):
        self.noted.append("test")
        return {"slope_error": (model.weight - 2.0).abs()}

    def describe(self):
        return {"name": "a line", "network": {"inputs": 1}}


def by_hand(task, setup, settings, *, world_size=1):
    """Losses and slope of each epoch where the whole step is one loss, and the rate of each step is looked up."""
    torch.manual_seed(0)
    model = task.model()
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.rate)
    for epoch in range(1, settings.epochs + 1):
        plan = lw.make_plan(task.lengths, setup.batching, seed=0, epoch=epoch, world_size=world_size)
        sums = counts = 0.0
        for batches in plan.grid[:, 0]:
            sizes = [size_of(task, plan, batch) for batch in batches]
            losses = [task.loss(model, plan.batch(int(batch)), 0) for batch in batches]
            total = (torch.stack(losses) * torch.tensor(sizes)).sum()
            factor = {"none": 1.0, "linear": sum(sizes) / (setup.base_batch or 1.0)}
            factor["root"] = factor["linear"] ** 0.5
            optimizer.param_groups[0]["lr"] = settings.rate * factor[setup.learning_rate_scaling]
            optimizer.zero_grad()
            (total / sum(sizes)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clipped_norm)
            optimizer.step()
            sums, counts = sums + total.item(), counts + sum(sizes)
        yield sums / counts, task._error(model, 3, 0, 12).item(), model.weight.item()


def size_of(task, plan, batch):
    """Frames of a batch, or its members."""
    members = plan.batch(int(batch))
    if task.counts == "sequences":
        return len(members)
    return int((members[:, 2] - members[:, 1]).sum() if members.ndim == 2 else task.lengths[members].sum())


def learned(rows):
    """What training comes to, and not how long it took."""
    timed = ("seconds", "planning_seconds", "elapsed_seconds")
    return [{name: value for name, value in dataclasses.asdict(row).items() if name not in timed} for row in rows]


def in_patience(work):
    """Does it, and ends the processes that it starts should they hang: whoever waits for them then hears of it."""
    timer = threading.Timer(PATIENCE, lambda: [child.kill() for child in multiprocessing.active_children()])
    timer.start()
    try:
        return work()
    finally:
        timer.cancel()


@pytest.mark.parametrize("counts", ["sequences", "frames"])
@pytest.mark.parametrize(
    "setup",
    [
        Setup(batching=WHOLE),
        Setup(batching=CHUNKED),
        Setup(batching=lw.Batching(budget=24), learning_rate_scaling="linear", base_batch=6),
        Setup(batching=CHUNKED, learning_rate_scaling="root", base_batch=6.5),
    ],
    ids=["whole", "chunks", "linear", "root"],
)
def test_one_process_learns_as_by_hand(setup, counts):
    task = Line(counts=counts)
    study = run_study(task, {"line": setup}, SETTINGS)
    found = [(row.training_loss, row.validation_loss, row.metrics["slope"]) for row in study.rows]
    np.testing.assert_allclose(found, list(by_hand(task, setup, SETTINGS)), rtol=1e-9)


@pytest.fixture(scope="module")
def on_two(forked_ranks):  # noqa: ARG001
    given = {
        name: Setup(batching=batching, processes=2, averaging="gradient", learning_rate_scaling="linear", base_batch=16)
        for name, batching in (("whole", WHOLE), ("chunks", CHUNKED))
    }
    given["apart"] = Setup(
        batching=dataclasses.replace(CHUNKED, deal=lw.Portions()), processes=2, averaging="parameter"
    )
    return given, in_patience(lambda: run_study(Line(), given, SETTINGS))


@pytest.mark.parametrize("name", ["whole", "chunks"])
def test_two_processes_take_the_steps_of_one(on_two, name):
    given, study = on_two
    found = [
        (row.training_loss, row.validation_loss, row.metrics["slope"]) for row in study.rows if row.strategy == name
    ]
    np.testing.assert_allclose(found, list(by_hand(Line(), given[name], SETTINGS, world_size=2)), rtol=1e-9)


def test_chunks_are_averaged_after_the_epoch_too(on_two):
    rows = [row for row in on_two[1].rows if row.strategy == "apart"]
    assert [(row.processes, row.averaging, row.useful_frames) for row in rows] == [(2, "parameter", 78)] * 3
    assert rows[-1].validation_loss < rows[0].training_loss


def test_epochs_timed_apart_leave_the_training_as_it_is():
    setups = {"whole": WHOLE, "chunks": CHUNKED}
    task = Line()
    study = run_study(task, setups, dataclasses.replace(SETTINGS, timed=2))
    assert learned(study.rows) == learned(run_study(Line(), setups, SETTINGS).rows)
    assert [(each.strategy, each.seed, each.epoch) for each in study.timed] == [
        (label, repeat, 1) for label in setups for repeat in range(2)
    ]
    assert all(each.seconds > 0.0 and not each.metrics for each in study.timed)
    assert study.timed[0].training_loss == study.rows[0].training_loss  # the same first epoch
    assert task.noted.count("test") == 2  # of training alone
    document = json.loads(json.dumps(study.as_dict(), allow_nan=False))
    assert timed_rows(document) == [dataclasses.replace(each, **rounded(each)) for each in study.timed]
    assert len(timed_rows(document | {"timed": []})) == len(study.rows)


def rounded(row):
    return {name: plain(value) for name, value in dataclasses.asdict(row).items()}


def test_rows_of_chunks_count_sequences_and_frames():
    overlapping = dataclasses.replace(CHUNKED, chunks=lw.Chunks(4, step=2))
    study = run_study(Line(), {"whole": WHOLE, "chunks": CHUNKED, "overlapping": overlapping}, SETTINGS)
    whole, chunks, twice = study.rows[:3]
    assert (whole.sequences, chunks.sequences, twice.sequences) == (12, 12, 12)
    assert whole.useful_frames == chunks.useful_frames == 78
    # 3, 9 = 4+4+4+3, 4, 12 = 5 x 4, 5 = 4+3, 7 = 4+4+3, 2, 8 = 3 x 4, 6 = 2 x 4, 10 = 4 x 4, 1, 11 = 4 x 4+3
    assert twice.useful_frames == 3 + 15 + 4 + 20 + 7 + 11 + 2 + 12 + 8 + 16 + 1 + 19
    assert chunks.steps == len(lw.make_plan(LENGTHS, CHUNKED, epoch=1))


def test_the_task_is_given_what_the_plan_says():
    task = Line()
    batching = lw.Batching(order=lw.Bucketed(edges=(6, 12), pad_to_edge=True), cut=lw.FixedSize(4))
    run_study(task, {"edges": batching}, Settings(epochs=1))
    plan = lw.make_plan(LENGTHS, batching, epoch=1)
    assert task.noted[1:-1] == [  # between the warm-up and the test
        (plan.batch(int(number)).tolist(), plan.padded_lengths[number, 0]) for number in plan.grid[:, 0, 0]
    ]
    assert {width for _, width in task.noted[:-1]} == {6, 12}


def test_of_two_lengths_the_first_is_padded_to_and_counts():
    task = Line(lengths=np.stack([LENGTHS, 20 - LENGTHS], axis=1))
    (row,) = run_study(task, {"random": WHOLE}, Settings(epochs=1)).rows
    plan = lw.make_plan(task.lengths, WHOLE, epoch=1)
    assert [width for _, width in task.noted[1:-1]] == [LENGTHS[batch].max() for batch in plan.batches()]
    assert row.useful_frames == 78
    assert weights(task, None).tolist() == LENGTHS.tolist()


def test_every_run_is_tested_once(tmp_path):
    task = Line()
    two = dataclasses.replace(SETTINGS, seeds=2)
    study = run_study(task, {"whole": WHOLE, "chunks": CHUNKED}, two, checkpoints=tmp_path)
    assert [(row.strategy, row.seed) for row in study.tests] == [
        ("whole", 0),
        ("chunks", 0),
        ("whole", 1),
        ("chunks", 1),
    ]
    last = {(row.strategy, row.seed): row for row in study.rows if row.epoch == 3}
    for row in study.tests:
        assert row.metrics["slope_error"] == abs(last[row.strategy, row.seed].metrics["slope"] - 2.0)
    assert task.noted.count("test") == 4
    again = run_study(task, {"whole": WHOLE, "chunks": CHUNKED}, two, checkpoints=tmp_path)
    assert (again.tests, task.noted.count("test")) == (study.tests, 4)
    longer = run_study(
        task, {"whole": WHOLE, "chunks": CHUNKED}, dataclasses.replace(two, epochs=4), checkpoints=tmp_path
    )
    assert task.noted.count("test") == 8
    assert longer.rows[0] == study.rows[0]


@pytest.mark.parametrize("finished", [1, 3, 5, 9])
def test_an_interrupted_study_goes_on_bit_by_bit(tmp_path, finished):
    given = {"whole": WHOLE, "chunks": Setup(batching=CHUNKED, learning_rate_scaling="linear", base_batch=8)}
    planned, two = setups(given, SETTINGS), dataclasses.replace(SETTINGS, seeds=2)
    whole = list(train(Line(), planned, two))
    begun = train(Line(), planned, two, checkpoints=Checkpoints(tmp_path))
    before = list(itertools.islice(begun, finished))
    begun.close()
    resumed = list(train(Line(), planned, two, checkpoints=Checkpoints(tmp_path)))
    assert resumed[:finished] == before  # seconds too: they were not trained again
    assert learned(resumed) == learned(whole)
    assert [type(each) for each in resumed[4:8]] == [EpochRow, RunRow, EpochRow, RunRow]


def checkpoint(folder, name, epoch):
    (path,) = folder.glob(f"{name}-seed-0_*_epoch{epoch}.pt")
    return path


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before_it(tmp_path, damage):
    given = {"whole": WHOLE, "chunks": CHUNKED}
    first = run_study(Line(), given, SETTINGS, checkpoints=tmp_path)
    damage(checkpoint(tmp_path, "whole", 3))
    with pytest.warns(UserWarning, match="`checkpoint` must be whole, but is 'damaged' at .*whole.*_epoch3.pt") as told:
        again = run_study(Line(), given, SETTINGS, checkpoints=tmp_path)
    assert len(told) == 1
    assert learned(again.rows) == learned(first.rows)
    assert [row for row in again.rows if row.epoch < 3 or row.strategy == "chunks"] == [
        row for row in first.rows if row.epoch < 3 or row.strategy == "chunks"
    ]  # seconds too: these were not trained again
    assert run_study(Line(), given, SETTINGS, checkpoints=tmp_path).rows == again.rows


def test_a_run_without_a_whole_checkpoint_starts_anew(tmp_path):
    first = run_study(Line(), {"whole": WHOLE}, SETTINGS, checkpoints=tmp_path)
    for epoch in (2, 3):
        flip(checkpoint(tmp_path, "whole", epoch))
    np.savez(tmp_path / "other.npz", other=np.zeros(1))
    (tmp_path / "other.npz").replace(checkpoint(tmp_path, "whole", 3))  # whole, and none of ours
    with pytest.warns(UserWarning, match="continues from the previous checkpoint, or starts again") as told:
        again = run_study(Line(), {"whole": WHOLE}, SETTINGS, checkpoints=tmp_path)
    assert len(told) == 2
    assert learned(again.rows) == learned(first.rows)


def test_checkpoints_of_another_run_epoch_or_study_are_refused(tmp_path):
    given = {"whole": WHOLE, "chunks": Setup(batching=WHOLE, learning_rate_scaling="linear", base_batch=8)}
    run_study(Line(), given, SETTINGS, checkpoints=tmp_path / "one")
    faster = dataclasses.replace(SETTINGS, learning_rate=0.1)
    run_study(Line(), given, faster, checkpoints=tmp_path / "two")
    last = checkpoint(tmp_path / "one", "whole", 3)
    content = last.read_bytes()
    others = (
        checkpoint(tmp_path / "one", "chunks", 3),
        checkpoint(tmp_path / "one", "whole", 2),
        checkpoint(tmp_path / "two", "whole", 3),
    )
    for other in others:
        last.write_bytes(other.read_bytes())
        with pytest.raises(
            ValueError, match="`checkpoint` must be of 'whole, seed 0' after epoch 3, but is 'of another"
        ):
            run_study(Line(), given, SETTINGS, checkpoints=tmp_path / "one")
    last.write_bytes(content)
    run_study(Line(), given, SETTINGS, checkpoints=tmp_path / "one")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_note_of_the_study_costs_no_checkpoint_and_lets_in_no_other(tmp_path, damage):
    first = run_study(Line(), {"whole": WHOLE}, SETTINGS, checkpoints=tmp_path)
    damage(tmp_path / "study.json")
    with pytest.warns(
        UserWarning, match="`study` must be whole, but is 'damaged' at .*study.json. It is written again."
    ):
        assert run_study(Line(), {"whole": WHOLE}, SETTINGS, checkpoints=tmp_path).rows == first.rows
    damage(tmp_path / "study.json")
    faster = dataclasses.replace(SETTINGS, learning_rate=0.1)
    with (
        pytest.warns(UserWarning, match="`study` must be whole"),
        pytest.raises(ValueError, match="`checkpoint` must be of 'whole, seed 0' after epoch"),
    ):
        run_study(Line(), {"whole": WHOLE}, faster, checkpoints=tmp_path)


def test_a_file_of_no_epoch_is_no_checkpoint(tmp_path):
    run_study(Line(), {"whole": WHOLE}, SETTINGS, checkpoints=tmp_path)
    last = checkpoint(tmp_path, "whole", 3)
    last.with_name(last.name.replace("epoch3", "epoch3 copy")).write_bytes(last.read_bytes())
    assert Checkpoints(tmp_path).epochs("whole, seed 0", 0) == [2, 3]


def test_fewer_epochs_than_are_kept_are_refused(tmp_path):
    run_study(Line(), {"whole": WHOLE}, SETTINGS, checkpoints=tmp_path)
    with pytest.raises(ValueError, match="`epochs` must be at least 3, which the checkpoints hold, but is 2"):
        run_study(Line(), {"whole": WHOLE}, dataclasses.replace(SETTINGS, epochs=2), checkpoints=tmp_path)


def test_rates_are_part_of_what_checkpoints_are_of(tmp_path):
    run_study(Line(), {"whole": WHOLE}, SETTINGS, checkpoints=tmp_path)
    scaled = Setup(batching=WHOLE, learning_rate_scaling="linear", base_batch=8)
    with pytest.raises(ValueError, match="`checkpoints` must be of the same data, strategies and settings"):
        run_study(Line(), {"whole": scaled}, SETTINGS, checkpoints=tmp_path)


def test_the_json_holds_metrics_tests_and_rates():
    scaled = Setup(batching=WHOLE, learning_rate_scaling="root", base_batch=8)
    study = run_study(Line(), {"plain": WHOLE, "scaled": scaled}, dataclasses.replace(SETTINGS, seeds=2))
    document = json.loads(json.dumps(study.as_dict(), allow_nan=False))
    assert document["settings"]["inputs"] == 1  # of the network
    assert (
        document["strategies"]["scaled"]["learning_rate_scaling"],
        document["strategies"]["scaled"]["base_batch"],
    ) == (
        "root",
        8,
    )
    assert "base_batch" not in document["strategies"]["plain"]
    assert {"validation_loss", "slope", "seconds", "training_loss"} <= set(document["rows"][0])
    summary = document["summary"][1]
    errors = [row["slope_error"] for row in document["tests"] if row["strategy"] == "scaled"]
    assert summary["tests"]["slope_error"]["least"] == min(errors)
    assert summary["slope"]["greatest"] >= summary["slope"]["least"]
    assert summary["peak_bytes"] is None
    assert "metrics" not in summary


class Wide(Line):
    """A layer of 100 x 100 weights, on frames of 100 numbers of 8 bytes."""

    def model(self):
        return torch.nn.Linear(100, 100, bias=False).double()

    def loss(self, model, batch, width):
        frames = torch.ones(len(batch), width, 100, dtype=torch.float64, device=model.weight.device)
        return model(frames).sum()

    def validate(self, model):
        return {"validation_loss": model.weight.mean()}

    def test(self, model):
        return {}


@pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"))],
)
def test_the_memory_of_a_step_is_that_of_its_costliest_batch(device):
    batchings = {"long": lw.Batching(budget=1200), "short": lw.Batching(budget=300, chunks=lw.Chunks(100))}
    task = Wide(lengths=100 * LENGTHS)
    settings = Settings(epochs=1, memory=True, device=device)
    study = run_study(task, batchings, settings)
    # Weights and their gradient, and 800 bytes a frame as it goes in, and as it comes out or for the gradient of that.
    assert study.peak_bytes == {
        "long": pytest.approx(2 * 80_000 + 2 * 800 * 1200, rel=0.02),
        "short": pytest.approx(2 * 80_000 + 2 * 800 * 300, rel=0.02),
    }
    assert study.summaries[0].peak_bytes == study.peak_bytes["long"]
    assert run_study(task, batchings, settings).peak_bytes == study.peak_bytes
    assert run_study(task, batchings, Settings(epochs=1, device=device)).peak_bytes == {}


class Noisy(Line):
    """A loss with noise, as dropout makes it."""

    def loss(self, model, batch, width):
        return super().loss(model, batch, width) * (0.5 + torch.rand(()))


def test_another_strategy_changes_no_noise():
    alone, beside = (
        run_study(Noisy(), given, SETTINGS) for given in ({"whole": WHOLE}, {"chunks": CHUNKED, "whole": WHOLE})
    )
    assert learned(alone.rows) == learned([row for row in beside.rows if row.strategy == "whole"])


def test_the_costliest_batch_is_that_of_all_epochs():
    setup = Setup(batching=lw.Batching(order=lw.Shuffled(), budget=23))
    costs = [lw.make_plan(LENGTHS, setup.batching, epoch=epoch).costs.max() for epoch in range(20)]
    least, most = int(np.argmin(costs)), int(np.argmax(costs))
    assert costs[least] < costs[most]
    for epochs in ((least, most), (most, least)):
        batch, width = costliest_batch(setup, LENGTHS, seed=0, epochs=epochs)
        assert len(batch) * width == costs[most]
        assert width == LENGTHS[batch].max()


def test_a_setup_of_more_processes_than_gpus_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    two = {"two": Setup(batching=WHOLE, processes=2, averaging="gradient")}
    with pytest.raises(ValueError, match=r"`processes` must be at most 1, one for each GPU, but is 2\."):
        setups(two, Settings(device="cuda"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"processes": 0}, "`processes` must be at least 1, but is 0."),
        ({"averaging": "gradient"}, "`averaging` must be one of none, but is 'gradient'."),
        ({"processes": 2}, "`averaging` must be one of parameter, gradient, but is 'none'."),
        ({"learning_rate_scaling": "square"}, "`learning_rate_scaling` must be one of none, linear, root, but is"),
        ({"base_batch": 16}, "`base_batch` must be left out without scaling, but is 16."),
        ({"learning_rate_scaling": "root", "base_batch": 0}, "`base_batch` must be finite and above 0, but is 0."),
        (
            {"processes": 2, "averaging": "parameter", "learning_rate_scaling": "root", "base_batch": 1},
            "`learning_rate_scaling` must be none with parameter averaging, but is 'root'.",
        ),
    ],
)
def test_bad_setups_are_named(change, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Setup(batching=WHOLE, **change)
    assert str(caught.value).startswith(message)


def test_scaling_needs_the_size_that_the_rate_was_chosen_for():
    with pytest.raises(TypeError, match=r"`base_batch` must be a number, but is None\. Give the size of a step"):
        Setup(batching=WHOLE, learning_rate_scaling="linear")


def test_every_round_takes_every_setup_once_in_an_order_of_its_own():
    made = setups(dict.fromkeys("abcdef", WHOLE), SETTINGS)
    rounds = [[each.label for each in in_turn(made, seed=seed, epoch=epoch)] for seed in (0, 1) for epoch in (1, 2, 3)]
    assert all(sorted(each) == list("abcdef") for each in rounds)
    assert len({tuple(each) for each in rounds}) > 3
    assert rounds[0] == [each.label for each in in_turn(made, seed=0, epoch=1)]


def test_a_setup_has_one_name():
    (made,) = setups({"sixteen": Setup(batching=WHOLE)}, SETTINGS)
    assert made.label == "sixteen"
    with pytest.raises(ValueError, match="`label` must be the setup's key, 'sixteen', but is 'eight'"):
        setups({"sixteen": Setup(batching=WHOLE, label="eight")}, SETTINGS)


def test_what_a_task_counts_is_one_of_two():
    with pytest.raises(ValueError, match="`counts` must be one of sequences, frames, but is 'words'"):
        weights(Line(counts="words"), None)
