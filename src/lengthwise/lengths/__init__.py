"""The sources of lengths: arrays, files, folders and examples; their description and fingerprint.

rules         the rules of a length
columns       columns of a source: names, units, and their conversion to lengths
cells         the cells of columns: numbers, lists, and texts to count
arrays        lengths in memory, and in .npy files
text          files of text: lines, tables with a header, records of JSON
arrow         files of Parquet and Arrow
audio         folders of audio files
formats       the table of formats, and `read_lengths`
description   a description of lengths, and example lengths
"""

from lengthwise.lengths.arrays import as_lengths, fingerprint
from lengthwise.lengths.audio import audio_files
from lengthwise.lengths.description import Description, describe, example_lengths
from lengthwise.lengths.formats import read_lengths, split_source

__all__ = ["Description", "as_lengths", "audio_files", "describe"]
__all__ += ["example_lengths", "fingerprint", "read_lengths", "split_source"]
