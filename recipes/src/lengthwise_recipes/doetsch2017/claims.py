"""What Doetsch et al. 2017 claim of speed, memory and word error rate, and what a rerun's outcomes say of it.

Speeds and rates of another machine and another corpus are not comparable: claims are of ratios between the rows of a
table, and of their order. Word error rates are in the paper's regime only where as much speech is trained on.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from lengthwise_recipes.claims import Claim, Regime, extent
from lengthwise_recipes.doetsch2017.batchings import MXNET, PAPER_CHUNKS, RANDOM, SORTED, bins_label, chunk_label
from lengthwise_recipes.doetsch2017.outcomes import Outcome, ratios, read_outcome

CLOSE = 0.15  # of the paper's ratio: what we take "as the paper" for
NEAR = 0.05  # of a rate: what we take "almost the same" for
PAPER_UTTERANCES = 8738  # of one of CHiME-4's six microphones; the paper may have trained on all


class Row(NamedTuple):
    """A row of the paper's tables: utterances a second, gigabytes, word error rate in percent."""

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
    """The paper's rows by our labels: the least of `bins` stands for its 8, the next for its 64, the last for its 256.

    >>> sorted(paper_rows((2, 6, 18)))[:3]
    ['alternated:18', 'alternated:2', 'alternated:6']
    """
    chunks = {chunk_label(size): PAPER[str(size)] for size in PAPER_CHUNKS}
    sortings = {bins_label(count): PAPER[name] for count, name in zip(bins, ("8", "64", "256"), strict=True)}
    return {**chunks, **{name: PAPER[name] for name in (RANDOM, SORTED, MXNET)}, **sortings}


def claims(outcomes: Mapping[str, Outcome], bins: Sequence[int], utterances: int) -> list[Claim]:
    """All claims; those of memory where it was measured.

    Args:
        outcomes: By label, see `outcomes`.
        bins: Of alternated sorting, rising, three.
        utterances: Trained on, whole ones: those of word errors are in the paper's regime where there are enough.
    """
    trained = Regime(what="utterances of one microphone", ours=utterances, paper=PAPER_UTTERANCES)
    made = [
        _chunk_speed(outcomes),
        _chunks_in_order_of_speed(outcomes),
        dataclasses.replace(_short_chunk_error(outcomes), regime=trained),
        dataclasses.replace(_chunks_in_order_of_error(outcomes), regime=trained),
        _sorted_speed(outcomes),
        dataclasses.replace(_sorted_error(outcomes, bins), regime=trained),
        dataclasses.replace(_alternated_like_both(outcomes, bins), regime=trained),
        dataclasses.replace(_alternated_against_mxnet(outcomes, bins), regime=trained),
    ]
    if all(outcome.peak_bytes for outcome in outcomes.values()):
        made += [_chunk_memory(outcomes), _sorted_memory(outcomes, bins)]
    return made


def claims_of(document: Mapping[str, Any]) -> list[Claim]:
    """The claims of a rerun's document, as read back from JSON: judged by today's rule, whenever it was measured."""
    found = {label: read_outcome(outcome) for label, outcome in document["outcomes"].items()}
    return claims(found, document["size"]["bins"], document["study"]["data"]["train_utterances"])


def _chunk_speed(outcomes: Mapping[str, Outcome]) -> Claim:
    chunks, whole = outcomes[chunk_label(50)], outcomes[RANDOM]
    paper = PAPER["50"].speed / PAPER[RANDOM].speed
    ours = _speeds(outcomes, chunk_label(50), RANDOM)
    frames = 1.0 / (1.0 - whole.padding_share) * (1.0 - chunks.padding_share)
    return Claim(
        claim="chunks of 50 frames train that many times as many utterances a second as whole ones",
        where="table 1",
        paper=f"{paper:.1f}",
        ours=ours,
        no_effect=1.0,
        effect=paper - 1.0,
        holds=extent(whole=min(ours) >= paper * (1 - CLOSE), part=min(ours) > 1.0),
        why=f"Whole utterances pad {whole.padding_share:.0%}, so that {frames:.2f} times as many frames are computed; "
        f"a frame of chunks takes {frames / fmean(ours):.2f} times as long as one of theirs.",
    )


def _chunks_in_order_of_speed(outcomes: Mapping[str, Outcome]) -> Claim:
    labels = [*map(chunk_label, PAPER_CHUNKS), RANDOM]
    speeds = [fmean(_speeds(outcomes, label, RANDOM)) for label in labels]
    ours = _speeds(outcomes, labels[0], RANDOM)
    falls = all(first >= second for first, second in itertools.pairwise(speeds))
    return Claim(
        claim="the shorter the chunks, the faster; ours: chunks of 10 over whole utterances",
        where="table 1",
        paper=f"{PAPER['10'].speed / PAPER[RANDOM].speed:.1f}",
        ours=ours,
        no_effect=1.0,
        effect=PAPER["10"].speed / PAPER[RANDOM].speed - 1.0,
        holds=extent(whole=falls and min(ours) > 1.0, part=speeds[-1] == min(speeds)),
        why=f"Utterances a second over those of whole utterances: {_listing(speeds, '.2f')} for {_chunk_names()}.",
    )


