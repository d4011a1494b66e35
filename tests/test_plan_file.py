"""A plan file that is not what `Plan.save` wrote is refused in one sentence, however it came to be."""

import io
import json
import os
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lengthwise as lw
from lengthwise.planning import plan_file

BATCHING = lw.Batching(cut=lw.FixedSize(2), chunks=lw.Chunks(4), order=lw.Sorted())
PLAN = lw.make_plan([5, 9, 2, 4, 7, 7, 1, 3], BATCHING, seed=3, world_size=2, after=[(2, 1, 1)])
PLAN = replace(PLAN, row_offsets=np.union1d(PLAN.offsets, [3]))  # as if rows were packed too
PLAN = replace(PLAN, times=np.array([PLAN.count - 1, 0, 1]))  # and of copies
ARRAYS = {name: getattr(PLAN, name) for name in plan_file.DIMS}
FACT_NAMES = ("count", "batching", "seed", "epoch", "lengths_fingerprint", "max_cost")
FACTS = {name: getattr(PLAN, name) for name in FACT_NAMES}
DAMAGED = r"[^\n]*This is a damaged plan file: make the plan anew\.$"


def same(plan, other):
    """Whether two plans are equal in every array, type and fact."""
    arrays = [(getattr(plan, name), getattr(other, name)) for name in ARRAYS]
    facts = [(getattr(plan, name), getattr(other, name)) for name in FACTS]
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in arrays) and all(a == b for a, b in facts)


def store(path, facts, arrays):
    """Writes what it is given, as no plan would."""
    np.savez(path, facts=np.array(json.dumps(facts)), **arrays)


def stored():
    """The facts and arrays of a file of the plan."""
    facts = {"version": plan_file.VERSION, **FACTS, "max_cost": repr(PLAN.max_cost), "fingerprint": PLAN.fingerprint()}
    return {**facts, "checksum": plan_file._checksum(ARRAYS, facts)}, dict(ARRAYS)


def test_the_plan_of_these_tests_holds_every_array(tmp_path):
    assert all(array is not None and not np.array_equal(array, array[::-1]) for array in ARRAYS.values())
    store(tmp_path / "plan.npz", *stored())
    assert same(lw.Plan.load(tmp_path / "plan.npz"), PLAN)


def test_the_order_of_arrays_and_facts_in_a_file_means_nothing(tmp_path):
    facts, arrays = stored()
    store(tmp_path / "plan.npz", dict(reversed(facts.items())), dict(reversed(arrays.items())))
    assert same(lw.Plan.load(tmp_path / "plan.npz"), PLAN)


def first_changed(array, value):
    changed = array.copy()
    changed.reshape(-1)[0] = value
    return changed


def twice(array):
    return first_changed(array, array.reshape(-1)[-1])


