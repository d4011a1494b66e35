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
    return DataLoader(range(len(LENGTHS)), batch_sampler=sampler, collate_fn=as_is, **options)


def stateful(sampler, **options):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")
    return torchdata.StatefulDataLoader(range(len(LENGTHS)), batch_sampler=sampler, collate_fn=as_is, **options)


def plain(sampler):
    return sampler


# One of them fetches more batches ahead than an epoch has. One worker with a longer queue is to a sampler as two are.
LOADERS = {
    "plain": (plain, {}),
    "no workers": (loader_of, {}),
    "2 ahead": (loader_of, {"num_workers": 2, "prefetch_factor": 1}),
    "8 ahead": (loader_of, {"num_workers": 1, "prefetch_factor": 8}),
    "16 ahead": (loader_of, {"num_workers": 1, "prefetch_factor": 16}),
    "persistent": (loader_of, {"num_workers": 1, "prefetch_factor": 4, "persistent_workers": True}),
    "stateful": (stateful, {}),
    "stateful ahead": (stateful, {"num_workers": 1, "prefetch_factor": 4}),
}
STATEFUL = {
    "no workers": {},
    "every third": {"snapshot_every_n_steps": 3},
    "workers": {"num_workers": 2},
    "workers, every third": {"num_workers": 1, "prefetch_factor": 4, "snapshot_every_n_steps": 3},
}

# torchdata's loader calls a function that PyTorch has deprecated.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")]


def resumed(state, epoch):
    """A sampler of a new process, set to where `state` was saved."""
    sampler = made()
    sampler.load_state_dict(json.loads(json.dumps(state)))
    sampler.set_epoch(epoch)
    return sampler


@pytest.mark.parametrize("kind", LOADERS)
def test_every_batch_of_two_epochs_is_a_place_to_resume(kind):
    maker, options = LOADERS[kind]
    sampler = made()
    loader = maker(sampler, **options)
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        expected = planned(epoch)
        states = [sampler.state_dict()]
        for taken, batch in enumerate(loader, start=1):
            assert batch == expected[taken - 1]
            assert sampler.delivered == taken
            states.append(sampler.state_dict())
        states.append(sampler.state_dict())
        places = [*range(BATCHES + 1), BATCHES]
        for taken, state in zip(places, states, strict=True):
            assert len(json.dumps(state)) < 1_000
            again = resumed(state, epoch)
            assert (again.epoch, again.start, len(again)) == (epoch, taken, BATCHES)
            assert list(again) == expected[taken:]
            assert (again.start, len(again)) == (taken, BATCHES)


@pytest.mark.parametrize("taken", [1, 5, BATCHES])
@pytest.mark.parametrize("kind", ["8 ahead", "persistent"])
def test_loaders_go_on_from_a_state_and_can_be_left_again(kind, taken):
    maker, options = LOADERS[kind]
    first = made()
    for count, _ in enumerate(first, start=1):
        if count == taken:
            break
    sampler = resumed(first.state_dict(), 0)
    again = maker(sampler, **options)
    assert len(again) == BATCHES
    got = []
    for batch in again:
        got.append(batch)
        assert sampler.state_dict()["runs"] == [[2, 1, taken + len(got)]]
    assert got == planned(0)[taken:]
    sampler.set_epoch(1)
    assert list(again) == planned(1)


