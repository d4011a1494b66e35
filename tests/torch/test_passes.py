"""Several passes in an epoch, errors within one, and passes where nothing is left: where does the run stand then?"""

import contextlib
import itertools
import json
import warnings

import pytest
from torch.utils.data import DataLoader

import lengthwise as lw

LENGTHS = lw.example_lengths("long-tailed", count=44)
BATCHING = lw.Batching(cut=lw.FixedSize(4))
BATCHES = 11
# One worker that fetches two batches ahead: to a sampler it is as two that fetch one each, and half as long to start.
WORKERS = {"num_workers": 1, "prefetch_factor": 2}
AHEAD = {"num_workers": 1, "prefetch_factor": 16}  # all batches of an epoch are fetched before the first is handed on
KINDS = {"plain": None, "no workers": {}, "workers": WORKERS, "ahead": AHEAD}
EVERY_KIND = pytest.mark.parametrize("kind", list(KINDS))
KINDS["persistent"] = WORKERS | {"persistent_workers": True}
TWICE = "`passes` must be one at a time, but is 'one within another' at epoch 0. The position is that of the first:"

# torchdata's loader calls a function that PyTorch has deprecated.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")]


class Data:
    """Gives back what it is asked for, but for the sequences that cannot be read."""

    def __init__(self, broken=()):
        self.broken = broken

    def __len__(self):
        return len(LENGTHS)

    def __getitem__(self, number):
        if number in self.broken:
            raise OSError("this file is gone")
        return number


def made():
    return lw.torch.BatchSampler(LENGTHS, BATCHING, seed=2)


def over(sampler, kind, broken=()):
    options = KINDS[kind]
    return sampler if options is None else DataLoader(Data(broken), batch_sampler=sampler, collate_fn=list, **options)


def planned(epoch=0):
    return [batch.tolist() for batch in lw.make_plan(LENGTHS, BATCHING, seed=2, epoch=epoch).batches()]


def at_end(epoch=0):
    sampler = made()
    sampler.set_epoch(epoch)
    return sampler.state_dict(delivered=BATCHES)


def rest_of(sampler):
    """What a new process would go on with."""
    state = json.loads(json.dumps(sampler.state_dict()))
    resumed = made()
    resumed.load_state_dict(state)
    resumed.set_epoch(state["epoch"])
    return list(resumed)


@EVERY_KIND
@pytest.mark.filterwarnings("ignore:`passes` must be")
def test_a_count_within_a_loop_leaves_the_position_alone(kind):
    sampler = made()
    loader = over(sampler, kind)
    for taken, _ in enumerate(loader, start=1):
        if taken in (3, 9):
            assert sum(1 for _ in loader) == BATCHES
        if taken == 6:
            for _ in zip(range(5), loader, strict=False):
                pass
        assert sampler.delivered == taken
        assert rest_of(sampler) == planned()[taken:]


def shown(batches):
    yield from batches


def looped(batches):
    for batch in batches:  # noqa: UP028
        yield batch


class Ahead:
    """An iterator of Python's between a loop and its batches."""

    def __init__(self, batches):
        self.batches = iter(batches)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.batches)


LOOPS = {"for": iter, "enumerate": enumerate, "zip": zip, "yield from": shown, "generator": looped, "iterator": Ahead}


@EVERY_KIND
@pytest.mark.parametrize("way", list(LOOPS))
@pytest.mark.filterwarnings("ignore:`passes` must be", "ignore:`epoch` must be another")
def test_a_count_within_the_first_batch_of_a_for_leaves_the_position_alone(kind, way):
    sampler = made()
    loader = over(sampler, kind)
    numbers = itertools.count(1)
    for _ in LOOPS[way](loader):
        taken = next(numbers)
        if taken == 1:
            assert sum(1 for _ in loader) == BATCHES
        assert sampler.delivered == taken
        assert rest_of(sampler) == planned()[taken:]
    assert sampler.delivered == BATCHES


