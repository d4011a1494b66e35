"""Judges the claims of Khomenko et al. 2016 on epoch time and validation loss by the rows of a rerun."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise_recipes.claims import (
    CLOSE,
    Claim,
    Size,
    listing,
    of_effect,
    of_likeness,
    of_order,
    tells_greater,
)
from lengthwise_recipes.khomenko2016.bounds import speed_up_bound
from lengthwise_recipes.study.results import EpochRow, read_rows, runs_of, timed_rows

BUCKETS = (1, 2, 3, 4, 6, 8)
LISTED_BUCKETS = ", ".join(map(str, BUCKETS))
BUCKETS_OF_PROCESSES = 6  # of figure 5
PAPER_SPEED_UP = 4.0  # "close to 4", section IV.B
PAPER_LOSS_DROP = 0.23  # 6 GPUs against 1 after 30 hours, section IV.B
PAPER_POINTS = 10**9 // 64  # of "1 Gb samples", read as bits, if a point is two 32-bit numbers as in ours


def label(buckets: int) -> str:
    """Names a run on one process.

    >>> label(3)
    'Q = 3'
    """
    return f"Q = {buckets}"


SHUFFLED = f"{label(BUCKETS_OF_PROCESSES)} shuffled"  # its batches in random order


def name_alone(strategy: str) -> str:
    """Returns the name of a run without its number of processes.

    >>> name_alone("Q = 3, 2 processes, parameter")
    'Q = 3'
    """
    return strategy.partition(",")[0]


def rows_on(rows: Sequence[EpochRow], processes: int) -> list[EpochRow]:
    """Returns the rows of a number of processes, with the names of runs on one process."""
    return [dataclasses.replace(row, strategy=name_alone(row.strategy)) for row in rows if row.processes == processes]


def epoch_seconds(rows: Sequence[EpochRow], name: str) -> list[float]:
    """Returns the median seconds of a run's epochs under each seed: other work of the machine hardly moves a median."""
    return [median(row.seconds for row in run) for run in runs_of(rows, name)]


def speed_ups(rows: Sequence[EpochRow], name: str) -> list[float]:
    """Returns the median epoch time with Q = 1 over that of a run, under each seed."""
    pairs = zip(epoch_seconds(rows, label(1)), epoch_seconds(rows, name), strict=True)
    return [slow / fast for slow, fast in pairs]


def loss_at(run: Sequence[EpochRow], seconds: float) -> float:
    """Returns the validation loss after the last epoch that ends within `seconds`; nan before the first."""
    losses = [row.validation_loss for row in run if row.elapsed_seconds <= seconds]
    return losses[-1] if losses else math.nan


def claims_of(document: Mapping[str, Any]) -> list[Claim]:
    """Judges the claims from a rerun's document, read from JSON, by the current rule."""
    rows, times = read_rows(document["study"]["rows"]), timed_rows(document["study"])
    lengths = np.repeat(document["lengths"]["values"], document["lengths"]["counts"])
    claims = bucket_claims(rows, lengths, times)
    if max(row.processes for row in rows) > 1:
        claims.append(process_claim(rows, lengths, hardware(document), times))
    return claims


def hardware(document: Mapping[str, Any]) -> str:
    """Says what the processes of a rerun had or shared, for a sentence about them."""
    size, cores = document["size"], document["machine"]["cores"]
    if size["device"] == "cuda":
        return "had a GPU each"
    return "had a core each" if max(size["processes"]) <= cores else f"shared {cores} cores"


def bucket_claims(rows: Sequence[EpochRow], lengths: NDArray[np.int64], times: Sequence[EpochRow] = ()) -> list[Claim]:
    """Judges the claims on buckets by the runs on one process.

    Args:
        rows: Of all runs.
        lengths: The trained lengths in points, sorted.
        times: See `timed_rows`; by default `rows`.
    """
    alone, timed = rows_on(rows, 1), rows_on(times or rows, 1)
    speeds = (_speed_up_claim(timed, lengths), _falling_claim(timed), _proportional_claim(timed, lengths))
    losses = [_least_loss_claim(alone), _early_loss_claim(alone)]
    losses += [_short_first_claim(alone)] if any(row.strategy == SHUFFLED for row in alone) else []
    return [
        *(dataclasses.replace(claim, kind="speed") for claim in speeds),
        *(dataclasses.replace(claim, kind="validation loss", size=_size(lengths)) for claim in losses),
    ]


def _size(lengths: NDArray[np.int64]) -> Size:
    """Compares the points of the pen; the paper does not say its steps."""
    return Size(ours=int(lengths.sum()), paper=PAPER_POINTS, source="1 Gb of points, read as bits, 64 for each")


