"""Progress: how many steps of a batching get as far as those of another, where the share of length is known.

What is returned is right but for a factor that all batchings of the same data share.
"""

from __future__ import annotations

import numpy as np

from lengthwise.measures.length_share import LengthShare, StepNoise
from lengthwise.measures.metrics import Measures


def measured_steps(share: LengthShare, noise: StepNoise) -> float:
    """The steps that are needed where `share` was measured on a model, and `noise` by it on the plans."""
    # Where no signal is seen, as many steps are needed as their variance says, but for a factor.
    return noise.needed_steps if share.noise_scale < np.inf else 1 / noise.effective_size


def assumed_steps(share: float, noise_scale: float, measures: Measures) -> float:
    """The steps that are needed where the share of length is known as a number alone.

    As if the gradient of a sequence changed evenly with its length: then what goes with length varies as the mean
    length of a step does. At a share of 0.1, sorted steps of 16 sequences vary 0.9 + 0.1 x 16 = 2.5 times as much as
    random ones.

    Args:
        share: Of the variance of a gradient, 0..1.
        noise_scale: In sequences; infinite where it is not known, and steps are taken to be far smaller.
        measures: Of the plans.

    References:
        Kish 1965, "Survey sampling", 5.4, for the variance; McCandlish et al. 2018, appendix A, for the steps.
    """
    ratio = 1 - share + share * measures.step_length_variance
    size = max(measures.sequences - measures.dropped, 1) / max(measures.steps, 1)
    return 1 + noise_scale * ratio / size if noise_scale < np.inf else ratio / size
