"""The section on other systems: their batches, prices by data set, and packed rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lengthwise_recipes.pages import percent, table

SORTED = "like_fairseq"
NAMES = {
    "lengthwise": "**Lengthwise**",
    "lengthwise_attention": "**Lengthwise**, `balance`",
    SORTED: "**Lengthwise**, `Sorted()`",
    "lengthwise_rows": "**Lengthwise**, pool of 1,024",
    "lengthwise_rows:64": "**Lengthwise**, pool of 64",
    "lengthwise_best_fit": "**Lengthwise**, best fit",
    "random": "random batches",
    "group_by_length": "Trainer, group_by_length",
    "batch_rebalance": "Trainer, batch_rebalance",
    "lhotse": "lhotse, 30 buckets",
    "lhotse:100": "lhotse, 100 buckets",
    "lhotse_concurrent": "lhotse, `concurrent=True`",
    "nemo": "NeMo's rule",
    "speechbrain": "SpeechBrain, 100 buckets",
    "speechbrain:300": "SpeechBrain, 300 buckets",
    "espnet": "ESPnet",
    "returnn": "RETURNN",
    "fairseq": "fairseq, multiples of 8",
    "fairseq:1": "fairseq, any count",
    "tf_data": "tf.data, 30 buckets",
    "tf_data:100": "tf.data, 100 buckets",
    "fastai": "fastai",
    "verl": "verl",
    "trl": "TRL",
    "axolotl": "axolotl",
    "grain": "grain",
    "torchtitan": "torchtitan",
}
SHOWN, WORLD, COUNT = "long-tailed", "8x4", 30_000
HIDDEN = ("speechbrain:300", "tf_data:100")  # in the JSON alone
BY_DATA = ("lengthwise", "lengthwise_attention", "group_by_length", "batch_rebalance", "lhotse", "nemo", "fairseq:1")
BY_DATA += ("returnn",)
PACKERS = ("lengthwise_rows", "lengthwise_rows:64", "lengthwise_best_fit", "trl", "axolotl", "grain", "torchtitan")
OURS = "lengthwise", "lengthwise_attention"
UNTIMED = ("fairseq", "fairseq:1", "verl", SORTED)  # a rule in Python, steps that are given, memory of compiling
REFERENCES = ("random", "verl", "lhotse_concurrent")  # no padded batches of a system that take all sequences
# For each column, its name, whether the most is best, and how it is written.
COLUMNS: dict[str, tuple[str, bool, Callable[[float], str]]] = {
    "padding": ("Padding", False, percent),
    "waiting": ("Waiting", False, percent),
    "attention_waiting": ("Waiting under attention", False, percent),
    "randomness": ("Randomness", True, "{:.2f}".format),
    "kept": ("Kept neighbours", False, percent),
    "thousand_a_second": ("Thousand sequences a second", True, "{:,.0f}".format),
    "bytes": ("Bytes a sequence", False, "{:,.0f}".format),
    "price": ("Price of frames", False, "{:.3f}".format),
    "attention_price": ("Price of attention", False, "{:.3f}".format),
}
WHY = {"fairseq": "it sorts all data, and keeps its batches", "lhotse": "its buckets are narrow"}
WHY |= {"returnn": "a rank plans its shard alone; for a million ours are fewer, and it is faster"}
RESUMES = dict.fromkeys(OURS, "any") | dict.fromkeys(("lhotse", "nemo", "fairseq", "tf_data"), "same")
RESUMES |= dict.fromkeys(("group_by_length", "batch_rebalance", "speechbrain"), "again")
RESUMES |= {"espnet": "epoch", "returnn": "epoch"}
# What is nearest to systems of docs/switch.md, beside the "like_..." of others.
NEAREST = {"nemo": "like_lhotse", "espnet": "like_fairseq", "trl": "lengthwise_best_fit"}
NEAREST |= dict.fromkeys(("axolotl", "torchtitan"), "lengthwise_rows")

MISSING = {"error": "not run"}
Rows = dict[tuple[str, str, str], dict[str, Any]]


def peers(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns a row for each system, then speeds, then prices by lengths and worlds, then packed rows."""
    by = by_case(document)
    shown = [name for name in NAMES if (name, SHOWN, WORLD) in by and name not in HIDDEN]
    heads = ("system", "padding", "waits", "price", "price, attention", "randomness")
    heads += ("over cap (largest)", "lost, repeated, unequal", "kept", "resume", "1,000/s, bytes")
    columns = {data: (data, WORLD) for name, data, _ in by if name == OURS[0] and data != SHOWN}
    columns |= {"8 ranks x 1": (SHOWN, "8x1"), "1 rank": (SHOWN, "1x1")}
    prices = {name: [two_prices(by.get((name, *case), MISSING)) for case in columns.values()] for name in BY_DATA}
    count = by[OURS[0], SHOWN, WORLD]["sequences"]
    return (
        lead(by, shown),
        table(heads, [(NAMES[name], *cells(by[name, SHOWN, WORLD])) for name in shown]),
        f"{count:,} long-tailed lengths, a cap of {document['caps'][SHOWN]:,} padded frames, 8 ranks x 4 batches. "
        "*Price*: what ranks compute, with waiting, by unit of the data's own cost. *Attention*: L frames cost "
        "L (1 + 0.001 L), and `balance` is this cost. *Over cap*: the share of batches, and the largest, in caps. "
        "*Unequal*: the most steps of a rank less the fewest. *Kept*: the share of neighbours in a batch that share "
        "one in the next epoch. *1,000/s*: thousand sequences a CPU second of one rank. *Bytes*: peak memory for "
        f"each sequence. {FACTS}",
        "The speed for more sequences, of packers for more documents, if a rank needs at most a minute; TRL needs more "
        "than 24 GB for a million:",
        speeds(document),
        f"Prices of frames and of attention on other lengths, and on fewer batches in a step of {SHOWN} ones. Others "
        "plan the sum of both lengths of pairs, and exceed the cap. The JSON has more:",
        table(("system", *columns), [(NAMES[name], *row) for name, row in prices.items()]),
        *packers(document, by),
    )


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Returns the cells of a system, or its error."""
    if "error" in row:
        return (f"`{row['error'][:60]}`", *[""] * 9)
    over = f"{percent(row['over'])} ({row['largest']:.1f})" if row["over"] else "0"
    return (
        *(percent(row["padding"]), percent(row["waiting"]), f"{row['price']:.3f}"),
        *(f"{row['attention_price']:.2f}", f"{row['randomness']:.2f}"),
        *(over, f"{row['lost']:,}, {row['repeated']:,}, {row['unequal']:g}", percent(row["kept"])),
        RESUMES.get(row["peer"].partition(":")[0], ""),
        ", ".join(f"{row[name]:,.0f}" for name in ("thousand_a_second", "bytes") if name in row),
    )


def two_prices(row: dict[str, Any]) -> str:
    """Returns the prices of frames and of attention."""
    return "error" if "error" in row else f"{row['price']:.2f}, {row['attention_price']:.2f}"


def by_case(document: dict[str, Any]) -> Rows:
    """Returns the rows of judged batches by peer, lengths and world; a rule that we wrote in Python has no time."""
    rows = [row for row in document["rows"] if "padding" in row or ("error" in row and row["sequences"] <= COUNT)]
    for row in rows:
        for name in ("thousand_a_second", "bytes") if row["peer"] in UNTIMED else ():
            row.pop(name, None)
    return {(row["peer"], row["data"], row["world"]): row for row in rows}


def lead(by: Rows, shown: list[str]) -> str:
    """Returns where ours does not lead: for each column and each price, the best systems, their value and ours."""
    others = [name for name in shown if name not in (*OURS, *REFERENCES, SORTED)]
    cases = [(data, world) for name, data, world in by if name == OURS[0]]
    items: dict[tuple[str, str], list[str]] = {}
    for column, (title, most, write) in COLUMNS.items():
        for case in cases if "price" in column else [(SHOWN, WORLD)]:
            rows = [[row for name in names if column in (row := by.get((name, *case), {}))] for names in (others, OURS)]
            theirs, ours = ((max if most else min)(group, key=lambda row: row[column]) for group in rows)
            if (theirs[column] - ours[column]) * (1 if most else -1) > 0.005 * ours[column]:
                where = f"{' '.join(case).replace(WORLD, '').strip()}: " if "price" in column else ""
                over = " over the cap" if theirs["over"] else ""
                value = f"{where}{write(theirs[column])}{over}, ours {write(ours[column])}"
                items.setdefault((title, theirs["peer"]), []).append(value)
    lines, reasons = [], dict(WHY)
    for (title, name), values in items.items():
        reason = reasons.pop(name.partition(":")[0], "")
        lines.append(f"- {title}: {NAMES[name]} ({'; '.join(values)}){': ' if reason else ''}{reason}.")
    marks = ("over", "lost", "repeated", "unequal")
    rows = [by[name, SHOWN, WORLD] for name in (*OURS, *others)]
    clean = [NAMES[row["peer"]].replace("*", "") for row in rows if not any(row.get(mark, 1) for mark in marks)]
    answer = f"These keep the cap, take each sequence once, and give ranks as many steps: {'; '.join(clean)}."
    return "\n".join([f"{answer} Others lead the better of ours in:\n", *lines])


def speeds(document: dict[str, Any]) -> str:
    """Returns a table of the speeds of many sequences."""
    rows = [row for row in document["rows"] if row["sequences"] >= 10**6 and "error" not in row]
    rates = {(row["peer"], row["sequences"]): f"{row['thousand_a_second']:,.0f}" for row in rows}
    counts = sorted({count for _, count in rates})
    names = [name for name in NAMES if (name, counts[0]) in rates and name not in UNTIMED]
    cells_of = [(NAMES[name], *(rates.get((name, count), "") for count in counts)) for name in names]
    return table(("system", *(f"{count:,}" for count in counts)), cells_of)


def with_measures(page: str, document: dict[str, Any]) -> str:
    """Returns docs/switch.md; the last cells are padding and price of the system, and of the row's setting."""
    by = by_case(document)
    pairs = {name.removeprefix("like_"): name for name, _, _ in by if name.startswith("like_")} | NEAREST
    lines = page.splitlines(keepends=True)
    for place, line in enumerate(lines):
        row = "".join(line.lower().replace(".", "_").split("|")[1:3])
        for name in [name for name in pairs if line.startswith("|") and name in row]:
            case = ("documents" if name in PACKERS else SHOWN, WORLD)
            theirs, here = by[name, *case], by[pairs[name], *case]
            padding = f"{100 * theirs['padding']:.1f}→{percent(here['padding'])}"
            lines[place] = f"{line.rsplit(' | ', 1)[0]} | {padding}, {theirs['price']:.2f}→{here['price']:.2f} |\n"
    return "".join(lines)


