"""The settings of a plan as lines of Python that make it again."""

from __future__ import annotations

from lengthwise.advice.snippet import write_choice
from lengthwise.choices.batching import Batching, arguments_of
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
    arguments = ", ".join(f"{name}={value}" for name, value in options.items())
    times = [] if plan.times is None else ["times = ...  # how often epochs take each sequence"]
    return "\n".join(
        [
            "import lengthwise as lw",
            "",
            read,
            batching,
            *times,
            f"plan = lw.make_plan(lengths, batching, {arguments}{', times=times' if times else ''})",
            f"print(plan.fingerprint())  # {plan.fingerprint()}",
        ]
    )


def _write_batching(plan: Plan) -> str:
    try:
        batching = Batching.from_json(plan.batching)
    except ValueError:  # an order of the user's own, for example, or batches of another sampler
        return f"batching = ...  # {plan.batching}"
    arguments = [f"{name}={write_choice(value)}" for name, value in arguments_of(batching).items()]
    one = f"batching = lw.Batching({', '.join(arguments)})"
    return (
        one
        if len(one) <= _WIDE
        else "\n".join(["batching = lw.Batching(", *(f"    {argument}," for argument in arguments), ")"])
    )
