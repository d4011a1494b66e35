"""The lengths of data sets that are too large to hold: computed once, by engines that exist, into one file.

write                   `write_lengths`: from a data set to the file
dispatch, source        which engine reads a data set, and what each offers: arrow, dask, datasets, ray
listing, rows           which files a data set is; how a batch of its rows becomes lengths
parts, lengths_file     what is kept until all is there; the file
"""

from lengthwise.engines.lengths_file import BadRow as BadRow
from lengthwise.engines.lengths_file import LengthsFile as LengthsFile
from lengthwise.engines.write import write_lengths as write_lengths
