"""One compilation per bucket, with shared weights: counted, and the same as no compilation."""

import itertools
from functools import partial

import numpy as np
import pytest

import lengthwise as lw

pytest.importorskip("HersheyFonts")
pytest.importorskip("jaxlib")

import jax

pytest.importorskip("optax")
torch = pytest.importorskip("torch")

import jax.numpy as jnp  # noqa: E402
from torch._dynamo.testing import CompileCounter  # noqa: E402

from lengthwise_recipes.compiled import jax_lstm  # noqa: E402
from lengthwise_recipes.compiled.__main__ import main  # noqa: E402
from lengthwise_recipes.compiled.data import Words, training_words  # noqa: E402
from lengthwise_recipes.compiled.jax_lstm import JaxLearner  # noqa: E402
from lengthwise_recipes.compiled.learning import computed_frames, find_shapes, run_epochs, time_buckets  # noqa: E402
from lengthwise_recipes.compiled.torch_encoder import Encoder, TorchLearner, sinusoids  # noqa: E402
from lengthwise_recipes.handwriting.data import synthetic_lines  # noqa: E402
from lengthwise_recipes.handwriting.model import ctc_losses as torch_ctc_losses  # noqa: E402
from lengthwise_recipes.study.layers import BidirectionalLayer  # noqa: E402

INPUTS, CLASSES, HIDDEN = 3, 4, 8


def random_words(lengths, *, seed=0):
    generator = np.random.default_rng(seed)
    frames = [generator.normal(size=(length, INPUTS)).astype(np.float32) for length in lengths]
    labels = [generator.integers(1, CLASSES, 1 + number % 2).astype(np.int32) for number in range(len(lengths))]
    return Words(frames=tuple(frames), labels=tuple(labels), classes=CLASSES)


WORDS = random_words([4, 9, 5, 6, 11, 12, 12, 7, 5, 10, 4, 8, 9, 12, 6, 5])
BUCKETS = 2
FIXED = lw.Batching(order=lw.Bucketed(buckets=BUCKETS, pad_to_edge=True), cut=lw.FixedSize(3))


def torch_learner(backend):
    return TorchLearner(WORDS, backend=backend, hidden=HIDDEN, layers=1)


