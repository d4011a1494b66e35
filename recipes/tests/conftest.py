"""Small files of the kinds that the handwriting recipe reads, and a small corpus that a network learns in seconds."""

import multiprocessing

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


@pytest.fixture(scope="session")
def corpus():
    """140 words of one to six of the letters l, o and v, by a hand that does not vary."""
    from lengthwise_recipes.handwriting.data import Corpus, Samples
    from lengthwise_recipes.handwriting.strokes import Writer, write

    writer = Writer(
        font="futural",
        slant=0.1,
        width=1.0,
        size=1.0,
        size_jitter=0.05,
        points_per_unit=12.0,
        speed_jitter=0.05,
        drift=0.0,
        tremor=0.01,
        noise=0.0,
        gap=0.1,
    )
    generator = np.random.default_rng(0)
    texts = ["".join(generator.choice(list("lov"), size=1 + word % 6)) for word in range(140)]
    everything = Samples(strokes=tuple(write(text, writer, generator) for text in texts), texts=tuple(texts))
    return Corpus(
        name="letters",
        split="the first twenty",
        train=everything.take(range(20, 140)),
        validation=everything.take(range(20)),
        alphabet="lov",
    )


@pytest.fixture(scope="module")
def forked_ranks():
    """Forks the ranks of a study from a server that has PyTorch loaded: spawned, each would load it anew.

    `test_orphans.py` spawns them, as a study does.
    """
    from ranks import FORKSERVER

    found = multiprocessing.get_context
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiprocessing, "get_context", lambda way=None: FORKSERVER if way == "spawn" else found(way))
        yield
