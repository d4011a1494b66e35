"""Learning to speak from a voice that says each letter as a tone."""

import dataclasses
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("soundfile")

from lengthwise_recipes.synthesis.ljspeech import read_folder  # noqa: E402
from lengthwise_recipes.synthesis.mel import LogMel  # noqa: E402
from lengthwise_recipes.synthesis.network import Network  # noqa: E402
from lengthwise_recipes.synthesis.task import SynthesisTask  # noqa: E402
from lengthwise_recipes.synthesis.utterances import Scale, spell, symbols_of  # noqa: E402
from letter_tones import RATE, sing, write_folder  # noqa: E402

NETWORK = Network(width=1 / 32, bands=12, reduction=4)
WORDS = ("abcd", "fed", "hag", "bade", "gab", "Face", "he", "dab cab", "egg", "cafe")


@pytest.fixture(scope="module")
def speech(tmp_path_factory):
    folder = write_folder(tmp_path_factory.mktemp("speech") / "tones", {word.replace(" ", "-"): word for word in WORDS})
    return read_folder(folder, strict=True)


@pytest.fixture(scope="module")
def task(speech):
    return SynthesisTask.of(speech, network=NETWORK, seed=1)


def fresh(task, seed=0):
    torch.manual_seed(seed)
    return task.model()


def test_a_fifth_is_held_out_and_lengths_are_frames(task):
    assert (len(task.train), len(task.validation)) == (8, 2)
    assert set(task.train.texts) | set(task.validation.texts) == {spell(word) for word in WORDS}
    # A letter is 800 samples, a shift 100: 8 frames a letter and one at the end.
    assert task.lengths.tolist() == [8 * len(text) + 1 for text in task.train.texts]
    assert task.train.text_lengths.tolist() == [len(text) for text in task.train.texts]
    assert task.alphabet == " abcdefgh"


def test_another_seed_holds_out_others_and_the_same_seed_the_same(speech, task):
    held = {SynthesisTask.of(speech, network=NETWORK, seed=seed).validation.texts for seed in range(6)}
    assert len(held) > 1
    assert SynthesisTask.of(speech, network=NETWORK, seed=1).validation.texts == task.validation.texts


def test_what_is_tested_on_is_in_no_other_part(speech, task):
    tested = SynthesisTask.of(speech, network=NETWORK, test_share=0.3, seed=1)
    parts = [set(part.texts) for part in (tested.train, tested.validation, tested.test_part)]
    assert [len(part) for part in parts] == [5, 2, 3]
    assert set.union(*parts) == {spell(word) for word in WORDS}
    assert tested.validation.texts == task.validation.texts
    assert tested.describe()["test_sequences"] == 3
    assert tested.split == "2 of 10 recordings held out at random, seed 1, and 3 to test on"
    model = fresh(tested).eval()
    with torch.no_grad():
        found, said = tested.validate(model), tested.test(model)
        swapped = dataclasses.replace(tested, validation=tested.test_part)
        assert found["test_loss_frames"] == swapped.validate(model)["validation_loss_frames"]
        assert said == dataclasses.replace(swapped, test_part=None).test(model)
        assert said != dataclasses.replace(tested, test_part=None).test(model)
    with pytest.raises(ValueError, match="`corpus` must be of at least 3 recordings"):
        SynthesisTask.of(dataclasses.replace(speech, utterances=speech.utterances[:2]), network=NETWORK, test_share=0.3)


