"""Resume at every batch, under every loader: what was delivered counts, not what workers fetched ahead."""

import copy
import gc
import json
import multiprocessing
import pickle
import warnings

import numpy as np
import pytest
from torch.utils.data import DataLoader

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=66)
BATCHING = lw.Batching(cut=lw.FixedSize(3), order=lw.SemiSorted(randomization_factor=0.2))
BATCHES = 11  # of each of two ranks
RANK = 1
ARGUMENTS = {"lengths": LENGTHS, "batching": BATCHING, "seed": 4, "rank": RANK, "world_size": 2}


def made(**changed):
    return lw.torch.BatchSampler(**(ARGUMENTS | changed))


def planned(epoch):
    plan = lw.make_plan(LENGTHS, BATCHING, seed=4, epoch=epoch, world_size=2)
    return [batch.tolist() for batch in plan.batches(RANK)]


def as_is(batch):
    return batch


def loader_of(sampler, **options):
    return lw.torch.DataLoader(range(len(LENGTHS)), sampler, collate_fn=as_is, **options)


def stateful(sampler, **options):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")
    return torchdata.StatefulDataLoader(range(len(LENGTHS)), batch_sampler=sampler, collate_fn=as_is, **options)


# One of them fetches more batches ahead than an epoch has. One worker with a longer queue is to a loader as two are.
LOADERS = {
    "no workers": {},
    "2 ahead": {"num_workers": 2, "prefetch_factor": 1},
    "8 ahead": {"num_workers": 1, "prefetch_factor": 8},
    "16 ahead": {"num_workers": 1, "prefetch_factor": 16},
    "persistent": {"num_workers": 1, "prefetch_factor": 4, "persistent_workers": True},
}
STATEFUL = {
    "no workers": {},
    "every third": {"snapshot_every_n_steps": 3},
    "workers": {"num_workers": 2},
    "workers, every third": {"num_workers": 1, "prefetch_factor": 4, "snapshot_every_n_steps": 3},
}
EVERY_KIND = pytest.mark.parametrize("kind", LOADERS)

# torchdata's loader calls a function that PyTorch has deprecated.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")]


def resumed(state):
    """A loader of a new process, set to where `state` was saved."""
    loader = loader_of(made())
    loader.load_state_dict(json.loads(json.dumps(state)))
    loader.set_epoch(state["epoch"])
    return loader


@EVERY_KIND
def test_every_batch_of_two_epochs_is_a_place_to_resume(kind):
    loader = loader_of(made(), **LOADERS[kind])
    for epoch in (0, 1):
        loader.set_epoch(epoch)
        expected = planned(epoch)
        states = [loader.state_dict()]
        for taken, batch in enumerate(loader, start=1):
            assert batch == expected[taken - 1]
            assert loader.delivered == taken
            states.append(loader.state_dict())
        states.append(loader.state_dict())
        places = [*range(BATCHES + 1), BATCHES]
        for taken, state in zip(places, states, strict=True):
            assert len(json.dumps(state)) < 1_000
            again = resumed(state)
            assert (again.epoch, again.delivered, len(again)) == (epoch, taken, BATCHES)
            assert list(again) == expected[taken:]
            assert (again.delivered, len(again)) == (BATCHES, BATCHES)


@pytest.mark.parametrize("taken", [1, 5, BATCHES])
@pytest.mark.parametrize("kind", ["8 ahead", "persistent"])
def test_loaders_go_on_from_a_state_and_can_be_left_again(kind, taken):
    loader = loader_of(made(), **LOADERS[kind])
    loader.load_state_dict(made().state_after(taken))
    assert len(loader) == BATCHES
    got = []
    for batch in loader:
        got.append(batch)
        assert loader.state_dict()["runs"] == [[2, 1, taken + len(got)]]
    assert got == planned(0)[taken:]
    loader.set_epoch(1)
    assert list(loader) == planned(1)


@EVERY_KIND
def test_a_loop_that_is_left_keeps_its_place(kind):
    loader = loader_of(made(), **LOADERS[kind])
    for count, _ in enumerate(loader, start=1):
        if count == 4:
            break
    state = loader.state_dict()
    assert list(resumed(state)) == planned(0)[4:]
    # And in the same process, as a trainer does that restarts itself.
    loader.load_state_dict(state)
    assert list(loader) == planned(0)[4:]


