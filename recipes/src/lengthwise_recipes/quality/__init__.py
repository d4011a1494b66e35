"""Quality: a study of sorted, random and other orders: does more mixing give a better model?

    lengths -> strategies, each knob fitted to the same padding -> one study -> runs -> contrasts of test losses

Shapes in this folder: R runs (seeds), E epochs of a run.
"""
