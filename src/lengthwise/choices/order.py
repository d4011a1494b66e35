"""Order: the order in which sequences are cut into batches, and the positions that no batch may cross.

sizes        [n]   the number by which each sequence is sorted, such as its length
sequences    [m]   sequence numbers; m < n only if a choice was asked to drop
boundaries         rising positions in 1..m-1 that no batch may cross: the borders of buckets
edges        [m]   the length that each sequence is padded to at least, or None; [m, dims] for several lengths
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels, _random, checks
from lengthwise._random import Key
from lengthwise.choices.arithmetic import sort_parts
from lengthwise.choices.buckets import EDGES, check_edges, check_edges_hold, find_bucket

# The least width of noise without ties, as a share of the longest: it has 2**32 values, so that hardly any sums of
# length and noise are equal.
_LEAST_TIELESS = 2.0**-20


class Ordered(NamedTuple):
    """The result of an order.

    Attributes:
        sequences: [m] int64, numbers from 0 to n - 1, each at most once; m < n only where the order was asked to drop.
        boundaries: [k] int64, rising positions in 1..m-1 that no batch may cross; by default there are none.
        edges: [m] int64, the least length that each of `sequences` is padded to. If None, a batch is padded only to its
            longest sequence. If sequences have several lengths, [m, dims].

    >>> Ordered(np.array([2, 0, 1]), boundaries=np.array([1])).sequences  # 2 alone, then 0 and 1
    array([2, 0, 1])
    """

    sequences: NDArray[np.int64]
    boundaries: NDArray[np.int64] = np.empty(0, np.int64)
    edges: NDArray[np.int64] | None = None


class Order(Protocol):
    """The form of every order. `sizes` is not empty.

    An order that must know all sequences first, such as to find edges, also has `fit(self, sizes)`. `fit` is called
    once for a plan, with the sizes of all sequences to be sorted, and returns the order that sorts each portion.

    >>> import lengthwise as lw
    >>> class Backwards:
    ...     def __call__(self, sizes, key):
    ...         return Ordered(np.arange(len(sizes))[::-1])
    >>> lw.make_plan([5, 9, 2, 4], lw.Batching(cut=lw.FixedSize(2), order=Backwards())).sequences
    array([3, 2, 1, 0])
    """

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        """Puts sequences in order.

        Args:
            sizes: [n] float64, the length of each sequence, summed over its dimensions. For several lengths, `Sorted`
                and `MaxEntropy(padding=...)` may get places in a line of bands instead (`choices.bands`). `Bucketed`
                with edges gets all lengths, [n, dims].
            key: The key of all random numbers, for this portion of this epoch.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Shuffled:
    """Random order: batches pad much.

    >>> Shuffled()(np.array([5.0, 9.0, 2.0, 4.0]), Key(seed=1)).sequences
    array([1, 0, 3, 2])
    """

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        return Ordered(key.permutation(len(sizes)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Sorted:
    """Sorts by length, rising unless `descending`. Equal lengths are in random order, a new one in every epoch.

    >>> Sorted()(np.array([5.0, 9.0, 2.0, 4.0]), Key()).sequences
    array([2, 3, 0, 1])
    """

    descending: bool = False

    def __post_init__(self) -> None:
        checks.check_flag("descending", self.descending)

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        return Ordered(_shuffle_within(sizes.max(initial=0) - sizes if self.descending else sizes, key))


@dataclass(frozen=True, slots=True)
class SemiSorted:
    """Sorts by length plus uniform noise: x' = x + U(-a/2, a/2), a = (longest - shortest) r.

    Args:
        randomization_factor: r, the paper's Local Randomization Factor. With 0, sequences are sorted; above 1, the
            order is nearly random.

    References:
        Ge et al. 2021, section 2, equations 2 and 3.

    >>> SemiSorted(0.1)(np.array([5.0, 9.0, 2.0, 4.0]), Key()).sequences  # noise of less than 0.7
    array([2, 3, 0, 1])
    """

    randomization_factor: float = 0.1

    def __post_init__(self) -> None:
        remedy = "Give the width of the noise as a share of the range of lengths, such as 0.1."
        factor = checks.check_number("randomization_factor", self.randomization_factor, remedy=remedy)
        checks.keep(self, randomization_factor=factor)

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        width = (sizes.max() - sizes.min()) * self.randomization_factor
        moved = key.uniform(len(sizes))
        moved *= width  # in [0, a): shifting all by a/2 changes no order
        moved += sizes
        if width > _LEAST_TIELESS * sizes.max():
            return Ordered(_random.argsort(moved))
        # Ties need a stream of their own: a second draw of `key` would begin with the same words as the noise.
        return Ordered(_random.sort_by(key.at("ties", lane=key.lane).permutation(len(sizes)), moved))


@dataclass(frozen=True, slots=True)
class AlternatedSort:
    """Shuffled, divided into bins of equal size, and each bin sorted: odd bins rising, even bins falling.

    Neighbouring bins meet at similar lengths, so that a batch across their border pads little.

    Args:
        bins: N, the number of bins, at most one for each sequence. With 1 bin, all sequences are sorted. With a bin for
            each batch, the order is nearly random.

    References:
        Doetsch, Golik, Ney 2017, section 4. The paper says that two of n sequences share a bin with the probability
        1 / (N (N - 1)). It should be (n/N - 1) / (n - 1).

    >>> sizes = np.array([5.0, 9.0, 2.0, 4.0, 7.0, 1.0])
    >>> sizes[AlternatedSort(bins=2)(sizes, Key()).sequences]  # 2 4 5 rise, 9 7 1 fall
    array([2., 4., 5., 9., 7., 1.])
    """

    bins: int

    def __post_init__(self) -> None:
        checks.keep_whole(self, "bins", remedy="Give the number of bins, such as 58.")

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        count = len(sizes)
        bins = min(self.bins, count)
        starts = -(-np.arange(bins) * count // bins)  # 5 sequences in 2 bins: [0, 3]
        return Ordered(sort_parts(key.permutation(count), sizes, starts, turned=True))


@dataclass(frozen=True, slots=True)
class Windowed:
    """Shuffled, taken in windows of equal size, and each window sorted; only `RandomSteps` mix windows in a batch.

    Other systems call this pools, sortish sampling or grouping by length.

    Args:
        window: The number of sequences in a window, a multiple of the batch size for full batches. The last window may
            be smaller.

    >>> sizes = np.array([5.0, 9.0, 2.0, 4.0, 7.0, 1.0])
    >>> sizes[Windowed(3)(sizes, Key()).sequences]
    array([2., 4., 5., 1., 7., 9.])
    """

    window: int

    def __post_init__(self) -> None:
        checks.keep_whole(self, "window", remedy="Give the number of sequences in 100 batches, for example.")

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        starts = np.arange(0, len(sizes), self.window)
        return Ordered(sort_parts(key.permutation(len(sizes)), sizes, starts), starts[1:])


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucketed:
    """Sequences of similar length share a bucket, in random order; only `RandomSteps` mix buckets in a batch.

    Give one of `size`, `edges` and `buckets`. If sequences have two lengths, `size` sorts by their sum, and each bucket
    has two `edges`.

    Args:
        size: Sorts, and puts `size` sequences into each bucket (Ge et al. 2021, section 3). The bucket of the shortest
            has fewer if there is a remainder. The paper does not say which bucket has fewer; this choice gives the
            padding that it prints.
        edges: The longest length of each bucket, rising. For several lengths, a row for each bucket in any order, such
            as ((20, 30), (60, 50)). Of the buckets that hold a sequence, the one with the least sum of edges gets it.
            With `RandomSteps` and `pad_to_edge`, no edge may be below the same edge of the bucket before.
        buckets: The most buckets. `by` finds their edges: "optimal" (Khomenko et al. 2016, section III.A; see
            `optimal_edges`), "uniform" widths, "quantile", or "exponential".
        pad_to_edge: Pads every batch to the edge of its bucket, so that a run has one padded length for each bucket. A
            sequence then costs as much as its edges: (9, 1) in a bucket of (9, 9) may be over a small budget.
        longer: The policy for a sequence that no bucket of `edges` holds: "error" or "drop". The plan lists dropped
            sequences.

    >>> sizes = np.array([5.0, 9.0, 2.0, 4.0])
    >>> ordered = Bucketed(edges=(4, 9))(sizes, Key())
    >>> sizes[ordered.sequences], ordered.boundaries
    (array([2., 4., 5., 9.]), array([2]))
    >>> Bucketed(buckets=2).fit(sizes).edges
    (5, 9)
    """

    size: int | None = None
    edges: tuple[int, ...] | tuple[tuple[int, ...], ...] | None = None
    buckets: int | None = None
    by: str = "optimal"
    _: KW_ONLY
    pad_to_edge: bool = False
    longer: str = "error"

    def __post_init__(self) -> None:
        checks.check_one("Bucketed", {"size": self.size, "edges": self.edges, "buckets": self.buckets})
        checks.keep_whole(self, "size", remedy="Give a whole number of at least 1.", optional=True)
        checks.keep_whole(self, "buckets", remedy="Give a whole number of at least 1.", optional=True)
        if self.edges is not None:
            checks.keep(self, edges=check_edges(self.edges))
        if self.size is not None and self.pad_to_edge:
            raise checks.value_error("pad_to_edge", "False with size", True, "Give buckets or edges for fixed shapes.")
        checks.check_flag("pad_to_edge", self.pad_to_edge)
        checks.check_choice("by", self.by, tuple(EDGES))
        checks.check_choice("longer", self.longer, ("error", "drop"))
        if self.buckets is None and self.by != "optimal":
            remedy = "Leave `by` out, or give `buckets`: `by` finds their edges."
            raise checks.value_error("by", "left out with size or edges", self.by, remedy)
        if self.edges is None and self.longer != "error":
            remedy = "Leave it out, or give edges: without edges, no sequence is too long for its bucket."
            raise checks.value_error("longer", "left out with size or buckets", self.longer, remedy)

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        if self.size is not None:
            # 5 sequences in buckets of 2: the first holds 1, so the next begin at 1 and 3.
            boundaries = np.arange((len(sizes) - 1) % self.size + 1, len(sizes), self.size)
            sequences = Sorted()(sizes, key).sequences
            # Take another stream: the words of `key` have ordered equal lengths, and so decided their buckets.
            words = key.at("ties", lane=key.lane).words(len(sizes))
            _kernels.shuffle_parts(sequences, np.append(boundaries, len(sequences)), words.view(np.int64))
            return Ordered(sequences, boundaries)
        if self.edges is None:
            raise _unfitted(self)
        edges = np.array(self.edges, np.int64)
        # With the edges (10, 20), lengths 9, 10 and 11 are in the buckets 0, 0 and 1. 21 is in none, and is dropped.
        bucket = find_bucket(sizes, edges=edges)
        # Dropped sequences come last. Buckets of [2, 2, 0, 1] sequences have the boundaries [2, 4].
        counts = np.bincount(bucket, minlength=len(edges))[: len(edges)]
        sequences = _shuffle_within(bucket, key)[: counts.sum()]
        boundaries = np.cumsum(counts[counts > 0])[:-1]
        return Ordered(sequences, boundaries, np.repeat(edges, counts, axis=0) if self.pad_to_edge else None)

    def fit(self, sizes: NDArray[np.float64]) -> Bucketed:
        """Finds the edges of the buckets on `sizes` [n], or checks `edges` against `sizes` [n] or [n, dims]."""
        if self.size is not None:
            return self
        if self.edges is not None:
            check_edges_hold(sizes, self.edges, drop=self.longer == "drop")
            return self
        if sizes.ndim == 2:
            remedy = "Give edges by hand, such as Bucketed(edges=((20, 30), (60, 50)))."
            raise checks.value_error("buckets", "left out if sequences have several lengths", self.buckets, remedy)
        edges = EDGES[self.by](np.ceil(sizes).astype(np.int64), self.buckets or 1)
        return Bucketed(edges=tuple(edges.tolist()), pad_to_edge=self.pad_to_edge)


@dataclass(frozen=True, slots=True)
class MaxEntropy:
    """Sorts by length plus exponential noise: nearly as random as a given padding allows.

    x' = x + E, and E is exponential with the mean `scale`. So the chance that a sequence is padded further falls
    exponentially. At a given padding, hardly any batching is more random (docs/theory.md).

    Args:
        padding: The share of computed frames that may be padding, such as 0.05. Trial plans find the scale. No plan
            pads less than sorted batches, or more than random ones. A miss of more than 0.02 warns once, with the
            reason.
        scale: In place of `padding`: the mean of the noise, in the unit of the lengths.

    With `padding`, sequences of two lengths may form a line in which neighbours are similar in both (`choices.bands`).
    The noise is then added to the place in that line. `padding` is that of both lengths together.

    >>> import lengthwise as lw
    >>> lengths = lw.example_lengths(count=10_000)
    >>> batching = lw.Batching(cut=lw.FixedSize(16), order=MaxEntropy(padding=0.05))
    >>> round(lw.measure(lw.make_plan(lengths, batching), lengths).padding_share, 2)
    0.05
    """

    padding: float | None = None
    _: KW_ONLY
    scale: float | None = None

    def __post_init__(self) -> None:
        checks.check_one("MaxEntropy", {"padding": self.padding, "scale": self.scale})
        if self.padding is not None:
            remedy = "Give a share of the computed frames, such as 0.05."
            checks.keep(self, padding=checks.check_number("padding", self.padding, maximum=0.99, remedy=remedy))
        if self.scale is not None:
            remedy = "Give the mean of the noise, in the unit of the lengths."
            checks.keep(self, scale=checks.check_number("scale", self.scale, above=True, remedy=remedy))

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        if self.scale is None:
            raise _unfitted(self)
        return _sort_with_noise(sizes, self.scale, key)


def pads_to_edge(order: object) -> bool:
    """Returns True if an order of this package pads every sequence to the edge of its bucket."""
    return isinstance(order, Bucketed) and order.pad_to_edge


def finds_noise(order: object) -> TypeGuard[MaxEntropy]:
    """Returns True for `MaxEntropy(padding=...)`: trial plans find its noise. Subclasses find their own."""
    return type(order) is MaxEntropy and order.scale is None


@dataclass(frozen=True, slots=True)
class NoisyLine:
    """Sorts places in a line by place plus exponential noise, whose mean is a share of the line."""

    share: float

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        return _sort_with_noise(sizes, self.share * float(sizes.max(initial=1)), key)


def _sort_with_noise(sizes: NDArray[np.float64], scale: float, key: Key) -> Ordered:
    moved = key.exponential(len(sizes))
    moved *= scale
    moved += sizes
    return Ordered(_random.argsort(moved))


def _unfitted(order: Order) -> ValueError:
    """Returns the error for an order that sorts before it was fitted."""
    name = type(order).__name__
    return checks.state_error(f"{name} was called before it was fitted to the lengths", "make_plan fits it.")


def _shuffle_within(keys: NDArray[np.int64] | NDArray[np.float64], key: Key) -> NDArray[np.int64]:
    """Returns the sequences sorted by their `keys` [n], at least 0, and at random among equal keys: [n]."""
    if keys.max(initial=0) < _random.MOST_GROUPS and (keys == (groups := keys.astype(np.int64))).all():
        return key.permutation_within(groups)
    # The sort is stable: equal keys keep their random order.
    return _random.sort_by(key.permutation(len(keys)), keys)
