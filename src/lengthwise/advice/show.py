"""A fit as a formula, and its points as a table, in plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise.choices.cost import Quadratic


def show_fit(cost: Quadratic) -> str:
    """The cost as a formula of n sequences padded to L, without the parts that are 0.

    >>> show_fit(Quadratic(per_batch=0.01, linear=2e-5, quadratic=0.0))
    '0.01 + 2e-05 n L'
    >>> show_fit(Quadratic(linear=(1.0, 8.0), per_length=0.5))
    '0.5 L1 + 0.5 L2 + 1 n L1 + 8 n L2'
    """
    dims = max(len(each) if isinstance(each, tuple) else 1 for each in (cost.linear, cost.quadratic, cost.per_length))
    per_batch, per_sequence, *each = cost.prices(dims).tolist()
    names = [f"L{dim + 1}" for dim in range(dims)] if dims > 1 else ["L"]
    linear, quadratic, per_length = np.array(each).reshape(3, dims).tolist()
    parts = [(per_batch, ""), *zip(per_length, names, strict=True), (per_sequence, "n")]
    parts += [(value, f"n {name}") for value, name in zip(linear, names, strict=True)]
    parts += [(value, f"n {name}^2") for value, name in zip(quadratic, names, strict=True)]
    return " + ".join(f"{value:.3g} {what}".strip() for value, what in parts if value) or "0"


def show_table(heads: Sequence[str], columns: Sequence[NDArray[Any]]) -> list[str]:
    r"""The lines of a table: whole numbers as they are, lengths as "812 x 90", shares in the column "fit" as percents.

    >>> print(*show_table(["sequences", "fit"], [np.array([1, 16]), np.array([0.02, -0.1])]), sep="\n")
    sequences     fit
            1   +2.0%
           16  -10.0%
    """
    cells = [[_write(head, value) for value in column] for head, column in zip(heads, columns, strict=True)]
    widths = [max(len(head), *map(len, own)) for head, own in zip(heads, cells, strict=True)]
    rows = [heads, *zip(*cells, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _write(head: str, value: Any) -> str:
    if head == "fit":
        return f"{value:+.1%}"
    if isinstance(value, np.ndarray):
        return " x ".join(f"{each:,}" for each in value.tolist())
    return f"{value:,}" if isinstance(value, np.integer) else f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
