"""Times the collating of a batch, compared with the plain way.

    python benchmarks/collating.py [--repeats 200]

The plain way to pad is `pad_sequence` for each field, and one mask. Lists go through `torch.tensor`, arrays through
`torch.from_numpy`. The plain way to pack rows is `DataCollatorWithFlattening` of transformers. It makes one long row;
`RowCollate` makes rows as long as the longest sample. Lengths are long-tailed, of mean 200 for tokens and 400 for
frames. Both ways take turns on the same batch, in one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from record import parser, write
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm
from transformers.data.data_collator import DataCollatorWithFlattening

import lengthwise as lw

BATCHES = (8, 32, 256)
TOKENS = ("input_ids", "labels", "attention_mask")
PAD = lw.torch.PadCollate()
KINDS: dict[str, Callable[[np.ndarray[Any, Any]], Any]] = {
    "lists": np.ndarray.tolist,
    "arrays": np.copy,
    "tensors": torch.from_numpy,
}


def main() -> None:
    """Measures every case, and writes the result."""
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=200)
    repeats = options.parse_args().repeats
    torch.set_num_threads(1)
    rows = [
        {
            "way": way,
            "samples": fields,
            "kind": kind,
            "batch": batch,
            **measure(ours, plain, samples(kind, batch), repeats),
        }
        for way, fields, kind, samples, ours, plain in tqdm(cases(), disable=None)
        for batch in BATCHES
    ]
    print(f"at most {max(row['ratio'] for row in rows):.2f} times as long as the plain way")
    print(write("collating", {"torch": torch.__version__, "threads": 1, "repeats": repeats, "rows": rows}))


def cases() -> list[tuple[Any, ...]]:
    """Returns for each case: padding or rows, the fields, their kind, the maker of samples, our way, the plain way."""
    rows = [
        ("padding", fields, kind, make, pad, plain)
        for fields, make, plain in (
            ("tokens", token_samples(TOKENS[:1]), plain_dicts),
            ("tokens, labels, mask", token_samples(TOKENS), plain_dicts),
            ("tuples of frames [T, 80] and tokens", frame_samples, plain_tuples),
        )
        for kind in KINDS
        if not (make is frame_samples and kind == "lists")
    ]
    return rows + [
        ("rows", fields, kind, token_samples(names), pack, DataCollatorWithFlattening())
        for fields, names in (("tokens", TOKENS[:1]), ("tokens, labels", TOKENS[:2]))
        for kind in KINDS
    ]


def draw_lengths(mean: int, batch: int) -> np.ndarray[Any, Any]:
    """Draws long-tailed lengths of one batch."""
    lengths = lw.example_lengths("long-tailed", count=batch, seed=batch)
    return np.maximum(lengths * mean // int(lengths.mean()), 1)


def token_samples(names: tuple[str, ...]) -> Callable[[str, int], list[Any]]:
    """Makes dicts of tokens under these names."""

    def make(kind: str, batch: int) -> list[Any]:
        return [
            {name: KINDS[kind](np.arange(length) % 50_000) for name in names} for length in draw_lengths(200, batch)
        ]

    return make


def frame_samples(kind: str, batch: int) -> list[Any]:
    """Makes tuples of features and a tenth as many tokens."""
    return [
        (KINDS[kind](np.ones((length, 80), np.float32)), KINDS[kind](np.arange(length // 10 + 1)))
        for length in draw_lengths(400, batch)
    ]


def pad(samples: list[Any]) -> Any:
    """Pads by our function, and makes the mask of the first field."""
    batch = PAD(samples)
    return batch, (batch["input_ids"] if isinstance(batch, dict) else batch[0]).mask


def pack(samples: list[Any]) -> Any:
    """Packs rows by our function, for a model of transformers."""
    capacity = max(len(sample["input_ids"]) for sample in samples)
    return lw.torch.RowCollate(capacity)(samples).for_transformers()


def plain_dicts(samples: list[Any]) -> Any:
    """Pads each field by `pad_sequence`, and makes one mask."""
    fields = {
        name: pad_plainly([sample[name] for sample in samples], -100 if name == "labels" else 0) for name in samples[0]
    }
    return fields, plain_mask([len(sample["input_ids"]) for sample in samples])


def plain_tuples(samples: list[Any]) -> Any:
    """Pads both parts by `pad_sequence`, and makes the mask of the first."""
    fields = [pad_plainly(list(part), 0) for part in zip(*samples, strict=True)]
    return fields, plain_mask([len(sample[0]) for sample in samples])


def pad_plainly(entries: list[Any], value: float) -> torch.Tensor:
    """Pads lists, arrays or tensors by `pad_sequence`."""
    if not isinstance(entries[0], torch.Tensor):
        entries = list(map(torch.tensor if isinstance(entries[0], list) else torch.from_numpy, entries))
    return pad_sequence(entries, batch_first=True, padding_value=value)


def plain_mask(lengths: list[int]) -> torch.Tensor:
    """Returns True where a frame is data."""
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def measure(
    ours: Callable[[Any], Any], plain: Callable[[Any], Any], samples: list[Any], repeats: int
) -> dict[str, float]:
    """Returns the median microseconds of each way, which take turns, and the median ratio of neighbours."""
    turns = np.array([[clock(way, samples) for way in (ours, plain)] for _ in range(repeats)])[repeats // 10 :]
    ours_median, plain_median = (1e6 * np.median(turns, axis=0)).round(1).tolist()
    ratio = round(float(np.median(turns[:, 0] / turns[:, 1])), 3)
    return {"microseconds": ours_median, "plain_microseconds": plain_median, "ratio": ratio}


def clock(way: Callable[[Any], Any], samples: list[Any]) -> float:
    """Returns the seconds of one batch."""
    start = time.perf_counter()
    way(samples)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
