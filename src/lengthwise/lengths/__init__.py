"""Where lengths come from: arrays, files, folders and examples; their description and fingerprint.

rules, arrays                     what a length may be; lengths in memory
files                             chooses the reader: arrays, text, tables, manifests, arrow, audio
columns, units, counts            what all readers return, and how that becomes lengths; units; texts
mapped                            a file of lengths too many to read
description, examples             what lengths look like, and some to try things on
"""

from lengthwise.lengths.arrays import as_lengths as as_lengths
from lengthwise.lengths.arrays import fingerprint as fingerprint
from lengthwise.lengths.audio import audio_files as audio_files
from lengthwise.lengths.description import Description as Description
from lengthwise.lengths.description import describe as describe
from lengthwise.lengths.examples import example_lengths as example_lengths
from lengthwise.lengths.files import read_lengths as read_lengths
from lengthwise.lengths.files import split_source as split_source
