"""What a batching is made of: equal choices are the same, however their numbers were given."""

import numpy as np

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=3_000)


def test_numbers_of_numpy_are_those_of_python():
    ours = lw.Batching(
        cut=lw.Budget(np.float32(20_000), max_sequences=np.int64(64)),
        order=lw.Bucketed(buckets=np.int64(5)),
        arrange=lw.CostliestFirst(steps=np.int32(2)),
        cost=lw.Quadratic(linear=np.float64(1), quadratic=np.float32(0)),
        chunks=lw.Chunks(np.int64(400), step=np.int16(200)),
    )
    theirs = lw.Batching(
        cut=lw.Budget(20_000.0, max_sequences=64),
        order=lw.Bucketed(buckets=5),
        arrange=lw.CostliestFirst(steps=2),
        cost=lw.Quadratic(linear=1, quadratic=0),
        chunks=lw.Chunks(400, step=200),
    )
    assert ours == theirs
    assert ours.to_json() == theirs.to_json()
    assert lw.make_plan(LENGTHS, ours).fingerprint() == lw.make_plan(LENGTHS, theirs).fingerprint()


def test_a_whole_budget_and_the_same_in_fractions_name_the_same_plan():
    whole, fraction = (lw.make_plan(LENGTHS, lw.Batching(budget=budget)) for budget in (20_000, 20_000.0))
    assert whole.fingerprint() == fraction.fingerprint()


def test_portions_share_the_edges_of_their_buckets():
    batching = lw.Batching(cut=lw.FixedSize(8), order=lw.Bucketed(buckets=6, pad_to_edge=True), deal=lw.Portions())
    met = {
        int(length)
        for epoch in range(3)
        for length in lw.make_plan(LENGTHS, batching, epoch=epoch, world_size=4).padded_lengths[:, 0]
    }
    assert sorted(met) == lw.optimal_edges(LENGTHS, 6).tolist()


def test_dropping_as_mxnet_does_leaves_full_batches_on_any_number_of_ranks():
    lengths = [5, 9, 100, 7, 6] * 4
    plan = lw.make_plan(lengths, lw.mxnet_bucketing((8, 20), batch_size=4, drop=True), world_size=3)
    assert plan.batch_sizes.tolist() == [4, 4, 4]
    assert set(np.array(lengths)[plan.sequences]) <= {5, 6, 7, 9}
