"""Prepares a corpus in three parts for training, validation and decoding."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error
from lengthwise_recipes.acoustic.aligned import Aligned, read_or_make
from lengthwise_recipes.acoustic.alignment import state_priors
from lengthwise_recipes.acoustic.bigram import Bigram, count_bigram, even_bigram
from lengthwise_recipes.acoustic.decoder import Search, word_error_rate
from lengthwise_recipes.acoustic.em import WordModel
from lengthwise_recipes.acoustic.frames import Utterances, end_to_end, fit_scale
from lengthwise_recipes.acoustic.graph import Scores
from lengthwise_recipes.acoustic.hmm import WordStates
from lengthwise_recipes.acoustic.labelling import (
    Labelling,
    Speech,
    first_states,
    labels_of,
    labels_where_known,
    name_speech,
    speech_of,
    train_model,
)
from lengthwise_recipes.acoustic.recognition import recognise
from lengthwise_recipes.speech.features import MADE_BY
from lengthwise_recipes.speech.parts import Parts


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """All that training and decoding need, as arrays and plain values.

    Attributes:
        train, validation: Utterances with the state of every frame.
        test: Utterances, with states if they have an alignment.
        states: States of the words.
        stay: The GMM-HMM's probability of staying in a state, [S].
        priors: Share of each state in the training frames, [S].
        bigram: Language model of the words.
        search: Weight of the bigram, and pruning.
        gmm_word_error_rate: Word error rate of the GMM-HMM on `test`, 0 or more.
        description: Plain JSON for the record.
    """

    train: Utterances
    validation: Utterances
    test: Utterances
    states: WordStates
    stay: Scores
    priors: Scores
    bigram: Bigram
    search: Search
    gmm_word_error_rate: float
    description: Mapping[str, object]


def prepare(
    parts: Parts,
    labelling: Labelling,
    *,
    search: Search | None = None,
    folder: Path | None = None,
    strict: bool = False,
) -> Prepared:
    """Computes features, trains a GMM-HMM, and aligns and decodes with it.

    Args:
        parts: Speech to train on, to validate on and to decode.
        labelling: Choices of the GMM-HMM.
        search: Choices of decoding; None scales the language model by 12, as in the paper.
        folder: Folder of the alignment, for the next call with the same arguments. Features are always computed.
        strict: Raise for the first unusable utterance.

    Raises:
        ValueError: A part has no usable utterance; with `strict` also if any utterance is unusable.

    References:
        Doetsch et al. 2017, section 5.
    """
    search = search or Search()
    states = first_states(parts.train, labelling)
    spoken = {
        "train": speech_of(parts.train, states, strict=strict),
        "validation": speech_of(parts.validation, states, strict=strict),
        "test": speech_of(parts.test, strict=strict),
    }
    for name, speech in spoken.items():
        _check_some(name, speech)
    words = states.words
    bigram = even_bigram(words) if parts.any_order else count_bigram(spoken["train"].corpus.transcripts, words)
    make = functools.partial(_align, spoken, states, labelling, bigram, search)
    fingerprint = name_speech(spoken.values(), labelling, any_order=parts.any_order)
    aligned = read_or_make(folder, f"{fingerprint} {search}", make)
    scale, labels = fit_scale(spoken["train"].features), (aligned.train, aligned.validation, aligned.test)
    train, validation, test = (
        end_to_end(speech.features, speech.corpus.transcripts, scale, states_of_frames)
        for speech, states_of_frames in zip(spoken.values(), labels, strict=True)
    )
    return Prepared(
        train=train,
        validation=validation,
        test=test,
        states=aligned.model.states,
        stay=aligned.model.stay,
        priors=state_priors([aligned.train], aligned.model.states.total),
        bigram=bigram,
        search=search,
        gmm_word_error_rate=aligned.word_error_rate,
        description=_description(parts, labelling, spoken)
        | {"fingerprint": fingerprint, "states": aligned.model.states.total},
    )


def _align(
    spoken: Mapping[str, Speech], states: WordStates, labelling: Labelling, bigram: Bigram, search: Search
) -> Aligned:
    model = train_model(spoken["train"], states, labelling)
    return Aligned(
        model=model,
        train=np.concatenate(labels_of(model, spoken["train"])),
        validation=np.concatenate(labels_of(model, spoken["validation"])),
        test=np.concatenate(labels_where_known(model, spoken["test"])),
        word_error_rate=_gmm_error_rate(model, spoken["test"], bigram, search),
    )


def _gmm_error_rate(model: WordModel, test: Speech, bigram: Bigram, search: Search) -> float:
    slopes = test.slopes

    def scores_of(batch: NDArray[np.int64]) -> list[Scores]:
        return [model.mixtures.scores(slopes[number]) for number in batch]

    lengths = [len(frames) for frames in slopes]
    hypotheses = recognise(lengths, scores_of, model.states, model.stay, bigram, search=search)
    return word_error_rate(test.corpus.transcripts, hypotheses)


def _check_some(name: str, speech: Speech) -> None:
    if not speech.features:
        reasons = speech.corpus.skipped
        remedy = f"The first of {len(reasons)} complaints: {reasons[0]}" if reasons else "Give more speech."
        raise value_error(name, "of at least one utterance that can be used", 0, remedy)


def _description(parts: Parts, labelling: Labelling, spoken: Mapping[str, Speech]) -> dict[str, object]:
    lengths = [len(frames) for frames in spoken["train"].features]
    return {
        "name": parts.name,
        "split": parts.split,
        "train_utterances": len(lengths),
        "train_frames": sum(lengths),
        "shortest": min(lengths),
        "longest": max(lengths),
        "validation_utterances": len(spoken["validation"].features),
        "test_utterances": len(spoken["test"].features),
        "vocabulary": len(spoken["train"].corpus.vocabulary),
        "features": MADE_BY,
        "labelling": labelling.describe(),
        "any_order": parts.any_order,
        "skipped": [sentence for speech in spoken.values() for sentence in speech.corpus.skipped],
    }
