"""The door to JAX: every batch has one of the declared shapes, and is nothing but its sequences."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("jaxlib")

import jax

import length_sets
import lengthwise as lw

LENGTHS = [3, 9, 8, 10, 31, 40, 22]
ORDER = lw.Bucketed(edges=(10, 40), pad_to_edge=True)
BATCHING = lw.Batching(cut=lw.FixedSize(2), order=ORDER, arrange=lw.InOrder())
LONGEST_LABEL = 4


def numbered(lengths):
    """Samples that tell which they are: frames [length, 2], places [length], labels [1 to 4], and a scalar."""
    return [
        {
            "inputs": (np.full((length, 2), number + 1.0, np.float32), np.arange(length)),
            "labels": np.full(1 + number % LONGEST_LABEL, number, np.int32),
            "number": number,
        }
        for number, length in enumerate(lengths)
    ]


PAD_TO = {"labels": LONGEST_LABEL}


def is_padded(part):
    return isinstance(part, lw.jax.PaddedSequences)


def unpadded(batch, row):
    """The sample in one row of a batch."""
    return jax.tree.map(
        lambda part: part.values[row, : part.lengths[row]] if is_padded(part) else part[row], batch, is_leaf=is_padded
    )


def test_a_batch_worked_by_hand():
    collate = lw.jax.PadCollate([[3, 4], [1, 9]], pad_to={"1": 2})
    samples = [(np.array([5.0, 6.0, 7.0]), np.array([1]), 8), (np.array([8.0]), np.array([2, 3]), 9)]
    inputs, labels, number = collate(samples)
    assert inputs.values.tolist() == [[5, 6, 7, 0], [8, 0, 0, 0], [0, 0, 0, 0]]
    assert labels.values.tolist() == [[1, 0], [2, 3], [0, 0]]
    assert (inputs.lengths.tolist(), labels.lengths.tolist(), number.tolist()) == ([3, 1, 0], [1, 2, 0], [8, 9, 0])
    assert inputs.mask.tolist() == [[True, True, True, False], [True, False, False, False], [False] * 4]
    assert labels.mask.tolist() == [[True, False], [True, True], [False, False]]


def test_labels_of_a_dict_hold_what_counts_in_no_loss():
    names = ("input_ids", "attention_mask", "labels")
    samples = [{name: np.array(tokens, np.uint16) for name in names} for tokens in ([5, 6, 7], [8])]
    batch = lw.jax.PadCollate([[3, 4]], value=9)(samples)
    padding = {name: np.unique(batch[name].values[~batch[name].mask]).tolist() for name in names}
    assert padding == {"input_ids": [9], "attention_mask": [0], "labels": [-100]}
    assert [batch[name].values.dtype for name in names] == [np.uint16, np.uint16, np.int32]
    by_name = lw.jax.PadCollate([[3, 4]], value={"input_ids": 9, "labels": 1})(samples)
    padding = {name: np.unique(by_name[name].values[~by_name[name].mask]).tolist() for name in names}
    assert padding == {"input_ids": [9], "attention_mask": [0], "labels": [1]}

    def padded(labels, **choices):
        return lw.jax.PadCollate([[2, 3]], **choices)([labels])

    assert padded({"x": np.ones(2), "label": 4})["label"].tolist() == [4, -100]  # the row that the batch lacks
    assert padded({"x": np.ones(2), "label": 4}, value={"label": 7, "x": 1})["label"].tolist() == [4, 7]
    _, inner = padded((np.ones(2), {"labels": np.ones(2, np.int8)}))
    assert inner["labels"].values.tolist() == [[1, 1, -100], [-100] * 3]
    for kind in (np.float32, np.bool_):  # no loss leaves -100 out of these
        assert not padded({"labels": np.ones(2, kind)})["labels"].values[:, 2].any()


@settings(max_examples=20, derandomize=True)
@given(
    length_sets.flat,
    st.sampled_from([lw.FixedSize(3), lw.Budget(20_000, max_sequences=5), lw.DynamicSize(2, rule="paper")]),
    st.sampled_from([lw.Balanced(), lw.Portions()]),
    st.integers(1, 3),
)
def test_unpadded_batches_are_the_sequences_of_the_plan(lengths, cut, deal, world_size):
    if not len(lengths):
        return
    batching = lw.Batching(order=lw.Bucketed(buckets=3, pad_to_edge=True), cut=cut, deal=deal)
    shapes = lw.batch_shapes(lengths, batching)
    plan = lw.make_plan(lengths, batching, world_size=world_size, epoch=1)
    samples, collate = numbered(lengths), lw.jax.PadCollate(shapes, pad_to=PAD_TO)
    for rank in range(world_size):
        taken = lw.jax.batches(samples, plan, collate, rank=rank)
        for batch, members in zip(taken, plan.batches(rank), strict=True):
            frames = batch["inputs"][0]
            assert list(frames.mask.shape) in shapes.tolist()
            assert not frames.values[~frames.mask].any()
            for row, member in enumerate(members):
                jax.tree.map(np.testing.assert_array_equal, unpadded(batch, row), samples[member])
            labels = batch["labels"]
            assert (labels.values[~labels.mask] == -100).all()
            filled = jax.tree.leaves({**batch, "labels": (labels.lengths, labels.mask)})
            assert not any(leaf[len(members) :].any() for leaf in filled)


def test_jit_compiles_once_for_each_shape_and_never_again():
    lengths = lw.example_lengths("long-tailed", count=300)
    batching = lw.Batching(order=lw.Bucketed(buckets=5, pad_to_edge=True), cut=lw.Budget(30_000))
    samples = [np.ones(length, np.float32) for length in lengths]
    collate = lw.jax.PadCollate(lw.batch_shapes(lengths, batching))

    @jax.jit
    def frames(batch):
        return (batch.values * batch.mask).sum()

    for seed, epoch, world_size in ((0, 0, 1), (5, 1, 3)):
        plan = lw.make_plan(lengths, batching, seed=seed, epoch=epoch, world_size=world_size)
        ranks = (lw.jax.batches(samples, plan, collate, rank=rank) for rank in range(world_size))
        assert sum(float(frames(batch)) for taken in ranks for batch in taken) == lengths.sum()
        assert frames._cache_size() == 5


@pytest.mark.parametrize("size", [2, 5])  # batches of 2 and 1, most of whose shards hold nothing; and of 4 and 3
def test_shards_together_are_the_batch_and_a_run_resumes_within_the_epoch(size):
    shapes = lw.batch_shapes(LENGTHS, replace(BATCHING, cut=lw.FixedSize(5)))
    shapes[:, 0] = 6  # for two shards and for three
    plan = lw.make_plan(LENGTHS, replace(BATCHING, cut=lw.FixedSize(size)))
    samples, collate = numbered(LENGTHS), lw.jax.PadCollate(shapes, pad_to=PAD_TO)
    for parts in (2, 3):
        shards = [lw.jax.batches(samples, plan, collate, shard=(part, parts)) for part in range(parts)]
        for whole, *taken in zip(lw.jax.batches(samples, plan, collate), *shards, strict=True):
            assert {len(part["number"]) for part in taken} == {6 // parts}
            together = jax.tree.map(lambda *leaves: np.concatenate(leaves), *taken)
            jax.tree.map(np.testing.assert_array_equal, together, whole)
    whole, rest = (list(lw.jax.batches(samples, plan, collate, start=start)) for start in (0, 1))
    jax.tree.map(np.testing.assert_array_equal, rest, whole[1:])


def test_samples_are_asked_for_one_batch_at_a_time_and_chunks_as_spans():
    asked = []

    class Frames:
        def __getitem__(self, span):
            asked.append(span)
            return np.arange(*span[1:])

    batching = replace(BATCHING, chunks=lw.Chunks(10))
    plan = lw.make_plan([25, 7], batching)
    batches = lw.jax.batches(Frames(), plan, lw.jax.PadCollate(lw.batch_shapes([25, 7], batching)))
    assert asked == []
    first = next(batches)
    assert asked == [tuple(span) for span in plan.batch(int(plan.grid[0, 0, 0])).tolist()]
    lengths = [length for batch in (first, *batches) for length in batch.lengths.tolist()]
    assert sorted(asked) == [(0, 0, 10), (0, 10, 20), (0, 20, 25), (1, 0, 7)]
    assert sorted(lengths) == [5, 7, 10, 10]


PLAN = lw.make_plan(LENGTHS, BATCHING)
SHAPES = [[2, 10], [2, 40]]


def taken(plan=PLAN, shapes=SHAPES, dataset=None, **which):
    samples = numbered(LENGTHS) if dataset is None else dataset
    return lambda: list(lw.jax.batches(samples, plan, lw.jax.PadCollate(shapes, pad_to=PAD_TO), **which))


def padded(*samples, shapes=SHAPES, **choices):
    return lambda: lw.jax.PadCollate(shapes, **choices)(list(samples))


ONES = np.ones(3)
ENDLESS = []
ENDLESS.append(ENDLESS)
REFUSED = [
    (taken(shapes=[[2, 10]]), r"`shapes` must be padded to at least the longest sequence, 40, but is \[2, 10]"),
    (
        taken(shapes=[[1, 10], [2, 40]]),
        r"`shapes` must be of at least 2 rows where sequences are 10 long, but is \[1, 10\]\. Give lw.batch_shapes",
    ),
    (taken(shard=(0, 3)), r"`shapes` must be of rows that divide by the 3 shards, .*Round them up"),
    (taken(shard=(2, 2)), "`shard` must be at most 1, but is 2"),
    (taken(shard=2), r"`shard` must be a pair \(index, count\), but is 2"),
    (taken(rank=1), "`rank` must be at most 0, but is 1"),
    (taken(start=9), "`start` must be at most 4, but is 9"),
    (taken([3, 9]), r"`plan` must be a lengthwise\.Plan, but is \[3, 9\]\. Make one with"),
    (
        taken(lw.make_plan([3, 4], lw.Batching(cut=lw.Rows(9)))),
        r"^The plan packs rows, but a PadCollate pads one sequence a row\. Take Row",
    ),
    (
        taken(lw.make_plan([[3, 4]], lw.Batching(cut=lw.FixedSize(1)))),
        "`plan` must be of one length a sequence, as the shapes are, but is 2. Take the shapes",
    ),
    (taken(shapes=[[2, 10, 9], [2, 40, 9]]), "`plan` must be of 2 lengths a sequence, .*, but is 1"),
    (taken(dataset=[ONES] * 6), r"`dataset` must be of the 7 sequences of the plan, but is 6\. Plan the lengths"),
    (
        taken(dataset=numbered(LENGTHS[::-1])),
        r"`samples` must be at most 10 long, but is \d+ at sample \d\. Plan the lengths of this dataset, in its order",
    ),
    (lambda: lw.jax.batches([], PLAN, list), r"`collate` must be a PadCollate or a RowCollate of lengthwise\.jax"),
    (padded(shapes=[[0, 10]]), "`shapes` must be at least 1, but is 0"),
    (padded(shapes=[]), "`shapes` must be rows of equally many numbers, at least 2"),
    (padded(), r"`samples` must be at least one, but is \[\]"),
    (padded(np.ones(41)), "`shapes` must be padded to at least the longest .* 41"),
    (padded(ONES, ONES, ONES), "`shapes` must be of at least 3 rows"),
    (
        padded((ONES, np.ones(12)), shapes=[[2, 10, 9]]),
        r"`shapes` must be padded to at least the longest sequence, 3 x 12, but is \[2, 10, 9\]",
    ),
    (
        padded((ONES, ONES, ONES), shapes=[[2, 10, 9]]),
        "`samples` must be of 2 arrays that are padded to the shape, but is 3. Give each other array its length",
    ),
    (padded(ENDLESS), r"`samples` must be of a few levels, none of which holds itself, but is \[\[\.\.\.\]\]\. Leave"),
    (padded({"x": ONES}, {"y": ONES}), r"`samples` must be built as PyTreeDef.* at sample 1"),
    (
        padded(np.ones((3, 2)), np.ones((3, 4))),
        r"`samples` must be shaped as \(3, 2\), except for the first axis, which is padded, but is \(3, 4\) at",
    ),
    (
        padded((ONES, np.ones(2)), (ONES, ONES), pad_to={"1": 2}),
        "`samples` must be at most 2 long, but is 3 at sample 1. Raise the number in pad_to",
    ),
    (padded(pad_to={"1": 0}), "`pad_to` must be at least 1, but is 0"),
    (padded(pad_to={"1": "long"}), "`pad_to` must be a whole number, but is 'long'"),
    (padded(pad_to=24), "`pad_to` must be a dict of lengths by name, but is 24"),
    (padded(ONES, pad_to={"": 9}), "`pad_to` must be a dict that leaves out an array"),
    (padded((ONES, ONES), pad_to={"2": 3}), r"`pad_to` must be a dict by the names of padded fields \(0, 1\), but"),
    (
        padded({"labels": ONES}, value={"lables": 0}),
        r"`value` must be a dict by the names of padded fields \(labels\), but is 'lables'\.",
    ),
    (padded(np.array([1, 2]), value=0.5), r"`value` must be a whole number that int64 holds, but is 0\.5\. Give a"),
]


@pytest.mark.parametrize(("work", "message"), REFUSED)
def test_bad_values_are_refused_in_one_sentence(work, message):
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        work()


def test_the_longest_array_of_the_longest_sample_chooses_the_shape():
    first, second = padded((ONES, np.ones(2)), (np.ones(1), np.ones(7)), shapes=[[3, 4], [3, 8]])()
    assert first.values.shape == second.values.shape == (3, 8)


def test_columns_of_several_types_have_one_that_holds_both():
    column, number = padded((np.array([1, 2]), 3), (np.array([0.5]), 2.5), shapes=[[3, 2]])()
    assert column.values.tolist() == [[1.0, 2.0], [0.5, 0.0], [0.0, 0.0]]
    assert number.tolist() == [3.0, 2.5, 0.0]
    assert (column.lengths.dtype, column.mask.dtype) == (np.int32, np.bool_)


def test_each_of_two_lengths_is_padded_to_its_own():
    pairs = np.array([[3, 9], [2, 8], [9, 2], [8, 3], [9, 9]])
    samples = [(np.full(source, n), n, np.full(target, n)) for n, (source, target) in enumerate(pairs)]
    order = lw.Bucketed(edges=((3, 9), (9, 3), (9, 9)), pad_to_edge=True)
    batching = lw.Batching(order=order, cut=lw.FixedSize(2), arrange=lw.InOrder())
    shapes = lw.batch_shapes(pairs, batching)
    assert shapes.tolist() == [[2, 3, 9], [2, 9, 3], [1, 9, 9]]
    plan = lw.make_plan(pairs, batching)
    seen = []
    for source, number, target in lw.jax.batches(samples, plan, lw.jax.PadCollate(shapes)):
        assert [len(number), source.values.shape[1], target.values.shape[1]] in shapes.tolist()
        rows = source.lengths > 0
        assert np.stack([source.lengths, target.lengths], axis=1)[rows].tolist() == pairs[number[rows]].tolist()
        seen += number[rows].tolist()
    assert sorted(seen) == list(range(5))


def test_the_clock_begins_with_the_step_and_ends_when_its_arrays_are_there(monkeypatch):
    now, asked = [5.0], []

    def step(shape):
        now[0] += shape[0]
        return {"loss": jax.numpy.zeros(()), "texts": "a"}

    def make_batch(count, length):
        asked.append((count, length))
        now[0] += 1_000.0  # is not timed
        return count, length

    def wait(returned):
        now[0] += 0.5
        return returned

    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    monkeypatch.setattr(jax, "block_until_ready", wait)
    cost = lw.measure_step(step, make_batch, [5, 10, 20], budget=100, repeats=3)
    assert cost.measured_seconds.tolist() == (cost.counts + 0.5).tolist()
    assert (cost.counts * cost.padded_lengths[:, 0]).max() == 100
    assert len(asked) == 3 * 2 * len(cost.counts)  # each shape twice a round


def test_tab_completion_shows_what_is_public():
    assert [name for name in dir(lw.jax) if not name.startswith("_")] == lw.jax.__all__
