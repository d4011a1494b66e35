"""The study: one network and one data set, trained under many batchings from the same weights.

It knows nothing of handwriting, speech or sound: a `task.Task` brings lengths, network, losses and measures. Shape
legend of this folder: B sequences (or chunks) of a batch, n training sequences.
"""
