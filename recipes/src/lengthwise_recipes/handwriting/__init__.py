"""Online handwriting: readers of its file formats, and a bidirectional LSTM with CTC that learns to read it.

Shape legend of this folder: T points of the pen, F frames (points / stack), B sequences, C classes (blank is 0), K
points of a stroke.
"""
