"""A plan as data: what it lists, saves, loads and is named; what is no plan file is refused."""

import io
import json
import os
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.planning.plan import _ARRAYS, _FACTS

LENGTHS = lw.example_lengths(count=200)
BATCHING = lw.Batching(order=lw.SemiSorted(), cut=lw.Budget(20_000), chunks=None)
CHUNKED = replace(BATCHING, cut=lw.FixedSize(4), chunks=lw.Chunks(100), budget=None, padding=None)


def a_plan(**changes):
    options = {"lengths": LENGTHS, "batching": BATCHING, "seed": 3, "epoch": 2, "world_size": 2, "micro_batches": 2}
    return lw.make_plan(**options | changes)


@pytest.mark.parametrize("batching", [BATCHING, CHUNKED], ids=["plain", "chunks"])
def test_batches_are_fresh_arrays(batching):
    plan = lw.make_plan(LENGTHS, batching)
    before = plan.fingerprint()
    for batch in plan.batches():
        batch[:] = -1
    assert plan.fingerprint() == before
    assert all((batch >= 0).all() for batch in plan.batches())


def test_batches_go_on_from_any_start():
    plan = a_plan()
    for rank in range(2):
        whole = [plan.batch(number).tolist() for number in plan.grid[:, :, rank].reshape(-1)]
        assert len(whole) == len(plan) == plan.steps * 2
        for start in range(len(plan) + 1):
            assert [batch.tolist() for batch in plan.batches(rank, start=start)] == whole[start:]


@pytest.mark.parametrize("count", [0, 3, 100])
def test_the_costliest_batches_are_the_costliest(count):
    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(3)))
    costliest = plan.costliest(count)
    assert len(set(costliest.tolist())) == len(costliest) == min(count, len(plan.costs))
    assert plan.costs[costliest].tolist() == sorted(plan.costs.tolist(), reverse=True)[:count]


def test_a_fingerprint_changes_with_all_that_matters():
    plan = a_plan()
    assert a_plan().fingerprint() == plan.fingerprint()
    others = [
        a_plan(seed=4),
        a_plan(epoch=3),
        a_plan(world_size=4),
        a_plan(world_size=4, micro_batches=1),
        a_plan(lengths=LENGTHS[::-1]),
        a_plan(batching=lw.Batching(order=lw.SemiSorted(), cut=lw.Budget(20_001))),
        a_plan(after=[(2, 2, 1)]),
        a_plan(times=1),
        replace(plan, sequences=plan.sequences[::-1].copy()),
        replace(plan, padded_lengths=plan.padded_lengths + 1),
        replace(plan, grid=plan.grid[:, ::-1].copy()),
        replace(plan, spans=np.zeros((plan.count, 3), np.int64)),
        replace(plan, count=plan.count + 1),
    ]
    names = [other.fingerprint() for other in others] + [plan.fingerprint()]
    assert len(set(names)) == len(names)
    assert all(len(name) == 16 and int(name, 16) >= 0 for name in names)


def test_a_fingerprint_is_the_same_whether_the_batching_leaves_out_what_is_the_default_or_not():
    """Version 0.1 wrote all options into its files."""
    plan = lw.make_plan([5, 9, 2, 4], lw.Batching(cut=lw.FixedSize(2), order=lw.Sorted()))
    assert plan.batching.startswith('{"cut": {"choice": "cut.FixedSize", "batch_size": 2},')
    names = [
        replace(plan, batching=plan.batching.replace('"batch_size": 2', f'"batch_size": {options}')).fingerprint()
        for options in ('2, "drop_incomplete": false, "multiple_of": 1', '2, "drop_incomplete": true', "3")
    ]
    assert names[0] == plan.fingerprint()
    assert len(set(names)) == 3


def test_a_plan_says_what_it_is():
    plan = a_plan(lengths=[5, 9, 2, 4, 7], batching=lw.Batching(cut=lw.FixedSize(1)))
    assert len(plan.repeated()) == 3  # to fill the second step
    shown = "Plan(steps=2, micro_batches=2, world_size=2, batches=5, sequences=5, seed=3, epoch=2)"
    assert repr(plan) == shown


# A plan of every array: of chunks, what a run left, as if rows were packed too, and of copies.
SORTED = lw.Batching(cut=lw.FixedSize(2), chunks=lw.Chunks(4), order=lw.Sorted(), balance=lw.Quadratic(quadratic=0.5))
PLAN = lw.make_plan([5, 9, 2, 4, 7, 7, 1, 3], SORTED, seed=3, world_size=2, after=[(2, 1, 1)])
PLAN = replace(PLAN, row_offsets=np.union1d(PLAN.offsets, [3]))
PLAN = replace(PLAN, times=np.array([PLAN.count - 1, 0, 1]))
REFUSED = (
    r"^`path` must be a plan that Plan\.save wrote, but is '.*'\. "
    r"The file is cut short, damaged, or no plan: make the plan anew\.$"
)


def same(plan, other):
    """Compares two plans in every array, type and fact."""
    arrays = [(getattr(plan, name), getattr(other, name)) for name in _ARRAYS]
    facts = [(getattr(plan, name), getattr(other, name)) for name in _FACTS]
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in arrays) and all(a == b for a, b in facts)