def _short_chunk_error(outcomes: Mapping[str, Outcome]) -> Claim:
    paper = PAPER["10"].error / PAPER[RANDOM].error
    short, whole = outcomes[chunk_label(10)], outcomes[RANDOM]
    ours = ratios(short.word_error_rates, whole.word_error_rates)
    return Claim(
        claim="with chunks of 10 the word error rate is that many times that of whole utterances",
        where="table 1",
        paper=f"{paper:.1f}",
        ours=ours,
        no_effect=1.0,
        effect=paper - 1.0,
        holds=extent(whole=min(ours) >= paper * (1 - CLOSE), part=min(ours) > 1.0),
        why=f"{_percent(short)} against {_percent(whole)}.",
    )


def _chunks_in_order_of_error(outcomes: Mapping[str, Outcome]) -> Claim:
    labels = [*map(chunk_label, PAPER_CHUNKS), RANDOM]
    errors = [outcomes[label].word_error_rate for label in labels]
    best = min(labels[:-1], key=lambda label: outcomes[label].word_error_rate)
    ours = ratios(outcomes[best].word_error_rates, outcomes[RANDOM].word_error_rates)
    falls = all(first >= second for first, second in itertools.pairwise(errors))
    return Claim(
        claim="whole utterances are required for the best word error rate; ours: the best of chunks, "
        f"{best}, over whole",
        where="section 6, table 1",
        paper=f"{PAPER['500'].error / PAPER[RANDOM].error:.2f}",
        ours=ours,
        no_effect=1.0,
        effect=PAPER["500"].error / PAPER[RANDOM].error - 1.0,
        holds=extent(whole=falls and errors[-1] < errors[0], part=errors[-1] < min(errors[:2])),
        why=f"Word error rates in percent: {_listing([100 * error for error in errors], '.1f')} for {_chunk_names()}; "
        f"{_frame_errors(outcomes, labels)}.",
    )


def _sorted_speed(outcomes: Mapping[str, Outcome]) -> Claim:
    paper = PAPER[SORTED].speed / PAPER[RANDOM].speed
    ours = _speeds(outcomes, SORTED, RANDOM)
    bound = (1.0 - outcomes[SORTED].padding_share) / (1.0 - outcomes[RANDOM].padding_share)
    return Claim(
        claim="sorted utterances are trained on that many times as fast as random ones",
        where="table 2",
        paper=f"{paper:.2f}",
        ours=ours,
        no_effect=1.0,
        effect=paper - 1.0,
        holds=extent(whole=min(ours) >= paper * (1 - CLOSE), part=min(ours) > 1.0),
        why=f"Random batches compute {bound:.2f} times the frames of sorted ones, padding among them.",
    )


def _sorted_error(outcomes: Mapping[str, Outcome], bins: Sequence[int]) -> Claim:
    rising = sorted(_table2(bins), key=lambda label: outcomes[label].word_error_rate)
    ours = ratios(outcomes[SORTED].word_error_rates, outcomes[RANDOM].word_error_rates)
    worse = outcomes[SORTED].word_error_rate > outcomes[RANDOM].word_error_rate
    return Claim(
        claim="sorted utterances give the worst word error rate and random ones the best; ours: sorted over random",
        where="section 6, table 2",
        paper=f"{PAPER[SORTED].error / PAPER[RANDOM].error:.2f}",
        ours=ours,
        no_effect=1.0,
        effect=PAPER[SORTED].error / PAPER[RANDOM].error - 1.0,
        holds=extent(whole=(rising[0], rising[-1]) == (RANDOM, SORTED) and min(ours) > 1.0, part=worse),
        why=f"From the least: {', '.join(f'{label} {_percent(outcomes[label])}' for label in rising)}; "
        f"{_frame_errors(outcomes, rising)}.",
    )


def _alternated_like_both(outcomes: Mapping[str, Outcome], bins: Sequence[int]) -> Claim:
    most = outcomes[bins_label(bins[-1])]
    ours = ratios(most.word_error_rates, outcomes[RANDOM].word_error_rates)
    paper, random, in_order = PAPER["256"], PAPER[RANDOM], PAPER[SORTED]
    kept = _share_of_gain(
        fmean(_speeds(outcomes, bins_label(bins[-1]), RANDOM)), fmean(_speeds(outcomes, SORTED, RANDOM))
    )
    printed = _share_of_gain(paper.speed / random.speed, in_order.speed / random.speed)
    near, fast = fmean(ours) <= 1 + NEAR, kept >= printed * (1 - CLOSE)
    return Claim(
        claim="with the most bins the word error rate is almost that of random batches, at almost the speed of sorted "
        f"ones; ours: rate of {bins[-1]} bins over random",
        where="section 6, table 2",
        paper=f"{paper.error / random.error:.2f}",
        ours=ours,
        no_effect=1.0,
        effect=NEAR,
        holds=extent(whole=near and fast, part=near or fast),
        why=f"Of the speed that sorting wins it keeps {kept:.0%}, in the paper {printed:.0%}; it pads "
        f"{most.padding_share:.0%}.",
    )