@EVERY_KIND
@pytest.mark.parametrize("last", [1, 3])
@pytest.mark.filterwarnings("ignore:`passes` must be")
def test_a_loop_that_is_left_after_a_count_within_it_keeps_its_position(kind, last):
    sampler = made()
    loader = over(sampler, kind)
    for taken, _ in enumerate(loader, start=1):
        if taken == last:
            assert len(list(loader)) == BATCHES
            break
    assert sampler.delivered == last
    assert rest_of(sampler) == planned()[last:]


@EVERY_KIND
def test_a_look_that_is_kept_gives_way_to_the_loop_after_it(kind):
    sampler = made()
    loader = over(sampler, kind)
    kept = iter(loader)
    next(kept)
    assert [batch for batch in loader] == planned()  # noqa: C416
    assert sampler.delivered == BATCHES
    del kept


@EVERY_KIND
@pytest.mark.parametrize("kept", [True, False])
def test_a_look_moves_nothing(kind, kept):
    sampler = made()
    loader, looks = over(sampler, kind), []

    def look():
        iterator = iter(loader)
        assert next(iterator) == planned()[0]
        looks.extend([iterator] if kept else [])

    look()
    for taken, batch in enumerate(loader, start=1):
        assert batch == planned()[taken - 1]
        if taken in (1, 4):
            look()
        assert sampler.delivered == taken
    assert sampler.delivered == BATCHES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sampler.set_epoch(1)
        assert list(loader) == planned(1)


def test_two_passes_in_step_count_for_themselves_and_are_told():
    sampler = made()
    pairs = ((one, other, sampler.delivered) for one, other in zip(sampler, sampler, strict=True))
    with pytest.warns(UserWarning, match=TWICE):
        found = list(pairs)
    assert found == [(batch, batch, taken) for taken, batch in enumerate(planned(), start=1)]


@pytest.mark.parametrize("options", [{}, WORKERS])
def test_two_loaders_over_one_sampler_count_for_themselves(options):
    sampler = made()
    first, second = (DataLoader(Data(), batch_sampler=sampler, collate_fn=list, **options) for _ in range(2))
    one, other = iter(first), iter(second)
    next(one), next(one)
    with pytest.warns(UserWarning, match=TWICE):
        assert [next(other) for _ in range(5)] == planned()[:5]
    assert sampler.delivered == 2
    next(one)
    assert sampler.delivered == 3
    assert rest_of(sampler) == planned()[3:]
    assert list(one) == planned()[3:]
    assert list(other) == planned()[5:]


@EVERY_KIND
def test_a_loop_that_was_left_is_replaced_by_the_next(kind):
    sampler = made()
    loader = over(sampler, kind)
    for taken, _ in enumerate(loader, start=1):
        if taken == 4:
            break
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if kind == "ahead" else "error")
        next(iter(loader))  # a look; with all batches fetched ahead it may be more
    assert sampler.delivered == 4
    with contextlib.nullcontext() if kind == "ahead" else pytest.warns(UserWarning, match="`epoch` must be another"):
        for taken, _ in enumerate(loader, start=1):
            assert sampler.delivered == taken


def test_an_iterator_that_is_kept_gives_way_once_the_epoch_is_set():
    sampler = made()
    kept = iter(sampler)
    next(kept), next(kept), next(kept)
    sampler.set_epoch(0)
    with pytest.warns(UserWarning, match="`epoch` must be another for every epoch"):
        assert [sampler.delivered for _ in sampler] == list(range(1, BATCHES + 1))
    assert sampler.delivered == BATCHES


