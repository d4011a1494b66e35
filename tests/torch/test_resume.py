"""States of samplers: on other ranks, of other runs, damaged, or of a data set that has grown."""

import copy
import json
import pickle
import time

import numpy as np
import pytest

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=66)
BATCHING = lw.Batching(cut=lw.FixedSize(3), order=lw.SemiSorted(randomization_factor=0.2))
BATCHES = 11  # of each of two ranks
RANK = 1
ARGUMENTS = {"lengths": LENGTHS, "batching": BATCHING, "seed": 4, "rank": RANK, "world_size": 2}


def made(**changed):
    return lw.torch.BatchSampler(**(ARGUMENTS | changed))


def made_after(state, **changed):
    """A sampler that goes on from a state that was saved as JSON."""
    sampler = made(**changed)
    sampler.resume(json.loads(json.dumps(state)))
    return sampler


def planned(epoch):
    plan = lw.make_plan(LENGTHS, BATCHING, seed=4, epoch=epoch, world_size=2)
    return [batch.tolist() for batch in plan.batches(RANK)]


def test_a_trainer_that_counts_itself_says_how_many_it_had():
    sampler = made()
    for taken in range(BATCHES + 1):
        again = made_after(sampler.state_after(taken))
        assert list(again) == planned(0)[taken:]
        assert again.state_after(taken) == sampler.state_after(taken)
        for other in (copy.deepcopy(again), pickle.loads(pickle.dumps(again))):
            assert list(other) == planned(0)[taken:]
    for wrong in (-1, BATCHES + 1):
        with pytest.raises(ValueError, match="`delivered` must be at"):
            sampler.state_after(wrong)
    with pytest.raises(ValueError, match=r"^`delivered` must be at least 4, but is 3\. Count from the beginning"):
        made_after(sampler.state_after(4)).state_after(3)
    with pytest.raises(TypeError, match="delivered"):
        sampler.state_after()
    assert not hasattr(sampler, "state_dict")  # loaders would ask it for a position that it does not know


def test_the_position_of_a_sampler_stays_until_another_epoch_is_set():
    sampler = made_after(made().state_after(4))
    sampler.set_epoch(0)
    assert sampler.start == 4
    for _ in range(2):
        assert list(sampler) == planned(0)[4:]
    for epoch in (1, 0):
        sampler.set_epoch(epoch)
        assert sampler.start == 0
        assert list(sampler) == planned(epoch)


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("delivered", [0, 4, BATCHES])
@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_a_loop_that_begins_at_another_epoch_than_the_state_warns(epoch, delivered, world_size):
    first = made()
    first.set_epoch(1)
    sampler = made_after(first.state_after(delivered), world_size=world_size)
    if epoch == 1 or not delivered or (epoch == 2 and delivered == BATCHES):
        sampler.set_epoch(epoch)  # goes on where the state stood, or nothing is lost
        return
    sentence = f"Epoch {epoch} is set, so the loaded position in epoch 1 is lost. Begin with epoch 1: `for"
    with pytest.warns(UserWarning, match=f"^{sentence}"):
        sampler.set_epoch(epoch)


def test_a_position_that_was_set_and_never_read_is_not_lost_in_silence():
    state = made().state_after(4)
    sampler = made_after(state)
    with pytest.raises(TypeError, match=r"^`epoch` must be a whole number, but is '0'\."):
        sampler.set_epoch("0")
    sampler.set_epoch(0)
    with pytest.raises(ValueError, match=r"^Epoch 0 was set, but the sampler was not read\. Give"):
        sampler.set_epoch(1)
    assert len(sampler) == BATCHES  # a length is asked for, but no batch
    with pytest.warns(UserWarning, match="^Epoch 1 is set, so the loaded position in epoch 0 is lost"):
        sampler.set_epoch(1)
    sampler = made_after(state)
    list(sampler)
    sampler.set_epoch(1)


@pytest.mark.parametrize("taken", [0, 5])
@pytest.mark.parametrize(("world_size", "micro_batches"), [(1, 1), (2, 3), (3, 2)])
def test_whoever_takes_over_plans_what_was_left_for_its_own_ranks_and_micro_batches(world_size, micro_batches, taken):
    state = made().state_after(taken)
    places = {"world_size": world_size, "micro_batches": micro_batches}
    elsewhere = made_after(state, rank=0, **places)
    earlier = [[2, 1, taken]] if taken else []
    rest = lw.make_plan(LENGTHS, BATCHING, seed=4, after=earlier, **places)
    assert elsewhere.plan.fingerprint() == rest.fingerprint()
    assert elsewhere.start == taken
    assert len(elsewhere) == taken + len(rest)
    assert state["runs"] == earlier
    within = taken + micro_batches + (micro_batches > 1)
    assert elsewhere.state_after(within)["runs"] == [*earlier, [world_size, micro_batches, micro_batches]]