@pytest.mark.parametrize("max_cost", [PLAN.max_cost, np.inf])
def test_a_plan_that_is_saved_or_pickled_comes_back_whole_and_read_only(tmp_path, max_cost):
    plan = replace(PLAN, max_cost=float(max_cost))
    assert all(getattr(plan, name) is not None for name in _ARRAYS)
    plan.save(tmp_path / "plan.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.npz"], "no draft is left behind"
    assert stored(tmp_path)["sequences"].dtype == np.uint8, "of five million sequences, a file is 26 MB, not 51"
    for other in (plan, lw.Plan.load(tmp_path / "plan.npz"), pickle.loads(pickle.dumps(plan))):
        assert same(other, plan)
        assert other.fingerprint() == plan.fingerprint()
        for name in _ARRAYS:
            with pytest.raises(ValueError, match="read-only"):
                getattr(other, name)[:] = 0
    copies = a_plan(times=[2.5, 0.4] * 100)
    copies.save(tmp_path / "plan.npz")
    for other in (lw.Plan.load(tmp_path / "plan.npz"), pickle.loads(pickle.dumps(copies))):
        assert other.copies.tolist() == copies.copies.tolist()
        assert not other.copies.flags.writeable


def test_a_plan_of_nothing_is_saved_too(tmp_path):
    plan = lw.make_plan([], BATCHING)
    plan.save(tmp_path / "none.npz")
    assert lw.Plan.load(tmp_path / "none.npz").fingerprint() == plan.fingerprint()
    assert list(plan.batches()) == []


def stored(folder):
    """Returns the content of a file of the plan."""
    PLAN.save(folder / "whole.npz")
    with np.load(folder / "whole.npz") as content:
        return dict(content)


def test_the_order_of_bytes_and_of_axes_is_no_damage(tmp_path):
    content = stored(tmp_path)
    for name in _ARRAYS:
        content[name] = np.asfortranarray(content[name].astype(content[name].dtype.newbyteorder(">")))
    np.savez(tmp_path / "plan.npz", **content)
    assert same(lw.Plan.load(tmp_path / "plan.npz"), PLAN)


@pytest.mark.parametrize("name", _ARRAYS)
def test_another_array_is_refused(tmp_path, name):
    content = stored(tmp_path)
    array = content.pop(name)
    changes = [None, array[:-1], np.array(3), np.array([]), np.array(["text"]), np.array([print], object)]
    if name not in ("costs", "balances"):  # floats, which no fingerprint holds
        changes += [array + 1, np.zeros_like(array), np.roll(array, 1)]
    for change in changes:
        np.savez(tmp_path / "plan.npz", **content, **({} if change is None else {name: change}))
        with pytest.raises(ValueError, match=REFUSED):
            lw.Plan.load(tmp_path / "plan.npz")


@pytest.mark.parametrize("name", [*_FACTS, "fingerprint"])
def test_a_missing_fact_and_another_plans_are_refused(tmp_path, name):
    content = stored(tmp_path)
    facts = json.loads(str(content.pop("facts")))
    others = [{key: value for key, value in facts.items() if key != name}]
    if name != "max_cost":  # a float, which no fingerprint holds
        others.append(facts | {name: 99})
    for changed in others:
        np.savez(tmp_path / "plan.npz", facts=np.array(json.dumps(changed)), **content)
        with pytest.raises(ValueError, match=REFUSED):
            lw.Plan.load(tmp_path / "plan.npz")


@settings(max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_bytes_are_refused_or_change_nothing(tmp_path, data):
    PLAN.save(tmp_path / "whole.npz")
    content = bytearray((tmp_path / "whole.npz").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    (tmp_path / "plan.npz").write_bytes(content)
    try:
        loaded = lw.Plan.load(tmp_path / "plan.npz")
    except ValueError as error:
        refusal = re.match(REFUSED, str(error))
    else:
        refusal = same(loaded, PLAN)
    assert refusal


def test_a_foreign_file_and_one_that_was_cut_short_are_refused(tmp_path):
    PLAN.save(tmp_path / "plan.npz")
    whole = (tmp_path / "plan.npz").read_bytes()
    array, objects = io.BytesIO(), io.BytesIO()
    np.save(array, np.arange(3))
    np.save(objects, np.array([print], object), allow_pickle=True)
    cuts = [whole[: int(share * len(whole))] for share in (0.0, 0.01, 0.3, 0.7, 0.99)]
    for content in (b"not a plan", array.getvalue(), objects.getvalue(), *cuts):
        (tmp_path / "plan.npz").write_bytes(content)
        with pytest.raises(ValueError, match=REFUSED):
            lw.Plan.load(tmp_path / "plan.npz")


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", os.devnull, tmp_path / "nowhere.npz"):
        with pytest.raises(OSError, match=r"^`path` must be a file that can be read, but is '.*'\. The system says: "):
            lw.Plan.load(path)
    with pytest.raises(FileNotFoundError):
        lw.Plan.load(tmp_path / "nowhere.npz")