@pytest.mark.parametrize("kind", ["no workers", "workers", "ahead"])
@pytest.mark.parametrize("broken", [(4,), (0, 1), (4, 6, 7), (10,)], ids=str)
def test_a_loop_that_goes_on_after_errors_has_had_what_it_went_past(kind, broken):
    sampler = made()
    loader = iter(over(sampler, kind, broken=[planned()[batch][0] for batch in broken]))
    passed = 0
    for place in range(BATCHES):
        try:
            assert next(loader) == planned()[place]
            passed = place + 1
        except OSError:
            assert place in broken
            passed = place  # what fails counts once the loop asks for another
        assert sampler.delivered == passed
        assert rest_of(sampler) == planned()[passed:]
    with pytest.raises(StopIteration):
        next(loader)
    assert sampler.delivered == BATCHES
    assert rest_of(sampler) == []


@pytest.mark.parametrize("kind", ["no workers", "workers", "ahead", "persistent"])
@pytest.mark.parametrize("kept", [True, False])
def test_an_epoch_whose_last_batch_failed_was_not_left_early(kind, kept):
    sampler = made()
    batches = over(sampler, kind, broken=planned()[-1])
    for epoch in range(2):
        sampler.set_epoch(epoch)  # of a loop that survived: warnings are errors here
        loader, handed = iter(batches), 0
        for _ in range(BATCHES + 1):
            with contextlib.suppress(OSError, StopIteration):
                next(loader)
                handed += 1
        assert handed == BATCHES - (
            1 if epoch == 0 else len({tuple(b) for b in planned(1) if set(b) & set(planned()[-1])})
        )
        if not kept:
            del loader


@EVERY_KIND
@pytest.mark.parametrize("taken", [4, BATCHES])
def test_what_was_loaded_is_taken_once_and_then_the_whole_epoch(kind, taken):
    sampler = made()
    sampler.load_state_dict(sampler.state_dict(delivered=taken))
    loader = over(sampler, kind)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        passes = [list(loader) for _ in range(4)]
    assert passes == [planned()[taken:], planned(), planned(), planned()]
    assert len(loader) == BATCHES
    second = "`epoch` must be another for every epoch, but is 0 at the second pass. Call set_epoch with a new number"
    empty = (
        "`batches left` must be at least 1 for a pass to yield any, but is 0 at epoch 0. "
        "Call set_epoch(1) to go on, or set_epoch(0, restart=True) to take epoch 0 once more."
    )
    assert [str(each.message)[: len(empty)] for each in said if "must be" in str(each.message)] == [
        *([empty] if taken == BATCHES else []),
        next(str(each.message)[: len(empty)] for each in said if str(each.message).startswith(second)),
    ]


@EVERY_KIND
def test_an_epoch_begins_anew_where_it_is_asked_to(kind):
    for taken in (0, 4, BATCHES):
        sampler = made()
        sampler.load_state_dict(sampler.state_dict(delivered=taken))
        loader = over(sampler, kind)
        for _ in range(2):
            sampler.set_epoch(0, restart=True)
            assert (sampler.start, sampler.delivered) == (0, 0)
            assert list(loader) == planned()
        sampler.set_epoch(1)
        assert list(loader) == planned(1)


def test_a_look_at_the_last_batch_does_not_use_up_what_was_loaded():
    sampler = made()
    sampler.load_state_dict(sampler.state_dict(delivered=8))
    for _ in sampler:
        if sampler.delivered == BATCHES:
            next(iter(sampler))
    assert (sampler.start, sampler.delivered) == (8, BATCHES)


@EVERY_KIND
def test_a_look_between_two_epochs_says_nothing_and_a_second_pass_is_told(kind):
    sampler = made()
    for epoch in range(3):  # warnings are errors here
        sampler.set_epoch(epoch)
        loader = over(sampler, kind)
        assert list(loader) == planned(epoch)
        if kind != "ahead":  # a look that fetches all batches may be a pass
            assert next(iter(loader)) == planned(epoch)[0]
        assert sampler.delivered == BATCHES
    with pytest.warns(UserWarning, match="`epoch` must be another"):
        list(loader)


def stateful(sampler, **options):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")
    return torchdata.StatefulDataLoader(Data(), batch_sampler=sampler, collate_fn=list, **options)


STATEFUL = {"no workers": {}, "workers": WORKERS, "persistent": WORKERS | {"persistent_workers": True}}


