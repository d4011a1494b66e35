"""Labels every frame with a state, by a GMM-HMM trained on the same speech.

whole words:  words -> states of each word -> GMM-HMM -> alignment
units:        words -> units without context -> GMM-HMM -> trees -> tied states -> GMM-HMM -> alignment
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
from lengthwise_recipes.speech.parts import Parts

Labels = list[NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Labelling:
    """The choices that give frames their states.

    Attributes:
        word_states: Number of states of each word; for whole words only.
        tree: Ties units in context; None gives every word its own states.
        units: Units of each word; None takes its letters.
        rounds: Length of the GMM-HMM's training.
    """

    word_states: int = 6
    tree: Tree | None = None
    units: Units | None = None
    rounds: Rounds = field(default_factory=lambda: Rounds(splits=2, alignments=4))

    def __post_init__(self) -> None:
        check_whole("word_states", self.word_states, minimum=1, remedy="Give every word at least one state.")
        if self.units is not None and self.tree is None:
            raise value_error("units", "left out where words have states of their own", "given", "Give a tree too.")

    def describe(self) -> dict[str, object]:
        """Returns plain JSON for the record."""
        spelled = "letters" if self.units is None else f"a lexicon of {len(self.units)} words"
        states = {"word_states": self.word_states} if self.tree is None else {"units": spelled, **asdict(self.tree)}
        return {**states, **asdict(self.rounds)}


def choose_labelling(parts: Parts, *, splits: int, units: Units | None = None) -> Labelling:
    """Gives digits without `units` states of whole words, and other speech tied states of units in context."""
    tree = None if parts.any_order and units is None else Tree()
    return Labelling(tree=tree, units=units, rounds=Rounds(splits=splits, alignments=4))


@dataclass(frozen=True, kw_only=True, slots=True)
class Speech:
    """A part of a corpus with its features, [F, D] per utterance; `corpus.skipped` names utterances left out."""

    corpus: Corpus
    features: list[Features]

    @property
    def slopes(self) -> list[Features]:
        """Features with their slopes, [F, 3 D] per utterance: the input of the mixtures."""
        return [with_slopes(frames) for frames in self.features]


def speech_of(corpus: Corpus, states: WordStates | None = None, *, strict: bool = False) -> Speech:
    """Computes the features of a corpus.

    Leaves out utterances without features and, if `states` are given, those without an alignment.
    """
    corpus, features = corpus_features(corpus, strict=strict)
    if states is not None:
        corpus, features = select_alignable(corpus, features, states, strict=strict)
    return Speech(corpus=corpus, features=features)


def first_states(corpus: Corpus, labelling: Labelling) -> WordStates:
    """Returns the states of all words, before tying. The utterances of words without units are left out.

    Raises:
        ValueError: No word has units.
    """
    words = corpus.vocabulary
    if labelling.tree is None:
        return whole_words(words, counts=labelling.word_states)
    spellable = [word for word in words if labelling.units is None or labelling.units.get(word)]
    if not spellable:
        remedy = "Give the lexicon of these texts."
        raise value_error("units", "of at least one word of the corpus", "of none", remedy)
    return spell_words(spellable, units=labelling.units)


def train_model(speech: Speech, states: WordStates, labelling: Labelling) -> WordModel:
    """Trains a GMM-HMM on speech, and ties its states if there is a tree.

    Args:
        speech, states: Every utterance has an alignment with the states, of `first_states`.
        labelling: Tree, units and rounds.

    References:
        Doetsch et al. 2017, section 5. The alignment for the trees has one density per state.
    """
    slopes, words = speech.slopes, speech.corpus.transcripts
    if labelling.tree is None:
        return train_words(slopes, words, states, rounds=labelling.rounds).model
    single = Rounds(splits=0, alignments=labelling.rounds.alignments)
    first: Trained = train_words(slopes, words, states, rounds=single)
    tied = tie_states(states, slopes, words, first.paths, units=labelling.units, tree=labelling.tree)
    return train_words(slopes, words, tied, rounds=labelling.rounds, paths=first.paths).model


def labels_of(model: WordModel, speech: Speech) -> Labels:
    """Returns the state of every frame, [F] per utterance."""
    return frame_labels(model, speech.slopes, speech.corpus.transcripts)


def labels_where_known(model: WordModel, speech: Speech) -> Labels:
    """Returns `labels_of`, with `NO_LABEL` in utterances without an alignment."""
    labels = [np.full(len(frames), NO_LABEL) for frames in speech.features]
    numbers = alignable_numbers(speech.corpus, speech.features, model.states, Skipped(strict=False))
    slopes, words = speech.slopes, speech.corpus.transcripts
    aligned = frame_labels(model, [slopes[number] for number in numbers], [words[number] for number in numbers])
    for number, states in zip(numbers, aligned, strict=True):
        labels[number] = states
    return labels


def name_speech(parts: Iterable[Speech], labelling: Labelling, *, any_order: bool) -> str:
    """Returns a fingerprint of all that a model depends on: words, sounds, features and choices."""
    contents = [
        (corpus.rate, [(utterance.name, utterance.words, utterance.sound) for utterance in corpus.utterances])
        for corpus in (speech.corpus for speech in parts)
    ]
    return fingerprint([labelling.describe(), labelling.units, any_order, MADE_BY, *contents])
