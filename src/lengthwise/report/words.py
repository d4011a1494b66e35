"""Numbers as the report writes them."""

from __future__ import annotations


def percent(share: float) -> str:
    """A share, with at least two digits that tell.

    >>> percent(0.3207), percent(0.053), percent(0.0016), percent(0.0), percent(-1e-17)
    ('32.1 %', '5.3 %', '0.16 %', '0 %', '0 %')
    """
    value = 100.0 * max(share, 0.0)
    return f"{value:.1f} %" if value >= 1.0 else f"{float(f'{value:.2g}'):g} %"


def count(number: int, one: str, several: str = "") -> str:
    """A number with its noun.

    >>> count(1, "batch", "batches"), count(1_200, "step")
    ('1 batch', '1,200 steps')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def number(value: float) -> str:
    """A number in full.

    >>> number(12_345.0), number(1_234.56), number(0.1234)
    ('12,345', '1,234.6', '0.123')
    """
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:,.3g}"


def computed(padding_share: float) -> str:
    """The frames that are computed for each frame of data; "endless" where nothing is data.

    >>> computed(0.655), computed(0.0)
    ('2.90', '1.00')
    """
    return f"{1 / (1 - padding_share):.2f}" if padding_share < 1 else "endless"


def shorten(label: str, most: int = 30) -> str:
    """Cuts a label to at most `most` letters.

    >>> shorten("max-entropy:0.1"), len(shorten("a" * 40))
    ('max-entropy:0.1', 30)
    """
    return label if len(label) <= most else f"{label[: most - 1]}…"
