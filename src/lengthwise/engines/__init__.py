"""The lengths of data sets that are too large to hold: computed once, by engines that exist, into one file.

write                         `write_lengths`: from a data set to the file
rule                          how rows become lengths, the same under every engine
files                         Parquet, Arrow, CSV and JSON lines, on a disk or in a store of objects
dask, datasets, pyarrow, ray  data sets of these packages

An engine is a module with two functions, and its name in `write.ENGINES`:

    column_names(source)        the names of its columns
    blocks(source, rule, size)  yields the lengths of its rows in their order, as `rule` measures `size` rows at once
"""

from lengthwise.engines.write import BadRow as BadRow
from lengthwise.engines.write import LengthsFile as LengthsFile
from lengthwise.engines.write import write_lengths as write_lengths