def test_loss_scales_are_those_of_the_batches_that_a_pass_yields():
    sampler = made(micro_batches=2)
    assert len(sampler) == 2 * sampler.steps
    plan = lw.make_plan(LENGTHS, BATCHING, seed=4, world_size=2, micro_batches=2)
    kind = {"reduction": "sum", "ranks_averaged": False, "micro_batches_averaged": True}
    for arguments in ({}, {"weights": LENGTHS, **kind}):
        expected = lw.loss_scales(plan, **arguments)[:, :, RANK].ravel()
        assert sampler.loss_scales(**arguments).tolist() == expected.tolist()
    state = sampler.state_after(4)
    whole = sampler.loss_scales().tolist()
    sampler.resume(state)
    assert sampler.loss_scales().tolist() == whole[4:]
    elsewhere = made_after(state, rank=0, world_size=1)
    assert elsewhere.loss_scales().tolist() == lw.loss_scales(elsewhere.plan).ravel().tolist()


def test_a_state_from_within_a_step_begins_with_the_step():
    sampler = made(micro_batches=2)
    assert sampler.state_after(5) == sampler.state_after(4)
    sampler.resume(sampler.state_after(5))
    assert sampler.start == 4


def test_a_state_is_the_callers_own_and_holds_pythons_numbers():
    sampler = made()
    state = sampler.state_after(np.int64(2))
    assert json.loads(json.dumps(state)) == state
    state["batching"]["cut"]["batch_size"] = 7
    assert sampler.state_after(0)["batching"]["cut"]["batch_size"] == 3


# States of other runs


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("lengths", {"lengths": LENGTHS + 1}),
        ("batching.cut.choice", {"batching": lw.Batching(cut=lw.Budget(20_000), order=BATCHING.order)}),
        ("batching.cut.batch_size", {"batching": lw.Batching(cut=lw.FixedSize(4), order=BATCHING.order)}),
        ("batching.order.choice", {"batching": lw.Batching(cut=BATCHING.cut, order=lw.Sorted())}),
        ("batching.order", {"batching": lw.Batching(cut=BATCHING.cut)}),
        ("batching.deal.choice", {"batching": lw.Batching(cut=BATCHING.cut, order=BATCHING.order, deal=lw.Mixed())}),
        ("seed", {"seed": 5}),
        ("groups", {"groups": np.arange(66) % 2}),
        ("times", {"times": 1.0}),
    ],
)
def test_a_state_of_another_run_is_refused(name, changed):
    with pytest.raises(lw.PlanMismatchError, match=rf"^`{name}` must be the checkpoint's, .+, but is .+\. \w.+\.$"):
        made_after(made(**changed).state_after(0))


def test_of_a_batching_that_is_too_long_for_a_kilobyte_the_state_has_a_digest():
    edges = [tuple(range(1_000 + extra, 60_000, 500)) for extra in (0, 1)]
    batchings = [lw.Batching(cut=lw.FixedSize(3), order=lw.Bucketed(edges=each, longer="drop")) for each in edges]
    state = made(batching=batchings[0]).state_after(2)
    assert len(json.dumps(state)) < 1_000
    assert made_after(state, batching=batchings[0]).start == 2
    with pytest.raises(lw.PlanMismatchError, match=r"^`batching` must be the checkpoint's, '\w{16}', but is '\w{16}'"):
        made_after(state, batching=batchings[1])


