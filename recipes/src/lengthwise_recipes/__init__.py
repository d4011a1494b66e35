"""Recipes: training runs of the papers' kinds, written on the public names of the package only."""
