"""Measures: padding, mixing and waiting of a plan, and the limit of mixing. Reads plans, makes none.

metrics   what plans are worth, `Measures`, one epoch or several as one
mixing    how little batches, steps and rows tell of lengths
epochs    plans, or the batches of any sampler, that are measured
limit     the most mixing that there can be
"""
