"""The style of all pictures: a colour for each strategy, sizes, and the writing of figures."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from lengthwise import files
from lengthwise.checks import value_error

# The package imports this file before other users of matplotlib, so that one error covers a missing matplotlib.
try:
    import matplotlib.style
    from matplotlib import colors
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D as Line2D
    from matplotlib.text import Text as Text
    from matplotlib.ticker import FuncFormatter as FuncFormatter
    from matplotlib.ticker import MaxNLocator as MaxNLocator
    from matplotlib.ticker import PercentFormatter as PercentFormatter
except ImportError as _error:
    raise ImportError(
        "Drawing needs matplotlib. Install it with: pip install matplotlib", name="matplotlib"
    ) from _error

WIDTH = 8.0  # inches: 1200 pixels wide at the dots per inch of `save`
_DOTS_PER_INCH = 150

INK = "#333333"
FAINT = "#8A8A8A"
# Neither strategies nor unknown labels have these two colours.
LENGTHS = "#A3B4C6"
PADDING = "#F8E58C"
_CONTRAST = 4.5  # of text on white, at least (WCAG 2.1, level AA)

Params = ParamSpec("Params")
Result = TypeVar("Result")


class Look(NamedTuple):
    """The look of the curve of a strategy in every picture."""

    colour: str
    dash: str
    marker: str


# Okabe and Ito's colours, for colour-blind readers too. Related strategies share one, and differ in dash and marker.
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
    "random-steps": Look("#D55E00", "--", "P"),
    "max-entropy": Look("#D55E00", "-", "o"),
}
_OTHERS = ("#7A4FB5", "#8C5A3C", "#7F7F1F", "#2F7F86", "#9E2A5B", "#35618F")
_DASHES = ("--", ":", "-.")

# The matplotlib settings of the user do not change, and do not change these pictures.
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
    # Without it the identifiers in an .svg are random, and the same figure gives other bytes.
    "svg.hashsalt": "lengthwise",
}
_NO_DATES: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def in_house_style(draw: Callable[Params, Result]) -> Callable[Params, Result]:
    """Makes `draw` draw in the house style, with any matplotlib settings of the user."""

    @wraps(draw)
    def draw_in_style(*args: Params.args, **kwargs: Params.kwargs) -> Result:
        with _settings():
            return draw(*args, **kwargs)

    return draw_in_style


def strategy_name(label: str) -> str:
    """Returns the strategy of a label, without the value of its knob or its options.

    >>> strategy_name("semi-sorted:0.1,arrange=in-order")
    'semi-sorted'
    """
    return label.partition(",")[0].partition(":")[0].strip()


def look(label: str, number: int = 0) -> Look:
    """Returns the look of a strategy; an unknown strategy has the look of its `number`.

    >>> look("semi-sorted:0.1") == look("semi-sorted:0.5")
    True
    """
    unknown = Look(_OTHERS[number % len(_OTHERS)], _DASHES[number // len(_OTHERS) % len(_DASHES)], "x")
    return LOOKS.get(strategy_name(label), unknown)


def shades(colour: str, count: int) -> list[str]:
    """Returns shades of a colour from light to dark, for labels of a rising number.

    >>> shades("#0072B2", 3)
    ['#66aad1', '#0072b2', '#003f62']
    """
    light, plain, dark = (np.array(colors.to_rgb(name)) for name in ("white", colour, "black"))
    steps = np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(count)
    mixed = [plain + (-0.4 * step * (light - plain) if step < 0 else 0.45 * step * (dark - plain)) for step in steps]
    return [_hex(rgb) for rgb in mixed]


def readable(colour: str) -> str:
    """Returns the colour for text: darker, if it is too pale on white.

    >>> readable("#000000"), readable("#56B4E9")
    ('#000000', '#3a7a9e')
    """
    plain = np.array(colors.to_rgb(colour))
    # Black on white has a contrast of 21, so some share is always dark enough.
    for share in np.arange(1.0, 0.0, -0.02):
        if 1.05 / (_luminance(plain * share) + 0.05) >= _CONTRAST:
            return _hex(plain * share)
    return "#000000"


def _hex(rgb: NDArray[np.float64]) -> str:
    return colors.to_hex((float(rgb[0]), float(rgb[1]), float(rgb[2])))


def _luminance(rgb: NDArray[np.float64]) -> float:
    """Returns the relative luminance, 0 for black and 1 for white (WCAG 2.1)."""
    # Values of sRGB are not proportional to light.
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def percent(share: float) -> str:
    """Writes a share for the pictures.

    >>> percent(0.3207), percent(0.05), percent(0.0016)
    ('32 %', '5 %', '0.16 %')
    """
    # At least two significant digits: 32 %, 5.3 %, 0.16 %.
    value = 100.0 * share
    return f"{value:.0f} %" if round(value, 1) >= 10.0 else f"{float(f'{value:.2g}'):g} %"


def percent_axis() -> PercentFormatter:
    """Returns the formatter of an axis of shares."""
    return PercentFormatter(1.0, decimals=0, symbol=" %")


def set_title(figure: Figure, text: str) -> None:
    """Writes a title above all panels, aligned left; nothing if the text is empty."""
    if text:
        figure.suptitle(text, x=0.01, ha="left", fontsize=10)


def blank_figure(*, height: float, width: float = WIDTH) -> Figure:
    """Returns an empty figure without a window; sizes are in inches."""
    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.08))


def set_limits(axes: Axes, *, right: float, top: float) -> None:
    """Sets limits from zero on, also if all values are zero."""
    axes.set_xlim(0.0, right or 1.0)
    axes.set_ylim(0.0, top or 1.0)


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Writes `figure` to `path`, whole or not at all. The same figure gives the same bytes.

    Creates missing folders.

    Args:
        figure: The figure to write.
        path: The suffix sets the format: .png (1200 pixels wide), .svg or .pdf.

    Raises:
        ValueError: Another suffix.
    """
    files.check_path("path", path)
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in _NO_DATES:
        rule = f"a file of one of the kinds {', '.join(_NO_DATES)}"
        raise value_error("path", rule, str(path), "Name the picture plan.png, for example.")
    # Drawn in memory first: an error leaves the old file unchanged.
    content = io.BytesIO()
    with _settings():
        figure.savefig(content, format=suffix[1:], dpi=_DOTS_PER_INCH, metadata=_NO_DATES[suffix])
    target.parent.mkdir(parents=True, exist_ok=True)
    files.write(target, content.getbuffer())


def _settings() -> AbstractContextManager[None]:
    return matplotlib.style.context(["default", _SETTINGS])
