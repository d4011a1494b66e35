"""States that no sampler wrote, or one of another data set: one sentence each, at once."""

import json
import time

import numpy as np
import pytest

import lengthwise as lw

BATCHING = lw.Batching(cut=lw.FixedSize(4))
HUGE = 10**12


def made(sequences=500, **arguments):
    return lw.torch.BatchSampler(np.arange(1, sequences + 1), BATCHING, **arguments)


def refusal(sampler, state, kind=ValueError):
    before, began = sampler.state_after(0), time.monotonic()
    with pytest.raises(kind) as caught:
        sampler.resume(state)
    assert time.monotonic() - began < 10  # planning that many ranks fills the memory, or takes minutes
    assert sampler.state_after(0) == before
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 400
    return said


TOO_MANY = "`world_size x micro_batches` must be at most 1048576 batches in a step, but is {}. Load the state as it was"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"world_size": HUGE}, TOO_MANY.format(HUGE)),
        ({"micro_batches": HUGE}, TOO_MANY.format(HUGE)),
        ({"world_size": 10**6, "micro_batches": 10**6}, TOO_MANY.format(HUGE)),
        ({"world_size": 2**70}, "`world_size` must be at most "),
        ({"world_size": 10**5000}, "`world_size` must be at most 9223372036854775807, but is a number of thousands of"),
        ({"runs": [[HUGE, 1, 1]]}, TOO_MANY.format(HUGE)),
        ({"runs": [[1, HUGE, 0]]}, TOO_MANY.format(HUGE)),
        ({"runs": [[1, 1, HUGE]]}, f"`runs` must be at most 125, but is {HUGE}."),
        ({"runs": [[2, 1, HUGE]]}, f"`after` must be at most 63, but is {HUGE}."),
        ({"runs": [[1, 1, 2**80]]}, "`runs` must be at most "),
        ({"runs": [[1, 1, 0]] * 10**6}, "`runs` must be at most 1000, but is 1000000. Load the state as it was saved."),
        ({"epoch": 2**80}, "`epoch` must be at most "),
        ({"sequences": "500"}, "`sequences` must be a whole number, but is '500'."),
        ({"seed": np.arange(3)}, "`seed` must be of plain numbers and words, but is 'ndarray'. Load the state as"),
        ({"lengths": b"9f"}, "`lengths` must be of plain numbers and words, but is 'bytes'."),
        ({"plan": {1, 2}}, "`plan` must be of plain numbers and words, but is 'set'."),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_what_no_sampler_wrote_is_refused_at_once(damage, said):
    sampler = made()
    assert refusal(sampler, sampler.state_after(0) | damage, (ValueError, TypeError)).startswith(said)


def test_what_contains_itself_is_refused():
    sampler = made()
    state = sampler.state_after(0)
    state["batching"]["cut"] = state["batching"]
    assert refusal(sampler, state).startswith("`batching` must be of plain numbers and words, but is 'dict'.")


@pytest.mark.parametrize("kind", [lw.torch.BatchSampler, lw.torch.EvaluationSampler])
def test_a_sampler_of_more_ranks_than_there_can_be_is_refused_at_once(kind):
    choice = BATCHING if kind is lw.torch.BatchSampler else BATCHING.cut
    with pytest.raises(ValueError, match=r"at most 1048576 batches in a step, but is 1000000000000\. Check world_size"):
        kind([3, 4], choice, rank=0, world_size=HUGE)
    with pytest.raises(ValueError, match=r"at most 1048576 batches in a step, but is 3000000000000\. Check world_size"):
        lw.torch.BatchSampler([3, 4], BATCHING, rank=0, world_size=3, micro_batches=HUGE)


@pytest.mark.parametrize("now", [503, 497])
@pytest.mark.parametrize("taken", [0, 60, 125])
def test_of_a_data_set_that_has_grown_the_counts_are_named_and_what_to_do_does(now, taken):
    first = made()
    first.set_epoch(3)
    state = json.loads(json.dumps(first.state_after(taken)))
    assert refusal(made(now), state, lw.PlanMismatchError) == (
        f"`lengths` must be as many as the checkpoint's 500 sequences, but is {now}. Finish epoch 3 with the lengths "
        f"of those 500; or begin epoch 4 with all {now}: load no state, and call set_epoch(4). "
        "Under a trainer, begin a new run with the weights of this one."
    )
    old = made()
    old.resume(state)
    assert len(list(old)) == 125 - taken if taken < 125 else old.start == 125
    new = made(now)
    new.set_epoch(4)
    assert sorted(number for batch in new for number in batch) == list(range(now))