def test_copies_of_a_sampler_go_on_alike():
    sampler = made()
    sampler.resume(sampler.state_after(4))
    for other in (copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert list(other) == planned(0)[4:]


@pytest.mark.parametrize("kind", ["2 ahead", "8 ahead"])
def test_workers_end_with_the_loop_that_is_left(kind):
    loader = loader_of(made(), **LOADERS[kind])
    others = multiprocessing.active_children()
    gc.disable()  # a garbage collector must not be waited for: where it comes by, PyTorch may wait for its workers
    try:
        for _ in loader:
            break
        assert set(multiprocessing.active_children()) <= set(others)
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", STATEFUL)
def test_torchdatas_loader_keeps_its_own_position(kind):
    sampler = made()
    loader = stateful(sampler, **STATEFUL[kind])
    sampler.set_epoch(1)
    states = [loader.state_dict()]
    for _ in loader:
        states.append(copy.deepcopy(loader.state_dict()))
    places = [*range(BATCHES), BATCHES] if not STATEFUL[kind].get("num_workers") else [0, 1, 4, 9, BATCHES]
    for taken in places:
        again = made()
        other = stateful(again, **STATEFUL[kind])
        other.load_state_dict(states[taken])
        again.set_epoch(1)
        assert list(other) == planned(1)[taken:]


def test_batches_out_of_order_are_refused():
    with pytest.raises(ValueError, match=r"^`in_order` must be True, but is False\. Leave it out"):
        loader_of(made(), num_workers=2, in_order=False)


def test_a_trainer_that_counts_itself_says_how_many_it_had():
    sampler = made()
    list(DataLoader(range(len(LENGTHS)), batch_sampler=sampler, collate_fn=as_is, num_workers=1))
    for taken in range(BATCHES + 1):
        again = made()
        again.resume(sampler.state_after(taken))
        assert list(again) == planned(0)[taken:]
        assert again.state_after(taken) == sampler.state_after(taken)
    for wrong in (-1, BATCHES + 1):
        with pytest.raises(ValueError, match="`delivered` must be at"):
            sampler.state_after(wrong)


@EVERY_KIND
def test_an_epoch_that_is_left_before_its_end_warns_once(kind):
    loader = loader_of(made(), **LOADERS[kind])
    for count, _ in enumerate(loader, start=1):
        if count == 2:
            break
    with pytest.warns(UserWarning, match="`batches delivered` must be 11 before the next epoch.* but is 2 at epoch 0"):
        loader.set_epoch(1)
    for count, _ in enumerate(loader, start=1):
        if count == 2:
            break
    loader.set_epoch(2)


def test_an_epoch_that_a_trainer_sets_on_the_sampler_is_noticed_with_the_next_loop():
    sampler = made()
    loader = loader_of(sampler)
    for count, _ in enumerate(loader, start=1):
        if count == 2:
            break
    sampler.set_epoch(1)
    with pytest.warns(UserWarning, match="`batches delivered` must be 11 before the next epoch.* but is 2 at epoch 0"):
        assert list(loader) == planned(1)


@EVERY_KIND
def test_an_epoch_that_was_taken_to_its_end_is_not_taken_again_on_resuming(kind):
    loader = loader_of(made(), **LOADERS[kind])
    loader.load_state_dict(made().state_after(BATCHES))
    loader.set_epoch(0)
    assert list(loader) == []
    assert loader.delivered == BATCHES
    loader.set_epoch(1)
    assert list(loader) == planned(1)


@EVERY_KIND
def test_nothing_is_taken_before_the_first_batch_is_handed_on(kind):
    loader = loader_of(made(), **LOADERS[kind])
    batches = iter(loader)  # workers fetch ahead
    assert loader.delivered == 0
    assert loader.state_dict()["runs"] == []
    next(batches)
    assert loader.delivered == 1


@EVERY_KIND
def test_an_epoch_taken_twice_warns(kind):
    loader = loader_of(made(), **LOADERS[kind])
    list(loader)
    with pytest.warns(UserWarning, match="`epoch` must be another for every epoch, but is 0"):
        list(loader)


@EVERY_KIND
@pytest.mark.parametrize("taken", [4, BATCHES])
def test_a_loaded_position_is_used_once(kind, taken):
    loader = loader_of(made(), **LOADERS[kind])
    loader.load_state_dict(made().state_after(taken))
    assert list(loader) == planned(0)[taken:]
    with pytest.warns(UserWarning, match="`epoch` must be another for every epoch, but is 0"):
        assert list(loader) == planned(0)
    loader.set_epoch(0)
    assert list(loader) == planned(0)


def test_the_position_of_a_sampler_stays_until_another_epoch_is_set():
    sampler = made()
    sampler.resume(made().state_after(4))
    sampler.set_epoch(0)
    assert sampler.start == 4
    for _ in range(2):
        assert list(sampler) == planned(0)[4:]
    sampler.set_epoch(1)
    assert sampler.start == 0
    assert list(sampler) == planned(1)
    sampler.set_epoch(0)
    assert list(sampler) == planned(0)  # whole again


@pytest.mark.parametrize("world_size", [2, 3])
@pytest.mark.parametrize("delivered", [1, 4, BATCHES])
@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_a_loop_that_begins_at_another_epoch_than_the_state_warns(epoch, delivered, world_size):
    first = made()
    first.set_epoch(1)
    sampler = made(world_size=world_size)
    sampler.resume(first.state_after(delivered))
    if epoch == 1 or (epoch == 2 and delivered == BATCHES):
        sampler.set_epoch(epoch)  # goes on where the state stood
        return
    sentence = f"`first epoch` must be 1, that of the loaded state, but is {epoch}. Begin there, or its position is"
    with pytest.warns(UserWarning, match=f"^{sentence} lost: `for epoch in range"):
        sampler.set_epoch(epoch)


@EVERY_KIND
@pytest.mark.parametrize("taken", [0, 4, BATCHES])
def test_an_epoch_begins_anew_where_it_is_asked_to(kind, taken):
    loader = loader_of(made(), **LOADERS[kind])
    loader.load_state_dict(made().state_after(taken))
    for epoch in (0, 0, 1):
        loader.set_epoch(epoch, restart=True)
        assert loader.delivered == 0
        assert list(loader) == planned(epoch)


@pytest.mark.parametrize("kind", ["2 ahead", "16 ahead", "persistent"])
def test_an_epoch_that_is_set_too_late_is_refused(kind):
    loader = loader_of(made(), **LOADERS[kind])
    batches = iter(loader)
    loader.set_epoch(1)
    with pytest.raises(ValueError, match="`epoch` must be 0 until its pass has ended, but is 1"):
        next(batches)


def test_a_position_that_is_loaded_ends_the_loop_before():
    loader = loader_of(made())
    batches = iter(loader)
    next(batches)
    loader.load_state_dict(made().state_after(4))
    said = r"`position` must be kept until the pass has ended, but is 'loaded or .+\. Set"
    with pytest.raises(ValueError, match=said):
        next(batches)
    assert loader.delivered == 4
    assert list(loader) == planned(0)[4:]


def test_a_loader_that_has_fetched_nothing_yet_takes_the_epoch_that_is_set():
    loader = loader_of(made())
    batches = iter(loader)
    loader.set_epoch(1)
    assert list(batches) == planned(1)


@EVERY_KIND
def test_a_loop_goes_on_where_its_epoch_is_set_again(kind):
    loader = loader_of(made(), **LOADERS[kind])
    batches = iter(loader)
    for taken in range(BATCHES):
        loader.set_epoch(0)
        assert next(batches) == planned(0)[taken]
        assert loader.delivered == taken + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader.set_epoch(1)


def test_whoever_takes_over_before_the_first_batch_plans_for_its_own_ranks():
    state = made().state_after(0)
    assert state["runs"] == []
    elsewhere = made(rank=0, world_size=3)
    elsewhere.resume(state)
    assert elsewhere.plan.fingerprint() == lw.make_plan(LENGTHS, BATCHING, seed=4, world_size=3).fingerprint()


@pytest.mark.parametrize(("world_size", "micro_batches"), [(1, 1), (2, 3), (3, 2)])
def test_whoever_takes_over_plans_what_was_left_for_its_own_ranks_and_micro_batches(world_size, micro_batches):
    state = made().state_after(5)
    elsewhere = made(rank=0, world_size=world_size, micro_batches=micro_batches)
    elsewhere.resume(state)
    places = {"world_size": world_size, "micro_batches": micro_batches}
    rest = lw.make_plan(LENGTHS, BATCHING, seed=4, after=[(2, 1, 5)], **places)
    assert elsewhere.plan.fingerprint() == rest.fingerprint()
    assert elsewhere.start == 5
    assert len(elsewhere) == 5 + len(rest)
    later = elsewhere.state_after(6)
    assert later["runs"] == [[2, 1, 5], [world_size, micro_batches, 1]]


def test_loss_scales_are_those_of_the_batches_that_a_pass_yields():
    sampler = made(micro_batches=2)
    weights = LENGTHS.ravel()
    plan = lw.make_plan(LENGTHS, BATCHING, seed=4, world_size=2, micro_batches=2)
    kind = {"reduction": "sum", "ranks_averaged": False, "micro_batches_averaged": True}
    for arguments in ({}, {"weights": weights}, {"weights": weights, **kind}):
        expected = lw.loss_scales(plan, **arguments)[:, :, RANK].ravel()
        assert sampler.loss_scales(**arguments).tolist() == expected.tolist()
    state = sampler.state_after(4)
    whole = sampler.loss_scales().tolist()
    sampler.resume(state)
    assert sampler.loss_scales().tolist() == whole[4:]
    assert len(list(sampler)) == len(sampler.loss_scales())
    elsewhere = made(rank=0, world_size=1)
    elsewhere.resume(state)
    rest = elsewhere.plan
    assert elsewhere.loss_scales().tolist() == lw.loss_scales(rest).ravel().tolist()
    assert len(list(elsewhere)) == len(rest) == len(elsewhere) - 4


def test_every_epoch_takes_the_steps_that_are_said():
    for places in ({"world_size": 1, "rank": 0}, {}, {"world_size": 3, "micro_batches": 2}):
        sampler = made(**places)
        steps = 0
        for epoch in range(3):
            sampler.set_epoch(epoch)
            steps += sum(1 for _ in sampler) / sampler.micro_batches
        assert 3 * sampler.steps == steps


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("lengths", {"lengths": LENGTHS + 1}),
        ("batching.cut.choice", {"batching": lw.Batching(cut=lw.Budget(20_000), order=BATCHING.order)}),
        ("batching.order.choice", {"batching": lw.Batching(cut=BATCHING.cut)}),
        ("batching.deal.choice", {"batching": lw.Batching(cut=BATCHING.cut, order=BATCHING.order, deal=lw.Mixed())}),
        ("seed", {"seed": 5}),
    ],
)
def test_a_state_of_another_run_is_refused(name, changed):
    sampler, state = made(**changed), json.loads(json.dumps(made().state_after(0)))
    with pytest.raises(lw.PlanMismatchError, match=rf"^`{name}` must be the checkpoint's, .+, but is .+\. \w.+\.$"):
        sampler.resume(state)


