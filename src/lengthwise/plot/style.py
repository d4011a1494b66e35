"""One look for all pictures: a colour for each strategy, sizes, and how a figure is written."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from lengthwise import files
from lengthwise.checks import value_error

# All of matplotlib that the pictures use comes from here, so that its absence is told once, and how to mend it.
try:
    import matplotlib.style
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D as Line2D
    from matplotlib.patches import Patch as Patch
    from matplotlib.ticker import FuncFormatter as FuncFormatter
    from matplotlib.ticker import MaxNLocator as MaxNLocator
    from matplotlib.ticker import PercentFormatter as PercentFormatter
except ImportError as error:
    raise ImportError(
        'Drawing needs matplotlib. Install it with: pip install "lengthwise[plot]"', name="matplotlib"
    ) from error

WIDTH = 8.0  # inches: 1200 pixels wide at the dots per inch of `save`
DOTS_PER_INCH = 150

INK = "#333333"
FAINT = "#8A8A8A"
LENGTHS = "#0072B2"
EDGES = "#D55E00"
PADDING = "#FBD694"

Params = ParamSpec("Params")
Result = TypeVar("Result")


class Look(NamedTuple):
    """How the curve of a strategy is drawn in every picture."""

    colour: str
    dash: str
    marker: str


# Okabe and Ito's colours, told apart by colour-blind readers too; relatives share one, and differ in dash and marker.
LOOKS = {
    "random": Look("#7F7F7F", "-", "o"),
    "sorted": Look("#000000", "-", "s"),
    "semi-sorted": Look("#0072B2", "-", "^"),
    "alternated": Look("#009E73", "-", "D"),
    "windowed": Look("#009E73", "--", "d"),
    "bucketed": Look("#CC79A7", "-", "s"),
    "optimal": Look("#E69F00", "-", "v"),
    "uniform": Look("#56B4E9", "-", "<"),
    "quantile": Look("#56B4E9", "--", ">"),
    "exponential": Look("#56B4E9", ":", "p"),
    "mxnet": Look("#56B4E9", "-.", "h"),
    "max-entropy": Look("#D55E00", "-", "o"),
}
_OTHERS = ("#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#0072B2")
_DASHES = ("--", ":", "-.")

# The user's own matplotlib settings are left alone, and change nothing in these pictures.
_SETTINGS = {
    "figure.dpi": 100,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "svg.hashsalt": "lengthwise",
}
_NO_DATES: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def in_house_style(draw: Callable[Params, Result]) -> Callable[Params, Result]:
    """Makes `draw` draw in the one look, whatever the user has set for matplotlib."""

    @wraps(draw)
    def styled(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        with _settings():
            return draw(*args, **kwargs)

    return styled


def strategy_name(label: str) -> str:
    """The strategy of a label, without the value of its knob or its options.

    >>> strategy_name("semi-sorted:0.1,arrange=in-order")
    'semi-sorted'
    """
    return label.partition(",")[0].partition(":")[0].strip()


def look(label: str, number: int = 0) -> Look:
    """The look of a strategy, the same in every picture; one that is not known gets the look of its `number`.

    >>> look("semi-sorted:0.1") == look("semi-sorted:0.5")
    True
    """
    unknown = Look(_OTHERS[number % len(_OTHERS)], _DASHES[number // len(_OTHERS) % len(_DASHES)], "x")
    return LOOKS.get(strategy_name(label), unknown)


def blank_figure(*, height: float, width: float = WIDTH) -> Figure:
    """An empty figure, in inches, that belongs to no window."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.08))


def set_limits(axes: Axes, *, right: float, top: float) -> None:
    """Axes from zero on, also where everything drawn on them is zero."""
    axes.set_xlim(0.0, right or 1.0)
    axes.set_ylim(0.0, top or 1.0)


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Writes `figure` to `path`, whole or not at all; the same figure gives the same bytes.

    Folders that are missing are made.

    Args:
        path: Its suffix says the kind: .png (1200 pixels wide), .svg or .pdf.

    Raises:
        ValueError: Another suffix.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _NO_DATES:
        kinds = ", ".join(_NO_DATES)
        raise value_error("path", f"a file of one of the kinds {kinds}", str(path), "Name the picture plan.png, say.")
    content = io.BytesIO()
    with _settings():
        figure.savefig(content, format=suffix[1:], dpi=DOTS_PER_INCH, metadata=_NO_DATES[suffix])
    target.parent.mkdir(parents=True, exist_ok=True)
    files.write(target, content.getbuffer())


def _settings() -> AbstractContextManager[None]:
    return matplotlib.style.context(["default", _SETTINGS])
