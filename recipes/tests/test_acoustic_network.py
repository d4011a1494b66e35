"""The acoustic network: padding changes nothing, chunks are what they should be, labels and losses by hand."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from lengthwise_recipes.acoustic.frames import NO_LABEL, end_to_end, fit_scale  # noqa: E402
from lengthwise_recipes.acoustic.network import StateTeller, frame_loss, rectangle  # noqa: E402
from lengthwise_recipes.acoustic.recognition import network_scores  # noqa: E402

D, STATES = 2, 5


def utterances(*lengths):
    """Feature d of frame f of all is 10 f + d before it is scaled; the label is f modulo 5."""
    total = sum(lengths)
    frames = (10.0 * np.arange(total)[:, None] + np.arange(D)).astype(np.float32)
    features = np.split(frames, np.cumsum(lengths)[:-1])
    scale = fit_scale(features)
    return end_to_end(features, [("word",)] * len(lengths), scale, np.arange(total) % STATES), scale


def network(stack=1):
    torch.manual_seed(0)
    return StateTeller(inputs=stack * D, states=STATES, hidden=3).eval()


def test_frames_are_scaled_to_mean_0_and_deviation_1():
    made, scale = utterances(4, 3)
    np.testing.assert_allclose(made.frames.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(made.frames.std(axis=0), 1.0, rtol=1e-6)
    np.testing.assert_allclose(scale.mean, [30.0, 31.0])
    assert made.lengths.tolist() == [4, 3]


def test_a_feature_that_never_changes_becomes_zero():
    scale = fit_scale([np.full((3, 1), 7.0, np.float32)])
    assert scale(np.array([[7.0]], np.float32)).tolist() == [[0.0]]


def test_a_rectangle_by_hand():
    made, _ = utterances(5, 4)
    frames, labels, counts = rectangle(made, np.array([[0, 1, 5], [1, 0, 3]]), stack=2, width=6)
    assert frames.shape == (2, 3, 2 * D)
    assert counts.tolist() == [2, 2]
    # Frames 1 and 2 of the first are one, then 3 and 4; of the second 5 and 6, then 7 and nothing.
    first, second = frames.numpy()
    np.testing.assert_array_equal(first[:2].reshape(4, D), made.frames[1:5])
    np.testing.assert_array_equal(second[:2].reshape(4, D), [*made.frames[5:8], [0, 0]])
    assert not first[2].any()
    assert not second[2].any()
    # Labels of frames 2 and 4, and of 6 and, for want of an eighth, 7: each modulo 5.
    assert labels.tolist() == [[2, 4, NO_LABEL], [1, 2, NO_LABEL]]


def test_with_one_frame_each_every_frame_keeps_its_label():
    made, _ = utterances(3, 2)
    frames, labels, counts = rectangle(made, made.spans(np.array([1, 0])), stack=1)
    assert labels.tolist() == [[3, 4, NO_LABEL], [0, 1, 2]]
    assert counts.tolist() == [2, 3]
    np.testing.assert_array_equal(frames[1], made.frames[:3])


@settings(max_examples=40)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 3), st.integers(0, 30))
def test_padding_and_neighbours_change_nothing(lengths, stack, width):
    made, _ = utterances(*lengths)
    told = network(stack)
    spans = made.spans(np.arange(len(lengths)))
    frames, labels, counts = rectangle(made, spans, stack=stack, width=width)
    together = told(frames, counts)
    losses = []
    for number, span in enumerate(spans):
        alone = rectangle(made, span[None], stack=stack)
        odds = told(alone.frames, alone.counts)
        torch.testing.assert_close(together[number, : counts[number]], odds[0], rtol=1e-4, atol=1e-5)
        losses.append(frame_loss(odds, alone.labels, reduction="sum").item())
    assert frame_loss(together, labels).item() == pytest.approx(sum(losses) / int(counts.sum()), rel=1e-4)


def test_a_chunk_sees_nothing_beyond_it():
    made, _ = utterances(9)
    told = network()
    chunk = rectangle(made, np.array([[0, 3, 7]]), stack=1)
    changed, _ = utterances(9)
    changed.frames[:3], changed.frames[7:] = 5.0, -5.0
    same = rectangle(changed, np.array([[0, 3, 7]]), stack=1)
    torch.testing.assert_close(told(chunk.frames, chunk.counts), told(same.frames, same.counts), rtol=0, atol=0)


def test_the_loss_is_the_mean_over_frames_that_are_no_padding():
    log_odds = torch.log(torch.tensor([[[0.5, 0.5], [0.25, 0.75]], [[0.1, 0.9], [0.5, 0.5]]]))
    labels = torch.tensor([[0, 1], [0, NO_LABEL]])
    by_hand = -(np.log(0.5) + np.log(0.75) + np.log(0.1))
    assert frame_loss(log_odds, labels).item() == pytest.approx(by_hand / 3)
    assert frame_loss(log_odds, labels, reduction="sum").item() == pytest.approx(by_hand)


def test_scores_are_posteriors_over_priors_of_every_frame():
    made, _ = utterances(5, 3)
    told = network(2)
    priors = np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    scores = network_scores(told, made, np.array([1, 0]), stack=2, priors=priors)
    assert [each.shape for each in scores] == [(3, STATES), (5, STATES)]
    np.testing.assert_allclose((np.exp(scores[0]) * priors).sum(axis=1), 1.0, rtol=1e-5)  # posteriors again
    np.testing.assert_array_equal(scores[1][[0, 2]], scores[1][[1, 3]])  # two frames, one of the network
    alone = rectangle(made, made.spans(np.array([1])), stack=2)
    odds = told(alone.frames, alone.counts).log_softmax(dim=2)[0].detach().numpy()
    np.testing.assert_allclose(scores[0][[0, 2]], odds - np.log(priors), rtol=1e-4, atol=1e-5)


def test_sizes_that_make_no_network_are_refused():
    with pytest.raises(ValueError, match="`hidden` must be at least 1, but is 0"):
        StateTeller(inputs=D, states=STATES, hidden=0)


def test_the_scale_of_many_frames_is_computed_in_64_bits():
    """Summed in 32 bits, 200,000 frames of 16.1 have a mean of 16.08."""
    scale = fit_scale([np.full((100_000, 2), 16.1, np.float32)] * 2)
    assert scale.mean == pytest.approx([16.1, 16.1], rel=1e-6)
