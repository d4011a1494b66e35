"""The settings of a plan as lines of Python that make it again."""

from __future__ import annotations

from dataclasses import fields

from lengthwise.choices.batching import Batching, default_deal
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
    except ValueError:  # an order of the user's own, say, or batches of another sampler
        return f"batching = ...  # {plan.batching}"
    given = {"cut": batching.cut, "order": batching.order, "deal": batching.deal, "arrange": batching.arrange}
    given |= {"cost": batching.cost, "chunks": batching.chunks}
    bare = Batching(cut=batching.cut, order=batching.order)
    defaults = {"deal": default_deal(batching.cut, batching.order)}
    defaults |= {name: getattr(bare, name) for name in ("arrange", "cost", "chunks")}
    said = [f"{name}={write_choice(choice)}" for name, choice in given.items() if defaults.get(name, ()) != choice]
    one = f"batching = lw.Batching({', '.join(said)})"
    return one if len(one) <= _WIDE else "\n".join(["batching = lw.Batching(", *(f"    {each}," for each in said), ")"])


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
            said.append(f"{field.name}={value!r}")
    return f"lw.{type(choice).__name__}({', '.join(said)})"