class Squared:
    """A cost function of a user's. A batching knows only its name."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, counts, padded_lengths):
        longest = padded_lengths.max(axis=1)
        return counts * (longest + self.factor * longest**2)


def squared(factor):
    return {"batching": lw.Batching(cut=lw.Budget(40_000, oversize="alone"), cost=Squared(factor))}


@pytest.mark.parametrize("taken", [0, 1])
@pytest.mark.parametrize("between", [{}, {"rank": 0, "world_size": 3}], ids=["at once", "after another resume"])
@pytest.mark.parametrize("place", [{}, {"rank": 0, "world_size": 1}, {"micro_batches": 2}], ids=str)
def test_a_state_of_a_cost_function_that_was_changed_is_refused_everywhere(place, between, taken):
    state = made(**squared(0.01)).state_after(2)
    before = made_after(state, **squared(0.01), **between)
    state = before.state_after(before.start + taken)
    made_after(state, **squared(0.01), **place)
    said = (
        r"^`plan` must be the checkpoint's, '\w{16}', but is '\w{16}'\. Lengths, batching and seed agree\. Look for "
        r"a cost function .* changed, or for another version of lengthwise\.$"
    )
    with pytest.raises(lw.PlanMismatchError, match=said):
        made_after(state, **squared(0.02), **place)


@pytest.mark.parametrize("now", [69, 63])
@pytest.mark.parametrize("taken", [0, 6, BATCHES])
def test_of_a_data_set_that_has_grown_the_counts_are_named_and_what_to_do_does(now, taken):
    first = made()
    first.set_epoch(3)
    state = first.state_after(taken)
    lengths = np.resize(LENGTHS, now)
    with pytest.raises(lw.PlanMismatchError) as caught:
        made_after(state, lengths=lengths)
    assert str(caught.value) == (
        f"`lengths` must be as many as the checkpoint's 66 sequences, but is {now}. Finish epoch 3 with the lengths of "
        f"those 66; or begin epoch 4 with all {now}: load no state, and call set_epoch(4). Under a trainer, begin a "
        "new run with the weights of this one."
    )
    assert list(made_after(state)) == planned(3)[taken:]


# States that no sampler wrote

HUGE = 10**12
TOO_MANY = "`world_size x micro_batches` must be at most 1048576 batches in a step, but is {}. Load the state as it was"
DAMAGES = [
    ({"epoch": -1}, "`epoch` must be at least 0, but is -1."),
    ({"epoch": "1"}, "`epoch` must be a whole number, but is '1'."),
    ({"epoch": 2**80}, "`epoch` must be at most "),
    ({"world_size": 0}, "`world_size` must be at least 1, but is 0."),
    ({"world_size": HUGE}, TOO_MANY.format(HUGE)),
    ({"world_size": 10**6, "micro_batches": 10**6}, TOO_MANY.format(HUGE)),
    ({"world_size": 10**5000}, "`world_size` must be at most 9223372036854775807, but is a number of thousands of"),
    ({"micro_batches": "1"}, "`micro_batches` must be a whole number, but is '1'."),
    ({"plan": None}, "`plan` must be the checkpoint's, None, but is '"),
    ({"plan": {1, 2}}, "`plan` must be of plain numbers and words, but is 'set'."),
    ({"batching": None}, "`batching` must be the checkpoint's, None, but is {'cut'"),
    ({"runs": None}, "`runs` must be a list of runs, each of three whole numbers, but is None."),
    ({"runs": [[2, 1]]}, "`runs` must be a list of runs, each of three whole numbers, but is [[2, 1]]."),
    ({"runs": [[2, 1, 1.5]]}, "`runs` must be a whole number, but is 1.5."),
    ({"runs": [[0, 1, 3]]}, "`runs` must be at least 1, but is 0."),
    ({"runs": [[2, 1, -1]]}, "`runs` must be at least 0, but is -1."),
    ({"runs": [[2, 1, 12]]}, "`runs` must be at most 11, but is 12."),
    ({"runs": [[3, 1, 99]]}, "`after` must be at most 8, but is 99."),
    ({"runs": [[HUGE, 1, 1]]}, TOO_MANY.format(HUGE)),
    ({"runs": [[2, 1, 2**80]]}, "`runs` must be at most "),
    ({"runs": [[1, 1, 0]] * 10**6}, "`runs` must be at most 1000, but is 1000000. Load the state as it was saved."),
    ({"sequences": "500"}, "`sequences` must be a whole number, but is '500'."),
    ({"seed": np.arange(3)}, "`seed` must be of plain numbers and words, but is 'ndarray'. Load the state as"),
    ({"lengths": b"9f"}, "`lengths` must be of plain numbers and words, but is 'bytes'."),
    ({"times": np.zeros(2)}, "`times` must be of plain numbers and words, but is 'ndarray'."),
    ({"groups": np.zeros(2)}, "`groups` must be of plain numbers and words, but is 'ndarray'."),
    ({"times": "0" * 16}, "`times` must be the checkpoint's, '0000000000000000', but is "),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGES, ids=lambda value: value[:30] if isinstance(value, str) else "")
def test_a_damaged_state_is_refused_at_once_and_changes_nothing(damage, said):
    sampler = made()
    before, began = sampler.state_after(0), time.monotonic()
    with pytest.raises((ValueError, TypeError)) as caught:
        sampler.resume(before | damage)
    assert time.monotonic() - began < 10  # planning that many ranks fills the memory, or takes minutes
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert (sampler.state_after(0), sampler.start) == (before, 0)


def test_a_state_that_contains_itself_is_refused():
    state = made().state_after(0)
    state["batching"]["cut"] = state["batching"]
    with pytest.raises(ValueError, match=r"^`batching` must be of plain numbers and words, but is 'dict'\."):
        made().resume(state)


@pytest.mark.parametrize("state", [None, 7, [], {}, {"epoch": 1}, "0"])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(ValueError, match=r"`state` must be a state from DataLoader.state_dict"):
        made().resume(state)
