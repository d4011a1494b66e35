"""A training that is killed goes on from its checkpoint as if nothing had happened, bit for bit."""

import shutil
import signal
import subprocess
import sys

import pytest
import torch
import train
from processes import PATIENCE, TRAIN, checkpointed, exit_codes, final_weights, lines, read_until, started, sweep

import lengthwise as lw

pytestmark = pytest.mark.processes

EPOCHS = 3
ALONE = ("--dropout", "0.1")
TOGETHER = ("--dtype", "float64")
KILLED_AT = (1, 19)  # epoch and batches; the checkpoint before it has 14


def run_alone(folder, log):
    return exit_codes([started(folder / log, folder, *ALONE)])


def run_two(folder, log, *, killed=()):
    """Trains on two ranks; rank 1 may be told to kill itself. The exit codes of rank 1 and of rank 0."""
    store = ("--store", f"file://{folder}/{log}.store")
    processes = [
        started(folder / f"{log}{rank}", folder, *TOGETHER, *store, *more, RANK=str(rank), WORLD_SIZE="2")
        for rank, more in ((1, killed), (0, ()))
    ]
    return exit_codes(processes)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    assert run_alone(folder, "log") == [0]
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    assert run_two(folder, "log") == [0, 0]
    return folder


@pytest.fixture(scope="module")
def two_killed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two-killed")
    assert run_two(folder, "log", killed=("--kill", *KILLED_AT)) == [-signal.SIGKILL, 1]
    return folder


@pytest.fixture
def two_left(two_killed, tmp_path):
    """A copy of the folder that the two ranks left behind."""
    return shutil.copytree(two_killed, tmp_path / "run")


def planned(rank, **places):
    """The sequences of this rank in each step of the epochs, as the plans have them."""
    steps = []
    for epoch in range(EPOCHS):
        plan = lw.make_plan(train.LENGTHS, train.BATCHING, seed=train.SEED, epoch=epoch, **places)
        steps += [batch.tolist() for batch in plan.batches(rank)]
    return steps


def sequences(steps):
    return [step["sequences"] for step in steps]


def steps_before(steps, epoch, batches):
    """Counts the steps up to a position."""
    return sum((step["epoch"], step["batches"]) <= (epoch, batches) for step in steps)


def same_bits(weights, others):
    return all(torch.equal(weights[name], others[name]) for name in weights.keys() | others.keys())


def test_the_uninterrupted_run_takes_the_plan(alone, two):
    assert sequences(lines(alone / "log")) == planned(0)
    for rank in range(2):
        assert sequences(lines(two / f"log{rank}")) == planned(rank, world_size=2)
    weights = [step["weights"] for step in lines(alone / "log")]
    assert len(set(weights)) == len(weights)  # every step moves them


def test_a_run_that_is_killed_from_outside_goes_on_bit_for_bit(alone, tmp_path):
    whole = lines(alone / "log")
    process = subprocess.Popen(
        [sys.executable, TRAIN, tmp_path, *ALONE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        pipesize=4_096,  # some twenty steps: a run cannot end before it is killed
        start_new_session=True,
    )
    try:
        text = read_until(process.stdout, epoch=1, batches=12)
    finally:
        process.kill()
        assert process.wait(PATIENCE) == -signal.SIGKILL
        sweep(process.pid)
    steps = lines(text + process.communicate(timeout=PATIENCE)[0])
    assert steps == whole[: len(steps)]
    assert len(steps) < steps_before(whole, 1, 1_000)
    epoch, [[_, _, batches]] = checkpointed(tmp_path)
    assert run_alone(tmp_path, "resumed") == [0]
    assert lines(tmp_path / "resumed") == whole[steps_before(whole, epoch, batches) :]
    assert same_bits(final_weights(tmp_path), final_weights(alone))


def test_two_ranks_of_which_one_is_killed_go_on_bit_for_bit(two, two_left):
    assert checkpointed(two_left) == (1, [[2, 1, 14]])
    assert run_two(two_left, "resumed") == [0, 0]
    for rank in range(2):
        whole = lines(two / f"log{rank}")
        assert lines(two_left / f"log{rank}") == whole[: steps_before(whole, *KILLED_AT)]
        assert lines(two_left / f"resumed{rank}") == whole[steps_before(whole, 1, 14) :]
    assert same_bits(final_weights(two_left), final_weights(two))


def test_one_rank_takes_the_same_steps_as_two(two, two_left):
    assert exit_codes([started(two_left / "resumed", two_left, *TOGETHER, "--micro-batches", 2)]) == [0]
    whole = [lines(two / f"log{rank}") for rank in range(2)]
    left = steps_before(whole[0], 1, 14)
    together = [sorted(first + second) for first, second in zip(*map(sequences, whole), strict=True)]
    resumed = lines(two_left / "resumed")
    assert [sorted(step) for step in sequences(resumed)] == together[left:]
    expected, weights = final_weights(two), final_weights(two_left)
    for name, tensor in expected.items():
        torch.testing.assert_close(weights[name], tensor, rtol=0, atol=1e-12)
