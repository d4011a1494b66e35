"""Two hosts train under torchrun; one is cut off in mid-epoch, and the run goes on upon the other alone."""

import re
import shutil
import subprocess
import sys
from collections import Counter

import hosts
import pytest
import train
from processes import PATIENCE, TRAIN, checkpointed, exit_codes, lines, read_until, started, sweep

import lengthwise as lw

pytestmark = pytest.mark.processes

KIND = hosts.best()
SECONDS_TO_GIVE_UP = 8  # without an answer from the other rank
EPOCH = 1


def torchrun(pair, host, port, *arguments, nodes=1, **options):
    """Starts one rank on one of the hosts."""
    command = (
        *(sys.executable, "-m", "torch.distributed.run", f"--nnodes={nodes}", "--nproc-per-node=1"),
        *(f"--node-rank={host}", f"--master-addr={pair.addresses[0]}", f"--master-port={port}"),
        *(TRAIN, *arguments, "--dtype", "float64", "--patience", SECONDS_TO_GIVE_UP),
    )
    return subprocess.Popen(
        pair.command(host, *map(str, command)), env=hosts.environment(pair, host), start_new_session=True, **options
    )


def kill(agent, folder, rank):
    """Ends a rank as a power cut does: torchrun's agent, the trainer and its workers."""
    agent.kill()
    agent.wait(PATIENCE)
    pid = folder / f"rank{rank}.pid"
    if pid.exists():
        sweep(int(pid.read_text()))


@pytest.fixture(scope="module", params=[KIND], ids=lambda kind: kind.__name__)
def pair(request):
    with request.param() as made:
        yield made


@pytest.fixture(scope="module")
def cut_off(pair, tmp_path_factory):
    """A run on both hosts until one is cut off: its folder, which both share, and what the ranks had trained."""
    folder = tmp_path_factory.mktemp("shared")
    with open(folder / "log1", "wb") as log, open(folder / "errors0", "wb") as errors:
        (port,) = pair.ports(1)
        held_back = {"stdout": subprocess.PIPE, "stderr": errors, "bufsize": 0, "pipesize": 4_096}
        first = torchrun(pair, 0, port, folder, nodes=2, **held_back)
        second = torchrun(pair, 1, port, folder, nodes=2, stdout=log, stderr=subprocess.DEVNULL)
        try:
            text = read_until(first.stdout, epoch=EPOCH, batches=train.STEPS_BETWEEN_CHECKPOINTS + 1)
            pair.cut_off(1)
            kill(second, folder, 1)
            text += first.communicate(timeout=PATIENCE)[0]
        finally:
            kill(first, folder, 0)
            kill(second, folder, 1)
    return folder, first.returncode, [lines(text), lines(folder / "log1")]


@pytest.fixture(scope="module")
def resumed(cut_off, tmp_path_factory):
    """The same run on host 0 alone, with 1 and with 2 micro-batches in a step: its steps."""
    folders = [shutil.copytree(cut_off[0], tmp_path_factory.mktemp("alone") / "shared") for _ in range(2)]
    more = ("--epochs", EPOCH + 2, "--micro-batches")
    # One of them as the only rank, as under torchrun: its gradients are averaged with those of nobody.
    only = {"RANK": "0", "WORLD_SIZE": "1"}
    processes = [
        started(folder / "log0", folder, *more, number, "--dtype", "float64", *store, **place)
        for number, folder, store, place in (
            (1, folders[0], ("--store", f"file://{folders[0]}/store"), only),
            (2, folders[1], (), {}),
        )
    ]
    assert exit_codes(processes) == [0, 0]
    return {number: lines(folder / "log0") for number, folder in enumerate(folders, start=1)}


def planned_steps(epoch):
    """The sequences of each step of the epoch on two ranks."""
    plan = lw.make_plan(train.LENGTHS, train.BATCHING, seed=train.SEED, epoch=epoch, world_size=2)
    return [sorted(plan.batch(one).tolist() + plan.batch(other).tolist()) for [[one, other]] in plan.grid]


def kept_steps(cut_off):
    """What the two ranks trained and the checkpoint holds; later steps are lost with their weights."""
    folder, _, ranks = cut_off
    epoch, [[world_size, micro_batches, batches]] = checkpointed(folder)
    assert (epoch, world_size, micro_batches) == (EPOCH, 2, 1)
    return [[step for step in steps if (step["epoch"], step["batches"]) <= (epoch, batches)] for steps in ranks]


def sequences(steps, epoch):
    return [step["sequences"] for step in steps if step["epoch"] == epoch]


def test_the_other_host_notices(cut_off):
    folder, exit_code, (steps, _) = cut_off
    assert exit_code == 1
    assert steps[-1]["epoch"] == EPOCH
    assert steps[-1]["batches"] < len(planned_steps(EPOCH))
    assert re.search(KIND.notice, (folder / "errors0").read_text())


def test_both_hosts_trained_their_shares_before(cut_off):
    kept = kept_steps(cut_off)
    assert kept[0]
    for epoch in range(EPOCH + 1):
        together = [sorted(a + b) for a, b in zip(*(sequences(steps, epoch) for steps in kept), strict=True)]
        assert together == planned_steps(epoch)[: len(together)]
        assert epoch == EPOCH or len(together) == len(planned_steps(epoch))


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_the_run_goes_on_alone_with_nothing_lost_or_repeated(cut_off, resumed, micro_batches):
    for epoch in range(EPOCH + 2):
        parts = [*kept_steps(cut_off), resumed[micro_batches]]
        counts = Counter(number for steps in parts for step in sequences(steps, epoch) for number in step)
        assert counts == Counter(range(len(train.LENGTHS)))


def test_the_steps_are_the_same_where_the_micro_batches_divide(cut_off, resumed):
    alone = [sorted(step) for step in sequences(resumed[2], EPOCH)]
    assert alone == planned_steps(EPOCH)[len(sequences(kept_steps(cut_off)[0], EPOCH)) :]
    assert [sorted(step) for step in sequences(resumed[2], EPOCH + 1)] == planned_steps(EPOCH + 1)