@pytest.fixture(scope="module")
def jax_run():
    """A learner after six epochs on changing plans, its rows, and the names of all that XLA compiled meanwhile."""
    names = []

    def listen(event, _seconds, **facts):
        if event == "/jax/core/compile/backend_compile_duration":
            names.append(facts["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(listen)
    learner = JaxLearner(WORDS, hidden=HIDDEN, layers=1)
    rows = list(run_epochs(learner, WORDS.lengths, FIXED, epochs=2))
    rows += run_epochs(learner, WORDS.lengths, FIXED, epochs=4, seed=7)
    jax.monitoring.unregister_event_duration_listener(listen)
    return learner, rows, names


def test_jax_compiles_a_step_for_each_bucket_and_no_more_in_any_epoch(jax_run):
    _, rows, names = jax_run
    assert [row.compilations for row in rows] == [BUCKETS] * 6
    assert [name for name in names if "_step" in name] == ["jit(_step)"] * BUCKETS
    assert rows[-1].loss < rows[0].loss


def test_executables_are_kept_and_times_are_of_every_number_of_buckets(tmp_path):
    cache = jax.config.jax_compilation_cache_dir
    jax_lstm.keep_executables(tmp_path)
    try:
        make = partial(JaxLearner, WORDS, hidden=HIDDEN, layers=1)
        times = time_buckets(make, WORDS.lengths, (1, 2), batch_size=3, epochs=2)
    finally:
        jax.config.update("jax_compilation_cache_dir", cache)
    assert sum("step" in path.name for path in tmp_path.glob("*-cache")) >= 2  # XLA names each file by its function
    assert list(times) == ["1", "2"]
    assert all(
        len(each["seconds"]) == 2 and 0 < each["load_seconds"] < each["compile_seconds"] for each in times.values()
    )


def test_one_set_of_weights_serves_every_bucket(jax_run):
    """The executable of each bucket computes the same loss of the same weights, and takes the same step."""
    learner, _, _ = jax_run
    shapes = lw.batch_shapes(WORDS.lengths, FIXED)
    taken = []
    for rows, padded_length in shapes.tolist():
        collate = lw.jax.PadCollate(shapes, pad_to={"1": WORDS.longest_label})
        batch = collate.pad([WORDS[0], WORDS[2]], rows=rows, padded_length=padded_length)
        taken.append(learner._executables[rows, padded_length](learner.weights, learner.state, batch))
    for others in zip(*map(jax.tree.leaves, taken), strict=True):
        np.testing.assert_allclose(*others, rtol=1e-4, atol=1e-5)
    before, after = (jax.tree.leaves(weights) for weights in (learner.weights, taken[0][0]))
    assert max(np.abs(one - other).max() for one, other in zip(before, after, strict=True)) > 1e-4


def test_torch_compiles_a_model_for_each_bucket_and_no_more_in_any_epoch():
    counter = CompileCounter()
    learner = torch_learner(counter)
    with torch._dynamo.config.patch(recompile_limit=BUCKETS - 1):  # with more buckets than PyTorch allows by itself
        rows = list(run_epochs(learner, WORDS.lengths, FIXED, epochs=2))
        rows += run_epochs(learner, WORDS.lengths, FIXED, epochs=4, seed=7)
    assert [row.compilations for row in rows] == [BUCKETS] * 6
    assert counter.frame_count == BUCKETS
    assert rows[-1].loss < rows[0].loss


def test_compiled_torch_takes_the_steps_of_eager_torch():
    learners = [torch_learner(backend) for backend in ("aot_eager", None)]
    losses = [[row.loss for row in run_epochs(each, WORDS.lengths, FIXED, epochs=2)] for each in learners]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    for compiled, eager in zip(*(learner.model.parameters() for learner in learners), strict=True):
        torch.testing.assert_close(compiled, eager, atol=1e-5, rtol=1e-4)
    assert [learner.compilations for learner in learners] == [BUCKETS, 0]


def test_dynamic_torch_compiles_less_often_than_there_are_lengths():
    unpadded = lw.Batching(order=lw.Sorted(), cut=lw.FixedSize(2))
    learner = TorchLearner(WORDS, backend="eager", dynamic=True, hidden=HIDDEN, layers=1)
    (row,) = run_epochs(learner, WORDS.lengths, unpadded, epochs=1)
    assert row.compilations < len(np.unique(lw.make_plan(WORDS.lengths, unpadded).padded_lengths))


def test_a_shape_that_was_not_compiled_for_raises():
    plan = lw.make_plan(WORDS.lengths, FIXED)
    shapes = lw.batch_shapes(WORDS.lengths, FIXED)
    with pytest.raises(KeyError):
        JaxLearner(WORDS, hidden=HIDDEN, layers=1).train(plan, shapes)
    learner = torch_learner("eager")
    learner.compile(shapes[:1])
    with pytest.raises(RuntimeError, match="fail_on_recompile"):
        learner.train(plan, shapes)


def padded(lengths, rows, width, *, seed=1):
    """Frames and labels of random words in a batch of one shape."""
    words = random_words(lengths, seed=seed)
    collate = lw.jax.PadCollate([[rows, width]], pad_to={"1": 3})
    return collate([words[number] for number in range(len(words))])


def test_what_stands_in_padding_and_filled_rows_changes_no_loss_and_no_gradient_in_jax():
    weights = jax_lstm.first_weights(jax.random.key(3), inputs=INPUTS, classes=CLASSES, hidden=HIDDEN, layers=2)

    @jax.jit
    def gradient(weights, frames, labels):
        return jax.value_and_grad(
            lambda weights: jax_lstm.ctc_losses(jax_lstm.logits(weights, frames), frames, labels).sum()
        )(weights)

    frames, labels = padded([5, 9], 4, 12)
    dirty = frames._replace(values=np.where(frames.mask[:, :, None], frames.values, 50.0))
    clean = gradient(weights, frames, labels)
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, atol=1e-5), clean, gradient(weights, dirty, labels)
    )
    assert max(np.abs(leaf).max() for leaf in jax.tree.leaves(clean[1])) > 1e-3


