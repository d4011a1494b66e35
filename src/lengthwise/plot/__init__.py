"""Pictures: matplotlib, here and nowhere else, and only when one is drawn.

Every picture is a `matplotlib.figure.Figure` that belongs to no window; `save` writes it. Other packages draw in the
same look by `lengthwise.plot.style`.

    batch_padding      batches sequence by sequence, and their padding
    step_padding       whole steps batch by batch: their padding, and how long ranks wait
    epoch_lengths      lengths and padding along the epoch, strategy by strategy
    bucket_histogram   the lengths, their buckets, and what each bucket pads
    shape_curve        padding against the number of padded shapes
    knob_curves        each strategy's knob against padding and batch length
    trade_off          mixing against padding, and the limit of all batching
    front              what `advise` tried, what trainers ship, and what is recommended
    sweep              the rows that `trade_off` draws
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lengthwise.plot.batches import batch_padding as batch_padding
    from lengthwise.plot.epochs import epoch_lengths as epoch_lengths
    from lengthwise.plot.fronts import front as front
    from lengthwise.plot.histograms import bucket_histogram as bucket_histogram
    from lengthwise.plot.knobs import knob_curves as knob_curves
    from lengthwise.plot.shape_curves import shape_curve as shape_curve
    from lengthwise.plot.steps import step_padding as step_padding
    from lengthwise.plot.style import save as save
    from lengthwise.plot.sweeps import sweep as sweep
    from lengthwise.plot.trade_offs import trade_off as trade_off

_ROOMS = {
    "batch_padding": "batches",
    "epoch_lengths": "epochs",
    "front": "fronts",
    "bucket_histogram": "histograms",
    "knob_curves": "knobs",
    "trade_off": "trade_offs",
    "save": "style",
    "shape_curve": "shape_curves",
    "step_padding": "steps",
    "sweep": "sweeps",
}


def __getattr__(name: str) -> Any:
    # matplotlib takes half a second to load: only who draws waits for it.
    if name in _ROOMS:
        return getattr(importlib.import_module(f"lengthwise.plot.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'lengthwise.plot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_ROOMS, *(name for name in globals() if name.startswith("__"))])
