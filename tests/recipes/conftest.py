"""Small files of the kinds that the handwriting recipe reads."""

import numpy as np
import pytest

GOOD_INK = """<ink xmlns="http://www.w3.org/2003/InkML">
  <annotation type="truth">to be</annotation>
  <trace>0 0, 0 4, 3 4</trace>
  <traceGroup><annotation type="truth">be</annotation><trace>5 0 17, 5 2 18</trace></traceGroup>
</ink>"""


@pytest.fixture
def good_ink():
    """An InkML file of two traces, of a line whose truth is `to be`."""
    return GOOD_INK


@pytest.fixture
def pen_arrays():
    """Makes the arrays of an .npz of characters."""
    return _pen_arrays


def _pen_arrays(*, drawers=4, names=("Greek/1", "Greek/2", "Latin/1")):
    """Every drawer draws every class once: class c of drawer d is a vertical line of 4 + c and a dash below it."""
    rows, pen_up, offsets, labels, drawn_by = [], [], [0], [], []
    for drawer in range(drawers):
        for label in range(len(names)):
            rows += [[drawer, 10], [0, 4 + label], [3, 1], [5, 0]]
            pen_up += [0, 1, 0, 1]
            offsets.append(len(rows))
            labels.append(label)
            drawn_by.append(drawer)
    return {
        "dxy": np.array(rows, np.int16),
        "pen_up": np.array(pen_up, np.uint8),
        "offsets": np.array(offsets),
        "label": np.array(labels, np.int16),
        "drawer": np.array(drawn_by, np.int16),
        "vocab": np.frombuffer("\n".join(names).encode(), np.uint8),
    }
