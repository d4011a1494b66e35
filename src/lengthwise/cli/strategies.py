"""The strategies and cuts of the command line, by name.

A strategy is written `name[:value][,key=value...]`, and commas also separate strategies. A `key=value` belongs to the
strategy before it: "random,sorted,arrange=in-order" is two strategies.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from lengthwise import checks
from lengthwise.choices.arrange import Arrangement, CostliestFirst, InOrder, ShortestFirst, ShuffledSteps
from lengthwise.choices.batching import Batching
from lengthwise.choices.cost import Cost, Padded
from lengthwise.choices.cut import BUDGET_REMEDY, Budget, Cut, DynamicSize, FixedSize
from lengthwise.choices.deal import TAILS, Balanced, Deal, InTurn, Mixed, Portions, RandomSteps, Stratified
from lengthwise.choices.order import AlternatedSort, Bucketed, MaxEntropy, Order, SemiSorted, Shuffled, Sorted, Windowed
from lengthwise.choices.rows import Rows


class Strategy(NamedTuple):
    """A named order.

    Attributes:
        value: The name of the strategy's value in the help; "" if the strategy has no value.
        make: The class of the order.
        field: The field that takes the value, of the order or of a cut that packs rows.
        help: One line of help.
        sets: The fields of the order that the name sets.
        deal: The deal: `Balanced` by default. None leaves the choice to `Batching`.
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
    "random": Strategy("", Shuffled, "", "random order, which pads much"),
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
    "max-entropy": Strategy("PADDING", MaxEntropy, "padding", "as random as a padding allows (ours)", deal=None),
}

# Strategies for a cut that packs rows. All other names then choose the order in which sequences enter the pool.
PACKINGS = {
    "pool": Strategy("SIZE", Shuffled, "pool", "random order, SIZE sequences wait for a row; pool:1 is next fit"),
    "best-fit": Strategy("", Shuffled, "", "longest first, each into the fullest row with room; as TRL packs"),
}

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
_KEYS = ("arrange", "deal", "tail")  # the keys of every strategy

_CUTS: dict[str, tuple[Callable[..., Any], str]] = {
    "fixed": (FixedSize, "batch_size"),
    "budget": (Budget, "budget"),
    "dynamic": (DynamicSize, "batch_size"),
    "rows": (Rows, "capacity"),
}

_GRAMMAR = "Write name[:value][,key=value...]; `lengthwise compare --help` lists the names."


def parse_strategy(text: str, *, cut: Cut, cost: Cost | None = None) -> Batching:
    """Makes the batching that `text` names, with a cut.

    `lengthwise compare --help` lists the names and keys.

    >>> parse_strategy("semi-sorted:0.1,arrange=in-order", cut=FixedSize(16)).order
    SemiSorted(randomization_factor=0.1)
    """
    batchings = list(parse_strategies(text, cut=cut, cost=cost).values())
    if len(batchings) != 1:
        raise checks.value_error("strategy", "one strategy", text, "Name only one.")
    return batchings[0]


def parse_strategies(text: str, *, cut: Cut, cost: Cost | None = None) -> dict[str, Batching]:
    """Makes all batchings that `text` names, by their labels; see `parse_strategy`.

    >>> list(parse_strategies("random,sorted,arrange=in-order,bucketed:64", cut=FixedSize(16)))
    ['random', 'sorted,arrange=in-order', 'bucketed:64']

    Raises:
        ValueError: A name, key or value is unknown, or a strategy is repeated.
    """
    batchings: dict[str, Batching] = {}
    for label in _labels(text):
        if label in batchings:
            raise checks.value_error("strategies", "different from each other", label, "Name each only once.")
        batchings[label] = _batching(label, cut, cost or Padded())
    return batchings


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
    """Splits at commas; a part with `=` belongs to the part before it."""
    parts = [part.strip() for part in text.split(",")]
    labels: list[str] = []
    for part in parts:  # "mxnet:6,tail=drop,sorted" has the labels "mxnet:6,tail=drop" and "sorted"
        if re.match(r"[\w-]+=", part) and labels:
            labels[-1] += f",{part}"
        else:
            labels.append(part)
    return labels


