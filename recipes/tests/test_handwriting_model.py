"""The network: what it computes does not depend on the padding beside it."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from lengthwise_recipes.handwriting.model import (  # noqa: E402
    Recognizer,
    ctc_losses,
    decode,
    least_frames,
    pad_frames,
    stack_frames,
)


def make(*, packed=False):
    torch.manual_seed(0)
    return Recognizer(inputs=6, classes=5, hidden=8, layers=2, packed=packed)


@settings(max_examples=15)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(0, 100), st.booleans())
def test_padding_changes_no_output(lengths, seed, packed):
    generator = torch.Generator().manual_seed(seed)
    frames = [torch.randn(length, 6, generator=generator) for length in lengths]
    model = make(packed=packed)
    with torch.no_grad():
        padded, counts = pad_frames([*frames, torch.randn(40, 6, generator=generator)])
        together = model(padded, counts)
        for number, sequence in enumerate(frames):
            alone = model(*pad_frames([sequence]))[0]
            torch.testing.assert_close(together[number, : len(sequence)], alone, atol=1e-5, rtol=0.0)


def test_what_stands_in_the_padding_changes_nothing():
    frames, counts = pad_frames([torch.ones(3, 6), torch.ones(9, 6)])
    dirty = frames.clone()
    dirty[0, 3:] = 1e6
    model = make()
    with torch.no_grad():
        torch.testing.assert_close(model(frames, counts)[0, :3], model(dirty, counts)[0, :3], atol=1e-5, rtol=0.0)


def test_padding_changes_no_gradient():
    generator = torch.Generator().manual_seed(1)
    short, long = torch.randn(6, 6, generator=generator), torch.randn(25, 6, generator=generator)
    labels = [torch.tensor([1, 2]), torch.tensor([3, 3, 4])]

    def gradient(*batches):
        model = make()
        for batch in batches:
            padded, counts = pad_frames([frames for frames, _ in batch])
            ctc_losses(model(padded, counts), counts, [label for _, label in batch]).sum().backward()
        return torch.cat([torch.as_tensor(parameter.grad).flatten() for parameter in model.parameters()])

    pairs = [(short, labels[0]), (long, labels[1])]
    torch.testing.assert_close(gradient(pairs), gradient(pairs[:1], pairs[1:]), atol=1e-5, rtol=1e-4)


def test_packed_and_padded_agree():
    frames, counts = pad_frames([torch.ones(4, 6), torch.ones(9, 6), torch.ones(1, 6)])
    with torch.no_grad():
        padded, packed = make()(frames, counts), make(packed=True)(frames, counts)
    for number, count in enumerate(counts.tolist()):
        torch.testing.assert_close(padded[number, :count], packed[number, :count], atol=1e-5, rtol=0.0)


def test_both_directions_see_the_whole_sequence():
    frames, counts = pad_frames([torch.zeros(12, 6), torch.zeros(20, 6)])
    changed = frames.clone()
    changed[0, 11] = 3.0
    model = make()
    with torch.no_grad():
        assert not torch.allclose(model(frames, counts)[0, 0], model(changed, counts)[0, 0], atol=1e-7)


@pytest.mark.parametrize(("points", "stack", "frames"), [(1, 4, 1), (4, 4, 1), (5, 4, 2), (9, 2, 5), (3, 1, 3)])
def test_stacked_frames_keep_every_point(points, stack, frames):
    sample = np.arange(3 * points, dtype=np.float32).reshape(points, 3)
    stacked = stack_frames(sample, stack)
    assert stacked.shape == (frames, 3 * stack)
    assert stacked.flatten()[: 3 * points].tolist() == sample.flatten().tolist()
    assert not stacked.flatten()[3 * points :].any()


def test_ctc_loss_per_symbol_is_minus_the_log_of_all_paths():
    probabilities = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
    label = [1, 2]
    paths = [path for path in itertools.product(range(3), repeat=3) if _collapse(path) == label]
    total = sum(np.prod([float(probabilities[t, s]) for t, s in enumerate(path)]) for path in paths)
    loss = ctc_losses(probabilities.log()[None], torch.tensor([3]), [torch.tensor(label)])
    assert float(loss[0]) == pytest.approx(-np.log(total) / 2, abs=1e-6)


def test_an_impossible_label_has_loss_and_gradient_zero():
    scores = torch.zeros(1, 2, 3, requires_grad=True)
    losses = ctc_losses(scores.log_softmax(2), torch.tensor([2]), [torch.tensor([1, 1])])  # needs 3 frames
    losses.sum().backward()
    assert losses.tolist() == [0.0]
    assert not scores.grad.any()


def test_an_empty_label_is_refused():
    with pytest.raises(ValueError, match="`labels` must be at least one symbol long, but is 0 at sequence 1"):
        ctc_losses(torch.zeros(2, 4, 3), torch.tensor([4, 4]), [torch.tensor([1]), torch.tensor([], dtype=torch.int64)])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_decoding_merges_then_drops_blanks(path):
    scores = torch.nn.functional.one_hot(torch.tensor([[*path, 2, 1]]), 4).float()
    assert decode(scores, torch.tensor([len(path)])) == [_collapse(path)]


@given(st.lists(st.integers(1, 3), min_size=1, max_size=8))
def test_frames_needed_is_the_shortest_path(label):
    with_blanks = [label[0]]
    for before, symbol in itertools.pairwise(label):
        with_blanks += [0, symbol] if before == symbol else [symbol]
    assert least_frames(label) == len(with_blanks)
    assert _collapse(with_blanks) == label


def _collapse(path):
    return [symbol for symbol, _ in itertools.groupby(path) if symbol]