def test_padding_and_filled_rows_change_no_loss_and_no_gradient_in_torch():
    def gradient(rows, width):
        torch.manual_seed(0)
        learner = TorchLearner(random_words([16]), backend=None, hidden=HIDDEN, layers=2)
        collate = lw.torch.PadCollate(shapes=[(rows, width, 3)])
        words = random_words([5, 9], seed=1)
        losses = learner._losses(*collate([words[0], words[1]]))
        losses.sum().backward()
        return losses.detach().numpy(), [parameter.grad.numpy() for parameter in learner.model.parameters()]

    tight, loose = gradient(2, 9), gradient(4, 16)
    np.testing.assert_allclose(tight[0], loose[0], rtol=1e-5)
    for one, other in zip(tight[1], loose[1], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert max(np.abs(gradient).max() for gradient in tight[1]) > 1e-3


def test_the_lstm_is_that_of_pytorch():
    torch.manual_seed(0)
    layer = BidirectionalLayer(INPUTS, HIDDEN, packed=False)
    weights = {
        name: {
            "kernel": np.concatenate([lstm.weight_ih_l0.detach().T, lstm.weight_hh_l0.detach().T]),
            "bias": (lstm.bias_ih_l0 + lstm.bias_hh_l0).detach().numpy(),
        }
        for name, lstm in (("forwards", layer.forwards), ("backwards", layer.backwards))
    }
    identity = {"kernel": np.eye(2 * HIDDEN, dtype=np.float32), "bias": np.zeros(2 * HIDDEN, np.float32)}
    frames, _ = padded([5, 9, 1], 3, 12)
    ours = jax_lstm.logits({"layers": [weights], "output": identity}, frames)
    theirs = layer(torch.from_numpy(frames.values), torch.from_numpy(frames.lengths).long()).detach()
    for row, length in enumerate(frames.lengths):
        np.testing.assert_allclose(ours[row, :length], theirs[row, :length], atol=1e-5)


def test_the_ctc_loss_is_that_of_pytorch():
    frames, labels = padded([5, 9, 7], 4, 10)
    scores = np.random.default_rng(2).normal(size=(4, 10, CLASSES)).astype(np.float32)
    ours = jax_lstm.ctc_losses(jnp.asarray(scores), frames, labels)
    texts = [torch.from_numpy(row[:length]) for row, length in zip(labels.values, labels.lengths, strict=True)][:3]
    log_probabilities = torch.from_numpy(scores[:3]).log_softmax(2)
    theirs = torch_ctc_losses(log_probabilities, torch.from_numpy(frames.lengths[:3]).long(), texts)
    np.testing.assert_allclose(ours, [*theirs, 0.0], rtol=1e-4)


def test_the_encoder_sees_the_whole_sequence():
    torch.manual_seed(0)
    model = Encoder(inputs=INPUTS, classes=CLASSES, longest=20, hidden=HIDDEN, layers=1)
    frames, mask = torch.zeros(1, 20, INPUTS), torch.ones(1, 20, dtype=torch.bool)
    changed = frames.clone()
    changed[0, 19] = 3.0
    assert not torch.allclose(model(frames, mask)[0, 0], model(changed, mask)[0, 0], atol=1e-6)


def test_sinusoids_worked_by_hand():
    # Rates 1 and 10,000 ** (-2 / 4) = 0.01.
    expected = [[0, 1, 0, 1], [np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)]]
    np.testing.assert_allclose(sinusoids(2, 4), expected, atol=1e-6)


def test_shapes_of_unpadded_batches_are_those_of_the_plan():
    batching = lw.Batching(order=lw.Sorted(), cut=lw.FixedSize(2))
    plan = lw.make_plan([3, 5, 5, 9, 12], batching)
    shapes = find_shapes(np.array([3, 5, 5, 9, 12]), batching, plan)
    assert shapes.tolist() == [[2, 3], [2, 5], [2, 12]]
    assert computed_frames(plan, shapes) == 2 * (3 + 5 + 12)


def test_an_epoch_reports_seconds_of_the_clock_and_frames_of_the_shapes():
    learner = torch_learner(None)
    clock = itertools.count(step=2.0).__next__
    first, second = run_epochs(learner, WORDS.lengths, FIXED, epochs=2, clock=clock)
    assert (first.compile_seconds, first.seconds, first.compilations) == (2.0, 2.0, 0)
    assert (first.epoch, second.epoch) == (0, 1)
    # Seven words of at most 6 frames and nine of at most 12: three batches of three rows in each bucket.
    assert first.computed_frames == second.computed_frames == 3 * 3 * 6 + 3 * 3 * 12
    assert first.padding_share == pytest.approx(1 - 125 / 162)


def test_written_lines_become_frames_and_classes():
    corpus = synthetic_lines(count=8, validation_share=0.25)
    words = training_words(corpus, stack=4)
    assert len(words) == len(corpus.train) == 6
    assert words.lengths.tolist() == (-(-corpus.train.lengths // 4)).tolist()
    assert words.inputs == 12
    assert words.classes == len(corpus.alphabet) + 1
    texts = ["".join(corpus.alphabet[symbol - 1] for symbol in labels) for labels in words.labels]
    assert texts == list(corpus.train.texts)
    assert words.longest_label == max(map(len, texts))


def test_the_command_trains_and_counts(monkeypatch, capsys):
    command = ["compiled", "jax", "--count", "12", "--buckets", "1", "--epochs", "2", "--batch-size", "4"]
    monkeypatch.setattr("sys.argv", command)
    main()
    shapes, first, second = capsys.readouterr().out.splitlines()
    assert shapes.startswith("11 samples; rows and padded length of the batches: [[4, ")
    assert "compilations 1," in first
    assert "compilations 1," in second
