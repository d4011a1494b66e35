"""Measures: padding, mixing and waiting of a plan, and the limit of mixing. Reads plans, makes none.

metrics          what a plan is worth, `Measures`; mixing says how little its batches, steps and rows tell of lengths
epochs, pooled   what is measured, plans or the batches of any sampler; several epochs as one
limit            the most mixing that there can be
"""