@pytest.mark.parametrize("kind", STATEFUL)
def test_torchdatas_loader_goes_on_from_the_end_of_an_epoch(kind):
    loader = stateful(made(), **STATEFUL[kind])
    list(loader)
    state = loader.state_dict()

    def loaded(epoch=None):
        sampler = made()
        again = stateful(sampler, **STATEFUL[kind])
        again.load_state_dict(state)
        if epoch is not None:
            sampler.set_epoch(epoch)
        return sampler, again

    sampler, again = loaded()
    with pytest.warns(UserWarning, match="`batches left` must be at least 1"):
        assert list(again) == []
    with pytest.warns(UserWarning, match="`epoch` must be another"):
        assert list(again) == planned()

    sampler, again = loaded(epoch=0)
    assert list(again) == []  # the rest of the epoch that was set
    sampler.set_epoch(1)
    assert list(again) == planned(1)

    sampler, again = loaded(epoch=1)  # set before the loader loads its state, which it does with its first pass
    assert list(again) == planned(1)
    assert sampler.state_dict()["epoch"] == 1


@pytest.mark.parametrize("kind", STATEFUL)
@pytest.mark.parametrize("taken", [1, 4, BATCHES])
def test_torchdatas_loader_begins_an_epoch_anew_where_it_is_asked_to(kind, taken):
    loader = stateful(made(), **STATEFUL[kind])
    batches = iter(loader)
    for _ in range(taken):
        next(batches)
    sampler = made()
    again = stateful(sampler, **STATEFUL[kind])
    again.load_state_dict(loader.state_dict())
    sampler.set_epoch(0, restart=True)  # set before the loader loads its state, which it does with its first pass
    assert list(again) == planned()
    sampler.set_epoch(1)
    assert list(again) == planned(1)


@pytest.mark.parametrize("taken", [2, 4])
def test_a_loader_with_persistent_workers_says_that_it_has_one_iterator(taken):
    sampler = made()
    loader = over(sampler, "persistent")
    batches = iter(loader)
    for _ in range(taken):
        next(batches)
    rule = f"`batches of a pass` must be {BATCHES} before its loader with persistent workers begins anew"
    with pytest.warns(UserWarning, match=f"{rule}, but is {taken} at epoch 0. A loop over"):
        assert next(iter(loader)) == planned()[0]
    assert next(batches) == planned()[1]  # as PyTorch has it
    assert sampler.delivered == 2


@EVERY_KIND
def test_an_epoch_that_is_set_again_within_its_last_batch_was_asked_for(kind):
    sampler = made()
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for _ in over(sampler, kind):
            sampler.set_epoch(epoch)


@pytest.mark.parametrize("kind", STATEFUL)
def test_a_look_does_not_move_the_state_of_torchdatas_loader(kind):
    loader = stateful(made(), snapshot_every_n_steps=3, **STATEFUL[kind])
    next(iter(loader))
    for taken, _ in itertools.islice(enumerate(loader, start=1), 5):
        again = stateful(made(), snapshot_every_n_steps=3, **STATEFUL[kind])
        again.load_state_dict(loader.state_dict())
        assert list(again) == planned()[taken:]


@EVERY_KIND
def test_a_pass_goes_on_where_its_epoch_is_set_again(kind):
    sampler = made()
    batches = iter(over(sampler, kind))
    for taken in range(BATCHES):
        sampler.set_epoch(0)
        assert next(batches) == planned()[taken]
        assert sampler.delivered == taken + 1


def test_a_position_that_is_loaded_ends_the_pass_before():
    sampler = made()
    batches = iter(sampler)
    next(batches)
    sampler.load_state_dict(sampler.state_dict(delivered=4))
    with pytest.raises(
        ValueError, match=r"`position` must be kept until the pass has ended, but is 'loaded, or .+\. Set"
    ):
        next(batches)
    assert sampler.delivered == 4
    assert list(sampler) == planned()[4:]
