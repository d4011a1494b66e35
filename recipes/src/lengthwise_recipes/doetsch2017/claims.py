"""Judges the claims of Doetsch et al. 2017 on speed, memory and word error rate by the outcomes of a rerun.

Speeds and rates of another machine and corpus cannot be compared, so the claims compare ratios between rows of a
table, and their order.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from lengthwise_recipes.claims import (
    CLOSE,
    WHOLE,
    Claim,
    Size,
    extent,
    listing,
    of_effect,
    of_likeness,
    of_order,
    tells_greater,
)
from lengthwise_recipes.doetsch2017.batchings import MXNET, PAPER_CHUNKS, RANDOM, SORTED, bins_label, chunk_label
from lengthwise_recipes.doetsch2017.outcomes import Outcome, ratios, read_outcome

NEAR = 0.05  # rates that differ by up to this share count as almost the same
PAPER_SPEECH = 18 * 360_000  # frames of 10 ms: 18 hours of one of CHiME-4's six microphones, or more
CHUNKS = tuple(map(chunk_label, PAPER_CHUNKS))
ONE_PROGRAM = "The paper measured bucketing in MXNet and all else in RETURNN; ours all run in one program."


class Row(NamedTuple):
    """A row of the paper's tables: utterances per second, gigabytes, word error rate in percent."""

    speed: float
    memory: float
    error: float


PAPER: Mapping[str, Row] = {
    "10": Row(36.7, 1.6, 21.3),
    "50": Row(31.1, 1.6, 10.1),
    "100": Row(29.6, 1.6, 9.2),
    "500": Row(17.3, 1.6, 9.0),
    RANDOM: Row(7.0, 5.4, 8.9),  # the row "max" of table 1, and "Random" of table 2
    SORTED: Row(10.2, 4.2, 10.2),
    MXNET: Row(9.5, 6.3, 9.6),
    "8": Row(10.1, 4.8, 9.9),
    "64": Row(10.0, 5.3, 9.5),
    "256": Row(8.8, 6.0, 9.1),
}


def paper_rows(bins: Sequence[int]) -> dict[str, Row]:
    """Returns the paper's rows by our labels; `bins` stand for the paper's 8, 64 and 256.

    >>> sorted(paper_rows((2, 6, 18)))[:3]
    ['alternated:18', 'alternated:2', 'alternated:6']
    """
    chunks = {chunk_label(size): PAPER[str(size)] for size in PAPER_CHUNKS}
    sortings = {bins_label(count): PAPER[name] for count, name in zip(bins, ("8", "64", "256"), strict=True)}
    return {**chunks, **{name: PAPER[name] for name in (RANDOM, SORTED, MXNET)}, **sortings}


def claims(outcomes: Mapping[str, Outcome], bins: Sequence[int], *, frames: int, utterances: int) -> list[Claim]:
    """Returns all claims; those on memory only if it was measured.

    Args:
        outcomes: By label, see `outcomes`.
        bins: Three rising numbers of bins of alternated sorting.
        frames, utterances: Frames and whole utterances of the training speech.
    """
    source = "18 hours of one microphone of CHiME-4, or six times as many if it took all six"
    size = Size(ours=frames, paper=PAPER_SPEECH, source=source)
    times = (
        _chunk_speed(outcomes),
        _chunks_in_order_of_speed(outcomes),
        _sorted_speed(outcomes),
        _falling_with_bins(outcomes, bins, speed=True),
    )
    errors = (
        _short_chunk_error(outcomes),
        _chunks_in_order_of_error(outcomes),
        _sorted_error(outcomes, bins),
        _falling_with_bins(outcomes, bins, speed=False),
        _alternated_like_both(outcomes, bins),
        _alternated_against_mxnet(outcomes, bins),
    )
    judged = [
        *(dataclasses.replace(claim, kind="speed") for claim in times),
        *(dataclasses.replace(claim, size=size, kind="word error rate") for claim in errors),
        _shared_bin(bins, utterances),
    ]
    if all(outcome.peak_bytes for outcome in outcomes.values()):
        judged += [_chunk_memory(outcomes), _sorted_memory(outcomes, bins)]
    return judged


def claims_of(document: Mapping[str, Any]) -> list[Claim]:
    """Judges the claims from a rerun's document, read from JSON, by the current rule."""
    outcomes = {label: read_outcome(outcome) for label, outcome in document["outcomes"].items()}
    data, bins = document["study"]["data"], document["size"]["bins"]
    return claims(outcomes, bins, frames=data["train_frames"], utterances=data["train_utterances"])


