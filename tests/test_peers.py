"""The benchmark of other systems: its measures by hand, the rules that need no package, and rows measured again."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    return importlib.import_module("peers")


def test_the_measures_of_few_batches(peers):
    one, two = ([[[0, 1]], [[2, 2]]], [[[0]], [[1], [2]]])
    epochs = list(map(importlib.import_module("peer_calls").flatten, (one, two)))
    row = peers.judge(epochs, np.array([1, 3, 4, 6]), "lhotse", {"cap": 7, "ranks": 2, "micro_batches": 1})
    assert (row["padding"], row["waiting"], row["price"]) == pytest.approx((1 / 7, 1 / 8, 4 / 3))
    assert (row["over"], row["largest"], row["kept"]) == pytest.approx((0.5, 8 / 7, 0.5))
    assert (row["lost"], row["repeated"], row["unequal"]) == (1, 1, 1.0)


@pytest.mark.parametrize("peer", ["lengthwise", "like_lhotse", "lengthwise_rows", "random", "fairseq:1"])
def test_the_smallest_case(peers, peer):
    row = peers.measure(peer, Path(sys.executable), "long-tailed", 300, "2x1")
    assert (row["sequences"], row["lost"], row["repeated"]) == (300, 0, 0)


def test_a_row_that_is_measured_again_replaces_the_older(peers):
    old = {"peer": "random", "data": "chats", "world": "8x4", "sequences": 300}
    new, other = old | {"padding": 0.7}, old | {"world": "8x1"}
    assert peers.merge([old, other], [new]) == [new, other]
