"""The strategies by name: what each means, and what is refused."""

import re

import pytest

import lengthwise as lw
from lengthwise.cli.strategies import STRATEGIES, parse_cut, parse_strategies, parse_strategy

FIXED = lw.FixedSize(16)
GRAMMAR = "Write name[:value][,key=value...]; `lengthwise compare --help` lists the names."
NAMES = ", ".join(STRATEGIES)


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("random", lw.Shuffled()),
        ("sorted", lw.Sorted()),
        ("sorted,descending=true", lw.Sorted(descending=True)),
        ("semi-sorted:0.1", lw.SemiSorted(randomization_factor=0.1)),
        ("alternated:58", lw.AlternatedSort(bins=58)),
        ("windowed:256", lw.Windowed(window=256)),
        ("bucketed:1024", lw.Bucketed(size=1024)),
        ("optimal:6", lw.Bucketed(buckets=6)),
        ("optimal:6,pad-to-edge=true", lw.Bucketed(buckets=6, pad_to_edge=True)),
        ("optimal:6,pad-to-edge=FALSE", lw.Bucketed(buckets=6)),
        ("uniform:6", lw.Bucketed(buckets=6, by="uniform")),
        ("quantile:6", lw.Bucketed(buckets=6, by="quantile")),
        ("exponential:6", lw.Bucketed(buckets=6, by="exponential")),
        ("mxnet:6", lw.Bucketed(buckets=6, by="uniform", pad_to_edge=True)),
        ("max-entropy:0.05", lw.MaxEntropy(padding=0.05)),
        ("max-entropy,scale=20", lw.MaxEntropy(scale=20)),
    ],
)
def test_a_name_means_an_order(text, order):
    assert parse_strategy(text, cut=FIXED) == lw.Batching(order=order, cut=FIXED)


def test_every_arrangement_has_a_word():
    arrangements = {
        "shuffled": lw.ShuffledSteps(),
        "in-order": lw.InOrder(),
        "shortest-first": lw.ShortestFirst(),
        "longest-first": lw.ShortestFirst(reverse=True),
        "costliest-first": lw.CostliestFirst(),
    }
    words = {word: parse_strategy(f"random,arrange={word}", cut=FIXED).arrange for word in arrangements}
    assert words == arrangements
    assert parse_strategy("random,deal=portions", cut=FIXED).deal == lw.Portions()


def test_several_at_once_keep_their_names():
    named = parse_strategies(" random, sorted,arrange=in-order,semi-sorted:0.2 ", cut=FIXED, cost=lw.Quadratic())
    assert list(named) == ["random", "sorted,arrange=in-order", "semi-sorted:0.2"]
    assert {each.cost for each in named.values()} == {lw.Quadratic()}


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("fixed:16", lw.FixedSize(16)),
        ("fixed:16,drop-incomplete=true", lw.FixedSize(16, drop_incomplete=True)),
        ("budget:20000", lw.Budget(20_000)),
        ("budget:1.5,oversize=drop,max-sequences=4", lw.Budget(1.5, oversize="drop", max_sequences=4)),
        ("dynamic:16,rule=paper", lw.DynamicSize(16, rule="paper")),
    ],
)
def test_a_cut_by_name(text, cut):
    assert parse_cut(text) == cut


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rnd", f"`strategy` must be one of {NAMES}, but is 'rnd'. {GRAMMAR}"),
        ("sorted:3", f"`strategy` must be written sorted, but is 'sorted:3'. {GRAMMAR}"),
        (
            "bucketed:64,size=3",
            "`size` must be left out here, but is 3 at bucketed:64,size=3. The name or its value sets `size` already.",
        ),
        (
            "optimal:8,longer=drop,longer=error",
            "`strategy` must be without repeated keys, but is 'optimal:8,longer=drop,longer=error'. Keep one of them.",
        ),
        ("alternated", f"`strategy` must be written alternated:BINS, but is 'alternated'. {GRAMMAR}"),
        ("random,", f"`strategy` must be of the form name[:value][,key=value...], but is ''. {GRAMMAR}"),
        ("random,random", "`strategies` must be different from each other, but is 'random'. Name each only once."),
        ("random,speed=3", f"`key` must be one of arrange, deal, tail, but is 'speed' at random,speed=3. {GRAMMAR}"),
        (
            "random,arrange=up",
            "`arrange` must be one of shuffled, in-order, shortest-first, longest-first, costliest-first, "
            f"but is 'up'. {GRAMMAR}",
        ),
        (
            "uniform:3,by=optimal",
            "`by` must be left out here, but is 'optimal' at uniform:3,by=optimal. "
            "The name or its value sets `by` already.",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_strategies(text, cut=FIXED)
    with pytest.raises(ValueError, match=r"^`strategy` must be one strategy, but is 'random,sorted'. Name only one"):
        parse_strategy("random,sorted", cut=FIXED)


@pytest.mark.parametrize("text", ["16", "fixed", "dynamic:16:2", "sized:3", "fixed:16,speed=2"])
def test_a_cut_that_cannot_be_read_is_refused(text):
    with pytest.raises((ValueError, TypeError), match=r"^`\w+` must be .+, but is .+\. [A-Z]"):
        parse_cut(text)