def _alternated_against_mxnet(outcomes: Mapping[str, Outcome], bins: Sequence[int]) -> Claim:
    mxnet = outcomes[MXNET]
    middle = outcomes[bins_label(bins[1])]
    ours = _speeds(outcomes, bins_label(bins[1]), MXNET)
    ahead = [
        count
        for count in bins
        if fmean(_speeds(outcomes, bins_label(count), MXNET)) > 1.0
        and outcomes[bins_label(count)].word_error_rate < mxnet.word_error_rate
    ]
    return Claim(
        claim="alternated sorting is faster than MXNet's bucketing at a lower word error rate; ours: speed of "
        f"{bins[1]} bins over it",
        where="section 7, table 2",
        paper=f"{PAPER['64'].speed / PAPER[MXNET].speed:.2f}",
        ours=ours,
        no_effect=1.0,
        effect=PAPER["64"].speed / PAPER[MXNET].speed - 1.0,
        holds=extent(whole=bins[1] in ahead, part=bool(ahead)),
        why=f"Ahead in both: {', '.join(f'{count} bins' for count in ahead) or 'none'}; {_percent(middle)} with "
        f"{bins[1]} bins, {_percent(mxnet)} with bucketing, which pads {mxnet.padding_share:.0%}.",
    )


def _chunk_memory(outcomes: Mapping[str, Outcome]) -> Claim:
    chunks = [outcomes[chunk_label(size)].peak_bytes or 0 for size in PAPER_CHUNKS]
    whole = outcomes[RANDOM].peak_bytes or 0
    paper = PAPER[RANDOM].memory / PAPER["50"].memory
    return Claim(
        claim="whole utterances take that many times the memory of chunks; ours: over chunks of 50",
        where="table 1",
        paper=f"{paper:.1f}",
        ours=[whole / chunks[1]],
        no_effect=1.0,
        effect=paper - 1.0,
        holds=extent(whole=whole / chunks[1] >= paper * (1 - CLOSE), part=whole > max(chunks)),
        why=f"Megabytes of a step: {_listing([each / 1e6 for each in (*chunks, whole)], '.0f')} for {_chunk_names()}: "
        "what is padded is computed and kept.",
    )


def _sorted_memory(outcomes: Mapping[str, Outcome], bins: Sequence[int]) -> Claim:
    taken = {label: outcomes[label].peak_bytes or 0 for label in _table2(bins)}
    least, most = min(taken, key=taken.__getitem__), max(taken, key=taken.__getitem__)
    return Claim(
        claim="of whole utterances, sorted ones take the least memory and MXNet's buckets the most; ours: sorted "
        "over random",
        where="table 2",
        paper=f"{PAPER[SORTED].memory / PAPER[RANDOM].memory:.2f}",
        ours=[taken[SORTED] / taken[RANDOM]],
        no_effect=1.0,
        effect=1.0 - PAPER[SORTED].memory / PAPER[RANDOM].memory,
        holds=extent(whole=(least, most) == (SORTED, MXNET), part=taken[SORTED] < taken[RANDOM]),
        why="Megabytes of a step: " + ", ".join(f"{label} {taken[label] / 1e6:.0f}" for label in taken) + ".",
    )


def _speeds(outcomes: Mapping[str, Outcome], label: str, base: str) -> list[float]:
    """How many times as fast as another a batching is, under each seed."""
    return ratios(outcomes[label].utterances_per_second, outcomes[base].utterances_per_second)


def _share_of_gain(speed: float, of_sorted: float) -> float:
    """The share of what sorting wins that is had at a speed, both over that of random batches.

    >>> round(_share_of_gain(1.25, 1.5), 2)
    0.5
    """
    return (speed - 1.0) / (of_sorted - 1.0) if of_sorted > 1.0 else 0.0


def _table2(bins: Sequence[int]) -> list[str]:
    return [RANDOM, SORTED, MXNET, *map(bins_label, bins)]


def _chunk_names() -> str:
    return "chunks of " + ", ".join(map(str, PAPER_CHUNKS)) + " and whole utterances"


def _percent(outcome: Outcome) -> str:
    return f"{100 * outcome.word_error_rate:.1f} %"


def _frame_errors(outcomes: Mapping[str, Outcome], labels: Sequence[str]) -> str:
    """The rates that vary less over seeds than those of words do: there are more frames than words."""
    rates = [100 * outcomes[label].frame_error_rate for label in labels]
    return f"wrong states of the network's validation frames, in the same order: {_listing(rates, '.1f')} %"


def _listing(values: Sequence[float], form: str) -> str:
    return ", ".join(format(value, form) for value in values)
