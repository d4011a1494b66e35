"""The section on other systems: their batches, prices by data set, and packed rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from lengthwise_recipes.pages import percent, table

NAMES = {
    "lengthwise": "**Lengthwise**",
    "lengthwise_attention": "**Lengthwise**, `balance`",
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
    "fairseq": "fairseq's rule, multiples of 8",
    "fairseq:1": "fairseq's rule, any count",
    "tf_data": "tf.data, 30 buckets",
    "tf_data:100": "tf.data, 100 buckets",
    "fastai": "fastai",
    "verl": "verl",
    "trl": "TRL",
    "axolotl": "axolotl",
    "grain": "grain",
}
SHOWN, WORLD = "long-tailed", "8x4"
HIDDEN = ("speechbrain:300", "tf_data:100")  # in the JSON alone
BY_DATA = ("lengthwise", "lengthwise_attention", "group_by_length", "batch_rebalance", "lhotse", "nemo", "speechbrain")
BY_DATA += ("espnet", "fairseq", "fairseq:1", "returnn")
PACKERS = ("lengthwise_rows", "lengthwise_rows:64", "lengthwise_best_fit", "trl", "axolotl", "grain")
OURS = "lengthwise", "lengthwise_attention"
UNTIMED = ("fairseq", "fairseq:1", "verl")  # a rule written in Python, and steps that are given
REFERENCES = ("random", "verl", "lhotse_concurrent")  # no padded batches of a system that take all sequences
# For each column, its name, whether the lowest is best, and why another system may lead.
COLUMNS = {
    "padding": ("padding", True, "sorts all data, and keeps its batches"),
    "waiting": ("waiting", True, "balances frames alone"),
    "attention_waiting": ("waiting under attention", True, "balances it alone"),
    "randomness": ("randomness", False, "takes random steps"),
    "kept": ("kept", True, "has wide buckets"),
    "thousand_a_second": ("speed", False, "sorts less"),
    "bytes": ("memory", True, "holds less at once"),
}

Rows = dict[tuple[str, str, str], dict[str, Any]]


def peers(document: dict[str, Any]) -> tuple[str, ...]:
    """Returns a row for each system, then prices and padding by lengths, then packed rows."""
    judged = [row for row in document["rows"] if "padding" in row or "error" in row]
    by = {(row["peer"], row["data"], row["world"]): row for row in judged}
    shown = [name for name in NAMES if (name, SHOWN, WORLD) in by and name not in HIDDEN]
    heads = ("system", "padding", "waits", "price", "waits, attention", "price, attention", "randomness")
    heads += ("over cap (largest)", "lost, repeated", "unequal", "kept", "1,000 / s", "bytes")
    data = list(dict.fromkeys(row["data"] for row in judged if row["peer"] == OURS[0] and row["data"] != SHOWN))
    prices = [
        (NAMES[name], *(two_prices(by[name, lengths, WORLD]) for lengths in data), cells(by[name, SHOWN, "1x1"])[0])
        for name in BY_DATA
    ]
    count = by[OURS[0], SHOWN, WORLD]["sequences"]
    return (
        lead(by, shown),
        table(heads, [(NAMES[name], *cells(by[name, SHOWN, WORLD])) for name in shown]),
        f"{count:,} long-tailed lengths, a cap of {document['caps'][SHOWN]:,} padded frames, 8 ranks x 4 batches. "
        "*Waits*: the share of time that ranks wait. *Price*: what ranks compute, with waiting, by unit of the data's "
        "own cost. *Attention*: L frames cost L (1 + 0.001 L), and `balance` is this cost. *Over cap*: the share of "
        "batches over the cap, and the largest, as a multiple of it. *Unequal*: the most steps of a rank less the "
        "fewest, over ranks and epochs. *Kept*: the share of neighbours in a batch that share one in the next epoch. "
        "*1,000 / s*: thousand sequences planned a CPU second by one rank. *Bytes*: peak memory for each sequence. "
        f"{speeds(document)} {FACTS}",
        f"Prices of frames and of attention on other lengths, and padding of {SHOWN} ones on one rank. Of pairs, "
        "others plan the sum of both lengths, and exceed the cap. The JSON has more numbers of buckets:",
        table(("system", *data, "1 rank"), prices),
        *packers(document, by),
    )


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Returns the cells of a system, or its error."""
    if "error" in row:
        return (f"`{row['error'][:60]}`", *[""] * 11)
    over = f"{percent(row['over'])} ({row['largest']:.1f})" if row["over"] else "0"
    timed = row["peer"] not in UNTIMED
    return (
        *(percent(row["padding"]), percent(row["waiting"]), f"{row['price']:.3f}"),
        *(percent(row["attention_waiting"]), f"{row['attention_price']:.2f}", f"{row['randomness']:.2f}"),
        *(over, f"{row['lost']:,}, {row['repeated']:,}", f"{row['unequal']:g}", percent(row["kept"])),
        *(f"{row['thousand_a_second']:,.0f}" if timed else "", f"{row['bytes']:,.0f}" if timed else ""),
    )


