"""What the modules for trainers share."""

import numpy as np

import lengthwise as lw
from lengthwise.torch import BatchSampler
from lengthwise.torch.trainers import PassScales


def test_scales_are_computed_once_for_each_plan(monkeypatch):
    sampler = BatchSampler([5, 9, 2, 4, 7], lw.Batching(cut=lw.FixedSize(2)), micro_batches=3)
    weights, asked, compute = np.arange(1.0, 6.0), [], sampler.loss_scales
    monkeypatch.setattr(sampler, "loss_scales", lambda *given, **choices: asked.append(1) or compute(*given, **choices))
    scales = PassScales(sampler)
    for epoch in (0, 1, 2):
        sampler.set_epoch(epoch)
        for _ in range(2):
            assert scales.now(weights, reduction="sum").tolist() == compute(weights, reduction="sum").tolist()
        assert len(asked) == epoch + 1
