"""Measures: padding, randomness and waiting of a plan.

metrics      `Measures` of one epoch, or of several together
randomness   the independence of the lengths of a step
epochs       the measured plans, or batches of any sampler
"""