def test_of_another_batching_the_part_is_named_that_differs():
    state = made(batching=lw.Batching(budget=20_000, padding=0.1)).state_after(0)
    said = r"^`batching.cut.budget` must be the checkpoint's, 20000.0, but is 20001.0\. Resume with"
    with pytest.raises(lw.PlanMismatchError, match=said):
        made(batching=lw.Batching(budget=20_001, padding=0.1)).resume(state)


def test_of_a_batching_that_is_too_long_for_a_kilobyte_the_state_has_a_digest():
    edges = [tuple(range(1_000 + extra, 60_000, 500)) for extra in (0, 1)]
    batchings = [lw.Batching(cut=lw.FixedSize(3), order=lw.Bucketed(edges=each, longer="drop")) for each in edges]
    state = json.loads(json.dumps(made(batching=batchings[0]).state_after(2)))
    assert len(json.dumps(state)) < 1_000
    sampler = made(batching=batchings[0])
    sampler.resume(state)
    assert sampler.start == 2
    with pytest.raises(
        lw.PlanMismatchError, match=r"^`batching` must be the checkpoint's, '\w{16}', but is '\w{16}'\."
    ):
        made(batching=batchings[1]).resume(state)


def test_a_state_is_the_callers_own_and_holds_pythons_numbers():
    sampler = made()
    state = sampler.state_after(np.int64(2))
    assert json.loads(json.dumps(state)) == state
    state["batching"]["cut"]["batch_size"] = 7
    assert sampler.state_after(0)["batching"]["cut"]["batch_size"] == 3


