"""Measures: padding, mixing and waiting of a plan.

metrics   `Measures` of one epoch, or of several together
mixing    the mixing of batches, steps and rows
epochs    the measured plans, or batches of any sampler
"""
