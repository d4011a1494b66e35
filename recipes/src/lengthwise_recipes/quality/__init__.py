"""Quality: a study of more mixing, and whether it gives a better model at equal padding and in equal time.

    lengths -> strategies, each knob fitted to the same padding -> one study -> losses -> intervals of differences

Shapes in this folder: R runs (seeds), E epochs of a run.
"""
