"""The position of a loader: of passes, as a table; after errors of a batch and errors while waiting; and in copies."""

import copy
import multiprocessing
import pickle
import signal

import pytest
from loaders import BATCHES, TWO_LOOPS, Data, loader_after, loader_of, planned, rest_of, sampler_of, take

import lengthwise as lw
from lengthwise.torch.position import Pass, find_position

START = 4  # of 12 batches, 8 are left
POSITIONS = [  # passes by (taken, failed, state), the one of the latest batch last, and their position
    ([], START),
    ([(1, 0, "open")], START + 1),
    ([(1, 0, "left")], START + 1),
    ([(3, 2, "open")], START + 3),
    ([(8, 0, "ended")], BATCHES),
    ([(1, 0, "left"), (3, 0, "open")], START + 3),
    ([(5, 0, "left"), (1, 0, "left")], START + 1),
    ([(8, 0, "ended"), (2, 0, "open")], START + 2),
    ([(8, 0, "open"), (1, 0, "left")], START + 1),
    ([(7, 1, "open"), (1, 0, "left")], START + 1),
    ([(3, 0, "open"), (1, 0, "left")], TWO_LOOPS),
    ([(3, 0, "open"), (8, 0, "ended")], TWO_LOOPS),
    ([(1, 0, "open"), (3, 0, "open")], TWO_LOOPS),
    ([(1, 0, "open"), (2, 0, "left"), (5, 0, "open")], TWO_LOOPS),
]


@pytest.mark.parametrize(("passes", "position"), POSITIONS, ids=str)
def test_the_latest_batch_has_the_position_unless_an_earlier_loop_may_go_on(passes, position):
    remainder = loader_after(START).batch_sampler.remainder
    passes = [Pass(remainder, *numbers) for numbers in passes]
    if isinstance(position, int):
        assert find_position(passes, remainder.start) == position
        return
    with pytest.raises(ValueError, match=position):
        find_position(passes, remainder.start)


class Interrupted(Data):
    """Is interrupted while it reads a sequence, once."""

    def __getitem__(self, number):
        if number in self.broken:
            self.broken.remove(number)
            raise KeyboardInterrupt
        return number


def test_without_workers_a_batch_is_gone_that_was_interrupted():
    loader = lw.torch.DataLoader(Interrupted([planned()[2][0]]), sampler_of(), collate_fn=list)
    batches = iter(loader)
    next(batches), next(batches)
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    assert rest_of(loader) == planned()[2:]  # until the loop goes on, a resumed run tries it again
    assert next(batches) == planned()[3]
    assert rest_of(loader) == planned()[4:]


class Waiting(Data):
    """Waits for an event at the third batch."""

    def __init__(self, context):
        super().__init__()
        self.event = context.Event()

    def __getitem__(self, number):
        if number == planned()[2][0]:
            self.event.wait()
        return number


def preempt(*_):
    raise RuntimeError("this job is preempted")


def interrupt(*_):
    raise KeyboardInterrupt


def wait_for(batches):
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    return next(batches)


WAITS = {
    "timeout": ({"timeout": 0.2}, None, RuntimeError),
    "signal": ({}, preempt, RuntimeError),
    "Ctrl-C": ({}, interrupt, KeyboardInterrupt),
}


@pytest.mark.slow
@pytest.mark.parametrize("wait", WAITS)
def test_with_workers_the_batch_comes_next_for_which_the_loop_waited_in_vain(wait):
    options, handler, error = WAITS[wait]
    context = multiprocessing.get_context("fork")
    data = Waiting(context)
    options = {"num_workers": 1, "prefetch_factor": 1, "multiprocessing_context": context, **options}
    loader = lw.torch.DataLoader(data, sampler_of(), collate_fn=list, **options)
    batches = iter(loader)
    next(batches), next(batches)
    before = signal.signal(signal.SIGALRM, handler or signal.SIG_IGN)
    try:
        for _ in range(2):
            with pytest.raises(error):
                wait_for(batches)
            assert loader.delivered == 2
    finally:
        signal.signal(signal.SIGALRM, before)
        data.event.set()
    for taken, batch in enumerate(batches, start=3):
        assert batch == planned()[taken - 1]
        assert rest_of(loader) == planned()[taken:]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda loader: pickle.loads(pickle.dumps(loader))])
@pytest.mark.parametrize("kind", ["no workers", "workers"])
def test_a_copy_has_the_position_and_no_open_loop(kind, copied):
    loader = loader_of(kind)
    batches = iter(loader)
    next(batches)
    other = copied(loader)
    assert other.delivered == 1
    assert take(other, 2) == planned()[:2]
    assert rest_of(other) == planned()[2:]  # the loop over the first loader cannot go on with the copy
    next(batches), next(batches)
    assert copied(loader).delivered == 3
    assert rest_of(loader) == planned()[3:]
    assert list(batches) == planned()[3:]


def test_a_loop_that_ends_after_another_epoch_was_set_has_no_position():
    loader = loader_of()
    old = iter(loader)
    take(old, BATCHES)
    loader.set_epoch(1)
    new = iter(loader)
    take(new, 3)
    assert next(old, None) is None
    assert loader.delivered == 3