def _chunk_speed(outcomes: Mapping[str, Outcome]) -> Claim:
    chunks, utterances = outcomes[chunk_label(50)], outcomes[RANDOM]
    ours = _speeds(outcomes, chunk_label(50), RANDOM)
    frames = 1.0 / (1.0 - utterances.padding_share) * (1.0 - chunks.padding_share)
    return _effect_claim(
        claim="chunks of 50 frames are faster than whole utterances; ours: their speed over that of whole ones",
        where="table 1",
        paper=PAPER["50"].speed / PAPER[RANDOM].speed,
        ours=ours,
        why=f"Whole utterances pad {utterances.padding_share:.0%}, so they compute {frames:.2f} times as many frames; "
        f"a frame of a chunk takes {frames / fmean(ours):.2f} times as long as a frame of a whole utterance.",
    )


def _chunks_in_order_of_speed(outcomes: Mapping[str, Outcome]) -> Claim:
    labels = [*CHUNKS, RANDOM]
    speeds = [outcomes[label].utterances_per_second for label in labels]
    means = [fmean(_speeds(outcomes, label, RANDOM)) for label in labels]
    ours = _speeds(outcomes, labels[0], RANDOM)
    pairs = zip(CHUNKS, speeds, speeds[1:], strict=False)
    alike = [label for label, faster, slower in pairs if not tells_greater(faster, slower)]
    told = f"Not shown faster than the next: {', '.join(alike)}" if alike else "Each is faster than the next"
    return Claim(
        claim="the shorter the chunks, the faster; ours: speed of chunks of 10 over whole utterances",
        where="table 1",
        paper=f"{PAPER['10'].speed / PAPER[RANDOM].speed:.1f}",
        ours=ours,
        no_effect=1.0,
        effect=PAPER["10"].speed / PAPER[RANDOM].speed - 1.0,
        holds=of_order((ours, 1.0), *itertools.pairwise(speeds)),
        why=f"Speed over that of whole utterances: {listing(means, '.2f')} for {_chunk_names()}. {told}.",
    )


def _short_chunk_error(outcomes: Mapping[str, Outcome]) -> Claim:
    short, utterances = outcomes[chunk_label(10)], outcomes[RANDOM]
    ours = ratios(short.word_error_rates, utterances.word_error_rates)
    return _effect_claim(
        claim="chunks of 10 have a higher word error rate than whole utterances; ours: rate of chunks over whole",
        where="table 1",
        paper=PAPER["10"].error / PAPER[RANDOM].error,
        ours=ours,
        why=f"Word error rates: {_percent(short)} against {_percent(utterances)}.",
    )


def _chunks_in_order_of_error(outcomes: Mapping[str, Outcome]) -> Claim:
    labels = [*CHUNKS, RANDOM]
    best = min(CHUNKS, key=lambda label: outcomes[label].word_error_rate)
    whole = outcomes[RANDOM].word_error_rates
    ours = ratios(outcomes[best].word_error_rates, whole)
    return Claim(
        claim=f"whole utterances are required for the best word error rate; ours: rate of {best}, the best, over that "
        "of whole ones",
        where="section 6, table 1",
        paper=f"{PAPER['500'].error / PAPER[RANDOM].error:.2f}",
        ours=ours,
        no_effect=1.0,
        effect=PAPER["500"].error / PAPER[RANDOM].error - 1.0,
        holds=of_order((ours, 1.0), *((outcomes[label].word_error_rates, whole) for label in CHUNKS)),
        why=f"Word error rates: {', '.join(_percent(outcomes[label]) for label in labels)} for {_chunk_names()}; "
        f"{_frame_errors(outcomes, labels)}.",
    )


def _sorted_speed(outcomes: Mapping[str, Outcome]) -> Claim:
    ours = _speeds(outcomes, SORTED, RANDOM)
    bound = (1.0 - outcomes[SORTED].padding_share) / (1.0 - outcomes[RANDOM].padding_share)
    return _effect_claim(
        claim="sorted utterances are faster than random ones; ours: sorted over random",
        where="table 2",
        paper=PAPER[SORTED].speed / PAPER[RANDOM].speed,
        ours=ours,
        why=f"Random batches compute {bound:.2f} times the frames of sorted ones, padding included.",
    )


