"""A plan as data: what it lists, saves, loads and is named; and batchings as JSON."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import length_sets
import lengthwise as lw
import menu

LENGTHS = lw.example_lengths(count=200)
BATCHING = lw.Batching(order=lw.SemiSorted(), cut=lw.Budget(20_000), chunks=None)
CHUNKED = replace(BATCHING, cut=lw.FixedSize(4), chunks=lw.Chunks(100), budget=None, padding=None)


def a_plan(**changes):
    return lw.make_plan(LENGTHS, BATCHING, **{"seed": 3, "epoch": 2, "world_size": 2, "micro_batches": 2, **changes})


def arrays_of(plan):
    names = ("sequences", "offsets", "padded_lengths", "costs", "grid", "spans")
    return {name: array for name in names if (array := getattr(plan, name)) is not None}


@pytest.mark.parametrize(
    "batching", [BATCHING, CHUNKED, lw.Batching(cut=lw.FixedSize(8))], ids=["plain", "chunks", "no max_cost"]
)
def test_a_saved_plan_is_loaded_whole(tmp_path, batching):
    plan = lw.make_plan(LENGTHS, batching, seed=2**64 - 1, epoch=7, world_size=3)
    plan.save(tmp_path / "plan.npz")
    again = lw.Plan.load(tmp_path / "plan.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.npz"], "no draft is left behind"
    assert again.fingerprint() == plan.fingerprint()
    assert arrays_of(again).keys() == arrays_of(plan).keys()
    for name, array in arrays_of(plan).items():
        assert (getattr(again, name) == array).all()
        assert getattr(again, name).dtype == array.dtype
        assert not getattr(again, name).flags.writeable
    for fact in ("count", "batching", "seed", "epoch", "lengths_fingerprint", "max_cost"):
        assert getattr(again, fact) == getattr(plan, fact)
    assert lw.measure(again, LENGTHS) == lw.measure(plan, LENGTHS)


def test_a_plan_of_nothing_is_saved_too(tmp_path):
    plan = lw.make_plan([], BATCHING)
    plan.save(tmp_path / "none.npz")
    assert lw.Plan.load(tmp_path / "none.npz").fingerprint() == plan.fingerprint()
    assert list(plan.batches()) == []


def test_arrays_are_read_only():
    for array in arrays_of(lw.make_plan(LENGTHS, CHUNKED)).values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


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
        whole = [batch.tolist() for batch in plan.batches(rank)]
        assert len(whole) == len(plan) == plan.steps * 2
        for start in range(len(plan) + 1):
            assert [batch.tolist() for batch in plan.batches(rank, start=start)] == whole[start:]


def test_a_rank_takes_its_column_of_the_grid():
    plan = a_plan()
    flat = [plan.grid[step, micro, 1] for step in range(plan.steps) for micro in range(2)]
    expected = [plan.sequences[plan.offsets[b] : plan.offsets[b + 1]].tolist() for b in flat]
    assert [batch.tolist() for batch in plan.batches(rank=1)] == expected


@settings(max_examples=50, derandomize=True)
@given(length_sets.flat, st.integers(0, 9))
def test_the_costliest_batches_are_the_costliest(lengths, count):
    plan = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(3)))
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
        lw.make_plan(LENGTHS[::-1], BATCHING, seed=3, epoch=2, world_size=2, micro_batches=2),
        lw.make_plan(
            LENGTHS,
            lw.Batching(order=lw.SemiSorted(), cut=lw.Budget(20_001)),
            seed=3,
            epoch=2,
            world_size=2,
            micro_batches=2,
        ),
        replace(plan, sequences=plan.sequences[::-1].copy()),
        replace(plan, padded_lengths=plan.padded_lengths + 1),
        replace(plan, grid=plan.grid[:, ::-1].copy()),
        replace(plan, spans=np.zeros((plan.count, 3), np.int64)),
        replace(plan, count=plan.count + 1),
    ]
    names = [other.fingerprint() for other in others] + [plan.fingerprint()]
    assert len(set(names)) == len(names)
    assert all(len(name) == 16 and int(name, 16) >= 0 for name in names)


def test_a_plan_says_what_it_is():
    plan = lw.make_plan(
        [5, 9, 2, 4, 7], lw.Batching(cut=lw.FixedSize(1)), seed=3, epoch=2, world_size=2, micro_batches=2
    )
    assert len(plan.repeated()) == 3  # to fill the second step
    shown = "Plan(steps=2, micro_batches=2, world_size=2, batches=5, sequences=5, seed=3, epoch=2)"
    assert repr(plan) == shown


ALL_CHOICES = [
    *({"order": order} for order in menu.ORDERS.values()),
    *({"cut": cut} for cut in menu.cuts(100.0, 50.0).values()),
    *({"deal": deal, "cut": lw.FixedSize(2)} for deal in menu.DEALS.values()),
    *({"arrange": arrange} for arrange in menu.ARRANGEMENTS.values()),
    *({"chunks": chunks} for chunks in menu.CHUNKS.values()),
    {"cost": lw.Padded()},
    {"cost": menu.COSTS["quadratic"]},
]


@pytest.mark.parametrize("choice", ALL_CHOICES, ids=repr)
def test_a_batching_comes_back_from_json(choice):
    batching = lw.Batching(**{"cut": lw.FixedSize(2), **choice})
    again = lw.Batching.from_json(batching.to_json())
    assert again == batching
    assert again.to_json() == batching.to_json()
    assert repr(again) == repr(batching)


def test_a_cost_of_ones_own_is_named_and_not_made_again():
    batching = lw.Batching(budget=9, cost=menu.by_calls)
    assert json.loads(batching.to_json())["cost"] == {"choice": "menu:by_calls", "repr": ""}
    message = r"^`choice` must be one of this package, but is 'menu:by_calls'. Make the Batching in code"
    with pytest.raises(ValueError, match=message):
        lw.Batching.from_json(batching.to_json())


def test_a_plan_that_was_pickled_is_the_same_and_still_read_only():
    plan = lw.make_plan([3, 1, 4, 1, 5], lw.Batching(cut=lw.FixedSize(2), chunks=lw.Chunks(2)), world_size=2)
    copied = pickle.loads(pickle.dumps(plan))
    assert copied.fingerprint() == plan.fingerprint()
    for name in ("sequences", "offsets", "padded_lengths", "costs", "grid", "spans"):
        assert not getattr(copied, name).flags.writeable


def test_a_plan_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    a_plan().save(tmp_path / "plan.npz")

    def full(file, **_):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="no space left"):
        a_plan(seed=4).save(tmp_path / "plan.npz")
    assert lw.Plan.load(tmp_path / "plan.npz").fingerprint() == a_plan().fingerprint()
    assert [path.name for path in tmp_path.iterdir()] == ["plan.npz"]
