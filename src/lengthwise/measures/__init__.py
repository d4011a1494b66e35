"""Measures: padding, mixing and waiting of a plan, and the limit of mixing.

metrics   `Measures` of one epoch, or of several together
mixing    the mixing of batches, steps and rows
epochs    the measured plans, or batches of any sampler
limit     the most mixing at a given padding
"""
