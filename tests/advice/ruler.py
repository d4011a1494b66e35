"""A meter whose seconds follow a known rule, for the tests of steps that are measured."""

import numpy as np

import lengthwise as lw

RULE = lw.Quadratic(per_batch=0.004, per_length=2e-5, linear=1e-6, quadratic=2e-9)
LENGTHS = lw.example_lengths("long-tailed", count=400)
PAIRS = np.column_stack([LENGTHS, 1 + LENGTHS[::-1] // 7])


class Ruler:
    """A meter of steps that return the shape of their batch. `taken` lists the shapes."""

    def __init__(self, rule=RULE):
        self.rule, self.taken = rule, []

    def __call__(self, step, batch):
        shape = np.array(step(batch))
        self.taken.append(tuple(shape.tolist()))
        return float(self.rule(shape[:1], shape[None, 1:])[0])


def echo(batch):
    return batch


def shape_alone(*shape):
    return shape


def measured(lengths=LENGTHS, **asked):
    asked = {"meter": Ruler(), "device": "a ruler", "repeats": 2, **asked}
    return lw.measure_step(echo, shape_alone, lengths, **asked)
