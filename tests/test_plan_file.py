"""A file that is not what `Plan.save` wrote is refused in one sentence."""

import io
import json
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.planning.plan import _ARRAYS, _FACTS

BATCHING = lw.Batching(cut=lw.FixedSize(2), chunks=lw.Chunks(4), order=lw.Sorted())
PLAN = lw.make_plan([5, 9, 2, 4, 7, 7, 1, 3], BATCHING, seed=3, world_size=2, after=[(2, 1, 1)])
PLAN = replace(PLAN, row_offsets=np.union1d(PLAN.offsets, [3]))  # as if rows were packed too
PLAN = replace(PLAN, times=np.array([PLAN.count - 1, 0, 1]))  # and of copies
REFUSED = (
    r"^`path` must be a plan that Plan\.save wrote, but is '.*'\. "
    r"It is cut short, damaged or another file: make the plan anew\.$"
)


def same(plan, other):
    """Whether two plans are equal in every array, type and fact."""
    arrays = [(getattr(plan, name), getattr(other, name)) for name in _ARRAYS]
    facts = [(getattr(plan, name), getattr(other, name)) for name in _FACTS]
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in arrays) and all(a == b for a, b in facts)


def stored(folder):
    """What a file of the plan holds."""
    PLAN.save(folder / "whole.npz")
    with np.load(folder / "whole.npz") as content:
        return dict(content)


@pytest.mark.parametrize("max_cost", [PLAN.max_cost, np.inf])
def test_a_plan_of_every_array_comes_back(tmp_path, max_cost):
    plan = replace(PLAN, max_cost=float(max_cost))
    assert all(getattr(plan, name) is not None for name in _ARRAYS)
    plan.save(tmp_path / "plan.npz")
    assert same(lw.Plan.load(tmp_path / "plan.npz"), plan)


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
    for change in changes if name == "costs" else [*changes, array + 1, np.zeros_like(array), np.roll(array, 1)]:
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


@settings(max_examples=75, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
        said = str(error)
    else:
        said = "`path`" if same(loaded, PLAN) else "another plan"
    assert said.startswith("`path`")
    assert "\n" not in said


def as_npy(value):
    file = io.BytesIO()
    np.save(file, value, allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_file_that_was_cut_short_is_refused(tmp_path, share):
    PLAN.save(tmp_path / "plan.npz")
    content = (tmp_path / "plan.npz").read_bytes()
    (tmp_path / "plan.npz").write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=REFUSED):
        lw.Plan.load(tmp_path / "plan.npz")


@pytest.mark.parametrize("content", [b"not a plan", as_npy(np.arange(3)), as_npy(np.array([print], object))])
def test_a_foreign_file_is_refused(tmp_path, content):
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
