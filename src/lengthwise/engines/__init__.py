"""The lengths of data sets that are too large to hold: computed once, by engines that exist, into one file."""

from lengthwise.engines.lengths_file import BadRow as BadRow
from lengthwise.engines.lengths_file import LengthsFile as LengthsFile
from lengthwise.engines.write import write_lengths as write_lengths
