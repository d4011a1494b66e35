"""Tacotron 2: what it computes does not depend on the padding, and the attention is that of its equations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from lengthwise_recipes.synthesis.layers import (  # noqa: E402
    Convolution,
    LocationAttention,
    Prenet,
    data_mask,
    data_places,
)
from lengthwise_recipes.synthesis.loss import synthesis_errors  # noqa: E402
from lengthwise_recipes.synthesis.model import Predicted, Tacotron  # noqa: E402
from lengthwise_recipes.synthesis.network import Network  # noqa: E402

BANDS = 5
SYMBOLS = 7


def make(*, reduction=1, seed=0):
    torch.manual_seed(seed)
    network = Network(width=1 / 64, bands=BANDS, reduction=reduction, prenet_dropout=0.0, dropout=0.0)
    return Tacotron(SYMBOLS, network).eval()


def batch_of(sizes, seed, *, symbols=0, frames=0, dirt=0.0):
    """Random sequences of (characters, frames), padded to the longest or further, with `dirt` in the padded frames."""
    generator = np.random.default_rng(seed)
    texts = [generator.integers(1, SYMBOLS, size=characters) for characters, _ in sizes]
    mels = [generator.normal(size=(count, BANDS)) for _, count in sizes]
    padded_texts = np.zeros((len(sizes), max(symbols, *(len(text) for text in texts), 1)), np.int64)
    padded_mels = np.full((len(sizes), max(frames, *(len(mel) for mel in mels), 1), BANDS), dirt, np.float32)
    for row, (text, mel) in enumerate(zip(texts, mels, strict=True)):
        padded_texts[row, : len(text)], padded_mels[row, : len(mel)] = text, mel
    characters, counts = np.array(sizes).T
    return tuple(map(torch.from_numpy, (padded_texts, characters.copy(), padded_mels, counts.copy())))


def one(batch, row, *, multiple=1):
    """A sequence of a batch, alone."""
    texts, characters, mels, counts = (each[row : row + 1] for each in batch)
    return texts[:, : characters[0]], characters, mels[:, : -(-int(counts[0]) // multiple) * multiple], counts


sizes_of_batches = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 12)), min_size=1, max_size=4)


@settings(max_examples=20)
@given(sizes_of_batches, st.integers(0, 50), st.sampled_from([1, 2, 3]))
def test_padding_changes_no_output(sizes, seed, reduction):
    batch, model = batch_of(sizes, seed, symbols=11, frames=12 * reduction), make(reduction=reduction)
    with torch.no_grad():
        together = model(*batch)
        for row, (characters, count) in enumerate(sizes):
            alone = model(*one(batch, row, multiple=reduction))
            steps = -(-count // reduction)
            for mine, other in (
                (together.before[row, :count], alone.before[0, :count]),
                (together.after[row, :count], alone.after[0, :count]),
                (together.stops[row, :steps], alone.stops[0]),
                (together.weights[row, :steps, :characters], alone.weights[0]),
            ):
                torch.testing.assert_close(mine, other, atol=1e-5, rtol=0.0)


def test_what_stands_in_the_padding_changes_nothing():
    sizes = [(4, 3), (6, 9)]
    clean, dirty = batch_of(sizes, 0), batch_of(sizes, 0, dirt=1e4)
    assert not torch.equal(clean[2], dirty[2])
    with torch.no_grad():
        ours, others = make()(*clean), make()(*dirty)
    torch.testing.assert_close(ours.after[0, :3], others.after[0, :3], atol=1e-5, rtol=0.0)
    torch.testing.assert_close(ours.after[1], others.after[1], atol=1e-5, rtol=0.0)


@pytest.mark.parametrize("reduction", [1, 2])
def test_padding_changes_no_gradient(reduction):
    def gradient(batches, frames):
        model = make(reduction=reduction)
        for batch in batches:
            loss = synthesis_errors(model(*batch), batch[2], batch[3]).mean("frames")
            (loss * float(batch[3].sum()) / frames).backward()
        return torch.cat([torch.as_tensor(parameter.grad).flatten() for parameter in model.parameters()])

    batch = batch_of([(3, 4), (8, 10)], 1, symbols=12, frames=16)  # whole steps: means over frames and steps agree
    apart = [one(batch, row, multiple=reduction) for row in range(2)]
    torch.testing.assert_close(gradient([batch], 14), gradient(apart, 14), atol=1e-5, rtol=1e-4)


def test_batch_norm_counts_no_padding():
    mask, narrow = data_mask(torch.tensor([5, 3]), 12), data_mask(torch.tensor([5, 3]), 5)
    frames = torch.randn(2, 12, 2, generator=torch.Generator().manual_seed(0)) * mask[:, :, None]
    layers = [Convolution(2, 3, torch.nn.Identity(), 0.0) for _ in range(2)]
    layers[1].load_state_dict(layers[0].state_dict())
    wide_out, narrow_out = layers[0](frames, data_places(mask)), layers[1](frames[:, :5], data_places(narrow))
    torch.testing.assert_close(wide_out[mask].mean(0), torch.zeros(3), atol=1e-5, rtol=0.0)
    torch.testing.assert_close(wide_out[mask].var(0, correction=0), torch.ones(3), atol=1e-2, rtol=0.0)
    torch.testing.assert_close(wide_out[:, :5], narrow_out, atol=1e-5, rtol=0.0)
    torch.testing.assert_close(layers[0].norm.running_var, layers[1].norm.running_var, atol=1e-6, rtol=0.0)
    assert not wide_out[~mask].any()


@settings(max_examples=20)
@given(sizes_of_batches, st.integers(0, 50))
def test_attention_is_shared_among_the_characters_there_are(sizes, seed):
    with torch.no_grad():
        weights = make()(*batch_of(sizes, seed, symbols=10)).weights
    for row, (characters, _) in enumerate(sizes):
        torch.testing.assert_close(weights[row, :, :characters].sum(1), torch.ones(weights.shape[1]))
        assert not weights[row, :, characters:].any()
        assert bool((weights[row, :, :characters] > 0).all())


def test_attention_is_that_of_its_equation():
    torch.manual_seed(0)
    attention = LocationAttention(queries=3, values=4, size=5, filters=2)
    values, query, past = torch.randn(1, 6, 4), torch.randn(1, 3), torch.rand(1, 2, 6)
    memory = attention.memory(values, torch.tensor([6]))
    read, weights = attention(query, past, memory)
    kernel = attention.location.weight
    energies = []
    for place in range(6):
        # What stands d places to the right is multiplied by the kernel's column 15 + d.
        seen = sum(kernel[:, :, 15 + other - place] @ past[0, :, other] for other in range(6))
        inner = attention.query(query)[0] + attention.key(values)[0, place] + attention.of_location(seen)
        energies.append((attention.energy.weight[0] * torch.tanh(inner)).sum())
    expected = torch.stack(energies).softmax(0)
    torch.testing.assert_close(weights[0], expected, atol=1e-6, rtol=0.0)
    torch.testing.assert_close(read[0], expected @ values[0], atol=1e-5, rtol=0.0)


def test_the_prenet_drops_in_evaluation_too():
    torch.manual_seed(0)
    prenet = Prenet(4, 200, 0.5).eval()
    with torch.no_grad():
        out = prenet(torch.ones(50, 4))
        dropless = Prenet(4, 200, 0.0)
        dropless.load_state_dict(prenet.state_dict())
        share = float((out == 0).float().mean()) - 0.5 * float((dropless(torch.ones(50, 4)) == 0).float().mean())
    assert 0.4 < share < 0.75


@pytest.mark.parametrize("reduction", [1, 3])
def test_what_it_says_alone_it_says_after_its_own_frames(reduction):
    model = make(reduction=reduction, seed=2)
    torch.nn.init.zeros_(model.postnet.convolutions[-1].norm.weight)  # so that what is said is what is heard
    torch.nn.init.constant_(model.decoder.stop.bias, -50.0)
    texts, characters, *_ = batch_of([(5, 1), (3, 1)], 3)
    said = model.speak(texts, characters, max_steps=6)
    assert said.frames.shape == (2, 6 * reduction, BANDS)
    with torch.no_grad():
        predicted = model(texts, characters, said.frames, torch.full((2,), 6 * reduction))
    torch.testing.assert_close(predicted.after, said.frames, atol=1e-5, rtol=0.0)
    torch.testing.assert_close(predicted.weights, said.weights, atol=1e-5, rtol=0.0)


@pytest.mark.parametrize(("bias", "counts", "stopped"), [(-50.0, [8, 8], False), (50.0, [2, 2], True)])
def test_it_speaks_until_it_stops_or_is_stopped(bias, counts, stopped):
    model = make(reduction=2)
    torch.nn.init.constant_(model.decoder.stop.bias, bias)
    texts, characters, *_ = batch_of([(5, 1), (3, 1)], 3)
    said = model.speak(texts, characters, max_steps=4)
    assert (said.counts.tolist(), said.stopped.tolist()) == (counts, [stopped] * 2)
    assert said.frames.shape[1] == max(counts)


@pytest.mark.parametrize(
    ("mean_over", "squares", "stops"),
    # Frames: sequences of 3 and 1, in 2 steps of 2; errors of 1 before the postnet and 4 after, so 5 a frame: 20.
    # Stops: 2 live steps of the first and 1 of the second, each of logit 0, so log 2 apiece.
    [("padded", 20 / 8, 3 / 4), ("frames", 20 / 4, 3 / 3)],
)
def test_the_loss_divides_by_the_rectangle_or_by_the_frames(mean_over, squares, stops):
    frames, counts = torch.zeros(2, 4, 2), torch.tensor([3, 1])
    predicted = Predicted(frames + 1, frames + 2, torch.zeros(2, 2), torch.zeros(2, 2, 1))
    predicted.before[1, 2:] = 1e6  # what stands behind the last step's frames is not looked at
    predicted.stops[1, 1] = 99.0
    loss = synthesis_errors(predicted, frames, counts).mean(mean_over)
    assert float(loss) == pytest.approx(squares + math.log(2) * stops, abs=1e-5)


def test_the_stop_is_due_at_the_last_step():
    frames, counts = torch.zeros(2, 4, 1), torch.tensor([3, 2])
    sure = torch.tensor([[-30.0, 30.0], [30.0, 0.0]])  # steps of 2 frames: the second is the last, and the first
    predicted = Predicted(frames, frames, sure, torch.zeros(2, 2, 1))
    assert float(synthesis_errors(predicted, frames, counts).mean("frames")) == pytest.approx(0.0, abs=1e-6)
    wrong = predicted._replace(stops=-sure)
    assert float(synthesis_errors(wrong, frames, counts).mean("frames")) == pytest.approx(30.0, abs=1e-4)


def test_sizes_are_those_of_the_paper_or_a_share_of_them():
    whole, eighth = Network(), Network(width=0.125)
    names = ("encoder", "prenet", "decoder", "attention", "location", "postnet")
    assert [getattr(whole, name) for name in names] == [512, 256, 1024, 128, 32, 512]
    assert (whole.bands, whole.dropout, whole.prenet_dropout) == (80, 0.5, 0.5)
    assert [getattr(eighth, name) for name in names] == [64, 32, 128, 16, 4, 64]
    assert Network(width=1e-6).encoder == 2


@pytest.mark.parametrize("field", ["width", "bands", "reduction"])
def test_sizes_are_checked(field):
    with pytest.raises(ValueError, match=f"`{field}` must be"):
        Network(**{field: 0})
    with pytest.raises(ValueError, match=r"`dropout` must be at least 0 and at most 0\.9, but is 1"):
        Network(dropout=1.0)
