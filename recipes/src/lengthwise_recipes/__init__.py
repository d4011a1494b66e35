"""Recipes: training runs like those of the papers, written with the public names of the package only."""
