"""The sections on trained networks: speed beside others, gradients, and seconds of steps."""

from __future__ import annotations

from typing import Any

from lengthwise_recipes.pages import percent, table
from sections.shared import some_rows

LOOPS = ("loader", "Trainer")  # whose steps are timed without a model


def step_cost(document: dict[str, Any]) -> tuple[str, ...]:
    """Compares predicted and measured seconds of an epoch, for each network and batching."""
    rows, errors = [], []
    for row in document["rows"]:
        errors.append(row["predicted"] / row["measured"] - 1)
        rows.append(
            (
                row["model"],
                row["batching"],
                percent(row["padding"]),
                f"{row['predicted']:.2f}",
                f"{row['measured']:.2f} ({row['least']:.2f} to {row['most']:.2f})",
                f"{100 * errors[-1]:+.1f} %",
            )
        )
    within_tenth = sum(abs(error) <= 0.1 for error in errors)
    answer = (
        f"From one measurement of its step, {within_tenth} of {len(rows)} epochs were predicted to within 10 %. The "
        f"largest error is {percent(max(map(abs, errors)))}."
    )
    fits = "; ".join(f"{fit['model']} {percent(fit['error'])}" for fit in document["fits"])
    shapes = max(fit["shapes"] for fit in document["fits"])
    note = (
        f"In seconds, medians of {document['rounds']} rounds, least to most in brackets. A fit of five coefficients to "
        f"{shapes} shapes; now `measure_step` fits four to ten shapes. Errors on left-out shapes: {fits}. Other "
        f"programs ran: a load of {min(document['loads']):.1f} to {max(document['loads']):.1f} on {document['cores']}."
    )
    heads = ("network", "batching", "padding", "predicted", "measured", "error")
    return answer, some_rows(heads, rows, lambda row: row[1] != "sorted"), note


def gradients(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns a row for each cut, loss, number of ranks and micro-batches: the error of each way to weight losses."""
    keys = ("cut", "loss", "ranks", "micro_batches")
    cases: dict[tuple[Any, ...], dict[tuple[str, str], float]] = {}
    for row in document["rows"]:
        cases.setdefault(tuple(row[key] for key in keys), {})[row["way"], row["wrapper"]] = row["error"]
    ways = ("batches averaged", "ranks averaged", "loss scales")
    rows = [
        (
            f"`{cut}`",
            *map(str, settings),
            *(f"{max(errors[way, 'DDP'], errors[way, 'FSDP']):.2g}" for way in ways),
        )
        for (cut, *settings), errors in cases.items()
    ]
    heads = ("cut", "mean over", "ranks", "micro-batches", *ways)
    exact = max(row["error"] for row in document["rows"] if row["way"] == "loss scales")
    averaged = max(row["error"] for row in document["rows"] if row["way"] == "batches averaged")
    answer = (
        f"A step has several batches. With `loss_scales` its gradient differs from that of the whole step in one "
        f"process by at most {exact:.1e} of the largest entry. With the usual mean of batch means it differs by up to "
        f"{100 * averaged:.0f} %."
    )
    note = (
        "Each number is max |difference| / max |gradient|, compared with one process, in float64: the "
        f"greatest of {document['steps']} steps under DDP and FSDP (`fully_shard`). *Batches averaged*: the mean loss "
        "of each batch, divided by the micro-batches. *Ranks averaged*: the exact mean on every rank, averaged over "
        f"ranks. Data: {document['sequences']:,} long-tailed lengths divided by {document['shorter']}, padded 5 %."
    )
    return answer, some_rows(heads, rows, lambda row: row[0] == "`budget:1000`" and row[2] == "4"), note


def training(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns a row for each network, loop and number of ranks, with a cell for each way to make batches."""
    rows = [row for row in document["rows"] if "error" not in row]
    by = {(row["model"], row["loop"], row["ranks"], row["way"]): row for row in rows}
    ways = list(dict.fromkeys(row["way"] for row in rows))
    cases = [case for case in dict.fromkeys(case[:3] for case in by) if all((*case, way) in by for way in ways)]
    losses = [[by[*case, way]["loss"] for way in ways[:4]] for case in cases]
    apart = max(max(values) - min(values) for values in losses)
    loads, trainers = ([document["overheads"][f"{loop}, {way}"] for way in ("random", "lengthwise")] for loop in LOOPS)
    heads = ("network, loop, ranks", *ways[:3], "Lengthwise", "equal memory")
    cells = [
        (f"{model}, {loop}, {ranks}", *(training_cell(by[model, loop, ranks, way]) for way in ways))
        for model, loop, ranks in cases
    ]
    slower = percent(1 - min(min(row["rounds"]) / row["tokens_a_second"] for row in rows))
    note = (
        "Cells: useful tokens a CPU second, by the slowest rank of an update; MB of peak memory for training, "
        "if neither the C library nor oneDNN keeps what is free; in brackets by default, which varies. "
        f"{document['updates']} updates of {document['micro_batches']} batches, of {document['size']} "
        f"sequences on average; medians of {document['rounds']} rounds (the slowest up to {slower} below). One seed. "
        f"Held-out losses of the first four differ by at most {apart:.2f}. *Equal memory* with "
        "group_by_length: the largest of seven budgets, up to 1.4 of its largest batch, that needs at most 2 % more. "
        f"As much data takes about {by[*cases[0], ways[-1]]['updates']} updates, which end at losses of "
        f"{span([row['loss'] for row in rows if row['way'] == ways[-1]])}. Memory is of one run: of 15 that ran again, "
        "14 agreed within 5 %. oneDNN keeps something for each shape of batch, unless "
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY=0 (*no cache*, not in the ranges); ours have more shapes. A step that "
        f"computes next to nothing takes our loader {loads[1]:.0f} us, PyTorch's {loads[0]:.0f}; `PlannedTrainer` "
        f"{trainers[1] / 1e3:.1f} ms, the Trainer {trainers[0] / 1e3:.1f}."
    )
    speeds = [span(ratios(document, "tokens_a_second", "lengthwise", way)) for way in ways[:3]]
    answer = (
        f"Useful tokens a second of the default, at equal updates: {speeds[0]} times those of random batches, "
        f"{speeds[1]} times those of group_by_length, {speeds[2]} times those of batch_rebalance. Its memory is "
        f"{span(ratios(document, 'memory', 'lengthwise', ways[1]))} of group_by_length's, or by default, where oneDNN "
        f"keeps something for each shape, {span(ratios(document, 'by_default', 'lengthwise', ways[1]))}. With as much: "
        f"{span(ratios(document, 'tokens_a_second', ways[-1], ways[1]))} times its tokens."
    )
    return answer, table(heads, cells), note


def ratios(document: dict[str, Any], column: str, ours: str, theirs: str) -> list[float]:
    """Returns a measure of one way over that of another, for each network, loop and number of ranks that has both."""
    rows = [row for row in document["rows"] if column in row and row["loop"] != "no cache"]
    by = {(row["model"], row["loop"], row["ranks"], row["way"]): row[column] for row in rows}
    return [by[case] / by[*case[:3], theirs] for case in by if case[3] == ours and (*case[:3], theirs) in by]


def span(values: list[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}"


def training_cell(row: dict[str, Any]) -> str:
    return f"{round(row['tokens_a_second'], -1):,.0f}, {row['memory']:.0f} ({row['by_default']:.0f})"
