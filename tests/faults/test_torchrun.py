"""Two agents of torchrun train as two hosts; one is lost in mid-epoch, and the run goes on upon the other alone."""

import os
import socket
import subprocess
import sys
from collections import Counter

import pytest
import train
from processes import PATIENCE, TRAIN, checkpointed, exit_codes, lines, read_until, started, sweep

import lengthwise as lw

pytestmark = pytest.mark.processes

SECONDS_TO_GIVE_UP = 8  # without an answer from the other rank
EPOCH = 1


def start_agent(host, port, folder, **options):
    """Starts torchrun with one rank."""
    command = (
        *(sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", f"--node-rank={host}"),
        *("--master-addr=127.0.0.1", f"--master-port={port}", TRAIN, folder),
        *("--dtype", "float64", "--patience", str(SECONDS_TO_GIVE_UP)),
    )
    places = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=places, start_new_session=True, **options)


def kill(agent, folder, rank):
    """Ends a rank as a power cut does: torchrun's agent, the trainer and its workers."""
    agent.kill()
    agent.wait(PATIENCE)
    pid = folder / f"rank{rank}.pid"
    if pid.exists():
        sweep(int(pid.read_text()))


@pytest.fixture(scope="module")
def cut_off(tmp_path_factory):
    """A run on both until one is lost: their folder, the other's exit code, and the steps that each has trained."""
    folder = tmp_path_factory.mktemp("shared")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with open(folder / "log1", "wb") as log, open(folder / "errors0", "wb") as errors:
        held_back = {"stdout": subprocess.PIPE, "stderr": errors, "bufsize": 0, "pipesize": 4_096}
        first = start_agent(0, port, folder, **held_back)
        second = start_agent(1, port, folder, stdout=log, stderr=subprocess.DEVNULL)
        try:
            text = read_until(first.stdout, epoch=EPOCH, batches=train.STEPS_BETWEEN_CHECKPOINTS + 1)
            kill(second, folder, 1)
            text += first.communicate(timeout=PATIENCE)[0]
        finally:
            kill(first, folder, 0)
            kill(second, folder, 1)
    return folder, first.returncode, [lines(text), lines(folder / "log1")]


def planned_steps(epoch):
    """The sequences of each step of the epoch on two ranks."""
    plan = lw.make_plan(train.LENGTHS, train.BATCHING, seed=train.SEED, epoch=epoch, world_size=2)
    return [sorted(plan.batch(one).tolist() + plan.batch(other).tolist()) for [[one, other]] in plan.grid]


def sequences(steps, epoch):
    return [step["sequences"] for step in steps if step["epoch"] == epoch]


def test_a_run_goes_on_alone_with_nothing_lost_or_repeated(cut_off):
    folder, exit_code, ranks = cut_off
    assert exit_code == 1
    assert "closed by peer" in (errors := (folder / "errors0").read_text()) or "reset by peer" in errors
    epoch, [[world_size, micro_batches, batches]] = checkpointed(folder)
    assert (epoch, world_size, micro_batches) == (EPOCH, 2, 1)
    # What the two trained and the checkpoint holds; later steps are lost with their weights.
    kept = [[step for step in steps if (step["epoch"], step["batches"]) <= (epoch, batches)] for steps in ranks]
    for number in range(EPOCH + 1):
        together = [sorted(a + b) for a, b in zip(*(sequences(steps, number) for steps in kept), strict=True)]
        assert together == planned_steps(number)[: batches if number == epoch else None]
    # As the only rank under torchrun: its gradients are averaged with those of nobody.
    only, store = {"RANK": "0", "WORLD_SIZE": "1"}, ("--store", f"file://{folder}/store")
    alone = started(folder / "alone", folder, "--epochs", EPOCH + 2, "--dtype", "float64", *store, **only)
    assert exit_codes([alone]) == [0]
    for number in range(EPOCH + 2):
        parts = [*kept, lines(folder / "alone")]
        counts = Counter(sequence for steps in parts for step in sequences(steps, number) for sequence in step)
        assert counts == Counter(range(len(train.LENGTHS)))
