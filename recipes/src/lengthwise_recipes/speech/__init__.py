"""Speech: readers of its formats, strings of digits, the division into parts, and features.

Shapes in this folder: N samples of a sound, F frames, D features.
"""
