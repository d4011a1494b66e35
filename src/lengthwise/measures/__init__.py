"""Measures: padding, mixing and waiting of a plan, and the limit of mixing. Reads plans, makes none."""
