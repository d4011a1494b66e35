"""The acoustic task on tones: prepared and kept, its loss of utterances and of chunks, its measures by hand."""

import dataclasses
import json
import pickle
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
pytest.importorskip("jiwer")

import lengthwise as lw  # noqa: E402
from damages import DAMAGES  # noqa: E402
from lengthwise_recipes.acoustic.aligned import FILE, read_or_make  # noqa: E402
from lengthwise_recipes.acoustic.em import Rounds  # noqa: E402
from lengthwise_recipes.acoustic.frames import NO_LABEL  # noqa: E402
from lengthwise_recipes.acoustic.labelling import (  # noqa: E402
    Labelling,
    first_states,
    labels_of,
    name_speech,
    speech_of,
    train_model,
)
from lengthwise_recipes.acoustic.network import frame_loss, rectangle  # noqa: E402
from lengthwise_recipes.acoustic.prepared import prepare  # noqa: E402
from lengthwise_recipes.acoustic.task import AcousticTask  # noqa: E402
from lengthwise_recipes.acoustic.tying import Tree  # noqa: E402
from lengthwise_recipes.speech.corpus import Corpus, Utterance  # noqa: E402
from lengthwise_recipes.speech.digits import WORDS, Strings, digit_strings  # noqa: E402
from lengthwise_recipes.speech.parts import digit_parts  # noqa: E402
from tones import tones  # noqa: E402

CLEAN = (float("inf"),)
LABELLING = Labelling(word_states=4, rounds=Rounds(splits=0, alignments=3))


