"""Measures: what a plan is worth, and how near a limit it comes. Reads plans, makes none."""