def process_claim(
    rows: Sequence[EpochRow], lengths: NDArray[np.int64], where: str, times: Sequence[EpochRow] = ()
) -> Claim:
    """Judges figure 5: the loss of the most processes against that of one, when the faster of the two ends.

    Args:
        rows, lengths, times: As in `bucket_claims`.
        where: The processes' hardware, such as "had a GPU each".
    """
    most, name = max(row.processes for row in rows), label(BUCKETS_OF_PROCESSES)
    alone, parallel = (runs_of(rows_on(rows, processes), name) for processes in (1, most))
    drops = []
    for one_run, parallel_run in zip(alone, parallel, strict=True):
        seconds = min(one_run[-1].elapsed_seconds, parallel_run[-1].elapsed_seconds)
        drops.append(1.0 - loss_at(parallel_run, seconds) / loss_at(one_run, seconds))
    seconds = [epoch_seconds(rows_on(times or rows, processes), name) for processes in (1, most)]
    shares = [parallel_time / one_time for one_time, parallel_time in zip(*seconds, strict=True)]
    return Claim(
        claim=f"validation loss at the same wall-clock time is 23 % lower on 6 GPUs than on 1; ours on {most} "
        "processes",
        where="IV.B, figure 5a",
        paper="23 %",
        ours=[100 * drop for drop in drops],
        effect=100 * PAPER_LOSS_DROP,
        size=_size(lengths),
        unit="%",
        kind="validation loss",
        holds=of_effect(drops, PAPER_LOSS_DROP),
        why=f"The {most} processes {where}. Their epoch took {fmean(shares):.2f} times as long as that of one "
        f"process. In an epoch each of them takes {_steps(parallel)} steps; one process alone takes {_steps(alone)}.",
    )


def _speed_up_claim(rows: Sequence[EpochRow], lengths: NDArray[np.int64]) -> Claim:
    ours, bound = speed_ups(rows, label(3)), speed_up_bound(lengths, 3)
    own_longest = fmean(three / random for three, random in zip(ours, speed_ups(rows, "random"), strict=True))
    return Claim(
        claim="an epoch with Q = 3 is close to 4 times shorter than with Q = 1",
        where="IV.B, figure 4",
        paper="close to 4",
        ours=ours,
        no_effect=1.0,
        effect=PAPER_SPEED_UP - 1.0,
        holds=of_effect(ours, PAPER_SPEED_UP, no_effect=1.0),
        why=f"With 3 buckets {bound:.2f} times fewer frames are computed, without the longest sequence "
        f"{speed_up_bound(lengths[:-1], 3):.2f} times; the runs reach {fmean(ours) / bound:.0%} of the former. "
        "With Q = 1 each batch is padded to the longest sequence of all. Over random batches padded to their own "
        f"longest, Q = 3 is {own_longest:.2f} times as fast.",
    )


def _falling_claim(rows: Sequence[EpochRow]) -> Claim:
    by_buckets = [speed_ups(rows, label(buckets)) for buckets in BUCKETS]
    neighbours = zip(BUCKETS, by_buckets, by_buckets[1:], strict=False)
    alike = [label(buckets) for buckets, ours, following in neighbours if not tells_greater(following, ours)]
    told = f"Not told apart from the next: {', '.join(alike)}" if alike else "Each is told apart from the next"
    return Claim(
        claim=f"epoch time falls as Q rises; ours: speed-up at Q = {BUCKETS[-1]}",
        where="IV.B, figure 4",
        paper="falls",
        ours=by_buckets[-1],
        no_effect=1.0,
        holds=of_order((by_buckets[-1], 1.0), *zip(by_buckets[1:], by_buckets, strict=False)),
        why=f"Speed-ups {listing([fmean(ours) for ours in by_buckets])} at Q = {LISTED_BUCKETS}. {told}.",
    )


def _proportional_claim(rows: Sequence[EpochRow], lengths: NDArray[np.int64]) -> Claim:
    shares = [
        [speed_up / speed_up_bound(lengths, buckets) for speed_up in speed_ups(rows, label(buckets))]
        for buckets in BUCKETS[1:]
    ]
    return Claim(
        claim="the time of an epoch is proportional to the padded lengths of its batches; ours: speed-up over that of "
        "the frames, at the Q where it is farthest from 1",
        where="III.A, equations 1 and 2",
        paper="1",
        ours=max(shares, key=lambda ours: abs(fmean(ours) - 1.0)),
        no_effect=1.0,
        effect=CLOSE,
        likeness=True,
        holds=of_likeness(CLOSE, *(np.array(ours) - 1.0 for ours in shares)),
        why=f"Speed-ups over those of the frames: {listing(shares)} at Q = {LISTED_BUCKETS.partition(', ')[2]}; we "
        f"tolerate {CLOSE:g}.",
    )


