"""The sampler over windows: under loaders, resumed at every batch, on the same and on other ranks."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw

pytestmark = pytest.mark.slow

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


def test_a_loader_takes_each_sequence_once_in_every_epoch_and_resumes():
    (sampler,) = samplers(1)
    loader = lw.torch.DataLoader(range(len(LENGTHS)), sampler, num_workers=1, prefetch_factor=4, collate_fn=list)
    epochs = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        states, batches = [loader.state_dict()], []
        for batch in loader:
            batches.append(batch)
            states.append(loader.state_dict())
        assert len(batches) == len(loader)
        assert sequences(batches) == list(range(len(LENGTHS)))
        assert max(len(batch) * LENGTHS[batch].max() for batch in batches) <= 6_000
        epochs.append(batches)
    assert epochs[0] != epochs[1]
    assert 2 * sampler.steps == sum(map(len, epochs))
    assert sampler.plan.window(0).plan.steps == sampler.windows.window_steps(1)[0]
    for taken in range(0, len(states), 7):
        (again,) = resumed(json.dumps(states[taken]), 1)
        assert again.epoch == 1
        assert list(again) == epochs[1][taken:]


@settings(max_examples=12, derandomize=True, deadline=None)
@given(*(st.integers(low, high) for low, high in ((1, 4), (1, 2), (0, 60), (1, 4), (0, 60), (1, 3))))
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


def test_loss_scales_are_those_of_the_plan():
    (sampler,) = samplers(1, micro_batches=2)
    scales = list(sampler.plan.loss_scales(LENGTHS))
    assert sampler.loss_scales(LENGTHS).tolist() == scales
    sampler.resume(sampler.state_after(10))
    assert sampler.loss_scales(LENGTHS).tolist() == scales[10:]


@pytest.mark.parametrize("changed", [{"window": 128}, {"block": 8}, {"seed": 6}])
def test_a_state_of_other_windows_is_refused(changed):
    state = samplers(1)[0].state_after(0)
    with pytest.raises(lw.PlanMismatchError, match="must be the checkpoint's"):
        samplers(1, **changed)[0].resume(state)
    plain = lw.torch.BatchSampler(LENGTHS, BATCHING, seed=5)
    with pytest.raises(lw.PlanMismatchError, match="must be the checkpoint's"):
        plain.resume(state)


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
