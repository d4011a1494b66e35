"""Order: in which order the sequences are cut into batches, and where no batch may cross.

    sizes        [n]   float64: what each sequence counts for when it is sorted, its length where it has but one
    sequences    [m]   sequence numbers; m < n only where a choice was asked to drop
    boundaries         rising positions in 1..m-1 that no batch may cross: the borders of buckets
    edges        [m]   what each sequence is padded to at least (fixed shapes), or None; [m, dims] of several lengths

Every order sorts by a key. Orders differ in how random that key is.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from lengthwise import _kernels, _random, checks
from lengthwise._random import Key
from lengthwise.choices.arithmetic import small_whole
from lengthwise.choices.buckets import EDGES, check_edges, check_held, find_bucket

# Noise wider than this share of the longest has 2**32 values there: hardly any two sums of length and noise are equal.
_NO_TIES = 2.0**-20


class Ordered(NamedTuple):
    """What an order gives.

    Attributes:
        sequences: [m] int64, numbers from 0 to n - 1, each at most once; m < n only where the order was asked to drop.
        boundaries: [k] int64, rising positions in 1..m-1 that no batch may cross; by default there are none.
        edges: [m] int64, what each of `sequences` is padded to at least, in the unit of the lengths; None
            for no more than the longest of the batch. If sequences have several lengths, [m, dims].
    """

    sequences: NDArray[np.int64]
    boundaries: NDArray[np.int64] = np.empty(0, np.int64)
    edges: NDArray[np.int64] | None = None


class Order(Protocol):
    """What every order does. `sizes` is not empty.

    An order that must know all sequences before it sorts them, to find its edges or its noise, also has

        def fit(self, sizes) -> Order

    `fit` is called once for a plan, and gives the order that then sorts each portion. Its `sizes` are those of all
    sequences but the oversize ones.
    """

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        """Puts sequences in order.

        Args:
            sizes: [n] float64, the length of each sequence, summed over its dimensions. If it has several lengths,
                `Sorted` and `MaxEntropy` are given its place in a line of bands instead, and `Bucketed` with edges all
                of them, [n, dims].
            key: The source of all chance, for this portion of this epoch.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Shuffled:
    """Random order: the most padding and the most mixing."""

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        return Ordered(key.permutation(len(sizes)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Sorted:
    """By length, rising unless `descending`. Equal lengths stand in random order, another one in every epoch."""

    descending: bool = False

    def __post_init__(self) -> None:
        checks.check_flag("descending", self.descending)

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        whole = small_whole(sizes, _random.MOST_GROUPS - 1)
        if whole is not None:
            return Ordered(key.permutation_within(whole.max(initial=0) - whole if self.descending else whole))
        # The sort is stable: equal lengths keep the random order that they come in.
        return Ordered(_sort_by_size(key.permutation(len(sizes)), -sizes if self.descending else sizes))


@dataclass(frozen=True, slots=True)
class SemiSorted:
    """By length plus uniform noise: x' = x + U(-a/2, a/2), a = (longest - shortest) r.

    Args:
        randomization_factor: r, the paper's Local Randomization Factor: 0 sorts, and above 1 it is nearly random.

    References:
        Ge et al. 2021, section 2, equations 2 and 3.
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
        if width > _NO_TIES * sizes.max():
            return Ordered(_sort_by_size(None, moved))
        # Ties need a stream of their own: a second draw of `key` would begin with the same words as the noise.
        return Ordered(_sort_by_size(key.at("ties", lane=key.lane).permutation(len(sizes)), moved))


@dataclass(frozen=True, slots=True)
class AlternatedSort:
    """Shuffled, divided into bins of equal size, and each bin sorted: odd bins rising, even bins falling.

    Neighbouring bins meet at similar lengths, so that a batch across their border pads little.

    Args:
        bins: N. 1 sorts; one bin for each batch is nearly random. At most one bin for each sequence is used.

    References:
        Doetsch, Golik, Ney 2017, section 4. The probability the paper gives for two sequences to share a bin,
        1 / (N (N - 1)), should be (n/N - 1) / (n - 1).
    """

    bins: int

    def __post_init__(self) -> None:
        remedy = "Give the number of bins, such as 58."
        checks.keep(self, bins=checks.check_whole("bins", self.bins, minimum=1, remedy=remedy))

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        count = len(sizes)
        bins = min(self.bins, count)
        starts = -(-np.arange(bins) * count // bins)  # 5 sequences in 2 bins: [0, 3]
        return Ordered(sort_parts(key.permutation(count), sizes, starts, turned=True))


@dataclass(frozen=True, slots=True)
class Windowed:
    """Shuffled, taken in windows of equal size, and each window sorted; no batch crosses windows.

    Other systems call it pools, sortish sampling or grouping by length.

    Args:
        window: Sequences in a window, a multiple of the batch size for full batches; the last window may be smaller.
    """

    window: int

    def __post_init__(self) -> None:
        remedy = "Give the sequences in a window, 100 batches of them, for example."
        checks.keep(self, window=checks.check_whole("window", self.window, minimum=1, remedy=remedy))

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        starts = np.arange(0, len(sizes), self.window)
        return Ordered(sort_parts(key.permutation(len(sizes)), sizes, starts), starts[1:])


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucketed:
    """Sequences of similar length share a bucket, in random order; no batch crosses buckets.

    Give one of `size`, `edges` and `buckets`. With two lengths a sequence, `size` goes by their sum; a bucket has an
    edge for each, and `edges` are given.

    Args:
        size: Sort, then `size` sequences a bucket (Ge et al. 2021, section 3). A remainder makes the bucket of the
            shortest smaller. The paper does not say which; this choice gives the padding that it prints.
        edges: The longest length of each bucket, rising. With several lengths a row for each bucket, as ((20, 30),
            (60, 50)), in any order: of the buckets that are long enough for a sequence, it is in the one of the least
            sum of edges. If `RandomSteps`, which mixes buckets, pads to them, each must hold the one before.
        buckets: At most this many, with edges found by `by`: "optimal" (Khomenko et al. 2016, section III.A; see
            `optimal_edges`), "uniform" widths, "quantile", or "exponential".
        pad_to_edge: Pad every batch to the edge of its bucket, so that a run has one padded length for each bucket. A
            sequence then costs what its edges do: one of (9, 1) in a bucket of (9, 9) may be over a small budget.
        longer: What becomes of a sequence that no bucket of `edges` holds: "error" or "drop". The plan lists what was
            dropped.
    """

    size: int | None = None
    edges: tuple[int, ...] | tuple[tuple[int, ...], ...] | None = None
    buckets: int | None = None
    by: str = "optimal"
    _: KW_ONLY
    pad_to_edge: bool = False
    longer: str = "error"

    def __post_init__(self) -> None:
        given = [name for name in ("size", "edges", "buckets") if getattr(self, name) is not None]
        if len(given) != 1:
            raise checks.value_error("Bucketed", "given one of size, edges, buckets", given, "Choose one of the three.")
        for name in ("size", "buckets"):
            if (value := getattr(self, name)) is not None:
                remedy = "Give a whole number of at least 1."
                checks.keep(self, **{name: checks.check_whole(name, value, minimum=1, remedy=remedy)})
        if self.edges is not None:
            checks.keep(self, edges=check_edges(self.edges))
        if self.size is not None and self.pad_to_edge:
            raise checks.value_error("pad_to_edge", "False with size", True, "Give buckets or edges for fixed shapes.")
        checks.check_flag("pad_to_edge", self.pad_to_edge)
        checks.check_choice("by", self.by, tuple(EDGES))
        checks.check_choice("longer", self.longer, ("error", "drop"))
        if self.buckets is None and self.by != "optimal":
            remedy = "Leave it out, or give buckets, whose edges it finds."
            raise checks.value_error("by", "left out with size or edges", self.by, remedy)
        if self.edges is None and self.longer != "error":
            remedy = "Leave it out, or give edges: no sequence is too long for other buckets."
            raise checks.value_error("longer", "left out with size or buckets", self.longer, remedy)

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        if self.size is not None:
            # 5 sequences in buckets of 2: the first holds 1, so the next begin at 1 and 3.
            borders = np.arange((len(sizes) - 1) % self.size + 1, len(sizes), self.size)
            sequences = Sorted()(sizes, key).sequences
            # Chance of its own: `key` has put equal lengths in order, so that its words say in which bucket each is.
            words = key.at("ties", lane=key.lane).words(len(sizes))
            _kernels.shuffle_parts(sequences, np.append(borders, len(sequences)), words.view(np.int64))
            return Ordered(sequences, borders)
        if self.edges is None:
            raise _unfitted(self)
        edges = np.array(self.edges, np.int64)
        # Of the edges (10, 20), lengths 9, 10 and 11 are in the buckets 0, 0 and 1; 21 would be in a third: dropped.
        bucket = find_bucket(sizes, edges=edges)
        # What is dropped stands last. Buckets of [2, 2, 0, 1] sequences have the borders [2, 4].
        counts = np.bincount(bucket, minlength=len(edges))[: len(edges)]
        sequences = _shuffle_buckets(bucket, key)[: counts.sum()]
        boundaries = np.cumsum(counts[counts > 0])[:-1]
        return Ordered(sequences, boundaries, np.repeat(edges, counts, axis=0) if self.pad_to_edge else None)

    def fit(self, sizes: NDArray[np.float64]) -> Bucketed:
        """Finds the edges of the buckets on `sizes` [n], so that all portions share them.

        Edges that were given are held against `sizes` [n] or [n, dims].
        """
        if self.size is not None:
            return self
        if self.edges is not None:
            check_held(sizes, self.edges, drop=self.longer == "drop")
            return self
        if sizes.ndim == 2:
            remedy = "Give edges by hand, such as Bucketed(edges=((20, 30), (60, 50)))."
            raise checks.value_error("buckets", "left out for several lengths a sequence", self.buckets, remedy)
        found = EDGES[self.by](np.ceil(sizes).astype(np.int64), self.buckets or 1)
        return Bucketed(edges=tuple(found.tolist()), pad_to_edge=self.pad_to_edge)


@dataclass(frozen=True, slots=True)
class MaxEntropy:
    """Sorts by length plus exponential noise: as random as a given padding allows, or nearly.

    x' = x + E, and E is exponential with the mean `scale`. So the chance that a sequence is padded further falls
    exponentially. That is nearly the law that tells least of the lengths at a given padding (docs/theory.md).

    Args:
        padding: The share of computed frames that may be padding, such as 0.05. The scale is sought on trial plans
            until they pad so much. Sorted batches pad least and random ones most; no padding outside of these two is
            reached. A miss of more than 0.02 warns once, and says why. The default order does not warn: nobody asked
            for its padding.
        mixing: In place of `padding`: the least padding at which plans mix so much, 0..1. Trial plans mix it on
            average, as `measure(plan, lengths).mixing` says; one epoch mixes a little more or less by chance. Random
            batches mix most and sorted ones least; a miss of more than 0.02 warns once. Few sequences fill few bins
            (1,000 fill 11, 100,000 fill 101), and few bins show more mixing. So do not compare it between sets of
            different sizes.
        scale: In place of `padding`: the mean of the noise, in the unit of the lengths.

    With two lengths for each sequence, sequences stand in a line in which neighbours are alike in both, and noise is
    added to the place in that line (`lengthwise.choices.bands`). `padding` is that of both lengths together.
    """

    padding: float | None = None
    _: KW_ONLY
    scale: float | None = None
    mixing: float | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("padding", "mixing", "scale") if getattr(self, name) is not None]
        if len(given) != 1:
            rule = "given one of padding, mixing, scale"
            raise checks.value_error("MaxEntropy", rule, given, "Choose one of the three.")
        if self.padding is not None:
            remedy = "Give a share of the computed frames, such as 0.05."
            checks.keep(self, padding=checks.check_number("padding", self.padding, maximum=0.99, remedy=remedy))
        if self.mixing is not None:
            remedy = "Give a share of what independent lengths would mix, such as 0.5."
            checks.keep(self, mixing=checks.check_number("mixing", self.mixing, maximum=1.0, remedy=remedy))
        if self.scale is not None:
            remedy = "Give the mean of the noise, in the unit of the lengths."
            checks.keep(self, scale=checks.check_number("scale", self.scale, above=True, remedy=remedy))

    def __call__(self, sizes: NDArray[np.float64], key: Key) -> Ordered:
        if self.scale is None:
            raise _unfitted(self)
        return _sort_with_noise(sizes, self.scale, key)


def pads_to_edge(order: object) -> bool:
    """Returns whether every sequence is padded to the edge of its bucket by an order of this package."""
    return isinstance(order, Bucketed) and order.pad_to_edge


def finds_noise(order: object) -> TypeGuard[MaxEntropy]:
    """Whether it is a `MaxEntropy` of a padding or a mixing, whose noise is found; what extends it finds its own."""
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
    """The error for an order that is asked to sort before it was fitted."""
    remedy = "Plan with it: make_plan fits it."
    return checks.value_error(type(order).__name__, "fitted to the lengths first", order, remedy)


def _shuffle_buckets(bucket: NDArray[Any], key: Key) -> NDArray[np.int64]:
    """All sequences bucket by bucket, in random order within each."""
    if bucket.max(initial=0) < 2**16:
        return key.permutation_within(bucket)
    return _random.sort_by(key.permutation(len(bucket)), bucket)


def _sort_by_size(sequences: NDArray[np.int64] | None, sizes: NDArray[np.float64]) -> NDArray[np.int64]:
    """Sorts `sequences` by their sizes, equals in the order they come in; None for all, as they are numbered."""
    least = sizes.min(initial=0)
    # The sort wants keys of at least 0: -sizes and some warps begin below.
    keys = sizes - least if least < 0 else sizes
    return _random.argsort(keys) if sequences is None else _random.sort_by(sequences, keys)


def sort_parts(
    sequences: NDArray[np.int64], sizes: NDArray[np.float64], starts: NDArray[np.int64], *, turned: bool = False
) -> NDArray[np.int64]:
    """Sorts each part of `sequences` [n] by size, equals in the order they come in: [n].

    Args:
        sequences: Each of 0..n-1 once.
        sizes: [n], of sequence 0, 1, ...
        starts: [parts], rising from 0: part p is sequences[starts[p]:starts[p + 1]].
        turned: Whether the second part, the fourth and so on fall, where the others rise.

    >>> sort_parts(np.array([3, 0, 2, 1, 4]), np.array([5.0, 9.0, 2.0, 7.0, 8.0]), np.array([0, 3]), turned=True)
    array([2, 0, 3, 1, 4])
    """
    counts = np.diff(np.append(starts, len(sequences)))
    keys = np.repeat(np.arange(len(starts)), counts)  # the part of each, and below its size as it stands in the part
    own = sizes[sequences]
    whole = small_whole(own, 2**40)
    if whole is not None and (most := int(whole.max(initial=0)) + 1) * len(starts) < 2**40:
        keys *= most
        keys += whole
        del own, whole
        order = _random.argsort(keys)
    else:
        order = np.lexsort((own, keys))
    del keys
    if turned:
        # In a part of the positions 2 and 3: 3 and 2.
        turns = np.repeat(np.arange(len(starts)) % 2 == 1, counts)
        mirrored = np.repeat(2 * starts + counts - 1, counts)[turns] - np.flatnonzero(turns)
        order[turns] = order[mirrored]
    return sequences[order]