def test_frames_are_standard_and_the_scale_can_be_undone(task):
    frames = np.concatenate(task.train.mels)
    np.testing.assert_allclose(frames.mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(frames.std(axis=0), 1.0, atol=1e-4)
    mel = LogMel(bands=12)(sing("abcd").astype(np.float32), rate=RATE)
    np.testing.assert_allclose(task.scale.undo(task.scale.apply(mel)), mel, atol=1e-5)
    still = Scale.of([np.full((3, 2), 7.0, np.float32)])
    assert (still.mean.tolist(), still.deviation.tolist()) == ([7.0, 7.0], [1.0, 1.0])


def test_a_wider_batch_has_the_same_errors_over_more_places(speech):
    def losses(mean_over):
        task = SynthesisTask.of(speech, network=Network(**SURE), mean_over=mean_over, seed=1)
        model, batch = fresh(task).eval(), np.array([0, 3, 5])
        with torch.no_grad():
            return task, [float(task.loss(model, batch, width)) for width in (0, 37, 50)]

    padded, (tight, wider, widest) = losses("padded")
    longest = -(-int(padded.lengths[[0, 3, 5]].max()) // 4) * 4
    assert [wider / tight, widest / tight] == pytest.approx([longest / 40, longest / 52], rel=1e-4)
    frames, over_frames = losses("frames")
    assert over_frames == pytest.approx([over_frames[0]] * 3, rel=1e-4)
    assert (padded.counts, frames.counts) == ("sequences", "frames")


SURE = {"width": 1 / 32, "bands": 12, "reduction": 4, "dropout": 0.0, "prenet_dropout": 0.0}


def test_chunks_are_refused(task):
    with pytest.raises(ValueError, match="`batch` must be of whole sequences, but is 'spans'"):
        task.loss(fresh(task), np.array([[0, 0, 8], [1, 0, 8]]), 8)


def test_validation_is_the_same_every_time_and_draws_nothing(task):
    model = fresh(task).eval()
    torch.manual_seed(5)
    drawn = torch.rand(3)
    torch.manual_seed(5)
    with torch.no_grad():
        first, tested, second = task.validate(model), task.test(model), task.validate(model)
    assert torch.equal(torch.rand(3), drawn)
    assert first == second
    assert next(iter(first)) == "validation_loss"
    assert first["validation_loss"] < first["validation_loss_frames"]
    assert set(tested) == {"stopped_share", "duration_error", "attention_focus"}


def test_validation_over_frames_is_that_of_one_great_batch(tmp_path):
    generator = np.random.default_rng(0)
    words = {str(word): "".join(generator.choice(list("abcdefgh"), size=2 + word % 5)) for word in range(40)}
    corpus = read_folder(write_folder(tmp_path / "words", words))
    task = SynthesisTask.of(corpus, network=Network(**SURE), mean_over="frames", validation_share=0.5)
    model = fresh(task).eval()
    with torch.no_grad():
        found = task.validate(model)["validation_loss_frames"]
        judged = dataclasses.replace(task, train=task.validation)
        assert len(judged.train) == 20  # more than a batch of validation
        assert float(judged.loss(model, np.arange(20), 0)) == pytest.approx(found, rel=1e-5)


def test_a_task_can_be_sent_to_another_process_and_described(task):
    twin = pickle.loads(pickle.dumps(task))
    batch = np.arange(3)
    ours, other = fresh(task).eval(), fresh(twin).eval()
    with torch.no_grad():
        torch.manual_seed(1)
        mine = float(task.loss(ours, batch, 0))
        torch.manual_seed(1)
        assert float(twin.loss(other, batch, 0)) == mine
    facts = task.describe()
    assert (facts["train_sequences"], facts["validation_sequences"], facts["symbols"]) == (8, 2, 9)
    assert facts["split"] == "2 of 10 recordings held out at random, seed 1"
    assert facts["network"]["reduction"] == 4


def test_it_learns_two_words_and_says_them_alone(tmp_path):
    # The same two words in both halves: it is to say what it was taught.
    folder = write_folder(tmp_path / "two", {"1": "cafe", "2": "hb", "3": "cafe", "4": "hb"})
    corpus = read_folder(folder, strict=True)
    task = SynthesisTask.of(corpus, network=Network(**SURE | {"width": 1 / 16}), validation_share=0.5, seed=1)
    assert sorted(task.train.texts) == sorted(task.validation.texts) == ["cafe", "hb"]
    model = fresh(task)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(STEPS):
        loss = task.loss(model, np.arange(2), 0)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        assert task.validate(model)["validation_loss_frames"] < 0.3  # knowing nothing but the mean costs 2
        tested = task.test(model)
    assert tested["stopped_share"] == 1.0
    assert tested["duration_error"] < 0.15
    said, true = task.speak(model, "Cafe"), LogMel(bands=12)(sing("cafe").astype(np.float32), rate=RATE)
    shared = min(len(said), len(true))
    assert np.mean((said[:shared] - true[:shared]) ** 2) < 0.1 * np.mean((true - true.mean(axis=0)) ** 2)


STEPS = 90


def test_speaking_leaves_the_model_as_it_was(task):
    model = fresh(task)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    first = task.speak(model, "abc")
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    np.testing.assert_array_equal(task.speak(model.eval(), "abc"), first)
    assert not model.training


def test_other_texts_or_sounds_of_the_same_lengths_are_described_otherwise(speech, task):
    def described(**changes):
        recordings = tuple(dataclasses.replace(each, **changes) for each in speech.utterances)
        return SynthesisTask.of(dataclasses.replace(speech, utterances=recordings), network=NETWORK, seed=1).describe()

    same = described()
    assert same == task.describe()
    assert described(words=("abcd",))["fingerprint"] != same["fingerprint"]
    quiet = tuple(
        dataclasses.replace(each, load=lambda load=each.load: np.float32(0.5) * load()) for each in speech.utterances
    )
    other = SynthesisTask.of(dataclasses.replace(speech, utterances=quiet), network=NETWORK, seed=1)
    assert {name for name, value in other.describe().items() if value != same[name]} == {"fingerprint"}


def test_texts_are_spelt_with_the_alphabet_alone():
    assert symbols_of(" AB  b", "ab ").tolist() == [1, 2, 3, 2]
    with pytest.raises(ValueError, match="`text` must be at least 2 characters of 'ab ', but is 'yz'"):
        symbols_of("zay", "ab ")
    with pytest.raises(ValueError, match="but is 'a'"):
        symbols_of("a", "ab ")


def test_recordings_that_cannot_be_learnt_are_named(tmp_path):
    folder = write_folder(tmp_path / "tones", {"one": "abc", "two": "d", "three": "ef"})
    task = SynthesisTask.of(read_folder(folder), network=NETWORK)
    assert len(task.train) + len(task.validation) == 2
    assert task.skipped[0].startswith("`text` must be at least 2 characters, but is 'd' at two")
    with pytest.raises(ValueError, match="at two"):
        SynthesisTask.of(read_folder(folder), network=NETWORK, strict=True)
    with pytest.raises(ValueError, match="`corpus` must be of at least 2 recordings that can be used, but is 1"):
        SynthesisTask.of(read_folder(folder, count=2), network=NETWORK)


@pytest.mark.parametrize(
    ("name", "value"),
    [("mean_over", "steps"), ("validation_share", 0.0), ("validation_share", 0.6), ("test_share", 0.5), ("seed", -1)],
)
def test_options_are_checked(speech, name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        SynthesisTask.of(speech, network=NETWORK, **{name: value})
