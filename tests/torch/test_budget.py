"""find_budget on steps that run out of memory by a known rule, and on a process that really has too little."""

import contextlib
import gc
import os
import subprocess
import sys
import textwrap
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lengthwise as lw
from ranks import complaint

LENGTHS = lw.example_lengths("long-tailed", count=400)
LONGEST = int(LENGTHS.max())


def shape_alone(*shape):
    return shape


class Memory:
    """A step that holds what a cost says of its batch, and runs out beyond `room`."""

    def __init__(self, rule, room, error=torch.OutOfMemoryError):
        self.rule, self.room, self.error, self.tried = rule, room, error, []

    def __call__(self, batch):
        shape = np.array(batch)
        self.tried.append(batch)
        if self.rule(shape[:1], shape[None, 1:])[0] > self.room:
            raise self.error("CUDA out of memory. Tried to allocate 9 GiB.")


ERRORS = torch.OutOfMemoryError, MemoryError, RuntimeError
RULES = {
    "linear": lw.Padded(),
    "quadratic": lw.Quadratic(linear=1.0, quadratic=0.002),
    "weights and sequences": lw.Quadratic(per_batch=9_000, per_sequence=40, linear=1.0),
}


@pytest.mark.parametrize(("name", "error"), [*zip(RULES, ERRORS, strict=True)])
def test_the_budget_is_found_in_the_unit_of_the_rule(name, error):
    rule, room = RULES[name], 40 * float(RULES[name]([1], [[LONGEST]])[0])
    step = Memory(rule, room, error)
    batching = lw.Batching(budget=1, cost=rule)
    found = lw.torch.find_budget(step, shape_alone, LENGTHS, batching=batching, margin=0.0, max_sequences=100_000)
    assert 0.95 * room < found.budget <= room
    assert found.ran_out
    assert len(step.tried) < 80
    plan = lw.make_plan(LENGTHS, found.batching)
    assert plan.max_cost == found.budget
    assert plan.costs.max() <= room


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.integers(1, 900), min_size=1, max_size=30),
    st.sampled_from([0.0, 1e-4, 0.02]),
    st.floats(1.0, 90.0),
    st.sampled_from([0.0, 0.1, 0.3]),
)
@pytest.mark.filterwarnings("ignore:`margin` must be at most")
def test_no_batch_of_a_plan_runs_out_of_memory(lengths, quadratic, times, margin):
    rule = lw.Quadratic(linear=1.0, quadratic=quadratic)
    step = Memory(rule, times * float(rule([1], [[max(lengths)]])[0]))
    found = lw.torch.find_budget(step, shape_alone, lengths, margin=margin)
    tried = len(step.tried)
    for epoch in range(2):
        plan = lw.make_plan(lengths, found.batching, epoch=epoch)
        for number in range(len(plan.costs)):
            step((plan.batch_sizes[number], *plan.padded_lengths[number]))
    assert tried < 100


def test_where_more_sequences_than_asked_fit_they_are_the_bound():
    found = lw.torch.find_budget(Memory(lw.Padded(), 10_000), shape_alone, [10, 1_000], max_sequences=64, margin=0.0)
    assert found.ran_out
    assert found.batching.cut == lw.Budget(10_000, max_sequences=64)
    everything = lw.torch.find_budget(lambda _: None, shape_alone, [10, 1_000], max_sequences=8)
    assert everything.batching.cut == lw.Budget(8_000, max_sequences=8)
    assert not everything.ran_out
    few = lw.Batching(cut=lw.Budget(1, max_sequences=3), padding=0.3)
    found = lw.torch.find_budget(lambda _: None, shape_alone, [10, 1_000], batching=few)
    assert found.batching == lw.Batching(cut=lw.Budget(3_000, max_sequences=3), padding=0.3)


def test_the_margin_is_kept_free_where_there_is_room_for_it():
    found = lw.torch.find_budget(Memory(lw.Padded(), 100_000), shape_alone, [100, 400], margin=0.2)
    assert 0.9 * 80_000 < found.budget <= 80_000
    with pytest.warns(UserWarning, match=r"^`margin` must be at most 0, because one sequence of the longest needs "):
        found = lw.torch.find_budget(Memory(lw.Padded(), 1_500), shape_alone, [10, 1_000])
    assert found.budget == 1_000
    assert lw.torch.find_budget(Memory(lw.Padded(), 1_500), shape_alone, [10, 1_000], margin=0.0).budget == 1_000