HIGH, COUNT = np.iinfo(np.int64).max, PLAN.count
# Name, what becomes of it, and the rule that it breaks. Each file has a fingerprint and a checksum of its own.
FORGED = [
    ("sequences", first_changed(PLAN.sequences, -1), f"numbers from 0 to {COUNT - 1}, but is -1"),
    ("sequences", first_changed(PLAN.sequences, COUNT), f"numbers from 0 to {COUNT - 1}, but is {COUNT}"),
    ("sequences", first_changed(PLAN.sequences, HIGH), f"numbers from 0 to {COUNT - 1}, but is {HIGH}"),
    ("sequences", twice(PLAN.sequences), f"different from each other, but is {PLAN.sequences[-1]}"),
    ("sequences", PLAN.sequences[:-1], f"`offsets` must be strictly rising from 0 to {len(PLAN.sequences) - 1}"),
    ("sequences", PLAN.sequences.astype(np.int32), "of int64 in 1 dimension"),
    ("sequences", PLAN.sequences[None], "of int64 in 1 dimension"),
    ("offsets", first_changed(PLAN.offsets, 1), "strictly rising from 0"),
    ("offsets", np.maximum(PLAN.offsets, PLAN.offsets[2] * (PLAN.offsets > 0)), "strictly rising from 0"),
    ("offsets", np.append(PLAN.offsets[:-1], HIGH), "strictly rising from 0"),
    ("offsets", np.array([0, -HIGH - 1, *PLAN.offsets[2:]]), "strictly rising from 0"),
    ("offsets", PLAN.offsets[:0], "`costs` must be of -1 batches"),
    ("offsets", PLAN.offsets[:-1], "`costs` must be of"),
    ("padded_lengths", first_changed(PLAN.padded_lengths, 0), "at least 1"),
    ("padded_lengths", PLAN.padded_lengths[:, :0], "at least 1"),
    ("padded_lengths", PLAN.padded_lengths[:-1], "`costs` must be of"),
    ("padded_lengths", PLAN.padded_lengths[:, 0], "of int64 in 2 dimension"),
    ("costs", first_changed(PLAN.costs, np.nan), "finite and at least 0, but is nan"),
    ("costs", first_changed(PLAN.costs, np.inf), "finite and at least 0, but is inf"),
    ("costs", first_changed(PLAN.costs, -1.0), "finite and at least 0, but is -1"),
    ("costs", PLAN.costs[:-1], "`costs` must be of"),
    ("costs", PLAN.costs.astype(np.float32), "of float64 in 1 dimension"),
    ("costs", PLAN.costs.astype(np.int64), "of float64 in 1 dimension"),
    ("costs", PLAN.costs.astype(str), "of float64 in 1 dimension"),
    ("grid", first_changed(PLAN.grid, -1), f"numbers from 0 to {len(PLAN.costs) - 1}, but is -1"),
    ("grid", first_changed(PLAN.grid, len(PLAN.costs)), f"numbers from 0 to {len(PLAN.costs) - 1}"),
    ("grid", PLAN.grid[:, :, :0], "of shape"),
    ("grid", PLAN.grid[:, :0], "of shape"),
    ("grid", PLAN.grid.reshape(-1), "of int64 in 3 dimension"),
    ("row_offsets", PLAN.row_offsets[:0], "strictly rising from 0"),
    ("row_offsets", first_changed(PLAN.row_offsets, -1), "strictly rising from 0"),
    ("row_offsets", twice(PLAN.row_offsets), "strictly rising from 0"),
    ("row_offsets", PLAN.row_offsets[:-1], "strictly rising from 0"),
    ("row_offsets", np.delete(PLAN.row_offsets, 2), "with all offsets of batches among them"),
    ("row_offsets", PLAN.row_offsets[None], "of int64 in 1 dimension"),
    ("spans", first_changed(PLAN.spans, -1), "of a sequence, a start and a stop behind it"),
    ("spans", PLAN.spans[:, [0, 1, 1]], "of a sequence, a start and a stop behind it"),
    ("spans", PLAN.spans[:, [0, 2, 1]], "of a sequence, a start and a stop behind it"),
    ("spans", PLAN.spans[:-1], f"of shape \\({COUNT}, 3\\)"),
    ("spans", PLAN.spans[:, :2], f"of shape \\({COUNT}, 3\\)"),
    ("delivered", first_changed(PLAN.delivered, -1), f"numbers from 0 to {COUNT - 1}"),
    ("delivered", PLAN.delivered[::-1], "strictly rising"),
    ("delivered", twice(PLAN.delivered), "strictly rising"),
    ("times", first_changed(PLAN.times, -1), "at least 0"),
    ("times", PLAN.times.astype(np.int32), "of int64 in 1 dimension"),
]


@pytest.mark.parametrize("times", [[COUNT, 1, 0], [2**62, 2**62, 2**62, 2**62, COUNT], [2**40]])
def test_times_that_no_memory_holds_are_refused_before_copies_are_made(tmp_path, times):
    facts, arrays = stored()
    del arrays["spans"]
    store(tmp_path / "plan.npz", facts, arrays | {"times": np.array(times)})
    with pytest.raises(ValueError, match=rf"^`times` must be {COUNT} in sum, but is .*{DAMAGED}"):
        lw.Plan.load(tmp_path / "plan.npz")


@pytest.mark.parametrize(("name", "array", "rule"), FORGED)
def test_a_structure_that_no_plan_has_is_refused_whatever_the_file_says_of_itself(tmp_path, name, array, rule):
    plan = replace(PLAN, **{name: array.copy()})
    plan.save(tmp_path / "plan.npz")
    with pytest.raises(
        ValueError, match=rf"^`\w+` must be .*{rule}{DAMAGED}" if rule[0] != "`" else f"^{rule}{DAMAGED}"
    ):
        lw.Plan.load(tmp_path / "plan.npz")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("count", value) for value in (-1, True, 2.0, "3", None, [8])),
        *((name, value) for name in ("seed", "epoch") for value in (-1, 2**64, True, 1.5, "0", None)),
        *(("batching", value) for value in ("", "{", "[]", '{"cut": 3}', '{"cut": {}}', 3, None, "[" * 99_999)),
        *(("max_cost", value) for value in ("nan", "-1.0", "many", 9.0, None)),
        ("lengths_fingerprint", 3),
        ("fingerprint", None),
        ("checksum", None),
    ],
)
def test_a_fact_that_no_plan_has_is_refused(tmp_path, name, value):
    facts, arrays = stored()
    store(tmp_path / "plan.npz", facts | {name: value}, arrays)
    with pytest.raises(ValueError, match=rf"^`{name}` must be .* at .*plan.npz.{DAMAGED}"):
        lw.Plan.load(tmp_path / "plan.npz")


@pytest.mark.parametrize(
    ("name", "value"),
    [("seed", 4), ("count", 99), ("max_cost", "1.0"), ("lengths_fingerprint", "f"), ("batching", "{}"), ("more", 1)],
)
def test_a_fact_that_another_plan_may_have_is_refused(tmp_path, name, value):
    facts, arrays = stored()
    store(tmp_path / "plan.npz", facts | {name: value}, arrays)
    with pytest.raises(ValueError, match=rf"^`\w+` must be .*{DAMAGED}"):
        lw.Plan.load(tmp_path / "plan.npz")


