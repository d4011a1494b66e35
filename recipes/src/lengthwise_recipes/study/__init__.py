"""The study: one network and one data set, trained under many batchings from the same weights.

A `task.Task` brings lengths, network, losses and measures, so the study fits any data. Shapes in this folder:
B sequences (or chunks) of a batch, n training sequences.
"""
