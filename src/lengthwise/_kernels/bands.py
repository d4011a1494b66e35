"""Sequences of several lengths in a line of bands: each is looked up in tables, and none is sorted.

cells    [n]   in which cell of the lengths before each sequence is, or what `bands` says of it
bands          the cell of each of these numbers; empty where they are cells
lasts    [n]   the next length of each sequence
ranks          the place of each such length: a band of it, or its rank among all that there are
width          how many places there are

Every other cell is gone through backwards, so that the line does not jump where the next begins. The key of a sequence,
cell x width + place, rises along the line.
"""

from __future__ import annotations

import numpy as np

from lengthwise._compile import compile_kernel


@compile_kernel
def _key(cell, place, width):
    # By a product: nobody can foresee whether a cell is gone through backwards, and a branch would take longer.
    return np.uint64(cell * width + place + (cell & 1) * (width - 1 - 2 * place))


def _keys_at_once(cells, bands, lasts, ranks, width):
    """The keys of all sequences by NumPy: [n]."""
    cell, place = (bands.take(cells) if bands.size else cells), ranks.take(lasts)
    return cell * width + np.where(cell & 1, width - 1 - place, place)


def _write_at_once(cells, bands, lasts, ranks, width, keys):
    """`write_keys` by NumPy."""
    keys[:] = _keys_at_once(cells, bands, lasts, ranks, width)


@compile_kernel(linear=True, in_python=_write_at_once)
def write_keys(cells, bands, lasts, ranks, width, keys):
    """Writes the key of each sequence into `keys` [n], int64."""
    for index in range(keys.size):
        cell = np.int64(bands[cells[index]] if bands.size else cells[index])
        keys[index] = _key(cell, ranks[lasts[index]], width)


def _mark_at_once(cells, bands, lasts, ranks, width, seen):
    """`mark_keys` by NumPy."""
    seen[_keys_at_once(cells, bands, lasts, ranks, width)] = True


@compile_kernel(linear=True, in_python=_mark_at_once)
def mark_keys(cells, bands, lasts, ranks, width, seen):
    """Marks in `seen` the keys that there are."""
    for index in range(cells.size):
        cell = np.int64(bands[cells[index]] if bands.size else cells[index])
        seen[_key(cell, ranks[lasts[index]], width)] = True


def _look_up_at_once(cells, bands, lasts, ranks, width, places, found):
    """`look_up_keys` by NumPy."""
    found[:] = places.take(_keys_at_once(cells, bands, lasts, ranks, width))


@compile_kernel(linear=True, in_python=_look_up_at_once)
def look_up_keys(cells, bands, lasts, ranks, width, places, found):
    """Writes what `places` say of the key of each sequence into `found` [n]."""
    for index in range(found.size):
        cell = np.int64(bands[cells[index]] if bands.size else cells[index])
        found[index] = places[_key(cell, ranks[lasts[index]], width)]
