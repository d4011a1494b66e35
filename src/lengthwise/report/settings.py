"""The settings of a plan as lines of Python that make it again."""

from __future__ import annotations

from dataclasses import fields

from lengthwise.choices.batching import Batching
from lengthwise.choices.cut import Budget
from lengthwise.choices.order import MaxEntropy
from lengthwise.choices.tags import tag_of
from lengthwise.planning.plan import Plan

_WIDE = 88


def write_code(plan: Plan, *, loading: str = "") -> str:
    """Lines that make the plan again: they run where `loading`, the lines that read the lengths, do.

    Args:
        plan: Of any batching; choices of the user's own are named in a remark.
        loading: By default a remark says which lengths they must be.
    """
    read = loading or f"lengths = ...  # those of fingerprint {plan.lengths_fingerprint}"
    batching = _write_batching(plan)
    world = {"world_size": plan.world_size, "micro_batches": plan.micro_batches}
    options = {"seed": plan.seed, "epoch": plan.epoch} | {name: size for name, size in world.items() if size > 1}
    given = ", ".join(f"{name}={value}" for name, value in options.items())
    return "\n".join(
        [
            "import lengthwise as lw",
            "",
            read,
            batching,
            f"plan = lw.make_plan(lengths, batching, {given})",
            f"print(plan.fingerprint())  # {plan.fingerprint()}",
        ]
    )


def _write_batching(plan: Plan) -> str:
    try:
        batching = Batching.from_json(plan.batching)
    except ValueError:  # an order of the user's own, for example, or batches of another sampler
        return f"batching = ...  # {plan.batching}"
    said = _said(batching)
    one = f"batching = lw.Batching({', '.join(said)})"
    return one if len(one) <= _WIDE else "\n".join(["batching = lw.Batching(", *(f"    {each}," for each in said), ")"])


def _said(batching: Batching) -> list[str]:
    """The arguments that make the batching, without defaults; `budget` and `padding` where these say all."""
    cut, order = batching.cut, batching.order
    by_budget = isinstance(cut, Budget) and cut == Budget(cut.budget)
    by_padding = isinstance(order, MaxEntropy) and order.padding is not None and order == MaxEntropy(order.padding)
    bare = Batching(cut=cut, order=order)
    given = {name: getattr(batching, name) for name in ("deal", "arrange", "cost", "chunks")}
    return [
        f"budget={_write(batching.budget)}" if by_budget else f"cut={write_choice(cut)}",
        f"padding={_write(batching.padding)}" if by_padding else f"order={write_choice(order)}",
        *(f"{name}={write_choice(choice)}" for name, choice in given.items() if choice != getattr(bare, name)),
    ]


def write_choice(choice: object) -> str:
    """A choice as the call that makes it.

    >>> from lengthwise.choices.cut import FixedSize
    >>> write_choice(FixedSize(16))
    'lw.FixedSize(batch_size=16)'
    """
    if tag_of(choice) is None:
        return repr(choice)
    said = []
    for field in fields(choice):  # type: ignore[arg-type]
        value = getattr(choice, field.name, field.default)
        if field.init and value != field.default:
            said.append(f"{field.name}={_write(value)}")
    return f"lw.{type(choice).__name__}({', '.join(said)})"


def _write(value: object) -> str:
    """A value of a field: 20_000 in place of 20000.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return f"{int(value):_}"
    return f"{value:_}" if isinstance(value, int) and not isinstance(value, bool) else repr(value)
