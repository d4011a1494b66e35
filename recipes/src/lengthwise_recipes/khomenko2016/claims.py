"""What Khomenko et al. 2016 claim of epoch time and validation loss, and what the rows of a rerun say of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from statistics import fmean, linear_regression
from typing import Any

from lengthwise_recipes.claims import Claim, Regime, extent
from lengthwise_recipes.study.results import EpochRow, read_rows

BUCKETS = (1, 2, 3, 4, 6, 8)
LISTED_BUCKETS = ", ".join(map(str, BUCKETS))
BUCKETS_OF_PROCESSES = 6  # of figure 5
PAPER_SPEED_UP = 4.0  # "close to 4", section IV.B
PAPER_LOSS_DROP = 0.23  # 6 GPUs against 1 after 30 hours, section IV.B
PAPER_HOURS = 30.0
CLOSE = 0.15  # of the paper's number: what we take "close to" for
NOISE = 0.02  # of an epoch's seconds: no rise by less counts


def label(buckets: int) -> str:
    """What a run on one process is called.

    >>> label(3)
    'Q = 3'
    """
    return f"Q = {buckets}"


def name_alone(strategy: str) -> str:
    """What a run is called on one process; a study says after that on how many it is.

    >>> name_alone("Q = 3, 2 processes, parameter")
    'Q = 3'
    """
    return strategy.partition(",")[0]


def rows_on(rows: Sequence[EpochRow], processes: int) -> list[EpochRow]:
    """The rows of so many processes, their runs called as on one."""
    return [dataclasses.replace(row, strategy=name_alone(row.strategy)) for row in rows if row.processes == processes]


def epoch_seconds(rows: Sequence[EpochRow], name: str) -> list[float]:
    """The mean seconds of a run's epochs under each seed."""
    return [fmean(row.seconds for row in run) for run in _runs(rows, name)]


def speed_ups(rows: Sequence[EpochRow], name: str) -> list[float]:
    """How many times shorter an epoch of a run is than one with Q = 1 under each seed, in the mean over all epochs."""
    pairs = zip(epoch_seconds(rows, label(1)), epoch_seconds(rows, name), strict=True)
    return [slow / fast for slow, fast in pairs]


def fixed_share(rows: Sequence[EpochRow], name: str) -> float:
    """The share of a run's epoch that does not depend on its frames, 0..1: what steps cost whatever their length.

    The straight line of least squares through mean seconds of an epoch against its padded frames, one point for each
    number of buckets; 0 where it falls below the origin.
    """
    points = {each: [row for row in rows if row.strategy == each] for each in map(label, BUCKETS)}
    frames = [fmean(row.useful_frames / (1.0 - row.padding_share) for row in run) for run in points.values()]
    seconds = [fmean(row.seconds for row in run) for run in points.values()]
    if min(frames) == max(frames):
        return 0.0
    fixed = linear_regression(frames, seconds).intercept
    return min(max(fixed / fmean(row.seconds for row in points[name]), 0.0), 1.0)


def loss_at(run: Sequence[EpochRow], seconds: float) -> float:
    """The validation loss after the last epoch that ends within so many seconds of training; nan before the first."""
    done = [row.validation_loss for row in run if row.elapsed_seconds <= seconds]
    return done[-1] if done else math.nan


def claims_of(document: Mapping[str, Any]) -> list[Claim]:
    """The claims of a rerun's document, as read back from JSON: judged by today's rule, whenever it was measured."""
    rows = read_rows(document["study"]["rows"])
    found = bucket_claims(rows, document["bounds"][0]["speed_ups"]["3"])
    if max(row.processes for row in rows) > 1:
        shared = f"shared {document['machine']['cores']} cores"
        found.append(process_claim(rows, shared if document["size"]["device"] == "cpu" else "had a GPU each"))
    return found


def bucket_claims(rows: Sequence[EpochRow], bound: float) -> list[Claim]:
    """What the paper claims of buckets, and what one process has to say of it.

    Args:
        rows: Of the study.
        bound: The most that 3 buckets can win on the train lengths.
    """
    alone = rows_on(rows, 1)
    losses = (_least_loss_claim(alone), _early_loss_claim(alone))
    of_training = [dataclasses.replace(each, regime=_regime(alone)) for each in losses]
    return [_speed_up_claim(alone, bound), _falling_claim(alone), *of_training]


def _regime(rows: Sequence[EpochRow]) -> Regime:
    """The hours of the longest run; the paper tells neither steps nor epochs of its own."""
    hours = max(row.elapsed_seconds for row in rows) / 3600
    return Regime(what="hours of training", ours=hours, paper=PAPER_HOURS, digits=3)


def process_claim(rows: Sequence[EpochRow], where: str) -> Claim:
    """Figure 5: the loss that the most processes have when the faster of the two is done, against one process's.

    Args:
        rows: Of the study.
        where: What the processes had to compute on, in words.
    """
    most, name = max(row.processes for row in rows), label(BUCKETS_OF_PROCESSES)
    alone, several = (_runs(rows_on(rows, processes), name) for processes in (1, most))
    drops, shares = [], []
    for one, many in zip(alone, several, strict=True):
        seconds = min(one[-1].elapsed_seconds, many[-1].elapsed_seconds)
        drops.append(1.0 - loss_at(many, seconds) / loss_at(one, seconds))
        shares.append(fmean(row.seconds for row in many) / fmean(row.seconds for row in one))
    return Claim(
        claim=f"validation loss at the same wall-clock time is 23 % lower on 6 GPUs than on 1; ours on {most} "
        "processes",
        where="IV.B, figure 5a",
        paper="23 %",
        ours=[100 * drop for drop in drops],
        effect=100 * PAPER_LOSS_DROP,
        regime=_regime(rows),
        unit="%",
        holds=extent(whole=fmean(drops) >= PAPER_LOSS_DROP * (1 - CLOSE), part=fmean(drops) > 0.0),
        why=f"The {most} processes {where}; their epoch took {fmean(shares):.2f} of the seconds of one's, and was "
        f"{_steps(several)} steps of each where one takes {_steps(alone)}.",
    )