def _batching(label: str, cut: Cut, cost: Cost) -> Batching:
    name, value, options = _parse(label, "strategy")
    strategy = _find_strategy(name, packed=isinstance(cut, Rows))
    has_scale = name == "max-entropy" and "scale" in options  # "max-entropy,scale=40" needs no value
    if (value is None) == bool(strategy.value) and not has_scale:
        form = f"{name}:{strategy.value}" if strategy.value else name
        raise checks.value_error("strategy", f"written {form}", label, _GRAMMAR)
    # "uniform:6,buckets=8" has two numbers of buckets, and "uniform:6,by=quantile" contradicts its name.
    _refuse_options(options, (*strategy.sets, *((strategy.field,) if value is not None else ())), label)
    keys = {key: options.pop(key) for key in _KEYS if key in options}
    if isinstance(cut, Rows) and name in PACKINGS:
        cut = replace(cut, by=name, pool=value)
    elif value is not None:
        options[strategy.field] = value
    arrange = _pick("arrange", keys.pop("arrange", "shuffled"), ARRANGEMENTS)
    order = _make_choice(strategy.make, {**options, **strategy.sets}, label, also=_KEYS)
    return Batching(order=order, cut=cut, deal=_choose_deal(strategy.deal, label, **keys), arrange=arrange, cost=cost)


def _pick(name: str, word: Any, choices: Mapping[str, Any]) -> Any:
    if word in choices:
        return choices[word]
    remedy = did_you_mean(str(word), choices) or _GRAMMAR
    raise checks.value_error(name, "one of " + ", ".join(choices), word, remedy)


def _choose_deal(default: Deal | None, label: str, *, deal: Any = None, tail: Any = None) -> Any:
    """Returns the deal of a strategy, changed by its keys: deal=in-turn, tail=drop."""
    if tail is not None:
        checks.check_choice("tail", tail, TAILS)
    if default is None and deal is None:  # max-entropy has the deal of a Batching
        if tail is None:
            return None
        raise checks.value_error("tail", "given with a deal here", tail, "Add deal=balanced, for example.", at=label)
    kind: Any = type(default) if deal is None else _pick("deal", deal, DEALS)
    if kind is Portions:
        # Portions have no tail: a rank with fewer batches splits its largest batches.
        if tail is not None:
            raise checks.value_error("tail", "left out with deal=portions", tail, "Leave it out.", at=label)
        return Portions()
    return kind(tail=tail or getattr(default, "tail", "split"))


def _find_strategy(name: str, *, packed: bool) -> Strategy:
    names = {**STRATEGIES, **PACKINGS} if packed else STRATEGIES
    if name not in names and name in PACKINGS:
        remedy = "It packs rows: on the command line, give --cut rows:CAPACITY."
        raise checks.value_error("strategy", "one of " + ", ".join(names), name, remedy)
    strategy: Strategy = _pick("strategy", name, names)
    return strategy


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Returns a remedy with the most similar choice; "" if none is similar.

    >>> did_you_mean("semisorted", STRATEGIES)
    "Did you mean 'semi-sorted'?"
    """
    matches = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.7)
    return f"Did you mean {matches[0]!r}?" if matches and matches[0] != word else ""


def _refuse_options(options: dict[str, Any], fields: tuple[str, ...], text: str) -> None:
    for key in fields:
        if key in options:
            remedy = f"The name or its value sets `{key}` already."
            raise checks.value_error(key, "left out here", options[key], remedy, at=text)


def _parse(text: str, kind: str, remedy: str = _GRAMMAR) -> tuple[str, Any, dict[str, Any]]:
    """Splits `name:value,key=word` into (name, value, {key: word}), with numbers, True and False as values."""
    head, *parts = text.split(",")
    name, colon, value = head.partition(":")
    pairs = [part.partition("=") for part in parts]
    if not name or (colon and not value) or any(not key or not sign or not word for key, sign, word in pairs):
        raise checks.value_error(kind, "of the form name[:value][,key=value...]", text, remedy)
    # "drop-incomplete" is the field drop_incomplete.
    options = {key.replace("-", "_"): _value(word) for key, _, word in pairs}
    if len(options) < len(pairs):
        raise checks.value_error(kind, "without repeated keys", text, "Keep one of them.")
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
    # "_" only marks the fields after it as keyword-only.
    names = [name for name in getattr(make, "__dataclass_fields__", ()) if name != "_"]
    unknown = sorted(set(options) - set(names))
    if unknown:
        rule = "one of " + ", ".join([*names, *also])
        remedy = did_you_mean(unknown[0], [*names, *also]) or _GRAMMAR
        raise checks.value_error("key", rule, unknown[0], remedy, at=text)
    return make(**options)