@pytest.mark.parametrize(("memory_of_one", "count", "fits"), [(100, 2, 80), (5_000, 0, 2)])
def test_memory_that_goes_with_the_number_of_sequences(memory_of_one, count, fits):
    """As many fit at every length: the budget of one long sequence may allow more short ones than fit."""
    step = Memory(lw.Quadratic(per_sequence=memory_of_one, linear=0.0), 10_000)
    lengths = [10] * 50 + [50] * 50 + [400]
    if count:
        assert lw.torch.find_budget(step, shape_alone, lengths, margin=0.0).budget == count * 400
    else:
        told = "^`step` must be small enough for the 40 short sequences that the budget of a long sequence allows"
        with pytest.raises(ValueError, match=told):
            lw.torch.find_budget(step, shape_alone, lengths)
    # What the sentence advises works, without a word.
    found = lw.torch.find_budget(step, shape_alone, lengths, max_sequences=fits, margin=0.0)
    assert found.batching.cut == lw.Budget(fits * 400, max_sequences=fits)
    batching = lw.Batching(budget=1, cost=lw.Quadratic(per_sequence=memory_of_one, linear=0.001))
    found = lw.torch.find_budget(step, shape_alone, lengths, batching=batching, margin=0.0)
    assert found.counts.tolist() == [10_000 // memory_of_one] * len(found.counts)


def test_the_batches_are_run_once_more_and_lower_the_budget():
    whole = Memory(lw.Padded(), 40_000)
    lw.torch.find_budget(whole, shape_alone, LENGTHS)

    class Fragmented(Memory):
        """Holds less once the search is over, as a run does that meets all shapes."""

        def __call__(self, batch):
            super().__call__(batch)
            if len(self.tried) > len(whole.tried) - 6:
                self.room = 30_000

    step = Fragmented(lw.Padded(), 40_000)
    found = lw.torch.find_budget(step, shape_alone, LENGTHS, margin=0.0)
    assert 0.8 * 30_000 < found.budget <= 30_000


def test_no_tensor_of_a_step_that_ran_out_is_kept():
    alive = []

    def step(batch):
        held = torch.zeros(batch)
        alive.append(weakref.ref(held))
        if held.numel() > 3_000:
            raise torch.OutOfMemoryError

    lw.torch.find_budget(step, shape_alone, [10, 40, 80])
    gc.collect()
    assert [ref() for ref in alive if ref() is not None] == []


@pytest.mark.parametrize("room", [5, LONGEST - 1], ids=["shortest", "longest"])
def test_a_sequence_that_does_not_fit_alone_is_named(room):
    length = LONGEST if room > 5 else r"\d+"
    message = rf"^`step` must be within memory for one sequence, but is 'out of memory' at length {length}\. Make the m"
    with pytest.raises(ValueError, match=message):
        lw.torch.find_budget(Memory(lw.Padded(), room), shape_alone, LENGTHS)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"batching": lw.Batching(cut=lw.FixedSize(3))}, "ValueError: `batching` must be cut by a budget, but is"),
        ({"batching": 7}, "TypeError: `batching` must be a Batching, but is 7. "),
        ({"margin": 1.0}, "ValueError: `margin` must be at least 0 and at most 0.9, but is 1.0"),
        ({"max_sequences": 0}, "ValueError: `max_sequences` must be at least 1, but is 0"),
        ({"device": "cudaa"}, "ValueError: `device` must be one that PyTorch finds here, but is 'cudaa'."),
        ({"lengths": []}, "ValueError: `lengths` must be of at least one sequence, but is 0. Give the lengths of your"),
        ({"step": 3}, "TypeError: `step` must be a function, but is 3. Give step, make_batch, lengths, in this order."),
        ({"make_batch": None}, "TypeError: `make_batch` must be a function, but is None. "),
    ],
    ids=str,
)
def test_a_bad_value_is_refused_before_the_first_step(asked, said):
    step = Memory(lw.Padded(), 1_000)
    given = {"step": step, "make_batch": shape_alone, "lengths": [10, 20], **asked}
    assert complaint(lambda: lw.torch.find_budget(**given)).startswith(said)
    assert not step.tried


