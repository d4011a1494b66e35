"""Items: no batch mixes two groups, under every way to make steps; steps do."""

import numpy as np
import pytest

import lengthwise as lw

LONG_TAILED = lw.example_lengths()
TASKS = np.random.default_rng(0).integers(0, 4, len(LONG_TAILED))


def groups_of(plan, groups):
    """The groups of each batch."""
    return [set(batch.tolist()) for batch in np.split(groups[plan.numbers], plan.offsets[1:-1])]


@pytest.mark.parametrize("ranks", [1, 8, 64])
def test_steps_mix_groups_and_pad_as_little(ranks):
    batching = lw.Batching(budget=20_000, padding=0.15)
    plans = [lw.make_plan(LONG_TAILED, batching, groups=TASKS, world_size=ranks, epoch=epoch) for epoch in range(3)]
    assert len({plan.steps for plan in plans}) == 1
    assert all(len(each) == 1 for plan in plans for each in groups_of(plan, TASKS))
    measures = lw.measure(plans, LONG_TAILED)
    assert measures.padding_share < 0.16
    if ranks > 1:
        steps = [{TASKS[plans[0].batch(number)[0]] for number in step.reshape(-1)} for step in plans[0].grid]
        assert np.mean([len(step) for step in steps]) > 3
        assert measures.straggler_waste < 0.06
    taken = lw.Batching.from_json(plans[0].batching).deal
    assert isinstance(taken, lw.RandomSteps if ranks == 64 else lw.Stratified)


@pytest.mark.parametrize(("groups", "least"), [(1, 2), (2, 8), (3, 12)])
def test_an_open_deal_takes_random_steps_from_four_batches_a_group_on(groups, least):
    """Lengths are nearly equal, so batches pad less than 10 % in either way. One group needs two batches."""
    lengths, batching = 100 + np.arange(240) % 5, lw.Batching(budget=1_040)
    for micro_batches in (1, least - 1, least, least + 1):
        plan = lw.make_plan(lengths, batching, groups=np.arange(240) // 5 % groups, micro_batches=micro_batches)
        deal = lw.RandomSteps() if micro_batches >= least else lw.Stratified()
        assert lw.Batching.from_json(plan.batching).deal == deal


def test_random_steps_of_groups_by_hand():
    batching = lw.Batching(budget=20, deal=lw.RandomSteps(), arrange=lw.InOrder())
    plan = lw.make_plan([5, 5, 5, 5, 5, 5], batching, groups=["b", "a", "b", "a", "a", "a"], world_size=2)
    assert sorted(sorted(plan.batch(number).tolist()) for number in range(2)) == [[0, 2], [1, 3, 4, 5]]


@pytest.mark.parametrize("cut", [lw.FixedSize(4), lw.Budget(120), lw.Rows(120)])
def test_no_batch_mixes_two_buckets_of_a_group_either(cut):
    lengths, groups = 1 + np.arange(90) * 7 % 40, np.arange(90) % 2
    batching = lw.Batching(cut=cut, order=lw.Bucketed(edges=(20, 40)), deal=lw.Mixed())
    plan = lw.make_plan(lengths, batching, groups=groups, world_size=3)
    for number in range(len(plan.costs)):
        assert len({(groups[member], lengths[member] > 20) for member in plan.batch(number).tolist()}) == 1


def test_what_runs_left_keeps_groups_apart():
    plan = lw.make_plan(LONG_TAILED, lw.Batching(budget=20_000), groups=TASKS, world_size=6, after=[(8, 1, 5)])
    assert all(len(each) == 1 for each in groups_of(plan, TASKS))


def test_the_names_of_a_table_and_booleans_are_groups_and_no_sequence_has_none():
    batching = lw.Batching(budget=20)
    column = np.array(["b", "a", "b"], object)  # as pandas holds names
    for groups in (column, [True, False, True]):
        plans = [lw.make_plan([5, 6, 7], batching, groups=each) for each in (groups, [1, 0, 1])]
        assert plans[0].fingerprint() == plans[1].fingerprint()
    assert lw.make_plan([], batching, groups=[]).steps == 0


@pytest.mark.parametrize(
    ("given", "groups", "sentence"),
    [
        ({}, [1, 2], r"`groups` must be of shape \[3\], but is \(2,\)"),
        ({}, [0.5, 1.5, 2.5], "`groups` must be a list of whole numbers or names"),
        ({"deal": lw.RandomSteps()}, [0, 1, 2], "`groups` must be at most 2 beside RandomSteps, as many as a step has"),
        ({"cut": lw.FixedSize(2), "deal": lw.RandomSteps(even=False)}, [0, 1, 1], "`even` must be True beside groups"),
        ({"cut": lw.Rows(20), "deal": lw.RandomSteps()}, [0, 1, 1], "`cut` must be one that packs no rows"),
    ],
)
def test_groups_that_cannot_be_kept_apart_are_refused(given, groups, sentence):
    batching = lw.Batching(**({"budget": 20} if "cut" not in given else {}), **given)
    with pytest.raises((ValueError, TypeError), match=f"^{sentence}"):
        lw.make_plan([5, 6, 7], batching, groups=groups, world_size=2)


@pytest.mark.parametrize(
    ("choices", "times", "mean"),
    [({}, 2, 20), ({}, [1, 2, 1], 22), ({"chunks": lw.Chunks(20)}, None, 15), ({"chunks": lw.Chunks(20)}, 2, 15)],
    ids=["copies", "more of one", "chunks", "chunks of copies"],
)
def test_a_budget_in_another_unit_is_doubted_by_the_mean_of_copies_and_of_chunks(choices, times, mean):
    doubt = rf"A sequence of the mean length is .* it costs {mean}, and 16 of them cost about {16 * mean}\."
    with pytest.raises(lw.OversizeError, match=rf"at sequence 1[.,].* {doubt}"):
        lw.make_plan([10, 30, 20], lw.Batching(budget=5, **choices), times=times)


class ByTask:
    """Sorts by task: a batch that crosses a boundary would mix two."""

    def __call__(self, sizes, key):
        tasks = np.arange(len(sizes)) % 3
        order = np.lexsort((key.uniform(len(sizes)), tasks))
        return lw.Ordered(order, 1 + np.flatnonzero(np.diff(tasks[order])))


def test_boundaries_of_an_own_order_are_kept_or_refused():
    lengths, tasks = LONG_TAILED[:2_000], np.arange(2_000) % 3
    plan = lw.make_plan(lengths, lw.Batching(budget=20_000, order=ByTask(), deal=lw.Balanced()), world_size=4)
    assert all(len(batch) == 1 for batch in groups_of(plan, tasks))
    in_steps = lw.Batching(budget=20_000, order=ByTask(), deal=lw.RandomSteps())
    with pytest.raises(ValueError, match=r"^Random steps cross the boundaries that your order gives\. Give `groups=`"):
        lw.make_plan(lengths, in_steps, world_size=4)


def test_other_groups_of_the_same_lengths_have_steps_of_their_own():
    batching = lw.Batching(cut=lw.FixedSize(4), order=lw.Sorted(), deal=lw.Balanced())
    for groups, steps in (([0] * 8, 2), ([0] * 5 + [1, 2, 3], 5), ([0] * 4 + [1] * 4, 2)):
        assert lw.make_plan([5] * 8, batching, groups=groups).steps == steps  # warnings are errors here
