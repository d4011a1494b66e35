"""Lengths of data sets that are too large for memory, computed once into one file.

write       `write_lengths`: from a data set to the file
sources     how rows become lengths: those of files, on a disk or in an object store, and of data sets of pyarrow,
            Hugging Face, Dask and Ray
"""

from lengthwise.engines.write import BadRow as BadRow
from lengthwise.engines.write import LengthsFile as LengthsFile
from lengthwise.engines.write import write_lengths as write_lengths
