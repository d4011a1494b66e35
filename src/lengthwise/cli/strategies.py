"""Strategies and cuts by their names on the command line.

A strategy is written `name[:value][,key=value...]`. Several are separated by commas. A part such as `key=value` belongs
to the strategy before it: "random,sorted,arrange=in-order" is two strategies.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from lengthwise import checks
from lengthwise.choices.batching import DEFAULT_PADDING, Batching
from lengthwise.choices.cost import Cost, Padded
from lengthwise.choices.cut import BUDGET_REMEDY, Budget, Cut, DynamicSize, FixedSize
from lengthwise.choices.deal import (
    TAILS,
    Arrangement,
    Balanced,
    CostliestFirst,
    Deal,
    InOrder,
    InTurn,
    Mixed,
    Portions,
    RandomSteps,
    ShortestFirst,
    ShuffledSteps,
    Stratified,
)
from lengthwise.choices.order import AlternatedSort, Bucketed, MaxEntropy, Order, SemiSorted, Shuffled, Sorted, Windowed
from lengthwise.choices.rows import Rows


class Strategy(NamedTuple):
    """A named order.

    Attributes:
        value: What its value is called; empty where it takes none.
        make: The order.
        field: The field of the order, or of the packing cut, that the value is of.
        help: One line.
        sets: Fields of the order that the name itself sets.
        deal: How batches are dealt: as other systems do, by default; None for what a `Batching` takes by itself.
    """

    value: str
    make: Callable[..., Order]
    field: str
    help: str
    sets: Mapping[str, Any] = {}
    deal: Deal | None = Balanced()


def _bucketed(by: str, help: str, **sets: Any) -> Strategy:
    return Strategy("BUCKETS", Bucketed, "buckets", help, {"by": by, **sets})


STRATEGIES = {
    "random": Strategy("", Shuffled, "", "random order: the most padding, the most mixing"),
    "random-steps": Strategy(
        "", Shuffled, "", "each step a random sample, sorted into its batches (ours)", deal=RandomSteps()
    ),
    "sorted": Strategy("", Sorted, "", "by length; arrange=in-order keeps the steps sorted too"),
    "semi-sorted": Strategy("LRF", SemiSorted, "randomization_factor", "length plus uniform noise (Ge 2021)"),
    "alternated": Strategy("BINS", AlternatedSort, "bins", "random bins, sorted up and down in turn (Doetsch 2017)"),
    "windowed": Strategy("SIZE", Windowed, "window", "shuffled, then sorted within windows of SIZE sequences"),
    "bucketed": Strategy("SIZE", Bucketed, "size", "sorted, then SIZE sequences a bucket, shuffled (Ge 2021)"),
    "optimal": _bucketed("optimal", "buckets that pad least (Khomenko 2016)"),
    "uniform": _bucketed("uniform", "buckets of equal width"),
    "quantile": _bucketed("quantile", "buckets of about equal count"),
    "exponential": _bucketed("exponential", "buckets whose widths grow by a factor"),
    "mxnet": _bucketed("uniform", "buckets of equal width, padded to the edge (MXNet)", pad_to_edge=True),
    "max-entropy": Strategy(
        "PADDING", MaxEntropy, "padding", "as random as a padding allows, or mixing=0.5 without it (ours)", deal=None
    ),
}

# Beside a cut that packs rows; other names are then the order in which sequences come to the pool.
PACKINGS = {
    "pool": Strategy("SIZE", Shuffled, "pool", "random order, SIZE sequences wait for a row; pool:1 is next fit"),
    "best-fit": Strategy("", Shuffled, "", "longest first, each into the fullest row with room; as TRL packs"),
}

# Of a Batching without an order, where steps are not random.
DEFAULT_STRATEGY = f"max-entropy:{DEFAULT_PADDING:g}"

ARRANGEMENTS: dict[str, Arrangement] = {
    "shuffled": ShuffledSteps(),
    "in-order": InOrder(),
    "shortest-first": ShortestFirst(),
    "longest-first": ShortestFirst(reverse=True),
    "costliest-first": CostliestFirst(),
}

DEALS: dict[str, Callable[..., Deal]] = {
    "random-steps": RandomSteps,
    "stratified": Stratified,
    "balanced": Balanced,
    "mixed": Mixed,
    "in-turn": InTurn,
    "portions": Portions,
}
_KEYS = ("arrange", "deal", "tail")  # of every strategy

_CUTS: dict[str, tuple[Callable[..., Any], str]] = {
    "fixed": (FixedSize, "batch_size"),
    "budget": (Budget, "budget"),
    "dynamic": (DynamicSize, "batch_size"),
    "rows": (Rows, "capacity"),
}

_GRAMMAR = "Write name[:value][,key=value...]; `lengthwise compare --help` lists the names."


def parse_strategy(text: str, *, cut: Cut, cost: Cost | None = None) -> Batching:
    """Makes the batching that `text` names, with the cut given.

    The text is a name with a value and options, as NAME[:VALUE][,key=value...]; `lengthwise compare --help` lists them.

    >>> parse_strategy("semi-sorted:0.1,arrange=in-order", cut=FixedSize(16)).order
    SemiSorted(randomization_factor=0.1)
    """
    named = list(parse_strategies(text, cut=cut, cost=cost).values())
    if len(named) != 1:
        raise checks.value_error("strategy", "one strategy", text, "Name one; separate several where a list is asked.")
    return named[0]


def parse_strategies(text: str, *, cut: Cut, cost: Cost | None = None) -> dict[str, Batching]:
    """Makes every batching that `text` names, under the words that name it; see `parse_strategy`.

    >>> list(parse_strategies("random,sorted,arrange=in-order,bucketed:64", cut=FixedSize(16)))
    ['random', 'sorted,arrange=in-order', 'bucketed:64']

    Raises:
        ValueError: A name, key or value is not known, or a strategy stands twice.
    """
    named: dict[str, Batching] = {}
    for label in _labels(text):
        if label in named:
            raise checks.value_error("strategies", "different from each other", label, "Name each only once.")
        named[label] = _batching(label, cut, cost or Padded())
    return named


def parse_cut(text: str) -> Cut:
    """Makes the cut that `text` names: fixed:SIZE, budget:COST, dynamic:SIZE or rows:CAPACITY, with [,key=value...].

    >>> parse_cut("dynamic:16,rule=paper")
    DynamicSize(batch_size=16, rule='paper', multiple_of=1, count_multiple_of=1)
    """
    remedy = BUDGET_REMEDY if text.startswith("budget") else "Write dynamic:16,rule=paper, for example."
    name, value, options = _parse(text, "cut", remedy)
    if name not in _CUTS or value is None:
        rule = "fixed:SIZE, budget:COST, dynamic:SIZE or rows:CAPACITY"
        raise checks.value_error("cut", rule, text, did_you_mean(name, _CUTS) or remedy)
    kind, field = _CUTS[name]
    _refuse_options(options, (field,), text)
    return _make_choice(kind, {field: value, **options}, text)


def _labels(text: str) -> list[str]:
    """Splits at commas, but before a part with `=`, which belongs to the one before."""
    parts = [part.strip() for part in text.split(",")]
    labels: list[str] = []
    for part in parts:  # of "mxnet:6,tail=drop,sorted": the labels "mxnet:6,tail=drop" and "sorted"
        if re.match(r"[\w-]+=", part) and labels:
            labels[-1] += f",{part}"
        else:
            labels.append(part)
    return labels


def _batching(label: str, cut: Cut, cost: Cost) -> Batching:
    name, value, options = _parse(label, "strategy")
    known = _find_strategy(name, packed=isinstance(cut, Rows))
    # "max-entropy,mixing=0.5" and "max-entropy,scale=40" are the strategies whose value may be left out.
    has_other = name == "max-entropy" and not options.keys().isdisjoint(("mixing", "scale"))
    if (value is None) == bool(known.value) and not has_other:
        form = f"{name}:{known.value}" if known.value else name
        raise checks.value_error("strategy", f"written {form}", label, _GRAMMAR)
    # "uniform:6,buckets=8" says the buckets twice, and "uniform:6,by=quantile" contradicts its name.
    _refuse_options(options, (*known.sets, *((known.field,) if value is not None else ())), label)
    keys = {key: options.pop(key) for key in _KEYS if key in options}
    if isinstance(cut, Rows) and name in PACKINGS:
        cut = replace(cut, by=name, pool=value)
    elif value is not None:
        options[known.field] = value
    arrange = _pick("arrange", keys.pop("arrange", "shuffled"), ARRANGEMENTS)
    order = _make_choice(known.make, {**options, **known.sets}, label, also=_KEYS)
    return Batching(order=order, cut=cut, deal=_choose_deal(known.deal, label, **keys), arrange=arrange, cost=cost)


def _pick(name: str, word: Any, choices: Mapping[str, Any]) -> Any:
    if word in choices:
        return choices[word]
    remedy = did_you_mean(str(word), choices) or _GRAMMAR
    raise checks.value_error(name, "one of " + ", ".join(choices), word, remedy)


def _choose_deal(named: Deal | None, label: str, *, deal: Any = None, tail: Any = None) -> Any:
    """The deal of a strategy, changed by its keys: deal=in-turn, tail=drop."""
    if tail is not None:
        checks.check_choice("tail", tail, TAILS)
    kind: Any = type(named) if deal is None else _pick("deal", deal, DEALS)
    if kind is type(None):  # max-entropy has the deal of a Batching
        if tail is None:
            return None
        raise checks.value_error("tail", "given with a deal here", tail, "Add deal=balanced, for example.", at=label)
    if kind is Portions:
        # Portions have no tail to choose: a rank with fewer batches splits its largest.
        if tail is not None:
            raise checks.value_error("tail", "left out with deal=portions", tail, "Leave it out.", at=label)
        return Portions()
    return kind(tail=tail or getattr(named, "tail", "split"))


def _find_strategy(name: str, *, packed: bool) -> Strategy:
    names = {**STRATEGIES, **PACKINGS} if packed else STRATEGIES
    if name not in names and name in PACKINGS:
        remedy = "It packs rows: on the command line, give --cut rows:CAPACITY."
        raise checks.value_error("strategy", "one of " + ", ".join(names), name, remedy)
    strategy: Strategy = _pick("strategy", name, names)
    return strategy


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """A remedy with the nearest of the choices; "" if none is near.

    >>> did_you_mean("semisorted", STRATEGIES)
    "Did you mean 'semi-sorted'?"
    """
    near = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.7)
    return f"Did you mean {near[0]!r}?" if near and near[0] != word else ""


def _refuse_options(options: dict[str, Any], taken: tuple[str, ...], text: str) -> None:
    for key in taken:
        if key in options:
            remedy = "The name and its value say it already."
            raise checks.value_error(key, "left out here", options[key], remedy, at=text)


def _parse(text: str, what: str, remedy: str = _GRAMMAR) -> tuple[str, Any, dict[str, Any]]:
    """Splits `name:value,key=word` into (name, value, {key: word}); turns numbers, true and false into Python's."""
    head, *rest = text.split(",")
    name, colon, value = head.partition(":")
    pairs = [part.partition("=") for part in rest]
    if not name or (colon and not value) or any(not key or not sign or not word for key, sign, word in pairs):
        raise checks.value_error(what, "of the form name[:value][,key=value...]", text, remedy)
    # "drop-incomplete" is written as options of a command line are, and the field is drop_incomplete.
    options = {key.replace("-", "_"): _value(word) for key, _, word in pairs}
    if len(options) < len(pairs):
        raise checks.value_error(what, "without a key that stands twice", text, "Keep one of them.")
    return name, _value(value) if colon else None, options


def _value(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    # Any other word stays a word: rule=paper.
    return {"true": True, "false": False}.get(word.lower(), word)


def _make_choice(make: Callable[..., Any], options: dict[str, Any], text: str, *, also: tuple[str, ...] = ()) -> Any:
    # "_" is the mark behind which fields are keyword-only.
    known = [name for name in getattr(make, "__dataclass_fields__", ()) if name != "_"]
    unknown = sorted(set(options) - set(known))
    if unknown:
        rule = "one of " + ", ".join([*known, *also])
        remedy = did_you_mean(unknown[0], [*known, *also]) or _GRAMMAR
        raise checks.value_error("key", rule, unknown[0], remedy, at=text)
    return make(**options)