def test_a_found_budget_is_printed_with_the_largest_batches_that_fitted():
    found = lw.torch.find_budget(Memory(lw.Padded(), 10_000), shape_alone, [10, 1_000], max_sequences=64, margin=0.0)
    lines = [line.split() for line in str(found).splitlines()]
    assert lines[0] == ["budget", "10,000;", "larger", "batches", "ran", "out", "of", "memory"]
    assert lines[1:3] == [["sequences", "padded", "to"], ["64", "60"]]
    assert lines[-1] == ["10", "1,000"]


def test_a_found_budget_keeps_the_balance_of_its_batching():
    batching = lw.Batching(budget=1, balance=lw.Quadratic(quadratic=0.001))
    step = Memory(lw.Padded(), 10_000)
    found = lw.torch.find_budget(step, shape_alone, [10, 1_000], batching=batching, max_sequences=64, margin=0.0)
    assert (found.batching.budget, found.batching.balance) == (10_000, batching.balance)
    assert "memory; balance=lw.Quadratic(quadratic=0.001)\n" in str(found)


SCRIPT = """
import gc, resource, torch
import lengthwise as lw

torch.set_num_threads(1)
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.Adam(model.parameters())

def step(batch):
    optimizer.zero_grad()
    model(batch).tanh().square().mean().backward()
    optimizer.step()

step(torch.ones(1, 8, 64))  # loads what PyTorch loads with the first step
gc.freeze()  # or each step that runs out of memory would search all of that for garbage
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
room = 48 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
found = lw.torch.find_budget(
    step, lambda count, length: torch.ones(count, length, 64), [50, 100, 200, 400], model=model, max_sequences=100_000
)
print(found.budget, found.ran_out)
# A tenth less: what is freed lies in pieces, by chance other ones in every run.
step(torch.ones(int(0.9 * found.budget // 400), 400, 64))
"""


