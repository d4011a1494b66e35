"""Ranks end with the process that started them, killed while one of them still starts and another waits for it."""

import os
import select
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes

pytest.importorskip("torch")
if not hasattr(os, "mkfifo"):
    pytest.skip("there are no named pipes", allow_module_level=True)

PATIENCE = 60.0  # seconds for ranks to start
SOON = 5.0  # seconds for ranks to end

SCRIPT = """
import functools, multiprocessing, os, signal, sys

def arrive(path):
    # Called as a rank unpickles its work: says who came by a pipe that is open as long as the rank lives.
    os.write(os.open(path, os.O_WRONLY), f"{os.getpid()} ".encode())
    if multiprocessing.current_process().name.endswith("2"):
        signal.pause()

class Arrival:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return arrive, (self.path,)

def work(arrival, place):
    yield place.rank

if __name__ == "__main__":
    from lengthwise_recipes.study.parallel import on_ranks

    list(on_ranks(functools.partial(work, Arrival(sys.argv[1])), [2]))
"""


def heard(pipe, seconds):
    """What is written to a pipe next, b"" when all who could write have ended; None where nothing comes in time."""
    ready, _, _ = select.select([pipe], [], [], seconds)
    return os.read(pipe, 100) if ready else None


def test_ranks_of_a_killed_start_up_end_within_seconds(tmp_path):
    script, path = tmp_path / "start.py", tmp_path / "arrivals"
    script.write_text(SCRIPT)
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    parent = subprocess.Popen([sys.executable, script, path], stderr=subprocess.DEVNULL)
    arrived = b""
    try:
        while len(arrived.split()) < 2:
            said = heard(pipe, PATIENCE)
            assert said, "a rank did not come"
            arrived += said
        parent.kill()
        assert heard(pipe, SOON) == b""
    finally:
        parent.kill()
        parent.wait()
        for rank in map(int, arrived.split()):
            try:
                os.kill(rank, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.close(pipe)