def test_a_fingerprint_that_is_not_the_plans_is_refused(tmp_path):
    facts, arrays = stored()
    facts["fingerprint"] = 16 * "0"
    store(tmp_path / "plan.npz", facts | {"checksum": plan_file._checksum(arrays, facts)}, arrays)
    with pytest.raises(ValueError, match=rf"^`fingerprint` must be .*{PLAN.fingerprint()}, but is '0+' at {DAMAGED}"):
        lw.Plan.load(tmp_path / "plan.npz")


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_that_another_plan_may_have_is_refused(tmp_path, name):
    facts, arrays = stored()
    array = arrays[name]
    changes = [None, array[::-1], array + 1, np.zeros_like(array), np.roll(array, 1), array.astype(object)]
    changes += [np.array(3), np.array([]), np.array(["text"]), np.zeros(3, "i4,f8"), array.astype(complex)]
    for change in changes:
        changed = {key: value for key, value in arrays.items() if key != name}
        if change is not None:
            changed[name] = change
        store(tmp_path / "plan.npz", facts, changed)
        with pytest.raises(ValueError, match=rf"^`\w+` must be .*{DAMAGED}"):
            lw.Plan.load(tmp_path / "plan.npz")


@pytest.mark.parametrize("name", [*plan_file._FACTS, "version"])
def test_a_fact_that_is_missing_is_refused(tmp_path, name):
    facts, arrays = stored()
    del facts[name]
    store(tmp_path / "plan.npz", facts, arrays)
    with pytest.raises(ValueError, match=rf"^`\w+` must be .*{DAMAGED}"):
        lw.Plan.load(tmp_path / "plan.npz")


def test_the_order_of_bytes_and_of_axes_is_no_damage(tmp_path):
    facts, arrays = stored()
    turned = {name: np.asfortranarray(array.astype(array.dtype.newbyteorder(">"))) for name, array in arrays.items()}
    store(tmp_path / "plan.npz", facts, turned)
    assert same(lw.Plan.load(tmp_path / "plan.npz"), PLAN)


def whole(folder):
    PLAN.save(folder / "whole.npz")
    return (folder / "whole.npz").read_bytes()


@settings(max_examples=75, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_bytes_are_refused_or_change_nothing(tmp_path, data):
    content = bytearray(whole(tmp_path))
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
    assert said.startswith("`")
    assert "\n" not in said


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_file_that_was_cut_short_is_refused(tmp_path, share):
    content = whole(tmp_path)
    (tmp_path / "plan.npz").write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=rf"^`path` must be a plan that Plan.save wrote, but is '.*'\.{DAMAGED}"):
        lw.Plan.load(tmp_path / "plan.npz")


def as_zip(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def header(shape, kind="<i8"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": shape})
    return file.getvalue()


def as_npy(value):
    file = io.BytesIO()
    np.save(file, value, allow_pickle=True)
    return file.getvalue()


FOREIGN = {
    "text": b"not a plan",
    "an array": as_npy(np.arange(3)),
    "a pickle": as_npy(np.array([print], object)),
    "an empty archive": as_zip(),
    "no arrays": as_zip(other=b""),
    "an empty fact": as_zip(facts=b""),
    "no facts": as_zip(facts=as_npy(np.array("{}"))),
    "a list for facts": as_zip(facts=as_npy(np.array("[1]"))),
    "nested facts": as_zip(facts=as_npy(np.array("[" * 100_000))),
    "pickled facts": as_zip(facts=as_npy(np.array([print], object))),
    "a terabyte": as_zip(facts=as_npy(np.array('{"version": 3}')), sequences=header((2**37,))),
    "more than there is": as_zip(facts=as_npy(np.array('{"version": 3}')), sequences=header((2**70,))),
    "none of many": as_zip(facts=as_npy(np.array('{"version": 3}')), sequences=header((0, 2**70))),
    "less than none": as_zip(facts=as_npy(np.array('{"version": 3}')), sequences=header((-1,))),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_refused(tmp_path, kind):
    (tmp_path / "plan.npz").write_bytes(FOREIGN[kind])
    with pytest.raises(ValueError, match=rf"^`path` must be a plan that Plan.save wrote, but is '.*'\.{DAMAGED}"):
        lw.Plan.load(tmp_path / "plan.npz")


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", os.devnull):
        with pytest.raises(ValueError, match=r"^`path` must be a plan file, but is '.*'\. Name the file that"):
            lw.Plan.load(path)


@pytest.mark.parametrize("path", ["nowhere.npz", "nowhere/plan.npz"])
def test_a_missing_file_is_missing(tmp_path, path):
    with pytest.raises(FileNotFoundError, match=r"^`path` must be a file that is there, but is '.*nowhere"):
        lw.Plan.load(tmp_path / path)


@pytest.mark.parametrize("version", [2, 99])
def test_another_version_is_refused(tmp_path, version):
    facts, arrays = stored()
    store(tmp_path / "plan.npz", facts | {"version": version}, arrays)
    found = rf"^`path` must be a plan file of version 3, but is {version} at .*plan.npz'?\. .* Make the plan anew from "
    with pytest.raises(ValueError, match=found):
        lw.Plan.load(tmp_path / "plan.npz")