@pytest.fixture(scope="module")
def parts():
    return digit_parts(tones(takes=7), count=16, validating=5, testing=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("aligned")


@pytest.fixture(scope="module")
def prepared(parts, folder):
    return prepare(parts, LABELLING, folder=folder)


@pytest.fixture(scope="module")
def task(prepared):
    return AcousticTask(prepared=prepared, hidden=4, stack=2)


def named(parts, labelling):
    """The fingerprint by which an alignment is kept."""
    states = first_states(parts.train, labelling)
    spoken = [speech_of(parts.train, states), speech_of(parts.validation, states), speech_of(parts.test)]
    return name_speech(spoken, labelling, any_order=parts.any_order)


def scaled(corpus, gain):
    """The same words, more or less loud."""
    utterances = tuple(
        dataclasses.replace(each, load=lambda load=each.load: np.float32(gain) * load()) for each in corpus.utterances
    )
    return dataclasses.replace(corpus, utterances=utterances)


def never():
    raise ValueError("made anew")


class Knowing(torch.nn.Module):
    """Tells of every network frame the state that its first number is, with certainty."""

    def __init__(self, states):
        super().__init__()
        self.states = torch.nn.Parameter(torch.tensor(float(states)))

    def forward(self, frames, counts):
        del counts
        told = frames[:, :, 0].long().clamp(min=0)
        return 30.0 * torch.nn.functional.one_hot(told, int(self.states))


def knowing(prepared, labels):
    """`prepared`, the first feature of every frame of the test part replaced by its label."""
    frames = prepared.test.frames.copy()
    frames[:, 0] = labels
    return dataclasses.replace(prepared, test=dataclasses.replace(prepared.test, frames=frames))


def test_every_frame_has_a_state_of_its_words(prepared):
    for part in (prepared.train, prepared.validation, prepared.test):
        assert len(part.labels) == len(part.frames) == part.lengths.sum()
        for number, words in enumerate(part.transcripts):
            allowed = {0} | {state for word in words for state in prepared.states.rows[prepared.states.number(word)]}
            assert set(part.labels[part.offsets[number] : part.offsets[number + 1]]) <= allowed
    assert prepared.priors.sum() == pytest.approx(1.0)
    assert prepared.search.lm_scale == 12.0
    assert 0.0 <= prepared.gmm_word_error_rate < 0.6


def test_what_is_prepared_again_is_read_back(parts, prepared, folder):
    written = (folder / FILE).stat().st_mtime_ns
    again = prepare(parts, LABELLING, folder=folder)
    assert (folder / FILE).stat().st_mtime_ns == written
    np.testing.assert_array_equal(again.train.labels, prepared.train.labels)
    np.testing.assert_array_equal(again.stay, prepared.stay)
    assert (again.states, again.gmm_word_error_rate) == (prepared.states, prepared.gmm_word_error_rate)
    key = f"{named(parts, LABELLING)} {prepared.search}"
    read = read_or_make(folder, key, never)
    np.testing.assert_array_equal(read.model.mixtures.means, read_or_make(folder, key, never).model.mixtures.means)
    with pytest.raises(ValueError, match="made anew"):
        read_or_make(folder, "another key", never)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_alignment_is_made_anew_with_a_warning(parts, prepared, folder, tmp_path, damage):
    key = f"{named(parts, LABELLING)} {prepared.search}"
    path = Path(shutil.copy(folder / FILE, tmp_path))
    damage(path)
    with pytest.warns(
        UserWarning, match="`alignment` must be whole, but is 'damaged' at .*npz. It is made anew"
    ) as told:
        made = read_or_make(tmp_path, key, lambda: read_or_make(folder, key, never))
    assert len(told) == 1
    assert made.word_error_rate == prepared.gmm_word_error_rate
    np.testing.assert_array_equal(read_or_make(tmp_path, key, never).train, prepared.train.labels)


def test_a_whole_file_that_is_none_of_ours_is_made_anew(parts, prepared, folder, tmp_path):
    np.savez(tmp_path / FILE, other=np.zeros(1))
    key = f"{named(parts, LABELLING)} {prepared.search}"
    read_or_make(tmp_path, key, lambda: read_or_make(folder, key, never))
    np.testing.assert_array_equal(read_or_make(tmp_path, key, never).train, prepared.train.labels)


def test_another_labelling_or_corpus_has_another_fingerprint(parts):
    other = digit_parts(tones(takes=7), count=16, validating=5, testing=5, seed=1)
    louder = dataclasses.replace(parts, validation=scaled(parts.validation, 0.5))
    told = {named(each, choice) for each in (parts, other, louder) for choice in (LABELLING, Labelling())}
    assert len(told) == 6


def test_a_task_is_sent_to_a_process_and_says_what_it_is(task):
    sent = pickle.loads(pickle.dumps(task))
    assert json.dumps(sent.describe()) == json.dumps(task.describe())
    told = task.describe()
    assert told["network"] == {"hidden": 4, "layers": 3, "stack": 2}
    assert (told["train_utterances"], told["validation_utterances"], told["test_utterances"]) == (16, 5, 5)
    assert told["train_frames"] == task.lengths.sum()
    assert told["skipped"] == []
    assert task.counts == "frames"


def test_the_loss_of_whole_utterances_is_that_of_spans_of_all(task):
    torch.manual_seed(0)
    model = task.model()
    batch = np.array([3, 0, 7])
    spans = task.prepared.train.spans(batch)
    whole = task.loss(model, batch, int(task.lengths[batch].max()))
    torch.testing.assert_close(whole, task.loss(model, spans, 0))
    whole.backward()
    assert all(weight.grad is not None for weight in model.parameters())


def test_the_loss_of_chunks_by_hand(task):
    torch.manual_seed(0)
    model = task.model()
    plan = lw.make_plan(task.lengths, lw.Batching(cut=lw.FixedSize(3), chunks=lw.Chunks(11)))
    spans = next(plan.batches())
    sums, counts = [], []
    for span in spans:
        frames, labels, count = rectangle(task.prepared.train, span[None], stack=2)
        sums.append(frame_loss(model(frames, count), labels, reduction="sum").item())
        counts.append(int(count))
    assert task.loss(model, spans, 11).item() == pytest.approx(sum(sums) / sum(counts), rel=1e-4)


def test_validation_is_over_all_frames(task):
    torch.manual_seed(0)
    model = task.model().eval()
    validation = task.prepared.validation
    with torch.no_grad():
        found = task.validate(model)
        frames, labels, counts = rectangle(validation, validation.spans(np.arange(5)), stack=2)
        log_odds = model(frames, counts)
    used = labels != -100
    wrong = (log_odds.argmax(dim=2) != labels) & used
    assert found["validation_loss"] == pytest.approx(frame_loss(log_odds, labels).item(), rel=1e-5)
    assert found["frame_error_rate"] == pytest.approx(int(wrong.sum()) / int(used.sum()))


def test_utterances_of_words_that_were_never_learnt_are_decoded_and_have_no_loss(parts):
    known = {word for each in parts.train.utterances for word in each.words}
    first, second, *others = parts.test.utterances
    strange = dataclasses.replace(first, words=("eleven",))
    broken = dataclasses.replace(parts, test=dataclasses.replace(parts.test, utterances=(strange, second, *others)))
    prepared = prepare(broken, LABELLING)
    states = [prepared.test.labels[start:stop] for start, stop in pairwise(prepared.test.offsets)]
    assert "eleven" not in known
    assert (states[0] == NO_LABEL).all()
    assert all((each >= 0).all() for each in states[1:])
    task = AcousticTask(prepared=prepared, hidden=4, stack=2)
    model = task.model().eval()
    with torch.no_grad():
        found = task.validate(model)
        rest = dataclasses.replace(prepared, validation=prepared.test)
        assert found["test_loss"] == AcousticTask(prepared=rest, hidden=4, stack=2).validate(model)["validation_loss"]
        none = dataclasses.replace(prepared.test, labels=np.full_like(prepared.test.labels, NO_LABEL))
        unknown = AcousticTask(prepared=dataclasses.replace(prepared, test=none), hidden=4, stack=2)
        assert set(unknown.validate(model)) == {"validation_loss", "frame_error_rate"}


def test_a_network_that_knows_the_states_makes_no_wrong_word(parts, prepared):
    states = first_states(parts.train, LABELLING)
    model = train_model(speech_of(parts.train, states), states, LABELLING)
    labels = np.concatenate(labels_of(model, speech_of(parts.test, states)))
    told = AcousticTask(prepared=knowing(prepared, labels), hidden=1)
    assert told.test(Knowing(prepared.states.total)) == {"word_error_rate": 0.0}
    silent = AcousticTask(prepared=knowing(prepared, np.zeros_like(labels)), hidden=1)
    assert silent.test(Knowing(prepared.states.total)) == {"word_error_rate": 1.0}  # every word is missing


def test_units_are_tied_and_words_without_units_left_out():
    recordings = tones(takes=2, speakers=("ann",))
    spoken = digit_strings(recordings, Strings(count=12, test_speakers=(), noise_ratios=CLEAN, part="test"))
    units = {word: tuple(word) for word in WORDS if word != "six"}
    labelling = Labelling(tree=Tree(classes=60, least_frames=5), units=units, rounds=Rounds(splits=0, alignments=1))
    states = first_states(spoken, labelling)
    assert "six" not in states.words
    speech = speech_of(spoken, states)
    unknown = [each for each in spoken.utterances if "six" in each.words]
    assert len(unknown) > 0
    assert len(speech.corpus.skipped) >= len(unknown)
    assert any("`word` must be of the vocabulary, but is 'six'" in sentence for sentence in speech.corpus.skipped)
    model = train_model(speech, states, labelling)
    letters = {letter for row in units.values() for letter in row}
    assert 3 * len(letters) < model.states.total <= 60  # one class a letter and place at least, and the trees add some
    with pytest.raises(ValueError, match="`units` must be of at least one word of the corpus, but is 'of none'"):
        first_states(spoken, dataclasses.replace(labelling, units={"other": ("o",)}))


def test_a_part_without_anything_to_use_says_why(parts):
    def load():
        return np.zeros(10, np.float32)

    short = Utterance(name="short", speaker="ann", words=("two",), count=10, load=load)
    broken = dataclasses.replace(parts, test=Corpus(name="x", rate=8000, utterances=(short,)))
    remedy = r"The first of 1 complaints: `samples` must be at least one window of 200 samples"
    with pytest.raises(ValueError, match=f"`test` must be of at least one utterance that can be used, .* {remedy}"):
        prepare(broken, LABELLING)
    with pytest.raises(ValueError, match="`samples` must be at least one window"):
        prepare(broken, LABELLING, strict=True)


def test_units_need_a_tree():
    with pytest.raises(ValueError, match="`units` must be left out where words have states of their own"):
        Labelling(units={"two": ("t", "u")})


def test_words_of_a_text_are_counted_where_their_order_matters(parts):
    counted = dataclasses.replace(parts, any_order=False)
    assert prepare(counted, LABELLING).bigram.pairs
    assert not prepare(parts, LABELLING).bigram.pairs
