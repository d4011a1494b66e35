"""Quality: whether more mixing gives a better model at equal padding, and at equal time.

    lengths -> strategies, each knob fitted to the same padding -> one study -> losses -> intervals of differences

Shape legend of this folder: R runs (seeds), E epochs of a run.
"""
