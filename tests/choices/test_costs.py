"""Costs of the user's own: how a plan names them, in every process alike, and what they may not do to it."""

import functools
import json
from dataclasses import dataclass, field

import numpy as np
import pytest

import lengthwise as lw

LENGTHS = [5, 9, 2, 4, 7, 7, 1, 3]


def frames(counts, padded_lengths, scale=1):
    return scale * counts * padded_lengths[:, 0]


@dataclass(frozen=True)
class Attention:
    heads: int = 8
    table: object = None
    seen: list = field(default_factory=list, repr=False)

    def __call__(self, counts, padded_lengths):
        return frames(counts, padded_lengths)


class Model:
    def __call__(self, counts, padded_lengths):
        return frames(counts, padded_lengths)

    def cost(self, counts, padded_lengths):
        return frames(counts, padded_lengths)


class Spoken(Model):
    def __repr__(self):
        return "Spoken(3)"


# The cost, its name, and its text; HERE is this module.
NAMED = {
    "function": (frames, "HERE:frames", "<function frames>"),
    "lambda": (lambda counts, padded_lengths: frames(counts, padded_lengths), "HERE:<lambda>", "<function <lambda>>"),
    "instance": (Model(), "HERE:Model", "<HERE.Model object>"),
    "instance with words of its own": (Spoken(), "HERE:Spoken", "Spoken(3)"),
    "method": (Model().cost, "HERE:Model.cost", "<bound method Model.cost of <HERE.Model object>>"),
    "dataclass": (Attention(table=Model()), "HERE:Attention", "Attention(heads=8, table=<HERE.Model object>)"),
    "partial": (
        functools.partial(frames, scale=[frames, (1,)]),
        "functools:partial",
        "functools.partial(<function frames>, scale=[<function frames>, (1,)])",
    ),
}


def described(cost):
    """Name and text, as they stand in a checkpoint."""
    found = json.loads(lw.Batching(budget=9, cost=cost).to_json())["cost"]
    return found["choice"].replace(__name__, "HERE"), found["repr"].replace(__name__, "HERE")


@pytest.mark.parametrize("kind", NAMED)
def test_a_cost_is_named_without_addresses(kind):
    cost, *expected = NAMED[kind]
    assert described(cost) == tuple(expected)


def test_a_spawned_process_names_the_costs_of_the_script_alike(monkeypatch):
    """It runs the script under another name."""
    costs, names = (frames, Model(), Attention(table=Model())), []
    for name in ("__main__", "__mp_main__"):
        for each in (frames, Model, Attention):
            monkeypatch.setattr(each, "__module__", name)
        names.append([described(cost) for cost in costs])
    assert names[0] == names[1]


def writing(counts, padded_lengths):
    found = frames(counts, padded_lengths)
    counts[:] = 0
    padded_lengths[:] = 1
    return found


class Reusing:
    """Returns one array again and again, and writes into it."""

    def __init__(self):
        self.kept = np.zeros(4_096)

    def __call__(self, counts, padded_lengths):
        self.kept[: len(counts)] = frames(counts, padded_lengths)
        return self.kept[: len(counts)]


@pytest.mark.parametrize("cut", [lw.Budget(20), lw.FixedSize(2)], ids=repr)
@pytest.mark.parametrize("cost", [writing, Reusing()])
def test_a_cost_that_writes_where_it_pleases_changes_no_plan(cut, cost):
    whole = lw.make_plan(LENGTHS, lw.Batching(cut=cut, cost=frames), world_size=2)
    plan = lw.make_plan(LENGTHS, lw.Batching(cut=cut, cost=cost), world_size=2)
    for name in ("sequences", "offsets", "padded_lengths", "costs", "grid"):
        assert getattr(plan, name).tolist() == getattr(whole, name).tolist()
    cost(np.arange(99), np.ones((99, 1), np.int64))
    assert plan.costs.tolist() == whole.costs.tolist()
    cost(np.array([1]), np.array([[1]]))  # the plan has not made the cost's own array read-only


@pytest.mark.parametrize(
    ("cost", "kind"),
    [
        (lambda counts, _: counts * 1j, "'complex128'"),
        (lambda counts, _: [str(count) for count in counts], "'str32'"),
        (lambda counts, _: counts > 0, "'bool'"),
        (lambda counts, _: counts.astype("m8[s]"), r"'timedelta64\[s\]'"),
        (lambda counts, _: [[1], [1, 2], *counts[2:]], r"\[\[1\], \[1, 2\]"),
        (lambda *_: None, "'object'"),
    ],
)
def test_what_is_no_number_is_no_cost(cost, kind):
    rule = rf"^`cost` must be an array of (real )?numbers, but is {kind}.*\. Return an array, from counts \[batches\]"
    with pytest.raises(TypeError, match=rule):
        lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(2), cost=cost))
