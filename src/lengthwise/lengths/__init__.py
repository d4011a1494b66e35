"""The sources of lengths: arrays, files, folders and examples; their description and fingerprint.

rules         the rules of a length
columns       columns of numbers from a reader, and their conversion to lengths
cells         the cells of columns: numbers, lists, and texts to count
arrays        lengths in memory, and in .npy files
files         the choice of the reader: arrays, text, manifests, arrow, audio
description   a description of lengths, and example lengths
"""

from lengthwise.lengths.arrays import as_lengths as as_lengths
from lengthwise.lengths.arrays import fingerprint as fingerprint
from lengthwise.lengths.audio import audio_files as audio_files
from lengthwise.lengths.description import Description as Description
from lengthwise.lengths.description import describe as describe
from lengthwise.lengths.description import example_lengths as example_lengths
from lengthwise.lengths.files import read_lengths as read_lengths
from lengthwise.lengths.files import split_source as split_source