def _sorted_error(outcomes: Mapping[str, Outcome], bins: Sequence[int]) -> Claim:
    rising = sorted(labels_of_orders(bins), key=lambda label: outcomes[label].word_error_rate)
    worst, best = outcomes[SORTED].word_error_rates, outcomes[RANDOM].word_error_rates
    others = [outcomes[label].word_error_rates for label in rising if label not in (RANDOM, SORTED)]
    ours = ratios(worst, best)
    return Claim(
        claim="sorted utterances give the worst word error rate and random ones the best; ours: sorted over random",
        where="section 6, table 2",
        paper=f"{PAPER[SORTED].error / PAPER[RANDOM].error:.2f}",
        ours=ours,
        no_effect=1.0,
        effect=PAPER[SORTED].error / PAPER[RANDOM].error - 1.0,
        holds=of_order((ours, 1.0), *((rates, best) for rates in others), *((worst, rates) for rates in others)),
        why="Mean word error rates, the least first: "
        f"{', '.join(f'{label} {_percent(outcomes[label])}' for label in rising)}; {_frame_errors(outcomes, rising)}.",
    )


def _falling_with_bins(outcomes: Mapping[str, Outcome], bins: Sequence[int], *, speed: bool) -> Claim:
    runs = [outcomes[bins_label(count)] for count in bins]
    values = [run.utterances_per_second if speed else run.word_error_rates for run in runs]
    printed = [PAPER[name].speed if speed else PAPER[name].error for name in ("8", "256")]
    numbers = listing(values, ".1f") if speed else ", ".join(map(_percent, runs))
    return Claim(
        claim=f"{'speed' if speed else 'the word error rate'} falls as the number of bins rises; ours: with {bins[0]} "
        f"bins over {bins[-1]}",
        where="table 2",
        paper=f"{printed[0] / printed[1]:.2f}",
        ours=ratios(values[0], values[-1]),
        no_effect=1.0,
        effect=printed[0] / printed[1] - 1.0,
        holds=of_order((values[0], values[-1]), *itertools.pairwise(values)),
        why=f"{'Utterances a second' if speed else 'Word error rates'}: {numbers} with {_listed(bins)} bins.",
    )


def _shared_bin(bins: Sequence[int], utterances: int) -> Claim:
    count = bins[1]
    ours, paper = (utterances / count - 1) / (utterances - 1), 1.0 / (count * (count - 1))
    return Claim(
        claim=f"two utterances share one of N bins with the probability 1 / (N (N - 1)); ours: with {count} bins",
        where="section 4",
        paper=f"{paper:.3f}",
        ours=[ours],
        holds=of_likeness(CLOSE * paper, [ours - paper]),
        why=f"An utterance shares its bin with n/N - 1 of the n - 1 others, here {utterances / count - 1:.1f} of "
        f"{utterances - 1}. No seed changes that.",
    )


def _alternated_like_both(outcomes: Mapping[str, Outcome], bins: Sequence[int]) -> Claim:
    label = bins_label(bins[-1])
    ours = ratios(outcomes[label].word_error_rates, outcomes[RANDOM].word_error_rates)
    paper, random, in_order = PAPER["256"], PAPER[RANDOM], PAPER[SORTED]
    speeds = zip(_speeds(outcomes, label, RANDOM), _speeds(outcomes, SORTED, RANDOM), strict=True)
    gain_shares = [_share_of_gain(*pair) for pair in speeds]
    paper_share = _share_of_gain(paper.speed / random.speed, in_order.speed / random.speed)
    accurate = of_likeness(NEAR, [rate - 1.0 for rate in ours]) == WHOLE
    fast = of_effect(gain_shares, paper_share) == WHOLE
    return Claim(
        claim="with the most bins the word error rate is almost that of random batches, at almost the speed of sorted "
        f"ones; ours: rate with {bins[-1]} bins over random",
        where="section 6, table 2",
        paper=f"{paper.error / random.error:.2f}",
        ours=ours,
        no_effect=1.0,
        effect=NEAR,
        likeness=True,
        holds=extent(whole=accurate and fast, part=accurate or fast),
        why=f"{bins[-1]} bins have {fmean(gain_shares):.0%} of the speed that sorting gains, in the paper "
        f"{paper_share:.0%}. They pad {outcomes[label].padding_share:.0%}. The share is a mean over the runs. Rates "
        f"{NEAR:.0%} apart count as alike.",
    )


def _alternated_against_mxnet(outcomes: Mapping[str, Outcome], bins: Sequence[int]) -> Claim:
    label = bins_label(bins[1])
    middle, mxnet, paper, bucketing = outcomes[label], outcomes[MXNET], PAPER["64"], PAPER[MXNET]
    speeds = _speeds(outcomes, label, MXNET)
    lower, faster = tells_greater(mxnet.word_error_rates, middle.word_error_rates), tells_greater(speeds, 1.0)
    return Claim(
        claim="alternated sorting is faster than MXNet's bucketing at a lower word error rate; ours: rate with "
        f"{bins[1]} bins over bucketing",
        where="section 7, table 2",
        paper=f"{paper.error / bucketing.error:.2f}",
        ours=ratios(middle.word_error_rates, mxnet.word_error_rates),
        no_effect=1.0,
        effect=1.0 - paper.error / bucketing.error,
        holds=extent(whole=lower and faster, part=lower or faster),
        why=f"Speed over that of bucketing, which pads {mxnet.padding_share:.0%}: {fmean(speeds):.2f}, in the paper "
        f"{paper.speed / bucketing.speed:.2f}. Word error rates: {_percent(middle)} with {bins[1]} bins, "
        f"{_percent(mxnet)} with bucketing. {ONE_PROGRAM}",
    )


