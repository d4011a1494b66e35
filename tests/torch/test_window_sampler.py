"""The sampler over windows: under loaders, resumed at every batch, on the same and on other ranks."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=300)
BATCHING = lw.Batching(cut=lw.Budget(6_000), order=lw.Shuffled())
SHAPE = {"window": 64, "block": 4, "seed": 5}


def samplers(world_size, micro_batches=1, **changes):
    named = {"world_size": world_size, "micro_batches": micro_batches, **SHAPE, **changes}
    return [lw.torch.WindowSampler(LENGTHS, BATCHING, rank=rank, **named) for rank in range(world_size)]


def resumed(states, world_size, micro_batches=1):
    ranks = samplers(world_size, micro_batches)
    for sampler in ranks:
        sampler.resume(json.loads(states))
        sampler.set_epoch(sampler.epoch)
    return ranks


def take(sampler, batches):
    """The first batches of a pass, which is then left."""
    return [batch for _, batch in zip(range(batches), sampler, strict=False)]


def sequences(batches):
    return sorted(number for batch in batches for number in batch)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_takes_each_sequence_once_in_every_epoch(workers):
    (sampler,) = samplers(1)
    loader = lw.torch.DataLoader(range(len(LENGTHS)), sampler, num_workers=workers, collate_fn=list)
    epochs = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        epochs.append(list(loader))
        assert len(epochs[-1]) == len(loader)
        assert sequences(epochs[-1]) == list(range(len(LENGTHS)))
        assert max(len(batch) * LENGTHS[batch].max() for batch in epochs[-1]) <= 6_000
    assert epochs[0] != epochs[1]
    assert 2 * sampler.steps == sum(map(len, epochs))


@pytest.mark.parametrize("ahead", [{}, {"num_workers": 1, "prefetch_factor": 4}], ids=["no worker", "a worker"])
def test_a_loader_resumes_at_every_batch(ahead):
    (whole,) = samplers(1)
    whole.set_epoch(1)
    expected = list(whole)
    for taken in range(0, len(expected) + 1, 7):
        (sampler,) = samplers(1)
        sampler.set_epoch(1)
        loader = lw.torch.DataLoader(range(len(LENGTHS)), sampler, collate_fn=list, **ahead)
        first = [batch for _, batch in zip(range(taken), loader, strict=False)]
        (again,) = resumed(json.dumps(loader.state_dict()), 1)
        assert again.epoch == 1
        assert [*first, *again] == expected


@settings(max_examples=25, derandomize=True, deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 2), st.integers(0, 60), st.integers(1, 4), st.integers(0, 60), st.integers(1, 3)
)
def test_other_ranks_take_what_was_left(first, micro_batches, taken, second, taken_then, third):
    ranks = samplers(first, micro_batches)
    seen = [batch for sampler in ranks for batch in take(sampler, taken)]
    ranks = resumed(json.dumps(ranks[0].state_after(min(taken, len(ranks[0])))), second)
    most = min(len(ranks[0]), ranks[0].start + taken_then)
    seen += [batch for sampler in ranks for batch in take(sampler, most - sampler.start)]
    state = json.dumps(ranks[0].state_after(most))
    assert len(state) < 1_000
    ranks = resumed(state, third)
    assert len({len(sampler) for sampler in ranks}) == 1
    seen += [batch for sampler in ranks for batch in sampler]
    assert sorted(set(sequences(seen))) == list(range(len(LENGTHS)))
    repeats = len(sequences(seen)) - len(LENGTHS)
    assert repeats <= 20  # 300 sequences in 20 blocks of steps: only where single sequences do not fill a step


def test_the_same_steps_follow_on_as_many_slots():
    whole = samplers(4)
    expected = [sequences(step) for step in zip(*whole, strict=True)]
    ranks = samplers(4)
    for sampler in ranks:
        take(sampler, 9)
    two = resumed(json.dumps(ranks[0].state_after(9)), 2, micro_batches=2)
    batches = [list(sampler) for sampler in two]
    steps = [
        sequences([batch for rank in batches for batch in rank[step : step + 2]])
        for step in range(0, len(batches[0]), 2)
    ]
    assert steps == expected[9:]


def test_loss_scales_are_one_for_each_batch():
    (sampler,) = samplers(1, micro_batches=2)
    scales = sampler.loss_scales(LENGTHS)
    batches = list(sampler)
    weights = np.array([LENGTHS[batch].sum() for batch in batches], float).reshape(-1, 2)
    expected = weights / weights.sum(axis=1, keepdims=True)
    assert np.allclose(scales.reshape(-1, 2), expected)
    (again,) = samplers(1, micro_batches=2)
    again.resume(again.state_after(10))
    assert np.allclose(again.loss_scales(LENGTHS), expected.reshape(-1)[10:])
    assert list(again.plan.loss_scales(LENGTHS, start=10)) == again.loss_scales(LENGTHS).tolist()


@pytest.mark.parametrize("changed", [{"window": 128}, {"block": 8}, {"seed": 6}])
def test_a_state_of_other_windows_is_refused(changed):
    state = samplers(1)[0].state_after(0)
    with pytest.raises(lw.PlanMismatchError, match="must be the checkpoint's"):
        samplers(1, **changed)[0].resume(state)
    plain = lw.torch.BatchSampler(LENGTHS, BATCHING, seed=5)
    with pytest.raises(lw.PlanMismatchError, match="must be the checkpoint's"):
        plain.resume(state)


def test_a_sampler_of_a_mapped_file_plans_its_first_window_alone(tmp_path, monkeypatch):
    np.save(tmp_path / "lengths.npy", LENGTHS.astype(np.uint16))
    planned = []
    plan = lw.Windows.plan
    monkeypatch.setattr(lw.Windows, "plan", lambda *given, **named: planned.append(given[2]) or plan(*given, **named))
    sampler = lw.torch.WindowSampler(tmp_path / "lengths.npy", BATCHING, **SHAPE)
    assert len(sampler) == len(samplers(1)[0])
    assert planned == []
    assert len(next(iter(sampler))) > 0
    assert set(planned) == {0}
    assert repr(sampler).startswith("WindowSampler(rank 0 of 1, epoch 0 from batch 0 of ")


def test_a_sampler_may_be_copied_and_asked_for_its_windows():
    (sampler,) = samplers(1)
    assert len(sampler.windows) == 5
    assert sampler.plan.window(0).plan.steps == sampler.windows.steps


def test_a_sequence_longer_than_a_row_is_told_as_such_in_windows_too():
    lengths = np.full(400, 9)
    lengths[137] = 40
    sampler = lw.torch.WindowSampler(lengths, lw.Batching(cut=lw.Rows(20)), window=100, block=10)
    with pytest.raises(
        lw.OversizeError, match=r"^`capacity` must be at least the longest sequence, 40, .* sequence 137\."
    ):
        list(sampler)


def test_an_epoch_may_be_a_number_of_numpy_and_nothing_else_than_a_number():
    (sampler,), (other,) = samplers(1), samplers(1)
    sampler.set_epoch(np.int64(3))
    other.set_epoch(3)
    assert list(sampler) == list(other)
    assert json.loads(json.dumps(sampler.state_after(0))) == other.state_after(0)
    for epoch in ("4", 2**32, -1, 0.5):
        with pytest.raises((ValueError, TypeError), match=r"^`epoch` must be (a whole number|at most|at least)"):
            sampler.set_epoch(epoch)
    assert sampler.epoch == 3  # what was refused has changed nothing


def test_a_summary_says_that_random_batches_are_those_of_the_first_window():
    (sampler,) = samplers(1)
    window = sampler.plan.window(0)
    random = lw.make_plan(LENGTHS[window.numbers], lw.Batching(cut=lw.FixedSize(5), order=lw.Shuffled()))
    assert f"Random batches of 5 take {random.steps} steps there, pad " in sampler.summary(batch_size=5)
