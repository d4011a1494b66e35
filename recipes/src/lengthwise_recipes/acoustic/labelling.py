"""Labelling: the state of every frame, by a GMM-HMM that is trained on the same speech.

whole words:  words -> states of their own -> GMM-HMM -> alignment
units:        words -> units, alike in every context -> GMM-HMM -> trees -> tied states -> GMM-HMM -> alignment
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import check_whole, value_error
from lengthwise_recipes.acoustic.alignment import alignable_numbers, select_alignable
from lengthwise_recipes.acoustic.em import Rounds, Trained, WordModel, frame_labels, train_words
from lengthwise_recipes.acoustic.frames import NO_LABEL
from lengthwise_recipes.acoustic.hmm import WordStates, whole_words
from lengthwise_recipes.acoustic.tying import Tree, tie_states
from lengthwise_recipes.acoustic.units import Units, spell_words
from lengthwise_recipes.contents import fingerprint
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Corpus
from lengthwise_recipes.speech.features import MADE_BY, Features, corpus_features, with_slopes

Labels = list[NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelling:
    """How frames get their states.

    Attributes:
        word_states: States of each word, where words have states of their own.
        tree: How units in context are tied; None where words have states of their own.
        units: Units of each word; its letters where none are given.
        rounds: How long the GMM-HMM is trained.
    """

    word_states: int = 6
    tree: Tree | None = None
    units: Units | None = None
    rounds: Rounds = field(default_factory=lambda: Rounds(splits=2, alignments=4))

    def __post_init__(self) -> None:
        check_whole("word_states", self.word_states, minimum=1, remedy="Give every word a state at least.")
        if self.units is not None and self.tree is None:
            raise value_error("units", "left out where words have states of their own", "given", "Give a tree too.")

    def describe(self) -> dict[str, object]:
        """For the record, plain JSON."""
        spelled = "letters" if self.units is None else f"a lexicon of {len(self.units)} words"
        states = {"word_states": self.word_states} if self.tree is None else {"units": spelled, **asdict(self.tree)}
        return {**states, **asdict(self.rounds)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Speech:
    """A part of a corpus with its features, [F, D] of each utterance; the corpus names what was left out."""

    corpus: Corpus
    features: list[Features]

    @property
    def slopes(self) -> list[Features]:
        """What a mixture sees, [F, 3 D] of each utterance."""
        return [with_slopes(each) for each in self.features]


def speech_of(corpus: Corpus, states: WordStates | None = None, *, strict: bool = False) -> Speech:
    """Computes the features of a corpus, without the utterances that have no features or, by `states`, no alignment."""
    kept, features = corpus_features(corpus, strict=strict)
    if states is not None:
        kept, features = select_alignable(kept, features, states, strict=strict)
    return Speech(corpus=kept, features=features)


def first_states(corpus: Corpus, labelling: Labelling) -> WordStates:
    """The states of all words, before any are tied. A word that the units lack has none: its utterances are left out.

    Raises:
        ValueError: Where no word has units.
    """
    words = corpus.vocabulary
    if labelling.tree is None:
        return whole_words(words, counts=labelling.word_states)
    known = [word for word in words if labelling.units is None or labelling.units.get(word)]
    if not known:
        remedy = "Give the lexicon of these texts."
        raise value_error("units", "of a word of the corpus at least", "of none", remedy)
    return spell_words(known, units=labelling.units)


def train_model(speech: Speech, states: WordStates, labelling: Labelling) -> WordModel:
    """Trains a GMM-HMM on speech, and ties its states where there is a tree.

    Args:
        speech: All of it alignable with `states`.
        states: As `first_states` gives them.
        labelling: How.

    References:
        Doetsch et al. 2017, section 5. The alignment for the trees is of one density a state.
    """
    slopes, words = speech.slopes, speech.corpus.transcripts
    if labelling.tree is None:
        return train_words(slopes, words, states, rounds=labelling.rounds).model
    single = Rounds(splits=0, alignments=labelling.rounds.alignments)
    first: Trained = train_words(slopes, words, states, rounds=single)
    tied = tie_states(states, slopes, words, first.paths, units=labelling.units, tree=labelling.tree)
    return train_words(slopes, words, tied, rounds=labelling.rounds, paths=first.paths).model


def labels_of(model: WordModel, speech: Speech) -> Labels:
    """The state of every frame, [F] of each utterance."""
    return frame_labels(model, speech.slopes, speech.corpus.transcripts)


def labels_where_known(model: WordModel, speech: Speech) -> Labels:
    """As `labels_of`, with `NO_LABEL` in the utterances that have no alignment."""
    labels = [np.full(len(each), NO_LABEL) for each in speech.features]
    numbers = alignable_numbers(speech.corpus, speech.features, model.states, Skipped(strict=False))
    slopes, words = speech.slopes, speech.corpus.transcripts
    found = frame_labels(model, [slopes[number] for number in numbers], [words[number] for number in numbers])
    for number, states in zip(numbers, found, strict=True):
        labels[number] = states
    return labels


def name_speech(parts: Iterable[Speech], labelling: Labelling, *, any_order: bool) -> str:
    """A fingerprint of what a model is trained on and judged by, and how: words, sounds, features and choices."""
    told = [
        (corpus.rate, [(each.name, each.words, each.sound) for each in corpus.utterances])
        for corpus in (speech.corpus for speech in parts)
    ]
    return fingerprint([labelling.describe(), labelling.units, any_order, MADE_BY, *told])
