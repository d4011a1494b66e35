"""What is trained on, validated on and decoded: nobody who is decoded is trained on, where that can be."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lengthwise.checks import check_number, value_error
from lengthwise_recipes.speech.corpus import Corpus
from lengthwise_recipes.speech.digits import Recordings, Strings, digit_strings, read_recordings, select_speakers
from lengthwise_recipes.speech.folders import read_folder
from lengthwise_recipes.speech.single_digits import is_digit_folder, read_digit_folder

FEWEST_SPEAKERS = 3  # of which one can be held out
TEST_SHARE = 1 / 3  # of the speakers of digits


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """A corpus in three.

    Attributes:
        name: Where it comes from.
        split: How it was divided, in words.
        any_order: Whether any word is as likely after any other, as in random digits.
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
        path: An .npz or a folder of single digits, which are joined to strings; else see `folders.read_folder`.
        tested: A folder to decode; by default a part of `path`.
        count: Utterances to train on, at most.
        validating: Strings of digits to validate on; of other speech a tenth of the utterances.
        testing: Strings of digits to decode.
        seed: Of the strings, or of the division.
        strict: Whether to raise for the first utterance that cannot be used.

    Raises:
        ValueError: As the readers do, and where strings of digits are to be decoded from another place.
    """
    path = Path(path)
    if path.is_dir() and not is_digit_folder(path):
        test = None if tested is None else read_folder(tested, strict=strict)
        return folder_parts(read_folder(path, strict=strict), test, count=count, seed=seed)
    if tested is not None:
        remedy = "Digits are decoded of speakers that are not trained on."
        raise value_error("test_data", "left out with digits", str(tested), remedy)
    recordings, skipped = read_digit_folder(path, strict=strict) if path.is_dir() else (read_recordings(path), ())
    parts = digit_parts(recordings, count=count, validating=validating, testing=testing, seed=seed)
    return replace(parts, train=replace(parts.train, skipped=skipped))


def digit_parts(recordings: Recordings, *, count: int, validating: int, testing: int, seed: int = 0) -> Parts:
    """Connected digits: tested on the last third of the speakers, validated on recordings 0 to 4 of the others' digits.

    Args:
        recordings: Of two speakers at least.
        count: Strings to train on.
        validating: Strings to validate on.
        testing: Strings to decode.
        seed: Of the strings.

    Raises:
        ValueError: Where there is but one speaker, a part has no recording, or a count is below 1.
    """
    speakers = [str(speaker) for speaker in np.unique(recordings.speakers)]
    if len(speakers) < 2:
        raise value_error("recordings", "of at least 2 speakers", speakers, "Give more: who is tested trains nothing.")
    last = tuple(speakers[-max(1, int(TEST_SHARE * len(speakers))) :])
    learnt = select_speakers(recordings, set(speakers) - set(last))
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
        corpus: To train on and to validate on, and to be decoded too where there is no other.
        tested: To be decoded.
        share: Of the utterances, for each part that is held out, 0..1.
        count: Utterances to train on at most, drawn at random; all where not given.
        seed: Of the division.

    Raises:
        ValueError: Where a part would be empty, or `tested` is of another sampling rate.
    """
    if tested is not None and tested.rate != corpus.rate:
        raise value_error("test_data", f"of {corpus.rate} samples a second", tested.rate, "Bring both to one rate.")
    check_number("share", share, above=True, maximum=0.5, remedy="Give a share such as 0.1.")
    rest, test = (corpus, tested) if tested is not None else hold_out(corpus, share, seed=seed)
    train, validation = hold_out(rest, share, seed=seed)
    if count is not None and count < len(train):
        chosen = sorted(_generator(seed, 1).permutation(len(train))[:count].tolist())
        train = replace(train, utterances=tuple(train.utterances[number] for number in chosen))
    decoded = f"decoded {tested.name}" if tested is not None else f"as many decoded: {_who(test, train)}"
    split = f"{share:.0%} held out to validate on, of {_who(validation, train)}; {decoded}"
    return Parts(name=corpus.name, split=split, train=train, validation=replace(validation, skipped=()), test=test)


def hold_out(corpus: Corpus, share: float, *, seed: int) -> tuple[Corpus, Corpus]:
    """Divides a corpus in the rest and what is held out: whole speakers, drawn until they have the share.

    Of fewer than three speakers, utterances are drawn in their place. One is always left.

    Raises:
        ValueError: Where there are not two utterances.
    """
    if len(corpus) < 2:
        raise value_error("corpus", "of at least two utterances", len(corpus), "Give more speech.")
    names = [utterance.speaker for utterance in corpus.utterances]
    if len(set(names)) < FEWEST_SPEAKERS:
        names = [utterance.name for utterance in corpus.utterances]
    counts, drawn = Counter(names), set[str]()
    for name in _generator(seed, 0).permutation(sorted(counts)).tolist()[:-1]:
        if sum(counts[each] for each in drawn) < share * len(names):
            drawn.add(name)
    held = tuple(each for name, each in zip(names, corpus.utterances, strict=True) if name in drawn)
    rest = tuple(each for name, each in zip(names, corpus.utterances, strict=True) if name not in drawn)
    return replace(corpus, utterances=rest), replace(corpus, utterances=held, skipped=())


def _who(held: Corpus, train: Corpus) -> str:
    """How many speak in a part that is held out, and whether they are trained on, where it is known who speaks."""
    if all(utterance.speaker == utterance.name for utterance in held.utterances):
        return f"{len(held)} utterance{'s' * (len(held) > 1)} of speakers not known"
    speakers = {utterance.speaker for utterance in held.utterances}
    heard = ", trained on too" if speakers & {utterance.speaker for utterance in train.utterances} else ""
    return f"{len(speakers)} speaker{'s' * (len(speakers) > 1)}{heard}"


def _generator(seed: int, lane: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence([seed, lane]))
