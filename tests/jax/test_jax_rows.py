"""Packed rows under JAX: one shape for all batches, and a network that learns from them exactly as from padded ones."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jaxlib")

import jax
import jax.numpy as jnp

import lengthwise as lw

CAPACITY, WORDS, WIDTH = 24, 17, 8
BATCHING = lw.Batching(cut=lw.Rows(CAPACITY, rows=3))


def token_lists(count, seed=0):
    chance = np.random.default_rng(seed)
    return [chance.integers(1, WORDS, chance.integers(1, CAPACITY + 1)) for _ in range(count)]


TOKENS = token_lists(60)
LENGTHS = [len(each) for each in TOKENS]
SAMPLES = [{"input_ids": each} for each in TOKENS]
PLAN = lw.make_plan(LENGTHS, BATCHING)


def test_each_array_by_hand():
    samples = [
        {"input_ids": np.array(tokens, np.uint16), "frames": np.ones((len(tokens), 2)), "labels": np.array(labels)}
        for tokens, labels in (([5, 6, 7], [1, 2, 3]), ([8, 9], [-100, 4]), ([3, 4], [5, 6]))
    ]
    batch = lw.jax.RowCollate(6, rows=3, value=1)(samples)
    assert batch.fields["input_ids"].tolist() == [[5, 6, 7, 8, 9, 1], [3, 4, 1, 1, 1, 1], [1] * 6]
    assert batch.fields["input_ids"].dtype == np.uint16
    assert batch.fields["frames"].shape == (3, 6, 2)
    none = [-100] * 6
    assert batch.fields["labels"].tolist() == [[-100, 2, 3, -100, 4, -100], [-100, 6, *none[:4]], none]
    assert batch.positions.tolist() == [[0, 1, 2, 0, 1, 0], [0, 1, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5]]
    assert batch.segments.tolist() == [[1, 1, 1, 2, 2, 0], [1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]
    assert batch.positions.dtype == batch.segments.dtype == np.int32


def test_labels_are_copied_with_a_sign_and_stand_where_they_are_when_they_are_of_each_place():
    tokens = {"input_ids": np.array([5, 6, 7], np.uint16)}
    labels = lw.jax.RowCollate(4)([tokens]).fields["labels"]
    assert (labels.tolist(), labels.dtype) == ([[-100, 6, 7, -100]], np.int32)
    assert lw.jax.RowCollate(4, next_token=False)([tokens]).fields["labels"].tolist() == [[5, 6, 7, -100]]
    assert set(lw.jax.RowCollate(4, labels=None)([tokens]).fields) == {"input_ids"}
    # A loss of floats leaves no target out, so the first one is kept.
    assert lw.jax.RowCollate(4)([{"labels": np.array([1.0, 0.5])}]).fields["labels"].tolist() == [[1.0, 0.5, 0.0, 0.0]]
    assert lw.jax.RowCollate(4)([np.array([5.0, 6.0])]).fields.tolist() == [[5.0, 6.0, 0.0, 0.0]]


@pytest.mark.parametrize(("deal", "most"), [(lw.Balanced(), None), (lw.RandomSteps(), 2)], ids=repr)
def test_batches_are_the_rows_of_the_plan_in_one_shape_that_compiles_once(deal, most):
    traced = []

    @jax.jit
    def count_tokens(batch):
        traced.append(batch.fields["input_ids"].shape)  # runs while it is traced, and never again
        return (batch.segments > 0).sum()

    batching = lw.Batching(cut=lw.Rows(CAPACITY, rows=3, max_in_row=most), deal=deal)
    plan, collate = lw.make_plan(LENGTHS, batching, world_size=2), lw.jax.RowCollate(CAPACITY, rows=4, max_in_row=most)
    frames = 0
    for rank in range(2):
        whole, first, second, rest = (
            list(lw.jax.batches(SAMPLES, plan, collate, rank=rank, **which))
            for which in ({}, {"shard": (0, 2)}, {"shard": (1, 2)}, {"start": 1})
        )
        for batch, number in zip(whole, plan.grid[:, 0, rank].tolist(), strict=True):
            rows, tokens = plan.rows(number), batch.fields["input_ids"]
            assert batch.segments.max(axis=1).tolist() == [len(row) for row in rows] + [0] * (4 - len(rows))
            for row, values, segments in zip(rows, tokens, batch.segments, strict=False):
                assert values[segments > 0].tolist() == np.concatenate([TOKENS[member] for member in row]).tolist()
            frames += int(count_tokens(batch))
        shards = zip(first, second, strict=True)
        together = [jax.tree.map(lambda *parts: np.concatenate(parts), *both) for both in shards]
        jax.tree.map(np.testing.assert_array_equal, together, whole)
        jax.tree.map(np.testing.assert_array_equal, rest, whole[1:])
    assert frames >= sum(LENGTHS)  # a tail may take some twice
    assert traced == [(4, CAPACITY)]


@pytest.fixture
def in_float64():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def weights_of_a_network():
    shapes = {"words": (WORDS, WIDTH), "places": (CAPACITY, WIDTH), "out": (WIDTH, WORDS)}
    shapes |= {f"{name}{layer}": (WIDTH, WIDTH) for layer in range(2) for name in ("query", "key", "value", "feed")}
    chance = np.random.default_rng(1)
    return {name: jnp.asarray(chance.normal(0, 0.5, shape)) for name, shape in shapes.items()}


def scores_of(weights, tokens, positions, mask):
    """Two layers of causal attention over learned positions: scores [rows, places, WORDS]."""
    state = weights["words"][tokens] + weights["places"][positions]
    for layer in range(2):
        query, key, value = (state @ weights[f"{name}{layer}"] for name in ("query", "key", "value"))
        looks = jnp.where(mask[:, 0], query @ key.swapaxes(1, 2) / WIDTH**0.5, -jnp.inf)
        state = state + jnp.tanh((jax.nn.softmax(looks) @ value) @ weights[f"feed{layer}"])
    return state @ weights["out"]


def next_token_loss(scores, labels):
    """The sum over all places but those whose next label is -100."""
    labels = labels[:, 1:]
    chosen = jnp.take_along_axis(jax.nn.log_softmax(scores[:, :-1]), jnp.maximum(labels, 0)[..., None], axis=2)
    return -(chosen[..., 0] * (labels != -100)).sum()


@jax.jit
def packed_loss(weights, batch):
    mask = lw.jax.block_mask(batch.segments)
    scores = scores_of(weights, batch.fields["input_ids"], batch.positions, mask)
    return next_token_loss(scores, batch.fields["labels"])


@jax.jit
def padded_loss(weights, batch):
    tokens = batch.values
    causal = jnp.tril(jnp.ones((tokens.shape[1],) * 2, bool))[None, None]
    scores = scores_of(weights, tokens, jnp.arange(tokens.shape[1])[None], causal)
    return next_token_loss(scores, jnp.where(batch.mask, tokens, -100))


@pytest.mark.usefixtures("in_float64")
def test_a_packed_step_has_the_loss_and_the_gradients_of_its_padded_sequences():
    weights = weights_of_a_network()
    collate = lw.jax.RowCollate(CAPACITY, rows=4)
    alone = lw.jax.PadCollate([[1, CAPACITY]])
    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.Rows(CAPACITY, rows=3), deal=lw.RandomSteps()), micro_batches=2)
    packed = list(lw.jax.batches(SAMPLES, plan, collate))
    found = [jax.value_and_grad(packed_loss)(weights, packed[part]) for part in range(2)]
    members = np.concatenate([plan.batch(number) for number in plan.grid[0].reshape(-1).tolist()])
    expected = [jax.value_and_grad(padded_loss)(weights, alone([TOKENS[member]])) for member in members.tolist()]
    ours, theirs = (jax.tree.map(lambda *parts: sum(parts), *each) for each in (found, expected))
    assert ours[0].dtype == np.float64
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11), ours, theirs)


def test_the_page_runs_as_it_is_written():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "jax.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), "jax.md", "exec"), {})


def test_samples_of_any_structure_are_packed_leaf_by_leaf():
    parts = {"ids": [5, 6], "more": {"b": np.array([1, 2]), "c": [3, 4]}}
    sample = {"a": parts, "labels": np.array([7, 8], np.uint64), "z": [np.array([1, 2]), np.array([0.5, 1.5])]}
    fields = lw.jax.RowCollate(3, value=-1)([sample]).fields
    assert (fields["labels"].tolist(), fields["labels"].dtype) == ([[-100, 8, -100]], np.int64)
    assert (fields["a"]["ids"].tolist(), fields["a"]["more"]["c"].tolist()) == ([[5, 6, -1]], [[3, 4, -1]])
    assert [part.tolist() for part in fields["z"]] == [[[1, 2, -1]], [[0.5, 1.5, -1.0]]]
    mixed = lw.jax.RowCollate(4, labels=None)([{"x": np.array([1, 2])}, {"x": np.array([0.5])}]).fields["x"]
    assert mixed.tolist() == [[1.0, 2.0, 0.5, 0.0]]
    assert set(lw.jax.RowCollate(4)([{"x": np.array([1, 2])}]).fields) == {"x"}  # nothing to copy labels from


def test_lists_of_numbers_are_arrays_in_every_part_of_a_sample():
    ids, more = lw.jax.RowCollate(3)([([5, 6], {"more": [[1, 2], ([3, 4],)]})]).fields
    assert (ids.tolist(), more["more"][0].tolist()) == ([[5, 6, 0]], [[1, 2, 0]])
    assert more["more"][1][0].tolist() == [[3, 4, 0]]


def test_a_mask_without_a_future_and_with_one():
    segments = np.array([[1, 1, 0]])
    assert lw.jax.block_mask(segments).astype(int).tolist() == [[[[1, 0, 0], [1, 1, 0], [0, 0, 1]]]]
    both = jax.jit(lambda array: lw.jax.block_mask(array, causal=False))(segments)
    assert np.asarray(both).astype(int).tolist() == [[[[1, 1, 0], [1, 1, 0], [0, 0, 1]]]]


def lay(*samples, **settings):
    return lw.jax.RowCollate(4, **settings)(list(samples))


def batches_of(plan=PLAN, capacity=CAPACITY, rows=3, most=None, **which):
    collate = lw.jax.RowCollate(capacity, rows=rows, max_in_row=most)
    return lambda: lw.jax.batches(SAMPLES, plan, collate, **which)


LABELLED = {"input_ids": [5, 6], "labels": [-100, 6]}
REFUSED = [
    (lambda: lw.jax.RowCollate(0), "`capacity` must be at least 1, but is 0. Give the tokens of a row, as in lw."),
    (lambda: lw.jax.RowCollate(4, rows=0), "`rows` must be at least 1, but is 0. "),
    (lambda: lw.jax.RowCollate(4, next_token="no"), "`next_token` must be "),
    (lambda: lay(), "`samples` must be at least one, but is []. "),
    (lambda: lay(np.ones(2), np.ones(5)), "`samples` must be 1 to 4 frames long, but is 5 at sample 1. Plan "),
    (lambda: lay(np.ones(0)), "`samples` must be 1 to 4 frames long, but is 0 at sample 0. "),
    (lambda: lay(()), "`samples` must be of at least one sequence field, but is 0. "),
    (
        lambda: lay((np.ones(2), np.ones(2)), (np.ones(2), np.ones(3))),
        "`samples` must be 2 long, as field 0 is, but is 3 at sample 1, field 1. ",
    ),
    (lambda: lay((np.ones(2), 7)), "`samples` must be of arrays alone, but is 7. Leave numbers out, or repeat "),
    (lambda: lay(([5, 6], {"more": [[1, 2], (3, 4, [7, 8])]})), "`samples` must be of arrays alone, but is 3. "),
    (lambda: lay(np.ones(3), np.ones(3)), "`samples` must be at most 1 row(s) of 4 frames, but is 2. Give "),
    (lambda: lay({"a": np.ones(2)}, {"b": np.ones(2)}), "`samples` must be built as PyTreeDef("),
    (lambda: lay(LABELLED, {"input_ids": [1]}), "`samples` must be built as PyTreeDef("),
    (lambda: lay({"input_ids": [1]}, LABELLED), "`samples` must be built as PyTreeDef("),
    (batches_of(rows=2), "`collate` must be of at least 3 rows of 24 frames, as the plan is, but is '2 rows of 24'. "),
    (
        batches_of(capacity=CAPACITY + 1),
        "`collate` must be of at least 3 rows of 24 frames, as the plan is, but is '3 rows of 25'. ",
    ),
    (batches_of(most=2), "`max_in_row` must be None, as in the plan, but is 2. Give lw.Rows and RowCollate the same"),
    (batches_of(shard=(0, 2)), "`rows` must be a multiple of the 2 shards, but is 3. Give more rows: "),
    (
        batches_of(lw.make_plan([3, 4], lw.Batching(budget=9))),
        "The plan pads one sequence a row, but a RowCollate packs rows. Plan with cut=",
    ),
    (batches_of(lw.make_plan([3, 4], BATCHING)), "`dataset` must be of the 2 sequences of the plan, but is 60. "),
]


@pytest.mark.parametrize(("work", "message"), REFUSED)
def test_what_does_not_fit_is_refused_in_one_sentence(work, message):
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(message)}"):
        work()
