"""Python code of choices, batchings and plans, and cuts in words."""

from __future__ import annotations

from lengthwise.choices.batching import Batching, write_batching
from lengthwise.choices.cut import Budget, Cut, DynamicSize, FixedSize
from lengthwise.choices.deal import World
from lengthwise.choices.rows import Rows
from lengthwise.planning.plan import Plan

_WIDTH = 79  # columns of a line of code


def write_loop(batching: Batching, world: World) -> str:
    """Returns the lines from the batching to the loop over epochs, for code with `lengths`, `dataset` and `epochs`.

    The sampler gets its rank from torch.distributed. If a step has several batches, their losses are scaled.
    """
    options = f", micro_batches={world.micro_batches}" if world.micro_batches > 1 else ""
    loop = ["    for batch in loader:", "        ..."]
    if world.slots > 1:
        loop = ["    for batch, scale in zip(loader, sampler.loss_scales(), strict=True):"]
        loop += ["        ...  # (scale * loss).backward(), if the loss is a mean over sequences"]
    return "\n".join(
        [
            wrap_call(f"batching = {write_batching(batching)}"),
            f"sampler = lw.torch.BatchSampler(lengths, batching{options})",
            "loader = lw.torch.DataLoader(dataset, sampler)  # pads; or your collate_fn",
            "for epoch in range(loader.epoch, epochs):",
            "    loader.set_epoch(epoch)",
            *loop,
        ]
    )


def write_plan(plan: Plan, *, loading: str = "") -> str:
    """Returns the lines that make the plan again.

    Args:
        plan: A plan of any batching; the user's own choices are named in a comment.
        loading: The lines that read the lengths; by default a comment names their fingerprint.
    """
    options = {"seed": plan.seed, "epoch": plan.epoch}
    world = {"world_size": plan.world_size, "micro_batches": plan.micro_batches}
    options |= {name: size for name, size in world.items() if size > 1}
    arguments = "".join(f", {name}={value}" for name, value in options.items())
    lines = ["import lengthwise as lw", ""]
    lines.append(loading or f"lengths = ...  # those of fingerprint {plan.lengths_fingerprint}")
    try:
        lines.append(wrap_call(f"batching = {write_batching(Batching.from_json(plan.batching))}"))
    except ValueError:  # the user's own order, for example, or batches of another sampler
        lines.append(f"batching = ...  # {plan.batching}")
    if plan.times is not None:
        lines.append("times = ...  # how often epochs take each sequence")
        arguments += ", times=times"
    lines.append(f"plan = lw.make_plan(lengths, batching{arguments})")
    return "\n".join([*lines, f"print(plan.fingerprint())  # {plan.fingerprint()}"])


def wrap_call(line: str) -> str:
    """Puts the arguments of a call on a line of their own if the call has more than 79 columns."""
    if len(line) <= _WIDTH:
        return line
    head, _, arguments = line.partition("(")
    return f"{head}(\n    {arguments[:-1]}\n)"


def describe_cut(cut: Cut) -> str:
    """Returns the batches of a cut, in words.

    >>> describe_cut(Budget(20_000, multiple_of=8))
    'batches of at most 20,000 padded frames, padded to multiples of 8'
    """
    multiple = getattr(cut, "multiple_of", 1)
    return _describe_kind(cut) + (f", padded to multiples of {multiple:,}" if multiple > 1 else "")


def _describe_kind(cut: Cut) -> str:
    if isinstance(cut, FixedSize):
        return f"batches of {cut.batch_size:,} sequence{'' if cut.batch_size == 1 else 's'}"
    if isinstance(cut, Budget):
        most = "" if cut.max_sequences is None else f" and {cut.max_sequences:,} sequences"
        return f"batches of at most {cut.budget:,.16g} padded frames{most}"
    if isinstance(cut, DynamicSize):
        reach = "of at most" if cut.rule == "hard" else "filled until they reach"
        return f"batches {reach} the padded frames of {cut.batch_size:,} longest sequences"
    if isinstance(cut, Rows):
        batches = "" if cut.rows == 1 else f"batches of {cut.rows:,} "
        most = "" if cut.max_in_row is None else f" and {cut.max_in_row:,} sequences"
        return f"{batches}rows of at most {cut.capacity:,} frames{most}"
    # A cut of another package: its repr.
    return f"batches by {cut}"


def describe_world(world: World) -> str:
    """Returns the ranks and micro-batches of a step, in words to put after those of a cut; "" if a step is one batch.

    >>> describe_world(World(8, 1)), describe_world(World(8, 4)), describe_world(World(1, 1))
    ('; 8 ranks', '; 8 ranks x 4 micro-batches a step', '')
    """
    ranks = [f"{world.world_size:,} ranks"] if world.world_size > 1 else []
    batches = [f"{world.micro_batches:,} micro-batches a step"] if world.micro_batches > 1 else []
    return f"; {' x '.join(ranks + batches)}" if ranks or batches else ""