FACTS = (
    "*Resume* within an epoch, by their documents and code: on any number of ranks, on the same, or by reading the "
    "taken batches again; or at an epoch. *Calls*: fairseq's rule is written in Python here. RETURNN, tf.data and "
    "torchtitan plan shards. verl pads nothing."
)


def packers(document: dict[str, Any], by: Rows) -> tuple[str, ...]:
    """Returns the rows of each packer: alone, and on several ranks."""
    cells_of = []
    for name in PACKERS:
        row, one = (by.get((name, "documents", world), MISSING) for world in (WORLD, "1x1"))
        if "error" in row:
            cells_of.append((NAMES[name], f"`{row['error'][:60]}`", *[""] * 6))
            continue
        rate, same = f"{row['thousand_a_second']:,.0f}", percent(row["kept"])
        fill, wait = f"{100 - 100 * one['padding']:.2f} %", percent(row["attention_waiting"])
        randomness = f"{one['randomness']:.2f}", f"{row['randomness']:.2f}"
        cells_of.append((NAMES[name], fill, *randomness, wait, f"{row['unequal']:g}", same, rate))
    heads = ("packer", "fill", "randomness", "of steps", "waits, attention", "unequal", "kept", "1,000/s")
    return (
        f"Packed rows of {document['caps']['documents']:,} tokens, of log-normal lengths of mean 1,400. Steps of ours "
        "are less random than others, since rows of similar attention share a step:",
        table(heads, cells_of),
        "*Fill* and *randomness* are of rows on one rank, the rest is of 8 ranks x 4 rows; others' are dealt in turn.",
    )