def two_prices(row: dict[str, Any]) -> str:
    """Returns the prices of frames and of attention."""
    return "error" if "error" in row else f"{row['price']:.2f}, {row['attention_price']:.2f}"


def lead(by: Rows, shown: list[str]) -> str:
    """Returns where ours does not lead: for each column and each price, the best system, its value and ours."""
    others = [name for name in shown if name not in (*OURS, *REFERENCES)]

    def best(column: str, data: str, names: Sequence[str], *, lowest: bool = True) -> tuple[float, str]:
        timed = column not in ("thousand_a_second", "bytes")
        rows = [
            row for row in (by[name, data, WORLD] for name in names if timed or name not in UNTIMED) if column in row
        ]
        row = (min if lowest else max)(rows, key=lambda row: row[column])
        return (row[column] if lowest else -row[column]), NAMES[row["peer"]] + ", over the cap" * (row["over"] > 0)

    behind = []
    for column, (title, lowest, why) in COLUMNS.items():
        (theirs, name), (ours, _) = (best(column, SHOWN, names, lowest=lowest) for names in (others, OURS))
        if theirs < ours - 0.005 * abs(ours):
            behind.append(f"{title} ({name}, which {why})")
    cheaper = []
    data = dict.fromkeys(name for _, name, world in by if world == WORLD and name != "documents")
    for lengths, (column, title) in itertools.product(data, (("price", "frames"), ("attention_price", "attention"))):
        (theirs, name), (ours, _) = (best(column, lengths, names) for names in (others, OURS))
        if theirs < ours:
            cheaper.append(f"{title} of {lengths} ({name}: {theirs:.3f}; ours {ours:.3f})")
    marks = ("over", "lost", "repeated", "unequal")
    rows = [by[name, SHOWN, WORLD] for name in (*OURS, *others)]
    clean = [NAMES[row["peer"]] for row in rows if not any(row.get(mark, 1) for mark in marks)]
    kept = "; ".join(clean).replace("*", "")
    return (
        f"These keep the cap, take each sequence once, and give ranks as many steps: {kept}. "
        f"Others lead in {'; '.join(behind)}. They have a lower price in {len(cheaper)} of {2 * len(data)} cases"
        f"{': ' if cheaper else ''}{'; '.join(cheaper)}."
    )


def speeds(document: dict[str, Any]) -> str:
    """Returns the speeds of many sequences."""
    rows = [row for row in document["rows"] if row["sequences"] == 10**6 and row["data"] == SHOWN]
    rows = [row for row in rows if "error" not in row and row["peer"] not in UNTIMED]
    parts = [f"{NAMES[row['peer']].replace('**', '')} {row['thousand_a_second']:,.0f}" for row in rows]
    return f"With a million sequences: {'; '.join(parts)}."


FACTS = (
    "*Resume*: Lengthwise goes on at any batch, on any number of ranks. lhotse and grain restored the same rest in a "
    "trial; lhotse refuses other ranks. The Trainer reads the taken batches again; others go on at an epoch. *Calls*: "
    "fairseq's rule is written in Python here, and fairseq gives ranks without a batch an empty one. RETURNN and "
    "tf.data plan a rank's shard; by default, RETURNN's ranks pass all data. verl pads nothing."
)


def packers(document: dict[str, Any], by: Rows) -> tuple[str, ...]:
    """Returns the rows of each packer: alone, and on several ranks."""
    cells_of = []
    for name in PACKERS:
        row, one = (by.get((name, "documents", world), {"error": "not run"}) for world in (WORLD, "1x1"))
        if "error" in row:
            cells_of.append((NAMES[name], f"`{row['error'][:60]}`", *[""] * 6))
            continue
        rate, same = f"{row['thousand_a_second']:,.0f}", percent(row["kept"])
        fill, wait = f"{100 - 100 * one['padding']:.2f} %", percent(row["attention_waiting"])
        randomness = f"{one['randomness']:.2f}", f"{row['randomness']:.2f}"
        cells_of.append((NAMES[name], fill, *randomness, wait, f"{row['unequal']:g}", same, rate))
    heads = ("packer", "fill", "randomness", "of steps", "waits, attention", "unequal", "kept", "1,000 / s")
    pool, best = (by[name, "documents", "1x1"] for name in ("lengthwise_rows", "lengthwise_best_fit"))
    return (
        f"Packed rows of {document['caps']['documents']:,} tokens, of log-normal lengths of mean 1,400. From a pool of "
        f"1,024 sequences rows are {percent(1 - pool['padding'])} full, by best fit {percent(1 - best['padding'])}. "
        "Steps of ours are less random than others, since rows of similar attention share a step:",
        table(heads, cells_of),
        "*Fill* and *randomness* are of rows on one rank, the rest is of 8 ranks x 4 rows; others' are dealt in turn.",
    )
