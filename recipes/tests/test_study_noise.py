"""The length share of a study's models, after the epochs that were asked for."""

import re

import numpy as np
import pytest

import lengthwise as lw
from lengthwise_recipes.commands.study import _write_noise
from lengthwise_recipes.study.settings import Settings
from lengthwise_recipes.study.study import run_study
from test_study import CHUNKED, Line

pytestmark = pytest.mark.processes

MEASURED = {"length_share", "length_share_error", "noise_scale", "variance_ratio", "variance_ratio_error"}
LENGTHS = np.random.default_rng(0).integers(2, 20, 64)
SORTED = lw.Batching(cut=lw.FixedSize(8), order=lw.Sorted())


@pytest.mark.parametrize("counts", ["sequences", "frames"])
def test_a_study_measures_the_share_after_the_epochs_asked_for(counts):
    task = Line(lengths=LENGTHS.copy(), counts=counts)
    batchings = {"random": lw.Batching(cut=lw.FixedSize(8), order=lw.Shuffled()), "sorted": SORTED}
    measured = run_study(task, batchings, Settings(epochs=3, learning_rate=0.05, length_share=(1, 3)))
    plain = run_study(task, batchings, Settings(epochs=3, learning_rate=0.05))
    for row, other in zip(measured.rows, plain.rows, strict=True):
        assert row.training_loss == other.training_loss  # measuring changes no training
        assert (row.metrics.keys() >= MEASURED) == (row.epoch != 2)
    last = measured.rows[-1]
    assert re.fullmatch(
        r"sorted, seed 0, after epoch 3: length explains .*% \(± .*%\) of the variance of a gradient; a step varies .* "
        r"\(± .*\) times as much as a random one\.",
        _write_noise(last),
    )


def test_the_share_of_chunks_is_refused():
    with pytest.raises(ValueError, match=r"^`length_share` must be left out with chunks, but is \(1,\)\."):
        run_study(Line(lengths=LENGTHS.copy()), {"chunks": CHUNKED}, Settings(epochs=1, length_share=(1,)))


@pytest.mark.parametrize("epochs", [(0,), (4,), (1, 1)])
def test_epochs_that_there_are_not_are_refused(epochs):
    with pytest.raises(ValueError, match=r"^`length_share` must be "):
        Settings(epochs=3, length_share=epochs)
