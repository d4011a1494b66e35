"""Speech as it is found: readers of its formats, digits joined to strings, its division in parts, and its features.

Shape legend of this folder: N samples of a sound, F frames, D features.
"""
