"""The limit: how random batches can be at a given padding, however they are made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lengthwise import checks
from lengthwise.choices.batching import Batching
from lengthwise.choices.cut import BUDGET_REMEDY, Budget
from lengthwise.choices.rate_distortion import Levels, ends_of_levels, group_levels, least_information
from lengthwise.choices.world import check_world
from lengthwise.lengths import as_lengths
from lengthwise.measures.batch_limit import rate_in_batches
from lengthwise.measures.epoch_limit import floors_of_budget, floors_of_sizes, rate_in_epoch
from lengthwise.measures.step_limit import rates_in_steps
from lengthwise.planning.missed import tell_doubted_budget

_LEVELS = 65_536  # lengths told apart where nobody says how many
_LEVELS_IN_STEPS = 1_024  # the same for steps, where each is met some thousand times
_NEAR_IN_STEPS = 2e-4  # how far above the limit of steps the lines of the search may leave it
_LEVELS_IN_BATCHES = 2_048  # the same for batches of a given size, where each takes 24 times 100 rounds and more


def mixing_limit(
    lengths: ArrayLike,
    padding: float,
    *,
    batch_size: int | None = None,
    budget: float | None = None,
    batches: int | None = None,
    empty_places: int | None = None,
    bins: int | None = None,
    world_size: int = 1,
    micro_batches: int = 1,
) -> float:
    """The most mixing that any batching can have at a padding share of `padding` on these lengths.

    exp(-R(D)) with D = mean length x padding / (1 - padding). It is exact, except for rounding, if at most 65,536
    lengths are distinct; more are grouped. Few bins make little mixing look like more: mixing that `mixing` estimated
    in few bins may lie above this limit. Compare it with the limit of the same `bins`.

    There are four limits; docs/theory.md explains them:

    - By default, that of endless batches. Small batches cannot reach it: of `batch_size` members at least one is as
      long as the batch is padded to, and tells its length.
    - With `batch_size`, that of all batches of at most so many sequences, padded to their longest, in one plan or
      pooled over epochs. With `budget`, that of batches of at most so many padded frames: the longer a batch, the fewer
      are in it. Batches may stay below it, because it leaves out that a sequence is taken once an epoch.
    - With `batches` too, that of an epoch, in so many batches of at most `batch_size`. Its least padding is that of
      sorted batches, and at that padding only sorted batches are possible. More batches than needed can pad less, and
      mix more. Under a `budget`, give `empty_places` instead: how many more sequences these batches could hold.
    - With `world_size` or `micro_batches`, that of steps: how little the padded lengths of all batches of a step can
      tell of a length in it. Steps of k batches tell nothing at the padding of `optimal_edges(lengths, k)`, and at less
      they must. Lengths are put into 1,024 groups unless `bins` says otherwise; that takes some seconds. `step_mixing`
      looks at the mean padded length of a step alone, which tells less: so it may lie above this limit.

    All but the first are found by a search that proves a bound at every state, if at most 2,048 lengths are distinct
    (more are grouped). With `batch_size` or `budget`, what is computed is at most about 0.2 % too high.

    Args:
        lengths: [n], in any unit.
        padding: The share of all computed frames that are padding, from 0 to 0.999.
        batch_size: The most sequences in a batch; by default batches are endless. No such limit is known for steps of
            several batches.
        budget: The most padded frames in a batch, in the unit of the lengths. A longer sequence stands alone. If nearly
            all are longer, the unit is doubted: a warning.
        batches: How many batches of at most `batch_size` an epoch has, `len(plan.batch_sizes)`; by default any number.
        empty_places: Under a budget, how many more sequences all batches of an epoch could hold, as long as they are:
            `(budget // longest - plan.batch_sizes).sum()`, with `longest = plan.padded_lengths[:, 0]`, where no
            sequence is over the budget. By default any number. The limit is that of epochs with so many or fewer. If
            there are too many to look through, as with millions of lengths, they change nothing.
        world_size: Ranks, for the limit of steps.
        micro_batches: Batches of a rank in a step, for the limit of steps.
        bins: Into how many groups of like length the lengths are put at most, as if all of a group were of its mean
            length; by default every length counts for itself.

    Returns:
        A number from 0 to 1; for endless batches 1 where `padding` is enough to pad every sequence to the longest.

    Raises:
        ValueError: A padding out of range, lengths that are not [n], a batch size or a budget for steps of several
            batches, fewer batches than hold the sequences, empty places without a budget, or fewer than any epoch has.

    >>> mixing_limit(np.array([100, 200, 300, 400]), 0.4)
    1.0
    >>> # one batch padded to 200, the other to 400
    >>> mixing_limit(np.array([100, 200, 300, 400]), 0.2, world_size=2)
    1.0

    References:
        Cover and Thomas 2006, "Elements of information theory", chapter 10; the solution is our own, see
        `lengthwise.choices.rate_distortion`, and for `batches` `lengthwise.measures.epoch_limit`. For steps: Khomenko
        et al. 2016, equations 1 and 2, at one end; see `lengthwise.measures.step_limit`.
    """
    checks.check_number("padding", padding, maximum=0.999, remedy="Give a share from 0 to 0.999, such as 0.05.")
    in_step = check_world(world_size, micro_batches).slots
    _check_small(in_step, batch_size, budget)
    empty_places = _check_empty(empty_places, budget)
    small = batch_size is not None or budget is not None
    bins = _check_bins(bins, _LEVELS_IN_STEPS if in_step > 1 else _LEVELS_IN_BATCHES if small else _LEVELS)
    checked = _check_lengths(lengths)
    if budget is not None:
        _doubt_budget(budget, checked)
    batch_size, batches = _check_batches(len(checked), batch_size, batches)
    levels = group_levels(checked, bins)
    target = float(levels.sizes @ levels.masses) * padding / (1.0 - padding)
    if len(levels.sizes) == 1:
        return 1.0
    if in_step > 1:
        return float(np.exp(-rates_in_steps(levels, [target], in_step, near=_NEAR_IN_STEPS)[0]))
    rates = [_rate(levels, target)]
    if small:
        # Of those padded to the shortest length of a level, a batch holds most; to the longest, fewest.
        most, fewest = (_most_in_batches(ends, batch_size, budget) for ends in ends_of_levels(checked, bins))
        rates.append(rate_in_batches(levels, target, most))
        if batch_size is not None and batches is not None:
            rates.append(rate_in_epoch(levels, target, most, floors_of_sizes(levels, batch_size, batches)))
        if empty_places is not None:
            rates.append(rate_in_epoch(levels, target, most, floors_of_budget(levels, fewest, most, empty_places)))
    return min(1.0, float(np.exp(-max(rates))))


def _check_small(in_step: int, batch_size: int | None, budget: float | None) -> None:
    """Refuses a batch size or a budget beside steps of several batches, and a budget that holds nothing."""
    for name, bound in (("batch_size", batch_size), ("budget", budget)):
        if bound is not None and in_step > 1:
            remedy = "Leave it out: the limit then holds for batches of any size."
            raise checks.value_error(name, "left out for steps of several batches", bound, remedy)
    if budget is not None:
        remedy = f"{BUDGET_REMEDY} Leave it out for batches of any size."
        checks.check_number("budget", budget, above=True, remedy=remedy)


def _doubt_budget(budget: float, lengths: NDArray[np.float64]) -> None:
    """Warns of a budget in another unit than the lengths, as a plan of batches under it would."""
    batching = Batching(cut=Budget(budget, oversize="alone"))
    tell_doubted_budget(int((lengths > budget).sum()), lengths.astype(np.int64)[:, None], batching)


def _most_in_batches(padded: NDArray[np.float64], batch_size: int | None, budget: float | None) -> NDArray[np.float64]:
    """The most sequences in a batch that is padded to each of `padded`: [levels], at least 1."""
    most = np.full(len(padded), np.inf if batch_size is None else float(batch_size))
    return np.maximum(1.0, most if budget is None else np.minimum(most, np.floor(budget / padded)))


def _check_empty(empty_places: int | None, budget: float | None) -> int | None:
    """How many places stay empty under a budget."""
    if empty_places is None:
        return None
    if budget is None:
        remedy = "For batches of a fixed size, give `batch_size` and `batches`."
        raise checks.value_error("empty_places", "left out without budget", empty_places, remedy)
    remedy = "Count how many more sequences the batches of a plan could hold."
    return checks.check_whole("empty_places", empty_places, minimum=0, remedy=remedy)


def _check_batches(count: int, batch_size: int | None, batches: int | None) -> tuple[int | None, int | None]:
    """The batch size and the number of batches, which go with each other and hold `count` sequences."""
    if batch_size is not None:
        remedy = "Give the most sequences in a batch, or leave it out for endless batches."
        batch_size = checks.check_whole("batch_size", batch_size, minimum=1, remedy=remedy)
    if batches is None:
        return batch_size, None
    if batch_size is None:
        raise checks.value_error("batches", "left out without batch_size", batches, "Give the most sequences in one.")
    needed = -(-count // batch_size)
    remedy = f"{count} sequences need {needed} batches of {batch_size}."
    return batch_size, checks.check_whole("batches", batches, minimum=needed, remedy=remedy)


def step_limit_curve(
    lengths: ArrayLike, paddings: Sequence[float], *, batches: int, bins: int, near: float
) -> list[float]:
    """`mixing_limit` of steps of `batches` batches at several paddings, at most about `near` above it: for a figure."""
    levels = group_levels(_check_lengths(lengths), bins)
    mean = float(levels.sizes @ levels.masses)
    targets = [mean * padding / (1.0 - padding) for padding in paddings]
    return [float(np.exp(-rate)) for rate in rates_in_steps(levels, targets, batches, near=near)]


def _check_bins(bins: int | None, most: int) -> int:
    remedy = "Give as many bins as mixing was estimated in, such as 128."
    return checks.check_whole("bins", most if bins is None else bins, minimum=2, remedy=remedy)


def _check_lengths(lengths: ArrayLike) -> NDArray[np.float64]:
    checked = as_lengths(lengths)
    if checked.ndim != 1 or not len(checked):
        remedy = "Give at least one sequence, and one length each: lengths[:, 0], for example."
        raise checks.value_error("lengths", "of shape [n], n at least 1", checked.shape, remedy)
    return checked.astype(np.float64)


def _rate(levels: Levels, target: float) -> float:
    """R(target), in nats."""
    # Frames enough to pad every sequence to the longest: then the padded length tells nothing.
    if target >= levels.sizes[-1] - levels.sizes @ levels.masses:
        return 0.0
    return least_information(levels, target, np.zeros(len(levels.sizes) - 1))[0]
