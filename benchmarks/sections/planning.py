"""The sections on the speed of planning."""

from __future__ import annotations

from typing import Any

from lengthwise_recipes.pages import percent, table


def planning(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns seconds and bytes of the plans of the most lengths."""
    most = max(row["count"] for row in document["rows"])
    rows = [
        (
            f"`{row['strategy']}`",
            f"{row['seconds']:.2f}",
            f"{row['first_epoch_seconds']:.2f}",
            f"{row['bytes_per_sequence']:.0f}",
        )
        for row in document["rows"]
        if (row["count"], row["world_size"]) == (most, 1)
    ]
    heads = ("strategy", "s / plan", "first plan, s", "bytes a sequence")
    seconds = [row["seconds"] for row in document["rows"] if row["count"] == most]
    answer = f"One core plans {most:,} lengths in {min(seconds):.1f} to {max(seconds):.1f} seconds."
    note = (
        "On one rank. The first plan also fits the order. Memory is the peak beyond the lengths themselves. The JSON "
        "has fewer lengths and 8 ranks."
    )
    return answer, table(heads, rows), note


def first_plan(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns the seconds until a fresh process has its first plan."""
    columns = ("import_seconds", "warm_seconds", "cold_seconds")
    most = max(row["count"] for row in document["rows"])
    rows = [
        (row["case"], *(f"{row[column]:.1f}" for column in columns)) for row in document["rows"] if row["count"] == most
    ]
    slowest, warm = (max(row[f"{state}_seconds"] for row in document["rows"]) for state in ("cold", "warm"))
    cold = sorted(row["cold_seconds"] for row in document["rows"])
    answer = (
        f"The first plan of an installation takes {cold[0]:.1f} to {slowest:.1f} seconds. The first of every later "
        f"process takes up to {warm:.1f}. The difference is compilation, once."
    )
    note = (
        f"{most:,} lengths, in seconds of one core. *Cold*: nothing is compiled yet. *Warm*: another process has "
        "compiled all. Both are in addition to the import."
    )
    first_table = table(("order", "import", "first plan, warm", "first plan, cold"), rows)
    firsts, nexts = ([1e3 * row[f"{name}_seconds"] for row in document["few"]] for name in ("new", "later"))
    small = (
        f"For {document['few'][0]['count']} lengths, in a process that has planned others before, the first plan of "
        f"new lengths takes {min(firsts):.0f} to {max(firsts):.0f} ms, and a plan of the next epoch "
        f"{min(nexts):.1f} to {max(nexts):.1f} ms."
    )
    return answer, first_table, note, small


def windows(document: dict[str, Any]) -> tuple[str, ...]:
    """Compares each size of window with the whole plan, on one and eight ranks; then the long epoch and cold disk."""
    rows = [
        (
            "all at once" if row["window"] is None else f"2^{row['window'].bit_length() - 1}",
            percent(row["padding"]),
            f"{row['mixing']:.3f}",
            f"{row['step_mixing']:.3f}",
            f"{row['seconds']:.2f}",
        )
        for row in document["rows"]
        if row["world_size"] == 8
    ]
    heads = ("window", "padding", "mixing of batches", "mixing of steps", "s / epoch")
    long = document["epoch"]
    checked = "each sequence is in one batch" if long["each_once"] else "NOT EVERY SEQUENCE IS IN ONE BATCH"
    answer = (
        f"One core plans {long['count']:,} lengths on disk in {long['seconds']:,.0f} seconds: {long['windows']} "
        f"windows of up to 2^20, {long['seconds'] / long['windows']:.2f} seconds each. They pad "
        f"{percent(long['padding'])} with a target of {percent(document['padding'])}, and {checked}. The "
        f"process needs at most {long['peak_megabytes']:.0f} MB more than before."
    )
    first = document["cold"][0]["window"]
    cold = ", ".join(f"{row['cold_seconds']:.2f} s in blocks of {row['block']:,}" for row in document["cold"])
    note = (
        f"The table is of {document['compared']:,} log-normal lengths on 8 ranks, {document['budget']:,} frames a "
        f"batch and `padding={document['padding']}`. A window of few batches pads more. "
        f"Seconds are of a first epoch and its fit. From a cold disk the lengths of a window of {first:,} take {cold}."
    )
    return answer, table(heads, rows), note
