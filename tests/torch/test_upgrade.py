"""States and plan files of version 0.1 load in this version, and in a later one whose choices have an option more."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import lengthwise as lw

FILES = Path(__file__).parents[1] / "files_of_0_1"
STATES = json.loads((FILES / "states.json").read_text())
LENGTHS = lw.example_lengths("long-tailed", count=300)
RANKS = {"seed": 3, "rank": 0, "world_size": 2}
BATCHINGS = {
    "default": lw.Batching(budget=8_000, padding=0.1),  # the padding that 0.1 took by itself
    "strata": lw.Batching(budget=8_000, padding=0.05),
    "long": lw.Batching(  # so long that its state has a digest of the batching
        cut=lw.Budget(9_000, oversize="alone", max_sequences=64, multiple_of=8),
        order=lw.Bucketed(edges=tuple(range(100, 6_000, 55)), pad_to_edge=True),
        deal=lw.Balanced(tail="repeat"),
    ),
    "rows": lw.Batching(cut=lw.Rows(6_000, rows=2), deal=lw.RandomSteps()),
}


def sampler_of(name):
    return lw.torch.BatchSampler(LENGTHS, BATCHINGS[name], micro_batches=2, **RANKS)


@pytest.mark.parametrize("name", BATCHINGS)
def test_a_state_of_0_1_goes_on_where_it_was_saved(name):
    whole, resumed = list(sampler_of(name)), sampler_of(name)
    resumed.resume(STATES[name])
    assert list(resumed) == whole[2:]


def stream_of(batching):
    shards = [[torch.ones(int(length)) for length in LENGTHS[shard::4]] for shard in range(4)]
    return lw.torch.StreamBatches(shards, batching, length=len, buffer=60, seed=3, collate_fn=len)


def test_a_state_of_a_stream_loads():
    whole, resumed = (stream_of(BATCHINGS["default"]) for _ in range(2))
    resumed.load_state_dict(STATES["stream"])
    assert list(resumed) == list(whole)[2:]


def test_the_default_of_today_is_another_plan_and_never_goes_on():
    now = lw.Batching(budget=8_000)
    named = r"^`batching\.padding` must be the checkpoint's, 0\.1, but is None\. Resume with what the checkpoint was"
    with pytest.raises(lw.PlanMismatchError, match=named):
        lw.torch.BatchSampler(LENGTHS, now, micro_batches=2, **RANKS).resume(STATES["default"])
    with pytest.raises(lw.PlanMismatchError, match=named):
        stream_of(now).load_state_dict(STATES["stream"])
    for_two = STATES["stream"] | {"runs": [[2, 1, 3]]}
    with pytest.raises(lw.PlanMismatchError, match=r"^The checkpoint is of version 0\.1, whose default .* Finish its"):
        stream_of(BATCHINGS["default"]).load_state_dict(for_two)
    windows = lw.torch.WindowSampler(LENGTHS, now, window=160, block=20, **RANKS)
    with pytest.raises(lw.PlanMismatchError, match=r"^`plan` must be .* Look for .* another version of lengthwise\.$"):
        windows.resume(STATES["windows"])


def test_a_plan_file_of_0_1_holds_the_plan_of_today():
    plan = lw.make_plan(LENGTHS, BATCHINGS["default"], seed=3, world_size=2, micro_batches=2)
    assert lw.Plan.load(FILES / "plan.npz").fingerprint() == plan.fingerprint()


LATER = """
import sys
from importlib.util import spec_from_file_location

class Later:
    def find_spec(name, path, target=None):
        return spec_from_file_location(name, {cut!r}) if name == "lengthwise.choices.cut" else None

sys.meta_path.insert(0, Later)
sys.path.insert(0, {tests!r})
import pytest, lengthwise as lw
from test_upgrade import *
for name in BATCHINGS:
    test_a_state_of_0_1_goes_on_where_it_was_saved(name)
test_a_state_of_a_stream_loads()
test_a_plan_file_of_0_1_holds_the_plan_of_today()
assert "pool" not in BATCHINGS["default"].to_json()
newer = lw.torch.BatchSampler(LENGTHS, lw.Batching(cut=lw.Budget(8_000, pool=5)), micro_batches=2, **RANKS)
with pytest.raises(lw.PlanMismatchError, match="`batching.cut.pool` must be .*, 'left out', but is 5"):
    newer.resume(STATES["default"])
"""


@pytest.mark.slow
def test_a_later_version_with_an_option_more_loads_them_too(tmp_path):
    source, option = Path(lw.__file__).parent / "choices" / "cut.py", "    budget: float\n    _: KW_ONLY\n"
    assert source.read_text().count(option) == 1
    later = source.read_text().replace(option, f"{option}    pool: int | None = None\n")
    (tmp_path / "cut.py").write_text(later)
    program = LATER.format(cut=str(tmp_path / "cut.py"), tests=str(Path(__file__).parent))
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