def _least_loss_claim(rows: Sequence[EpochRow]) -> Claim:
    best = {buckets: [_least(run) for run in runs_of(rows, label(buckets))] for buckets in BUCKETS}
    others = {buckets: losses for buckets, losses in best.items() if buckets != 3}
    least = min(others, key=lambda buckets: fmean(others[buckets]))
    ours = [100 * (1.0 - three / other) for three, other in zip(best[3], best[least], strict=True)]
    return Claim(
        claim="validation loss is least with Q = 3; ours: percent by which its least loss is below that of the best "
        "other Q",
        where="IV.B, figure 3",
        paper="least",
        ours=ours,
        unit="%",
        holds=of_order((ours, 0.0), *((losses, best[3]) for losses in others.values())),
        why=f"Least losses, means over seeds: {listing([fmean(best[buckets]) for buckets in BUCKETS])} at Q = "
        f"{LISTED_BUCKETS}. Over the seeds the loss is {min(best[3]):.2f} to {max(best[3]):.2f} with Q = 3, and "
        f"{min(best[least]):.2f} to {max(best[least]):.2f} with the best other, Q = {least}.",
    )


def _early_loss_claim(rows: Sequence[EpochRow]) -> Claim:
    drops, late_drops, of_epochs, slow_epochs, epochs = [], [], [], [], 0
    for slow, fast in zip(runs_of(rows, label(1)), runs_of(rows, label(3)), strict=True):
        epochs = math.ceil(len(fast) / 3)
        seconds = max(slow[0].elapsed_seconds, fast[epochs - 1].elapsed_seconds)
        drops.append(1.0 - loss_at(fast, seconds) / loss_at(slow, seconds))
        end = max(slow[0].elapsed_seconds, fast[-1].elapsed_seconds)
        late_drops.append(1.0 - loss_at(fast, end) / loss_at(slow, end))
        slow_epochs.append(sum(row.elapsed_seconds <= seconds for row in slow))
        of_epochs.append(100 * (fast[epochs - 1].validation_loss / slow[epochs - 1].validation_loss - 1.0))
    return Claim(
        claim="validation loss converges faster, mainly at the beginning; ours: percent by which it is lower with "
        "Q = 3 than with Q = 1, in the time of a third of the epochs of Q = 3",
        where="IV.B, figure 3",
        paper="faster",
        ours=[100 * drop for drop in drops],
        unit="%",
        holds=of_order((drops, 0.0), (drops, late_drops)),
        why=f"By then Q = 3 has trained {epochs} epochs and Q = 1 {fmean(slow_epochs):.0f}. At the end of Q = 3 its "
        f"loss is lower by {100 * fmean(late_drops):.2f} %. After as many epochs of both, a third of all, it differs "
        f"from that of Q = 1 by {fmean(of_epochs):+.2f} % ({min(of_epochs):+.2f} to {max(of_epochs):+.2f}).",
    )


def _short_first_claim(rows: Sequence[EpochRow]) -> Claim:
    name, places = label(BUCKETS_OF_PROCESSES), list[list[float]]()
    for ordered, shuffled in zip(runs_of(rows, name), runs_of(rows, SHUFFLED), strict=True):
        ends = (math.ceil(len(ordered) / 3) - 1, -1)
        places.append([100 * (1.0 - ordered[end].validation_loss / shuffled[end].validation_loss) for end in ends])
    early, late = map(list, zip(*places, strict=True))
    return Claim(
        claim="that result comes from training on shorter sequences first; ours: percent by which the validation loss "
        f"is lower with {name} than with its batches in random order, after a third of the epochs",
        where="IV.B, in the second copy",
        paper="lower",
        ours=early,
        unit="%",
        holds=of_order((early, 0.0)),
        why=f"Shorter buckets first have the lower loss under {sum(drop > 0.0 for drop in early)} of {len(early)} "
        f"seeds. After the last epoch it is lower by {fmean(late):+.2f} % ({min(late):+.2f} to {max(late):+.2f}).",
    )


def _steps(runs: Sequence[Sequence[EpochRow]]) -> int:
    return round(fmean(row.steps for run in runs for row in run))


def _least(run: Sequence[EpochRow]) -> float:
    """Returns the least loss of a run; infinite if it diverged."""
    return min((row.validation_loss for row in run if math.isfinite(row.validation_loss)), default=math.inf)