@pytest.mark.processes
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the memory of a process, as Linux does")
def test_a_process_that_has_too_little_memory_finds_its_budget(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))
    # Each tensor then gets pages of its own. Otherwise glibc keeps freed ones in its heap, which gets fragmented by
    # chance: what the same script finds then differs by a third, and once in many runs the step after it does not fit.
    environ = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "250000"}
    command = [sys.executable, tmp_path / "train.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    budget, ran_out = done.stdout.split()
    # A frame is 256 bytes. A step holds some arrays like its batch, and what the allocator keeps in between.
    assert ran_out == "True"
    assert 48 * 2**20 / 256 / 30 < float(budget) < 48 * 2**20 / 256 / 2


def test_the_multiples_that_plans_pad_and_fill_rows_to_are_tried():
    batching = lw.Batching(cut=lw.Budget(1, multiple_of=64))
    lengths = [100] * 50 + [200, 400]
    found = lw.torch.find_budget(Memory(lw.Padded(), 450), shape_alone, lengths, batching=batching, margin=0.0)
    assert (found.budget, found.padded_lengths[-1].tolist()) == (448, [448])
    batching = lw.Batching(cut=lw.Budget(1, count_multiple_of=8), order=lw.Shuffled())
    found = lw.torch.find_budget(Memory(lw.Padded(), 200), shape_alone, [10] * 13, batching=batching)
    assert (found.counts[-1], found.padded_lengths[-1, 0]) == (16, 10)


class Taken(Memory):
    """Runs out by chance at some of its steps, as where another process takes memory for a moment."""

    def __init__(self, rule, room, chances):
        super().__init__(rule, room)
        self.chances = chances

    def __call__(self, batch):
        super().__call__(batch)
        if len(self.tried) in self.chances:
            raise self.error("CUDA out of memory. Tried to allocate 9 GiB.")


def test_memory_that_is_taken_for_one_step_does_not_lower_the_budget():
    alone = Memory(lw.Padded(), 40 * LONGEST)
    budget = lw.torch.find_budget(alone, shape_alone, LENGTHS, margin=0.0).budget
    for chance in range(1, len(alone.tried) - 3, 3):
        step = Taken(lw.Padded(), 40 * LONGEST, {chance})
        assert lw.torch.find_budget(step, shape_alone, LENGTHS, margin=0.0).budget == budget


@pytest.mark.filterwarnings("ignore:`budget` must be about the same")
@settings(max_examples=10, deadline=None)
@given(st.sets(st.integers(1, 90), max_size=30), st.integers(2, 90))
def test_the_search_ends_however_often_memory_is_taken(chances, times):
    step = Taken(lw.Padded(), times * 400, chances)
    with contextlib.suppress(ValueError):  # where it is taken twice for one sequence
        found = lw.torch.find_budget(step, shape_alone, [100] * 50 + [200, 400], margin=0.0)
        assert 400 <= found.budget <= times * 400
    assert len(step.tried) < 400


def test_a_step_that_keeps_every_batch_is_told_so():
    kept = []

    def step(batch):
        kept.append(int(np.prod(batch)))
        if sum(kept) > 3_000:
            raise torch.OutOfMemoryError

    message = r"^`step` must be a function that keeps no batch, but is 'out of memory' at length \d+, which fit"
    with pytest.raises(ValueError, match=message):
        lw.torch.find_budget(step, shape_alone, [10, 20, 40])


@pytest.mark.parametrize(
    ("cost", "said"),
    [(lambda counts, _: 0.0 * counts, "0.0"), (lambda _, padded: padded[:, 0] * 1.0, "400.0")],
    ids=["nothing", "the length alone"],
)
def test_a_cost_that_bounds_no_batch_is_refused(cost, said):
    batching = lw.Batching(budget=1, cost=cost)
    message = rf"^`cost` must be one that grows with the number of sequences, but is {said} at \d+ sequences\. Price "
    with pytest.raises(ValueError, match=message):
        lw.torch.find_budget(Memory(lw.Padded(), 10_000), shape_alone, [100, 100, 400], batching=batching)


def test_of_chunks_their_own_lengths_are_tried():
    batching = lw.Batching(budget=1, chunks=lw.Chunks(50))
    step = Memory(lw.Padded(), 1_000)
    found = lw.torch.find_budget(step, shape_alone, [7, 90, 900], batching=batching, margin=0.0)
    assert max(length for _, length in step.tried) == 50
    assert found.counts[-1] == 20
    assert lw.make_plan([7, 90, 900], found.batching).max_cost <= 1_000


def linear_trainer():
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters())

    def step(batch):
        if batch.numel() > 1_000:
            model(batch).sum().backward()
            raise torch.OutOfMemoryError
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return model, step


def ones(count, length):
    return torch.ones(count, length, 4)


def test_gradients_of_the_model_are_dropped_after_memory_ran_out():
    model, step = linear_trainer()
    held, ran_out = [], []

    def watched(batch):
        if ran_out:
            held.append(ran_out.pop() and model.weight.grad is not None)
        ran_out.extend([True] * (batch.numel() > 1_000))
        step(batch)

    assert lw.torch.find_budget(watched, ones, [10, 20], model=model, margin=0.0).budget == 240
    assert held
    assert not any(held)


def test_batches_that_are_the_same_whatever_is_asked_are_refused():
    _, step = linear_trainer()
    with pytest.raises(ValueError, match=r"^`make_batch` must .* '80 numbers, whatever the count' at make_batch\(16, "):
        lw.torch.find_budget(step, lambda *_: ones(2, 10), [10, 20])
    with pytest.raises(ValueError, match=r"^`make_batch` must .* '40 numbers, whatever the length' at make_batch\(1, "):
        lw.torch.find_budget(step, lambda count, _: ones(count, 10), [10, 20])
    batching = lw.Batching(cut=lw.Budget(1, multiple_of=64))
    found = lw.torch.find_budget(step, ones, [20, 20], batching=batching, margin=0.0)
    assert found.padded_lengths.tolist() == [[64]]  # tried once, and one length alone is no fault
