"""Sets of lengths of every shape that trips a planner up: by Hypothesis, and by chance."""

import numpy as np
from hypothesis import strategies as st

COUNTS = st.one_of(st.integers(1, 9), st.integers(10, 60))


def _array(values):
    return np.asarray(values, np.int64)


even = COUNTS.flatmap(lambda n: st.lists(st.integers(80, 800), min_size=n, max_size=n)).map(_array)
log_normal = st.builds(
    lambda n, seed: np.rint(np.exp(np.random.default_rng(seed).normal(4, 0.7, n))).astype(np.int64).clip(1),
    COUNTS,
    st.integers(0, 2**16),
)
bimodal = st.lists(st.one_of(st.integers(1, 9), st.integers(500, 520)), min_size=2, max_size=60).map(_array)
all_equal = st.builds(lambda n, length: np.full(n, length), COUNTS, st.integers(1, 300))
one_giant = st.builds(lambda n, at: np.where(np.arange(n) == at % n, 5_000, 3), COUNTS, st.integers(0, 59))
few = st.lists(st.integers(1, 50), max_size=2).map(_array)  # n = 0, 1, 2

flat = st.one_of(even, log_normal, bimodal, all_equal, one_giant, few)
"""[n]: one length a sequence."""

pairs = st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90)), max_size=40).map(
    lambda rows: np.array(rows, np.int64).reshape(-1, 2)
)
"""[n, 2]: two lengths a sequence."""


def draw_lengths(chance, dims):
    """Returns 0 to 60 lengths, spread out, long-tailed, of two kinds, all equal, or with giants: [n] or [n, 2]."""
    kinds = (
        lambda: chance.randint(80, 800),
        lambda: max(1, round(chance.lognormvariate(4, 0.8))),
        lambda: chance.choice([5, 510]) + chance.randrange(9),
        lambda: 37,
        lambda: 900 if chance.random() < 0.05 else 3,
    )
    count = chance.choice([0, 1, 2, 3, 5, 8, 13, 30, 60])
    columns = [[kind() for _ in range(count)] for kind in chance.choices(kinds, k=dims)]
    return np.array(columns, np.int64).T.reshape((count, dims)[:dims])


def spread_out(mean, count):
    """Log-normal lengths of a mean, at most 4,096: the sequences of fine-tuning, roughly."""
    drawn = np.random.default_rng(0).lognormal(0.0, 0.7, count) * mean / np.exp(0.7**2 / 2)
    return np.rint(drawn).astype(np.int64).clip(1, 4_096)
