"""The sources of lengths: arrays, files, folders and examples; their description and fingerprint.

rules         the rules of a length
columns       columns of a source: names, units, and their conversion to lengths
cells         the cells of columns: numbers, lists, and texts to count
arrays        lengths in memory, and in .npy files
text          files of text: lines of numbers, tables, records of JSON
arrow         files of Parquet and Arrow
audio         folders of audio files
formats       the table of formats, and those with one value a sequence: texts, Kaldi, ESPnet, FASTA, FASTQ
read          `read_lengths`, and the files of a folder, a pattern or a URL
description   a description of lengths, and example lengths
"""

from lengthwise.lengths.arrays import as_lengths, fingerprint
from lengthwise.lengths.audio import audio_files
from lengthwise.lengths.description import Description, describe, example_lengths
from lengthwise.lengths.read import read_lengths, split_source

__all__ = ["Description", "as_lengths", "audio_files", "describe"]
__all__ += ["example_lengths", "fingerprint", "read_lengths", "split_source"]
