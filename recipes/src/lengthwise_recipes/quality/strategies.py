"""The compared strategies: without a knob, at equal padding, and with batch sizes that follow the length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise.checks import check_number, check_whole, value_error
from lengthwise.cli.strategies import parse_strategy
from lengthwise_recipes.knobs import fit_knob, padding_share
from lengthwise_recipes.mixing import measure_mixing
from lengthwise_recipes.study.setups import Setup

OURS = "max-entropy"
RANDOM = "random"
PLAIN = (RANDOM, "sorted")  # no knob to fit
FITTED = (OURS, "semi-sorted", "alternated", "windowed", "bucketed")
DYNAMIC = (RANDOM, "semi-sorted", OURS)  # their knobs are fitted to the largest of the paddings
SCALINGS = {"none": "constant rate", "linear": "linear rate", "root": "root rate"}
TOLERANCE = 0.005  # of a padding share
EPOCHS = 64  # mixing is measured on this many plans of seed 0 together

Cut = lw.FixedSize | lw.DynamicSize


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A strategy with its fitted knob; if it is not `near` its padding, it is not trained.

    Attributes:
        order: The order of the sequences, without its knob.
        strategy: The name on the command line.
        padding: The target share of its knob; None without a knob.
        padding_share: The padding share of its plans.
        cut: Batches of one size, or of sizes that follow the length.
    """

    order: str
    strategy: str
    padding: float | None
    padding_share: float
    cut: Cut

    @property
    def dynamic(self) -> bool:
        return isinstance(self.cut, lw.DynamicSize)

    @property
    def near(self) -> bool:
        """True if its plans pad the target share, to within `TOLERANCE`."""
        return self.padding is None or abs(self.padding_share - self.padding) <= TOLERANCE


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """One strategy of the study: its label, its mixing in `EPOCHS` plans pooled, and how it is trained."""

    candidate: Candidate
    label: str
    mixing: float
    setup: Setup


def candidates(lengths: NDArray[np.int64], paddings: Sequence[float], *, batch_size: int) -> list[Candidate]:
    """Fits the knobs of all strategies.

    Args:
        lengths: [n], of the training sequences.
        paddings: Shares to compare at, rising.
        batch_size: Sequences in a batch; for dynamic sizes, in a batch of the longest sequences.

    Raises:
        ValueError: No share, shares too close to each other, or too few sequences; or max-entropy batching can reach
            none of the shares.
    """
    check_whole("lengths", len(lengths), minimum=2 * batch_size, remedy="Give more sequences to train on.")
    check_paddings(paddings)
    fixed, dynamic = lw.FixedSize(batch_size), lw.DynamicSize(batch_size)
    fitted = [_plain(lengths, order, fixed) for order in PLAIN]
    fitted += [_fit(lengths, order, padding, fixed) for padding in paddings for order in FITTED]
    if not any(candidate.near for candidate in fitted if candidate.order == OURS):
        rule = f"at least what sorted batches pad, {fitted[1].padding_share:.3f}"
        raise value_error("paddings", rule, tuple(paddings), "Give larger shares, or more sequences.")
    for order in DYNAMIC:
        has_knob = order in FITTED
        fitted.append(_fit(lengths, order, paddings[-1], dynamic) if has_knob else _plain(lengths, order, dynamic))
    return fitted


def check_paddings(paddings: Sequence[float]) -> None:
    """Raises ValueError for shares at which strategies cannot be compared."""
    remedy = "Give shares such as 0.05, 0.1."
    for padding in paddings:
        check_number("paddings", padding, above=True, maximum=0.9, remedy=remedy)
    if not paddings or any(low + 2 * TOLERANCE >= high for low, high in pairwise(paddings)):
        raise value_error("paddings", f"rising by more than {2 * TOLERANCE:g}, at least one", tuple(paddings), remedy)


def choose_setups(lengths: NDArray[np.int64], fitted: Sequence[Candidate], *, base_batch: float) -> list[Compared]:
    """Returns the strategies to train: those near their padding; dynamic sizes at three learning rates.

    Args:
        lengths: [n], of the training sequences.
        fitted: The result of `candidates`.
        base_batch: The size of a step for which the learning rate was chosen, in the unit of the task.
    """
    trainable = [candidate for candidate in fitted if candidate.near]
    return [setup for candidate in trainable for setup in _training_setups(lengths, candidate, base_batch)]


def list_left_out(fitted: Sequence[Candidate]) -> list[str]:
    """Returns a sentence for each strategy that is not near its padding."""
    return [
        f"{candidate.order}{' with dynamic sizes' if candidate.dynamic else ''} at {100 * candidate.padding:g} %, "
        f"since the nearest is {100 * candidate.padding_share:.1f} %, by {candidate.strategy}"
        for candidate in fitted
        if candidate.padding is not None and not candidate.near
    ]


def _plain(lengths: NDArray[np.int64], order: str, cut: Cut) -> Candidate:
    share = padding_share(lengths, parse_strategy(order, cut=cut))
    return Candidate(order=order, strategy=order, padding=None, padding_share=share, cut=cut)


def _fit(lengths: NDArray[np.int64], order: str, padding: float, cut: Cut) -> Candidate:
    fit = fit_knob(lengths, order, padding, cut=cut)
    return Candidate(order=order, strategy=fit.strategy, padding=padding, padding_share=fit.padding_share, cut=cut)


def _training_setups(lengths: NDArray[np.int64], candidate: Candidate, base_batch: float) -> list[Compared]:
    batching = parse_strategy(candidate.strategy, cut=candidate.cut)
    mixing = measure_mixing([lw.make_plan(lengths, batching, epoch=epoch) for epoch in range(EPOCHS)], lengths)
    if not candidate.dynamic:
        return [Compared(candidate=candidate, label=candidate.strategy, mixing=mixing, setup=Setup(batching=batching))]
    return [
        Compared(
            candidate=candidate,
            label=f"{candidate.strategy}, dynamic sizes, {words}",
            mixing=mixing,
            setup=Setup(
                batching=batching, learning_rate_scaling=scaling, base_batch=None if scaling == "none" else base_batch
            ),
        )
        for scaling, words in SCALINGS.items()
    ]
