"""recommend: how much mixing is worth its padding on these data, at the weights where the length share was measured."""

from __future__ import annotations

import warnings
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from numpy.typing import ArrayLike

from lengthwise import checks
from lengthwise.advice.progress import measured_steps
from lengthwise.choices.batching import Batching, check_batching, default_deal
from lengthwise.choices.order import MaxEntropy, Order, Shuffled, Sorted
from lengthwise.lengths import as_lengths
from lengthwise.measures.length_share import LengthShare, StepNoise
from lengthwise.measures.metrics import measure
from lengthwise.planning.make import make_plan

_PADDINGS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6)
_STEPS = 100  # of each candidate, at least, unless that takes more than _EPOCHS
_EPOCHS = 4
_NEAR = 0.01  # of the least work: among these the one that mixes most is taken, because the share may grow


class Candidate(NamedTuple):
    """One order, and what it costs to get as far as with random batches.

    Attributes:
        label: "sorted", "padding=0.05" or "random".
        batching: To train with.
        padding_share: The share of its computed frames that are padding.
        step_mixing: As in `Measures`.
        noise: What its steps are worth.
        work: The frames that it computes for the same progress, those of random order being 1.
    """

    label: str
    batching: Batching
    padding_share: float
    step_mixing: float
    noise: StepNoise
    work: float


class Recommendation(NamedTuple):
    """What to train with, and why.

    Attributes:
        batching: The one that is recommended.
        sentence: Sort, or buy this much mixing: with its reason in numbers.
        candidates: All that were compared, from sorted to random.
    """

    batching: Batching
    sentence: str
    candidates: tuple[Candidate, ...]

    def __repr__(self) -> str:
        return f"Recommendation({self.batching!r} of {len(self.candidates)} candidates)"

    def __str__(self) -> str:
        return self.sentence


def recommend(
    share: LengthShare,
    lengths: ArrayLike,
    batching: Batching,
    *,
    world_size: int = 1,
    micro_batches: int = 1,
    seed: int = 0,
) -> Recommendation:
    """Compares sorting, max-entropy batching at some paddings, and random order, by the work for the same progress.

    Work is the frames that a step computes, padding and all, times the steps that the same progress takes
    (`StepNoise.needed_steps`). Of those within 1 % of the least, the one that mixes most is recommended: the share
    was measured at one set of weights, and may grow.

    It holds where the share was measured, for plain gradient descent at the best learning rate. It does not
    know how fast the hardware is: a frame costs the same in every batch, and ranks that wait are not counted.

    Args:
        share: As `lengthwise.torch.length_share` measured it.
        lengths: Those that it was measured for.
        batching: Its cut, cost and arrangement are kept, and its deal where it is not the default; its order is
            replaced.
        world_size: Ranks of the run.
        micro_batches: Batches of a rank in a step.
        seed: Of the plans that are compared.

    Raises:
        ValueError: `lengths` are not those of the share; the batching is of chunks; and all that `make_plan` raises.
    """
    if not isinstance(share, LengthShare):
        raise checks.type_error("share", "a LengthShare", share, "Measure it: lw.torch.length_share(...), for example.")
    check_batching(batching)
    array = as_lengths(lengths)
    plan = partial(make_plan, array, seed=seed, world_size=world_size, micro_batches=micro_batches)

    def judge(label: str, order: Order) -> Candidate:
        own = _with_order(batching, order)
        first = plan(own)
        epochs = min(_EPOCHS, -(-_STEPS // max(1, first.steps)))
        plans = [first, *(plan(own, epoch=epoch) for epoch in range(1, epochs))]
        measures, noise = measure(plans, array), share.measure(plans)
        frames = array.sum() * epochs / (1 - measures.padding_share) / measures.steps
        work = float(frames * measured_steps(share, noise))
        return Candidate(label, own, measures.padding_share, measures.step_mixing, noise, work)

    with warnings.catch_warnings():  # nobody asked for these paddings, and each candidate says what it has
        warnings.filterwarnings("ignore", message="`padding` must be within")
        least, most = judge("sorted", Sorted()), judge("random", Shuffled())
        between = [padding for padding in _PADDINGS if least.padding_share < padding < most.padding_share]
        found = [least, *(judge(f"padding={each}", MaxEntropy(padding=each)) for each in between)]
    # Of every padding beyond what random steps pad, the plan is that of random steps: said once. Random
    # order is always compared, also where it pads as sorting does: batches of one sequence pad nothing in any order.
    distinct = [least] + [
        each for before, each in pairwise(found) if _worth(each) not in (_worth(before), _worth(most))
    ]
    candidates = tuple(each._replace(work=each.work / most.work) for each in (*distinct, most))
    near = min(each.work for each in candidates) * (1 + _NEAR)
    best = max((each for each in candidates if each.work <= near), key=lambda each: each.step_mixing)
    return Recommendation(best.batching, _sentence(share, candidates, best), candidates)


def _worth(candidate: Candidate) -> tuple[float, float, StepNoise]:
    return candidate.padding_share, candidate.step_mixing, candidate.noise


def _with_order(batching: Batching, order: Order) -> Batching:
    own_deal = batching.deal != default_deal(batching.cut, batching.order)
    return Batching(
        cut=batching.cut,
        order=order,
        deal=batching.deal if own_deal else None,
        arrange=batching.arrange,
        cost=batching.cost,
        chunks=batching.chunks,
    )


def _sentence(share: LengthShare, candidates: tuple[Candidate, ...], best: Candidate) -> str:
    told = "" if share.share > 2 * share.standard_error else ", which may be chance"
    why = f"Length tells {share.share:.1%} (± {share.standard_error:.1%}) of the variance of a gradient{told}"
    least = candidates[0]
    sorting = f"Sorting takes {1 + least.noise.extra_steps:.2f} times the steps of random samples"
    progress = f"For the same progress it computes {best.work:.2f} of the frames of random order"
    if best is least:
        return f"Sort. {why}. {sorting}. {progress}."
    if best is candidates[-1]:
        return f"Shuffle. {why}. {sorting}, and no order that pads less gets as far with fewer frames."
    own = f"{best.label} takes {1 + best.noise.extra_steps:.2f} times"
    return f"Buy mixing: {best.label}. {why}. {sorting}; {own}. {progress}; sorting computes {least.work:.2f}."