def _speed_up_claim(rows: Sequence[EpochRow], bound: float) -> Claim:
    ours = speed_ups(rows, label(3))
    return Claim(
        claim="an epoch with Q = 3 is close to 4 times shorter than with Q = 1",
        where="IV.B, figure 4",
        paper="close to 4",
        ours=ours,
        no_effect=1.0,
        effect=PAPER_SPEED_UP - 1.0,
        regime=Regime(
            what="speed-up that the lengths allow", ours=bound, paper=PAPER_SPEED_UP, least=1.0 - CLOSE, digits=2
        ),
        holds=extent(whole=min(ours) >= PAPER_SPEED_UP * (1 - CLOSE), part=fmean(ours) > 1.0 + CLOSE),
        why=f"These lengths allow at most {bound:.2f} by 3 buckets; {fmean(ours) / bound:.0%} of that was reached. By "
        f"a line fitted to epoch time against padded frames, {fixed_share(rows, label(3)):.0%} of an epoch with Q = 3 "
        "does not depend on the frames.",
    )


def _falling_claim(rows: Sequence[EpochRow]) -> Claim:
    every = [speed_ups(rows, label(buckets)) for buckets in BUCKETS]
    means = [fmean(ours) for ours in every]
    rises = [
        buckets
        for buckets, before, after in zip(BUCKETS[1:], means, means[1:], strict=False)
        if after < before * (1 - NOISE)
    ]
    held = f"It rises at Q = {', '.join(map(str, rises))}" if rises else "It rises nowhere"
    return Claim(
        claim=f"epoch time falls as Q rises; ours: speed-up at Q = {BUCKETS[-1]}",
        where="IV.B, figure 4",
        paper="falls",
        ours=every[-1],
        no_effect=1.0,
        holds=extent(whole=not rises and min(every[-1]) > 1.0, part=means[-1] > 1.0),
        why=f"{held} by more than {NOISE:.0%}; speed-ups {_listing(means)} at Q = {LISTED_BUCKETS}.",
    )


def _least_loss_claim(rows: Sequence[EpochRow]) -> Claim:
    best = {buckets: [_least(run) for run in _runs(rows, label(buckets))] for buckets in BUCKETS}
    above = [three / min(losses) - 1.0 for three, *losses in zip(best[3], *best.values(), strict=True)]
    least = min(BUCKETS, key=lambda buckets: fmean(best[buckets]))
    return Claim(
        claim="validation loss is least with Q = 3; ours: how much higher its least is than that of the best Q",
        where="IV.B, figure 3",
        paper="least",
        ours=[100 * share for share in above],
        unit="%",
        holds=extent(whole=max(above) == 0.0, part=least == 3 or min(above) == 0.0),
        why=f"It is least under {above.count(0.0)} of {len(above)} seeds. Least losses, means over seeds: "
        f"{_listing([fmean(best[buckets]) for buckets in BUCKETS])} at Q = {LISTED_BUCKETS}; over the seeds Q = 3 "
        f"reaches from {min(best[3]):.2f} to {max(best[3]):.2f}, and the best, Q = {least}, from "
        f"{min(best[least]):.2f} to {max(best[least]):.2f}.",
    )


def _early_loss_claim(rows: Sequence[EpochRow]) -> Claim:
    drops = []
    for slow, fast in zip(_runs(rows, label(1)), _runs(rows, label(3)), strict=True):
        seconds = slow[math.ceil(len(slow) / 3) - 1].elapsed_seconds
        drops.append(1.0 - loss_at(fast, seconds) / loss_at(slow, seconds))
    return Claim(
        claim="validation loss converges faster, at the beginning above all; ours: how much lower it is with Q = 3 "
        "than with Q = 1 after the first third of the latter's time",
        where="IV.B, figure 3",
        paper="faster",
        ours=[100 * drop for drop in drops],
        unit="%",
        holds=extent(whole=min(drops) > 0.0, part=fmean(drops) > 0.0),
        why=f"It is lower under {sum(drop > 0.0 for drop in drops)} of {len(drops)} seeds.",
    )


def _listing(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _steps(runs: Sequence[Sequence[EpochRow]]) -> int:
    return round(fmean(row.steps for run in runs for row in run))


def _runs(rows: Sequence[EpochRow], name: str) -> list[list[EpochRow]]:
    """The epochs of a run under each seed, in order."""
    seeds = sorted({row.seed for row in rows})
    return [[row for row in rows if (row.strategy, row.seed) == (name, seed)] for seed in seeds]


def _least(run: Sequence[EpochRow]) -> float:
    """The least loss of a run; infinite where it diverged."""
    return min((row.validation_loss for row in run if math.isfinite(row.validation_loss)), default=math.inf)
