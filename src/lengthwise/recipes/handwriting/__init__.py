"""Online handwriting: a bidirectional LSTM with CTC, trained under every batching strategy from the same weights.

Shape legend of this folder: T points of the pen, F frames (points / stack), B sequences, C classes (blank is 0), K
points of a stroke.
"""
