"""Divides speech for training, validation and test, by speakers if possible."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lengthwise.checks import check_number, value_error
from lengthwise_recipes.speech import digits
from lengthwise_recipes.speech.corpus import Corpus
from lengthwise_recipes.speech.digits import Strings, digit_strings, read_recordings
from lengthwise_recipes.speech.folders import read_folder

FEWEST_SPEAKERS = 3  # with fewer, utterances are held out in place of speakers
TEST_SHARE = 1 / 3  # of the speakers of digits


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """A corpus in three parts.

    Attributes:
        name: The source.
        split: The division, in words.
        any_order: True if all words are equally likely after each word, as in random digits.
        train, validation, test: The parts.
    """

    name: str
    split: str
    any_order: bool = False
    train: Corpus
    validation: Corpus
    test: Corpus


def read_parts(
    path: str | Path,
    *,
    tested: str | Path | None = None,
    count: int,
    validating: int,
    testing: int,
    seed: int = 0,
    strict: bool = False,
) -> Parts:
    """Reads speech and divides it.

    Args:
        path: An .npz or a folder of single digits, to join to strings; else see `folders.read_folder`.
        tested: A folder to decode; by default a part of `path`.
        count: The most training utterances.
        validating: Strings of digits for validation; for other speech it is a tenth of the utterances.
        testing: Strings of digits to decode.
        seed: Seed of the strings, or of the division.
        strict: Raise for the first unusable utterance.

    Raises:
        ValueError: As the readers do; also if `tested` is given with digits.
    """
    path = Path(path)
    if path.is_dir() and not digits.is_digit_folder(path):
        test = None if tested is None else read_folder(tested, strict=strict)
        return folder_parts(read_folder(path, strict=strict), test, count=count, seed=seed)
    if tested is not None:
        remedy = "Digits are tested on held-out speakers of the same recordings."
        raise value_error("test_data", "left out with digits", str(tested), remedy)
    recordings, skipped = (
        digits.read_digit_folder(path, strict=strict) if path.is_dir() else (read_recordings(path), ())
    )
    parts = digit_parts(recordings, count=count, validating=validating, testing=testing, seed=seed)
    return replace(parts, train=replace(parts.train, skipped=skipped))


def digit_parts(recordings: digits.Recordings, *, count: int, validating: int, testing: int, seed: int = 0) -> Parts:
    """Makes connected digits: the last third of the speakers is for the test.

    Recordings 0 to 4 of each digit of the other speakers are for validation.

    Args:
        recordings: Recordings of at least two speakers.
        count, validating, testing: Strings of each part.
        seed: Seed of the strings.

    Raises:
        ValueError: There is only one speaker, a part has no recording, or a count is below 1.
    """
    speakers = [str(speaker) for speaker in np.unique(recordings.speakers)]
    if len(speakers) < 2:
        raise value_error("recordings", "of at least 2 speakers", speakers, "Give more: training needs other speakers.")
    last = tuple(speakers[-max(1, int(TEST_SHARE * len(speakers))) :])
    learnt = digits.select_speakers(recordings, set(speakers) - set(last))
    return Parts(
        name="connected digits in noise",
        split=f"validated on other recordings of the {len(speakers) - len(last)} speakers trained on, tested on those "
        f"of {', '.join(last)}",
        any_order=True,
        train=digit_strings(learnt, Strings(count=count, seed=seed)),
        validation=digit_strings(learnt, Strings(count=validating, seed=seed, part="test")),
        test=digit_strings(recordings, Strings(count=testing, seed=seed, part="test", test_speakers=last)),
    )


def folder_parts(
    corpus: Corpus, tested: Corpus | None = None, *, share: float = 0.1, count: int | None = None, seed: int = 0
) -> Parts:
    """Divides a corpus; see `hold_out`.

    Args:
        corpus: The speech for training and validation; without `tested` also for the test.
        tested: The speech to decode.
        share: The share of the utterances in each held-out part, 0..1.
        count: The most training utterances, drawn at random; all by default.
        seed: Seed of the division.

    Raises:
        ValueError: A part would be empty, or `tested` has another sampling rate.
    """
    if tested is not None and tested.rate != corpus.rate:
        raise value_error("test_data", f"of {corpus.rate} samples a second", tested.rate, "Bring both to one rate.")
    check_number("share", share, above=True, maximum=0.5, remedy="Give a share such as 0.1.")
    remaining, test = (corpus, tested) if tested is not None else hold_out(corpus, share, seed=seed)
    train, validation = hold_out(remaining, share, seed=seed)
    if count is not None and count < len(train):
        numbers = sorted(_generator(seed, 1).permutation(len(train))[:count].tolist())
        train = replace(train, utterances=tuple(train.utterances[number] for number in numbers))
    decoded = f"decoded {tested.name}" if tested is not None else f"as many decoded: {_speakers_note(test, train)}"
    split = f"{share:.0%} held out to validate on, of {_speakers_note(validation, train)}; {decoded}"
    return Parts(name=corpus.name, split=split, train=train, validation=replace(validation, skipped=()), test=test)


def hold_out(corpus: Corpus, share: float, *, seed: int) -> tuple[Corpus, Corpus]:
    """Divides a corpus; returns the larger part and the held-out part.

    It draws whole speakers until they have the share. With fewer than three speakers it draws utterances. One always
    remains.

    Raises:
        ValueError: There are fewer than two utterances.
    """
    if len(corpus) < 2:
        raise value_error("corpus", "of at least two utterances", len(corpus), "Give more speech.")
    names = [utterance.speaker for utterance in corpus.utterances]
    if len(set(names)) < FEWEST_SPEAKERS:
        names = [utterance.name for utterance in corpus.utterances]
    counts, names_out = Counter(names), set[str]()
    for name in _generator(seed, 0).permutation(sorted(counts)).tolist()[:-1]:
        if sum(counts[name_out] for name_out in names_out) < share * len(names):
            names_out.add(name)
    named = list(zip(names, corpus.utterances, strict=True))
    remaining = tuple(utterance for name, utterance in named if name not in names_out)
    held_out = tuple(utterance for name, utterance in named if name in names_out)
    return replace(corpus, utterances=remaining), replace(corpus, utterances=held_out, skipped=())


def _speakers_note(part: Corpus, train: Corpus) -> str:
    """Returns the number of speakers of a held-out part, with a note if they are in training too."""
    if all(utterance.speaker == utterance.name for utterance in part.utterances):
        return f"{len(part)} utterance{'s' * (len(part) > 1)} of speakers not known"
    speakers = {utterance.speaker for utterance in part.utterances}
    heard = ", trained on too" if speakers & {utterance.speaker for utterance in train.utterances} else ""
    return f"{len(speakers)} speaker{'s' * (len(speakers) > 1)}{heard}"


def _generator(seed: int, lane: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence([seed, lane]))