class Squared:
    """A cost function of a user's, of which a batching knows the name alone; counts how often it is called."""

    def __init__(self, factor):
        self.factor = factor
        self.calls = 0

    def __call__(self, counts, padded_lengths):
        self.calls += 1
        longest = padded_lengths.max(axis=1)
        return counts * (longest + self.factor * longest**2)


def squared(factor, **changed):
    cut = lw.Budget(40_000, oversize="alone")
    return made(batching=lw.Batching(cut=cut, cost=Squared(factor)), **changed)


OTHER_PLACES = [{}, {"rank": 0, "world_size": 1}, {"rank": 0, "world_size": 3}, {"micro_batches": 2}]
ANOTHER_PLAN = (
    r"^`plan` must be the checkpoint's, '\w{16}', but is '\w{16}'\. "
    r"Lengths, batching and seed agree, so look for a cost function .* changed, or for another version of lengthwise\.$"
)


@pytest.mark.parametrize("taken", [0, 1, 4])
@pytest.mark.parametrize("place", OTHER_PLACES, ids=str)
def test_a_state_of_a_cost_function_that_was_changed_is_refused_everywhere(place, taken):
    state = squared(0.01).state_after(taken)
    squared(0.01, **place).resume(state)
    with pytest.raises(lw.PlanMismatchError, match=ANOTHER_PLAN):
        squared(0.02, **place).resume(state)


