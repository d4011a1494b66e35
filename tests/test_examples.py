"""The examples run as a reader runs them, and show what they promise."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from programs import run_program
from ranks import PATIENCE

pytestmark = pytest.mark.processes

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def printed(tmp_path):
    """What the example of a name prints; warnings of ours are errors."""

    def run(name):
        status, text, errors = run_program(EXAMPLES / name, tmp_path, category=UserWarning, module="lengthwise$")
        assert status == 0, errors
        return text

    return run


def test_the_examples_are_short_and_all_of_them_are_tested():
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in EXAMPLES.glob("*.py")}
    assert sorted(lengths) == ["hugging_face.py", "pytorch.py", "resume.py"]
    assert max(lengths.values()) <= 64


def test_a_plain_loop_pads_less_in_planned_batches_and_learns_as_well(printed):
    rows = re.findall(r"^([a-z-]+) +(\d+)% +([\d.]+) +(\d+)%$", printed("pytorch.py"), re.MULTILINE)
    (random, *wasted), (planned, *spent) = rows
    assert (random, planned) == ("random", "max-entropy")
    assert int(wasted[0]) > 50
    assert int(spent[0]) in (9, 10, 11)
    assert min(int(wasted[2]), int(spent[2])) > 90  # where a guess is right in 25 %


@pytest.mark.skipif(not find_spec("transformers"), reason="needs transformers")
def test_the_hugging_face_trainer_takes_the_planned_steps_and_learns(printed):
    text = printed("hugging_face.py")
    (planned,), (random,) = (re.findall(rf"{name} ([\d.]+) %", text) for name in ("Padding is", "steps, pad"))
    assert float(random) > 3 * float(planned)
    assert len(set(re.search(r"steps: (\d+) taken, (\d+) planned", text).groups())) == 1
    losses = [float(loss) for loss in re.search(r"loss of each epoch: (.+)", text)[1].split(", ")]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.8 * losses[0]


def test_a_run_that_is_cut_off_goes_on_with_fewer_ranks():
    # Not by `run_program`: the ranks are forks, and a fork of a fork of what has loaded the trainers hangs.
    # What an optimizer loads with its first step is loaded before, or each of the five ranks would load it.
    run = f"import runpy, torch._dynamo; runpy.run_path({str(EXAMPLES / 'resume.py')!r}, run_name='__main__')"
    command = [sys.executable, "-W", "error::UserWarning:lengthwise", "-c", run]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    text = done.stdout
    before, after = map(int, re.findall(r"(?:knows of|the other) (\d+)", text))
    assert before + after == 600
    assert min(before, after) > 100
    assert "each once: True" in text
