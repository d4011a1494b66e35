"""Groups in samplers and streams: no batch mixes two, and a state knows them."""

import numpy as np
import pytest

import lengthwise as lw

LENGTHS = lw.example_lengths("speech", count=600)
TASKS = np.arange(600) % 3
BATCHING = lw.Batching(budget=12_000)


def test_a_sampler_keeps_groups_apart_and_its_state_names_them():
    samplers = [
        lw.torch.BatchSampler(LENGTHS, BATCHING, rank=rank, world_size=2, micro_batches=2, groups=TASKS)
        for rank in range(2)
    ]
    batches = [batch for sampler in samplers for batch in sampler]
    assert sorted(number for batch in batches for number in batch) == list(range(600))
    assert all(len(set(TASKS[batch].tolist())) == 1 for batch in batches)
    state = samplers[0].state_after(3)
    other = lw.torch.BatchSampler(LENGTHS, BATCHING, rank=0, world_size=2, micro_batches=2, groups=TASKS[::-1])
    with pytest.raises(lw.PlanMismatchError, match="groups"):
        other.resume(state)
    samplers[1].resume(state)
    assert len(list(samplers[1])) == len(batches) // 2 - 3


@pytest.mark.parametrize("names", [["talk", "read", "sing"], [7, 8, 9]])
def test_a_stream_keeps_groups_apart(names):
    shards = [list(zip(LENGTHS[start::2].tolist(), TASKS[start::2].tolist(), strict=True)) for start in range(2)]
    stream = lw.torch.StreamBatches(
        shards,
        BATCHING,
        length=lambda sample: sample[0],
        group_of=lambda sample: names[sample[1]],
        buffer=200,
        collate_fn=list,
    )
    batches = list(stream)
    assert sum(map(len, batches)) == 600
    assert all(len({task for _, task in batch}) == 1 for batch in batches)


def test_a_stream_of_other_groups_does_not_go_on():
    def stream(group_of):
        return lw.torch.StreamBatches([list(range(40))], lw.Batching(budget=200), length=lambda _: 9, group_of=group_of)

    begun = stream(lambda sample: sample % 2)
    next(iter(begun))
    for group_of in (lambda sample: sample % 3, None):
        other = stream(group_of)
        other.load_state_dict(begun.state_dict())
        with pytest.raises(lw.PlanMismatchError, match="of the same groups"):
            next(iter(other))


def test_a_function_of_groups_that_is_none_is_refused():
    with pytest.raises(TypeError, match=r"^`group_of` must be a function of a sample, or None, but is 3"):
        lw.torch.StreamBatches([[1]], BATCHING, length=int, group_of=3)
