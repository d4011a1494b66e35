"""Lengths along the epoch, strategy by strategy (Doetsch, Golik, Ney 2017, figure 1), and their padding."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise_recipes.pictures import style
from lengthwise_recipes.pictures.style import Figure

_DOTS = 3_000  # sequences of an epoch at most


@style.in_house_style
def order_dots(lengths: NDArray[np.int64], plans: Mapping[str, lw.Plan], *, unit: str = "frames") -> Figure:
    """Draws the lengths in the order of an epoch, a panel for each plan.

    Args:
        lengths: [n], of whole sequences.
        plans: Plans for one rank, by the titles of their panels.
        unit: The unit of the lengths.

    References:
        Doetsch, Golik, Ney 2017, figure 1.
    """
    figure = style.blank_figure(height=0.8 + 1.2 * len(plans))
    panels = figure.subplots(len(plans), 1, squeeze=False, sharex=True, sharey=True)[:, 0]
    for number, (axes, (label, plan)) in enumerate(zip(panels, plans.items(), strict=True)):
        ordered = lengths[np.concatenate(list(plan.batches()))]
        places = np.unique(np.linspace(0, len(ordered) - 1, _DOTS).astype(np.int64))
        colour = style.look(label, number).colour
        axes.plot(places, ordered[places], ".", color=colour, markersize=2.2, markeredgewidth=0)
        padding = style.percent(lw.measure(plan, lengths).padding_share)
        axes.set_title(f"{label}: padding {padding}", color=style.readable(colour))
        axes.yaxis.set_major_formatter("{x:,.0f}")
    style.set_limits(panels[0], right=float(len(lengths)), top=1.05 * float(lengths.max()))
    panels[-1].set_xlabel("sequences, in the order of the epoch")
    figure.supylabel(f"length ({unit})", fontsize=9)
    return figure
