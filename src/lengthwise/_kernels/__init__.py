"""The loops that NumPy cannot express.

Every kernel is plain Python too (`kernel.py_func`), and the tests compare the two.
"""

from __future__ import annotations

from lengthwise._kernels.buckets import bucket_ends as bucket_ends
from lengthwise._kernels.buckets import price_buckets as price_buckets
from lengthwise._kernels.cuts import Bounds as Bounds
from lengthwise._kernels.cuts import cut_batches as cut_batches
from lengthwise._kernels.cuts import cut_steps as cut_steps
from lengthwise._kernels.cuts import split_widest as split_widest
from lengthwise._kernels.draws import shuffle_parts as shuffle_parts
from lengthwise._kernels.draws import threefry as threefry
from lengthwise._kernels.pairs import count_pairs as count_pairs
from lengthwise._kernels.rows import batch_rows as batch_rows
from lengthwise._kernels.rows import best_fit as best_fit
from lengthwise._kernels.rows import fill_rows as fill_rows
from lengthwise._kernels.rows import pool_rows as pool_rows
from lengthwise._kernels.shares import even_out as even_out
from lengthwise._kernels.shares import fill_bins as fill_bins
from lengthwise._kernels.shares import lay_rows as lay_rows
from lengthwise._kernels.shares import share_rows as share_rows
from lengthwise._kernels.steps import fill_steps as fill_steps
from lengthwise._kernels.steps import sort_steps as sort_steps