def _chunk_memory(outcomes: Mapping[str, Outcome]) -> Claim:
    chunks = [outcomes[label].peak_bytes or 0 for label in CHUNKS]
    utterances = outcomes[RANDOM].peak_bytes or 0
    return _effect_claim(
        claim="whole utterances take more memory than chunks; ours: whole over chunks of 50",
        where="table 1",
        paper=PAPER[RANDOM].memory / PAPER["50"].memory,
        ours=[utterances / chunks[1]],
        why=f"Megabytes of a step: {listing([size / 1e6 for size in (*chunks, utterances)], '.0f')} for "
        f"{_chunk_names()}: padding is computed and stored.",
    )


def _sorted_memory(outcomes: Mapping[str, Outcome], bins: Sequence[int]) -> Claim:
    peak_bytes = {label: outcomes[label].peak_bytes or 0 for label in labels_of_orders(bins)}
    least, most = peak_bytes[SORTED], peak_bytes[MXNET]
    others = [size for label, size in peak_bytes.items() if label not in (SORTED, MXNET)]
    return Claim(
        claim="of whole utterances, sorted ones take the least memory and MXNet's buckets the most; ours: sorted "
        "over random",
        where="table 2",
        paper=f"{PAPER[SORTED].memory / PAPER[RANDOM].memory:.2f}",
        ours=[least / peak_bytes[RANDOM]],
        no_effect=1.0,
        effect=1.0 - PAPER[SORTED].memory / PAPER[RANDOM].memory,
        holds=of_order((peak_bytes[RANDOM], least), (min(others), least), (most, max(others))),
        why=f"Megabytes of a step: {', '.join(f'{label} {size / 1e6:.0f}' for label, size in peak_bytes.items())}. "
        f"MXNet's buckets take {most / peak_bytes[RANDOM]:.2f} times as much as random batches, in the paper "
        f"{PAPER[MXNET].memory / PAPER[RANDOM].memory:.2f}. {ONE_PROGRAM}",
    )


def _effect_claim(*, claim: str, where: str, paper: float, ours: Sequence[float], why: str) -> Claim:
    """Judges ratios, whose effect is their difference from 1."""
    return Claim(
        claim=claim,
        where=where,
        paper=f"{paper:.2f}",
        ours=ours,
        no_effect=1.0,
        effect=paper - 1.0,
        holds=of_effect(ours, paper, no_effect=1.0),
        why=f"The effect is {fmean(ours) - 1.0:.2f}, in the paper {paper - 1.0:.2f}. {why}",
    )


def _speeds(outcomes: Mapping[str, Outcome], label: str, base: str) -> list[float]:
    """Returns the speed of a batching over that of another, under each seed."""
    return ratios(outcomes[label].utterances_per_second, outcomes[base].utterances_per_second)


def _share_of_gain(speed: float, of_sorted: float) -> float:
    """Returns a gain in speed as a share of that of sorting; both speeds are divided by that of random batches.

    >>> round(_share_of_gain(1.25, 1.5), 2)
    0.5
    """
    return (speed - 1.0) / (of_sorted - 1.0) if of_sorted > 1.0 else 0.0


def labels_of_orders(bins: Sequence[int]) -> list[str]:
    """Returns the labels of table 2."""
    return [RANDOM, SORTED, MXNET, *map(bins_label, bins)]


def _chunk_names() -> str:
    return f"chunks of {_listed(PAPER_CHUNKS)} and whole utterances"


def _listed(counts: Sequence[int]) -> str:
    return ", ".join(map(str, counts))


def _percent(outcome: Outcome) -> str:
    return f"{100 * outcome.word_error_rate:.1f} %"


def _frame_errors(outcomes: Mapping[str, Outcome], labels: Sequence[str]) -> str:
    """Lists the frame error rates, which vary less over seeds than word error rates: there are more frames."""
    rates = [100 * outcomes[label].frame_error_rate for label in labels]
    return f"wrong states of the network's validation frames, in the same order: {listing(rates, '.1f')} %"
