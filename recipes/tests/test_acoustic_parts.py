"""Parts: who is in which, division by hand, folders of digits, lexicons, and the sentences for what is wrong."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("soundfile")

import soundfile
from hypothesis import given
from hypothesis import strategies as st

from lengthwise_recipes.speech.corpus import Corpus, Utterance
from lengthwise_recipes.speech.digits import RATE, read_digit_folder, select_speakers
from lengthwise_recipes.speech.kaldi import read_lexicon
from lengthwise_recipes.speech.parts import digit_parts, folder_parts, hold_out, read_parts
from tones import SPEAKERS, store, tones


def corpus_of(speakers, *, rate=RATE, skipped=()):
    """One utterance for each of `speakers`, in their order."""
    utterances = tuple(
        Utterance(name=f"u{number}", speaker=speaker, words=("two",), count=9, load=partial(np.zeros, 9, np.float32))
        for number, speaker in enumerate(speakers)
    )
    return Corpus(name="speech", rate=rate, utterances=utterances, skipped=skipped)


def speakers_of(corpus):
    return {utterance.speaker for utterance in corpus.utterances}


def test_who_is_tested_trains_nothing():
    parts = digit_parts(tones(takes=7), count=30, validating=10, testing=11)
    # Of four speakers a third, that is one, is tested.
    assert speakers_of(parts.train) == speakers_of(parts.validation) == set(SPEAKERS[:3])
    assert speakers_of(parts.test) == {SPEAKERS[3]}
    assert (len(parts.train), len(parts.validation), len(parts.test)) == (30, 10, 11)
    assert parts.any_order
    assert parts.split == "validated on other recordings of the 3 speakers trained on, tested on those of dan"


def test_recordings_0_to_4_validate_and_the_others_train():
    with pytest.raises(ValueError, match="`part` must be spoken by someone, but is 'train'"):
        digit_parts(tones(takes=5), count=2, validating=2, testing=2)
    assert len(digit_parts(tones(takes=6), count=2, validating=2, testing=2).train) == 2


def test_one_speaker_is_too_few():
    with pytest.raises(ValueError, match=r"`recordings` must be of at least 2 speakers, but is \['ann'\]"):
        digit_parts(tones(speakers=SPEAKERS[:1]), count=2, validating=2, testing=2)


def test_the_recordings_of_some_speakers():
    chosen = select_speakers(tones(takes=2), {"ben", "dan"})
    assert set(chosen.speakers) == {"ben", "dan"}
    assert len(chosen.samples) == len(chosen.digits) == len(chosen.numbers) == 40


@given(st.lists(st.sampled_from("abcdef"), min_size=2, max_size=40), st.floats(0.01, 0.5), st.integers(0, 9))
def test_what_is_held_out_has_the_share_and_no_speaker_of_the_rest(speakers, share, seed):
    corpus = corpus_of(speakers)
    rest, held = hold_out(corpus, share, seed=seed)
    together = sorted((*rest.utterances, *held.utterances), key=lambda each: int(each.name[1:]))
    assert together == list(corpus.utterances)
    by_speaker = len(set(speakers)) >= 3
    assert rest.utterances
    assert len(held) >= share * len(corpus) or (by_speaker and len(speakers_of(rest)) == 1)
    assert not (by_speaker and speakers_of(rest) & speakers_of(held))


def test_of_two_speakers_utterances_are_held_out():
    rest, held = hold_out(corpus_of("aaabbbbbbb"), 0.2, seed=0)
    assert (len(rest), len(held)) == (8, 2)


def test_a_folder_is_divided_in_three_and_counted():
    parts = folder_parts(corpus_of("abcdefghij" * 3, skipped=("one",)), share=0.1, count=7)
    assert (len(parts.train), len(parts.validation), len(parts.test)) == (7, 3, 3)
    assert [part.skipped for part in (parts.train, parts.validation, parts.test)] == [("one",), (), ()]
    assert not parts.any_order
    assert parts.split == "10% held out to validate on, of 1 speaker; as many decoded: 1 speaker"
    two = folder_parts(corpus_of("ab" * 10))
    assert two.split == (
        "10% held out to validate on, of 2 speakers, trained on too; as many decoded: 2 speakers, trained on too"
    )
    unknown = corpus_of([f"u{number}" for number in range(20)])
    assert folder_parts(unknown).split == (
        "10% held out to validate on, of 2 utterances of speakers not known; "
        "as many decoded: 2 utterances of speakers not known"
    )
    assert folder_parts(corpus_of("abcdefghij"), seed=1).test != folder_parts(corpus_of("abcdefghij"), seed=2).test


def test_another_folder_may_be_decoded():
    parts = folder_parts(corpus_of("abcd"), corpus_of("e"), share=0.25)
    assert (len(parts.train), speakers_of(parts.test)) == (3, {"e"})
    with pytest.raises(ValueError, match="`test_data` must be of 8000 samples a second, but is 16000"):
        folder_parts(corpus_of("abcd"), corpus_of("e", rate=16000))


def test_a_single_utterance_cannot_be_divided():
    with pytest.raises(ValueError, match="`corpus` must be of at least two utterances, but is 1"):
        hold_out(corpus_of("a"), 0.5, seed=0)


def write_digits(folder, recordings):
    rows = zip(recordings.samples, recordings.digits, recordings.speakers, recordings.numbers, strict=True)
    for samples, digit, speaker, number in rows:
        soundfile.write(folder / f"{digit}_{speaker}_{number}.wav", samples, RATE, subtype="PCM_16")


def test_digits_as_they_are_published_are_those_of_the_npz(tmp_path):
    recordings = tones(takes=6, speakers=SPEAKERS[:2])
    folder = tmp_path / "recordings"
    folder.mkdir()
    write_digits(folder, recordings)
    (folder / "notes.md").write_text("not sound")
    found, skipped = read_digit_folder(folder)
    assert skipped == ()
    assert found.digits.tolist() == recordings.digits.tolist()  # sorted by name: digit, then speaker
    assert found.speakers.tolist() == recordings.speakers.tolist()
    np.testing.assert_allclose(np.concatenate(found.samples), np.concatenate(recordings.samples), atol=1e-4)
    both = [
        read_parts(path, count=5, validating=2, testing=2)
        for path in (folder, store(recordings, tmp_path / "digits.npz"))
    ]
    assert [part.train.transcripts for part in both] == [both[0].train.transcripts] * 2


def test_digits_that_cannot_be_used_are_left_out_or_refused(tmp_path):
    write_digits(tmp_path, tones(takes=6, speakers=SPEAKERS[:2]))
    soundfile.write(tmp_path / "0_ann_7.wav", np.zeros(9), 16000)
    (tmp_path / "1_ann_7.wav").write_text("no sound")
    recordings, skipped = read_digit_folder(tmp_path)
    assert len(recordings.samples) == 120
    assert [sentence.partition(", but")[0] for sentence in skipped] == [
        "`wav` must be of 8000 samples a second",
        "`wav` must be audio that can be read",
    ]
    assert read_parts(tmp_path, count=1, validating=1, testing=1).train.skipped == skipped
    with pytest.raises(ValueError, match=r"`wav` must be of 8000 samples a second, but is 16000 at .*0_ann_7"):
        read_digit_folder(tmp_path, strict=True)
    with pytest.raises(ValueError, match="`test_data` must be left out with digits, but is 'x'"):
        read_parts(tmp_path, tested="x", count=1, validating=1, testing=1)


def test_a_folder_without_a_digit_that_can_be_used_says_why(tmp_path):
    (tmp_path / "1_ann_7.wav").write_text("no sound")
    with pytest.raises(ValueError, match=r"`folder` must be of single digits that can be used.* The first complaint: "):
        read_parts(tmp_path, count=1, validating=1, testing=1)


def test_wavs_and_texts_are_read_where_names_are_no_digits(tmp_path):
    for number in range(4):
        soundfile.write(tmp_path / f"u{number}.wav", np.zeros(900), RATE)
        (tmp_path / f"u{number}.txt").write_text("to be")
    parts = read_parts(tmp_path, tested=tmp_path, count=9, validating=1, testing=1)
    assert parts.train.transcripts == [("to", "be")] * 3
    assert len(parts.test) == 4


def test_a_lexicon_by_hand(tmp_path):
    path = tmp_path / "lexicon.txt"
    path.write_text("two T UW\n\nzero Z\tIY R OW\nzero Z IH R OW\n", encoding="utf-8")
    assert read_lexicon(path) == {"two": ("T", "UW"), "zero": ("Z", "IY", "R", "OW")}
    weighted = tmp_path / "lexiconp.txt"
    weighted.write_text("two 0.9 T UW\n")
    assert read_lexicon(weighted) == {"two": ("T", "UW")}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"two T UW\nzero\n", "`lexicon` must be of phonemes for every word, but is 'zero' at line 2"),
        (b"\n", "`lexicon` must be of at least one word"),
        (b"two T\xff\n", "`lexicon` must be UTF-8, but is b'.*' at byte 5"),
    ],
)
def test_a_bad_lexicon_is_named(tmp_path, content, complaint):
    path = tmp_path / "lexicon.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=complaint):
        read_lexicon(path)


def test_a_lexicon_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match="`lexicon` must be a file that can be read"):
        read_lexicon(tmp_path / "gone.txt")