@pytest.mark.parametrize("taken", [0, 1])
@pytest.mark.parametrize("place", OTHER_PLACES, ids=str)
def test_a_state_that_was_saved_after_a_resume_elsewhere_is_refused_too(place, taken):
    between = squared(0.01, rank=0, world_size=3)
    between.resume(squared(0.01).state_after(2))
    state = json.loads(json.dumps(between.state_after(between.start + taken)))
    assert [run[0] for run in state["runs"]] == [2, 3][: 1 + taken]
    squared(0.01, **place).resume(state)
    with pytest.raises(lw.PlanMismatchError, match=ANOTHER_PLAN):
        squared(0.02, **place).resume(state)


def test_an_epoch_is_planned_once_where_it_goes_on_at_the_same_place():
    sampler = squared(0.01)
    state, once = sampler.state_after(4), sampler.batching.cost.calls
    sampler.resume(state)
    loaded = sampler.batching.cost.calls
    assert once < loaded < 2 * once  # planned again, by the fit that is remembered
    sampler.state_after(4)
    assert sampler.batching.cost.calls == loaded


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"epoch": -1}, "`epoch` must be at least 0, but is -1."),
        ({"epoch": "1"}, "`epoch` must be a whole number, but is '1'."),
        ({"world_size": 0}, "`world_size` must be at least 1, but is 0."),
        ({"micro_batches": "1"}, "`micro_batches` must be a whole number, but is '1'."),
        ({"plan": None}, "`plan` must be the checkpoint's, None, but is '"),
        ({"batching": None}, "`batching` must be the checkpoint's, None, but is {'cut'"),
        ({"runs": None}, "`runs` must be a list of three whole numbers each, but is None."),
        ({"runs": [[2, 1]]}, "`runs` must be a list of three whole numbers each, but is [[2, 1]]."),
        ({"runs": [[2, 1, 1.5]]}, "`runs` must be a whole number, but is 1.5."),
        ({"runs": [[2, 1, "3"]]}, "`runs` must be a whole number, but is '3'."),
        ({"runs": [[0, 1, 3]]}, "`runs` must be at least 1, but is 0."),
        ({"runs": [[2, 1, -1]]}, "`runs` must be at least 0, but is -1."),
        ({"runs": [[2, 1, 12]]}, "`runs` must be at most 11, but is 12."),
        ({"runs": [[3, 1, 99]]}, "`after` must be at most 8, but is 99."),
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(damage, said):
    sampler = made()
    before = sampler.state_after(0)
    with pytest.raises((ValueError, TypeError)) as caught:
        sampler.resume(before | damage)
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    assert (sampler.state_after(0), sampler.start) == (before, 0)
    assert list(sampler) == planned(0)


@pytest.mark.parametrize("state", [None, 7, [], {}, {"epoch": 1}, "0"])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(ValueError, match=r"`state` must be what DataLoader.state_dict gives"):
        made().resume(state)