@pytest.mark.parametrize("kind", LOADERS)
def test_a_loop_that_is_left_keeps_its_place(kind):
    maker, options = LOADERS[kind]
    sampler = made()
    for count, _ in enumerate(maker(sampler, **options), start=1):
        if count == 4:
            break
    state = sampler.state_dict()
    assert list(resumed(state, 0)) == planned(0)[4:]
    for taken_over in (copy.deepcopy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert taken_over.state_dict() == state
    # And in the same process, as a trainer does that restarts itself.
    sampler.load_state_dict(state)
    assert list(maker(sampler, **options)) == planned(0)[4:]


@pytest.mark.parametrize("kind", ["8 ahead", "stateful ahead"])
def test_workers_end_with_the_loop_that_is_left(kind):
    maker, options = LOADERS[kind]
    sampler = made()
    others = multiprocessing.active_children()
    gc.disable()  # a garbage collector must not be waited for: where it comes by, PyTorch may wait for its workers
    try:
        for _ in maker(sampler, **options):
            break
        assert set(multiprocessing.active_children()) <= set(others)
    finally:
        gc.enable()
    assert sampler.state_dict()["runs"] == [[2, 1, 1]]


@pytest.mark.parametrize("kind", STATEFUL)
def test_torchdatas_own_state_resumes_at_every_batch(kind):
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
        got = []
        for batch in other:
            got.append(batch)
            assert again.state_dict()["runs"] == [[2, 1, taken + len(got)]]
        assert got == planned(1)[taken:]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_could_not_be_loaded_was_not_delivered(workers):
    broken = planned(0)[3][0]

    class Broken(list):
        def __getitem__(self, item):
            if item == broken:
                raise OSError("this file is gone")
            return item

    sampler = made()
    loader = DataLoader(Broken(LENGTHS), batch_sampler=sampler, collate_fn=as_is, num_workers=workers)
    with pytest.raises(OSError, match="this file is gone"):
        list(loader)
    assert list(resumed(sampler.state_dict(), 0)) == planned(0)[3:]


def test_batches_out_of_order_keep_a_position_between_epochs_only():
    sampler = made()
    loader = loader_of(sampler, num_workers=2, in_order=False)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(ValueError, match="`in_order` must be True, for a position to be kept, but is False"):
        sampler.state_dict()
    assert len(list(iterator)) == BATCHES - 1
    assert list(resumed(sampler.state_dict(), 0)) == []
    sampler.set_epoch(1)
    assert sampler.state_dict()["epoch"] == 1


def test_a_trainer_that_counts_itself_says_how_many_it_had():
    sampler = made()
    list(sampler)
    for taken in range(BATCHES + 1):
        again = resumed(sampler.state_dict(delivered=taken), 0)
        assert list(again) == planned(0)[taken:]
        if taken > 3:
            assert again.state_dict(delivered=taken) == sampler.state_dict(delivered=taken)
    for wrong in (-1, BATCHES + 1):
        with pytest.raises(ValueError, match="`delivered` must be at"):
            sampler.state_dict(delivered=wrong)


@pytest.mark.parametrize("kind", LOADERS)
def test_an_epoch_that_is_left_before_its_end_warns_once(kind):
    maker, options = LOADERS[kind]
    sampler = made()
    loader = maker(sampler, **options)
    for count, _ in enumerate(loader, start=1):
        if count == 2:
            break
    with pytest.warns(UserWarning, match="`batches delivered` must be 11 before the next epoch.* but is 2 at epoch 0"):
        sampler.set_epoch(1)
    for count, _ in enumerate(loader, start=1):
        if count == 2:
            break
    sampler.set_epoch(2)


@pytest.mark.parametrize("kind", LOADERS)
def test_an_epoch_that_was_taken_to_its_end_is_not_taken_again_on_resuming(kind):
    maker, options = LOADERS[kind]
    sampler = made()
    sampler.load_state_dict(sampler.state_dict(delivered=BATCHES))
    loader = maker(sampler, **options)
    for _ in range(2):
        sampler.set_epoch(0)
        assert list(loader) == []
        assert sampler.delivered == BATCHES
    sampler.set_epoch(1)
    assert list(loader) == planned(1)


@pytest.mark.parametrize("kind", LOADERS)
def test_nothing_is_taken_before_the_first_batch_is_handed_on(kind):
    maker, options = LOADERS[kind]
    sampler = made()
    batches = iter(maker(sampler, **options))  # workers fetch ahead
    assert sampler.delivered == 0
    assert sampler.state_dict()["runs"] == []
    next(batches)
    assert sampler.delivered == 1


@pytest.mark.parametrize("kind", LOADERS)
def test_a_look_at_the_first_batch_takes_nothing(kind):
    maker, options = LOADERS[kind]
    sampler = made()
    loader = maker(sampler, **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="`.*` must be ")  # how our own begin
        assert next(iter(loader)) == planned(0)[0]
        sampler.set_epoch(0)
        assert list(loader) == planned(0)
        sampler.set_epoch(1)
        assert next(iter(loader)) == planned(1)[0]
        sampler.set_epoch(2)


@pytest.mark.parametrize("kind", LOADERS)
def test_an_epoch_taken_twice_warns(kind):
    maker, options = LOADERS[kind]
    sampler = made()
    loader = maker(sampler, **options)
    list(loader)
    with pytest.warns(UserWarning, match="`epoch` must be another for every epoch, but is 0"):
        list(loader)


def test_the_position_stays_until_another_epoch_is_set():
    first = made()
    for _ in zip(range(4), first, strict=False):
        pass
    sampler = resumed(first.state_dict(), 0)
    assert sampler.state_dict() == first.state_dict()  # before anything is drawn
    sampler.set_epoch(0)
    assert sampler.start == 4
    with pytest.warns(UserWarning, match="`batches delivered` must be 11 before the next epoch.* but is 4 at epoch 0"):
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
    sampler.load_state_dict(first.state_dict(delivered=delivered))
    if epoch == 1 or (epoch == 2 and delivered == BATCHES):
        sampler.set_epoch(epoch)  # goes on where the state stood
        return
    sentence = f"`first epoch` must be 1, that of the loaded state, but is {epoch}. Begin there, or its position is"
    with pytest.warns(UserWarning, match=f"^{sentence} lost: `for epoch in range"):
        sampler.set_epoch(epoch)


def test_an_earlier_epoch_may_be_begun_anew():
    first, sampler = made(), made()
    first.set_epoch(1)
    sampler.load_state_dict(first.state_dict(delivered=4))
    sampler.set_epoch(0, restart=True)
    assert list(sampler) == planned(0)


@pytest.mark.parametrize("kind", ["plain", "2 ahead", "persistent"])
def test_an_epoch_that_is_set_too_late_is_refused(kind):
    maker, options = LOADERS[kind]
    sampler = made()
    batches = iter(maker(sampler, **options))
    if kind == "plain":
        next(batches)
    sampler.set_epoch(1)
    with pytest.raises(ValueError, match="`epoch` must be 0 until its pass has ended, but is 1"):
        next(batches)


def test_a_loader_that_has_fetched_nothing_yet_takes_the_epoch_that_is_set():
    sampler = made()
    batches = iter(loader_of(sampler))
    sampler.set_epoch(1)
    assert list(batches) == planned(1)


def test_whoever_takes_over_before_the_first_batch_plans_for_its_own_ranks():
    state = made().state_dict()
    assert state["runs"] == []
    elsewhere = made(rank=0, world_size=3)
    elsewhere.load_state_dict(state)
    assert elsewhere.plan.fingerprint() == lw.make_plan(LENGTHS, BATCHING, seed=4, world_size=3).fingerprint()


@pytest.mark.parametrize(("world_size", "micro_batches"), [(1, 1), (2, 3), (3, 2)])
def test_whoever_takes_over_plans_what_was_left_for_its_own_ranks_and_micro_batches(world_size, micro_batches):
    state = made().state_dict(delivered=5)
    elsewhere = made(rank=0, world_size=world_size, micro_batches=micro_batches)
    elsewhere.load_state_dict(state)
    places = {"world_size": world_size, "micro_batches": micro_batches}
    rest = lw.make_plan(LENGTHS, BATCHING, seed=4, after=[(2, 1, 5)], **places)
    assert elsewhere.plan.fingerprint() == rest.fingerprint()
    assert elsewhere.delivered == elsewhere.start == 5
    assert len(elsewhere) == 5 + len(rest)
    later = elsewhere.state_dict(delivered=6)
    assert later["runs"] == [[2, 1, 5], [world_size, micro_batches, 1]]


def test_loss_scales_are_those_of_the_batches_that_a_pass_yields():
    sampler = made(micro_batches=2)
    weights = LENGTHS.ravel()
    plan = lw.make_plan(LENGTHS, BATCHING, seed=4, world_size=2, micro_batches=2)
    kind = {"reduction": "sum", "ranks_averaged": False, "micro_batches_averaged": True}
    for arguments in ({}, {"weights": weights}, {"weights": weights, **kind}):
        expected = lw.loss_scales(plan, **arguments)[:, :, RANK].ravel()
        assert sampler.loss_scales(**arguments).tolist() == expected.tolist()
    state = sampler.state_dict(delivered=4)
    whole = sampler.loss_scales().tolist()
    sampler.load_state_dict(state)
    assert sampler.loss_scales().tolist() == whole[4:]
    assert len(list(sampler)) == len(sampler.loss_scales())
    elsewhere = made(rank=0, world_size=1)
    elsewhere.load_state_dict(state)
    rest = elsewhere.plan
    assert elsewhere.loss_scales().tolist() == lw.loss_scales(rest).ravel().tolist()
    assert len(list(elsewhere)) == len(rest) == len(elsewhere) - 4


def test_total_steps_are_those_that_are_taken():
    for places in ({"world_size": 1, "rank": 0}, {}, {"world_size": 3, "micro_batches": 2}):
        sampler = made(**places)
        steps = 0
        for epoch in range(3):
            sampler.set_epoch(epoch)
            steps += sum(1 for _ in sampler) / sampler.micro_batches
        assert sampler.total_steps(3) == steps
    assert made().total_steps(0) == 0


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
    sampler, state = made(**changed), json.loads(json.dumps(made().state_dict()))
    with pytest.raises(lw.PlanMismatchError, match=rf"^`{name}` must be the checkpoint's, .+, but is .+\. \w.+\.$"):
        sampler.load_state_dict(state)


def test_of_another_batching_the_part_is_named_that_differs():
    state = made(batching=lw.Batching(budget=20_000, padding=0.1)).state_dict()
    said = r"^`batching.cut.budget` must be the checkpoint's, 20000.0, but is 20001.0\. Resume with"
    with pytest.raises(lw.PlanMismatchError, match=said):
        made(batching=lw.Batching(budget=20_001, padding=0.1)).load_state_dict(state)


def test_of_a_batching_that_is_too_long_for_a_kilobyte_the_state_has_a_digest():
    edges = [tuple(range(1_000 + extra, 60_000, 500)) for extra in (0, 1)]
    batchings = [lw.Batching(cut=lw.FixedSize(3), order=lw.Bucketed(edges=each, longer="drop")) for each in edges]
    state = json.loads(json.dumps(made(batching=batchings[0]).state_dict(delivered=2)))
    assert len(json.dumps(state)) < 1_000
    sampler = made(batching=batchings[0])
    sampler.load_state_dict(state)
    assert sampler.start == 2
    with pytest.raises(
        lw.PlanMismatchError, match=r"^`batching` must be the checkpoint's, '\w{16}', but is '\w{16}'\."
    ):
        made(batching=batchings[1]).load_state_dict(state)


def test_a_state_is_the_callers_own_and_holds_pythons_numbers():
    sampler = made()
    state = sampler.state_dict(delivered=np.int64(2))
    assert json.loads(json.dumps(state)) == state
    state["batching"]["cut"]["batch_size"] = 7
    assert sampler.state_dict()["batching"]["cut"]["batch_size"] == 3


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
    state = squared(0.01).state_dict(delivered=taken)
    squared(0.01, **place).load_state_dict(state)
    with pytest.raises(lw.PlanMismatchError, match=ANOTHER_PLAN):
        squared(0.02, **place).load_state_dict(state)


@pytest.mark.parametrize("taken", [0, 1])
@pytest.mark.parametrize("place", OTHER_PLACES, ids=str)
def test_a_state_that_was_saved_after_a_resume_elsewhere_is_refused_too(place, taken):
    between = squared(0.01, rank=0, world_size=3)
    between.load_state_dict(squared(0.01).state_dict(delivered=2))
    state = json.loads(json.dumps(between.state_dict(delivered=between.start + taken)))
    assert [run[0] for run in state["runs"]] == [2, 3][: 1 + taken]
    squared(0.01, **place).load_state_dict(state)
    with pytest.raises(lw.PlanMismatchError, match=ANOTHER_PLAN):
        squared(0.02, **place).load_state_dict(state)


def test_an_epoch_is_planned_once_where_it_goes_on_at_the_same_place():
    sampler = squared(0.01)
    state, once = sampler.state_dict(delivered=4), sampler.batching.cost.calls
    sampler.load_state_dict(state)
    loaded = sampler.batching.cost.calls
    assert once < loaded < 2 * once  # planned again, by the fit that is remembered
    sampler.state_dict()
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
    before = sampler.state_dict()
    with pytest.raises((ValueError, TypeError)) as caught:
        sampler.load_state_dict(before | damage)
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
    assert (sampler.state_dict(), sampler.start) == (before, 0)
    assert list(sampler) == planned(0)


@pytest.mark.parametrize("state", [None, 7, [], {}, {"epoch": 1}, "0"])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(ValueError, match=r"`state` must be what BatchSampler.state_dict gives"):
        made().load_state_dict(state)
