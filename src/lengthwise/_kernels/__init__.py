"""The loops that NumPy cannot express.

Every kernel is plain Python too (`kernel.py_func`), and the tests compare the two.
"""

from __future__ import annotations

from lengthwise._kernels.buckets import bucket_ends, price_buckets
from lengthwise._kernels.cuts import Bounds, cut_batches, cut_steps, split_widest
from lengthwise._kernels.draws import shuffle_parts, threefry
from lengthwise._kernels.pairs import count_pairs
from lengthwise._kernels.rows import batch_rows, best_fit, fill_rows, pool_rows
from lengthwise._kernels.shares import even_out, fill_bins, share_rows
from lengthwise._kernels.steps import fill_steps, sort_step

__all__ = ["Bounds", "batch_rows", "best_fit", "bucket_ends", "count_pairs", "cut_batches", "cut_steps", "even_out"]
__all__ += ["fill_bins", "fill_rows", "fill_steps", "pool_rows", "price_buckets", "share_rows", "shuffle_parts"]
__all__ += ["sort_step", "split_widest", "threefry"]
