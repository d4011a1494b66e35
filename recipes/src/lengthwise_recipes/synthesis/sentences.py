"""Generates plain English sentences of given lengths.

A sentence is a clause, "the old sailor watches the harbour", and phrases, "near my window", "while another child sings
today", up to its number of words.
"""

from __future__ import annotations

import numpy as np

from lengthwise.checks import check_whole

VOCABULARY = """
    determiner the this that my our your one every another
    adjective old small quiet narrow green heavy bright late patient strange simple golden distant
    noun sailor child teacher harbour river garden window letter mountain village bird horse picture road winter
    noun doctor farmer question candle bridge market forest printer machine kitchen morning station
    verb watches follows remembers carries opens paints finds leaves repairs describes crosses measures visits
    acts sings waits sleeps works listens returns laughs travels speaks
    adverb again today often together here tomorrow everywhere
    manner slowly softly gladly seldom carefully
    degree very quite rather
    preposition in near behind under without beyond from towards
    conjunction and but while because although until
    exclamation listen nothing perhaps welcome yesterday certainly everyone silence thursday
"""
LINES = tuple(line.split() for line in VOCABULARY.strip().splitlines())
WORDS = {kind: [word for line in LINES if line[0] == kind for word in line[1:]] for kind, *_ in LINES}
SHORT = {
    1: "exclamation",
    2: "exclamation adverb",
    3: "determiner noun acts",
    4: "determiner noun acts adverb",
    5: "determiner noun verb determiner noun",
}
ENDINGS = {
    1: "adverb",
    2: "degree manner",
    3: "preposition determiner noun",
    4: "preposition determiner adjective noun",
    5: ", conjunction determiner noun acts adverb",
    6: ", conjunction determiner noun verb determiner noun",
    7: ", conjunction determiner adjective noun verb determiner noun",
}
FIRST_CLAUSES = {5: SHORT[5], 6: "determiner adjective noun verb determiner noun"}


def own_sentences(count: int, *, max_words: int = 25, seed: int = 0) -> dict[str, str]:
    """Returns generated sentences, by id.

    The frequency of w words, from 1 to `max_words`, is proportional to 2 w - 1. So most sentences are long, as in
    LJSpeech. Spoken by `voice`, sentences of up to 25 words last half a second to ten seconds.

    Args:
        count: Number of sentences; sentence i does not depend on it.
        max_words: Words of the longest.
        seed: Seed of the choice of words.
    """
    check_whole("count", count, minimum=1, remedy="Give the number of sentences.")
    check_whole("max_words", max_words, minimum=1, remedy="Give the words of the longest sentence.")
    check_whole("seed", seed, minimum=0, remedy="Give a whole number.")
    return {f"own-{seed}-{number:05d}": _sentence(max_words, seed, number) for number in range(count)}


def _sentence(max_words: int, seed: int, number: int) -> str:
    generator = np.random.default_rng(np.random.SeedSequence([seed, number]))
    words = 1 + int(np.sqrt(generator.random()) * max_words)
    kinds = " ".join(_phrases(words, generator)).split()
    written = " ".join(kind if kind == "," else str(generator.choice(WORDS[kind])) for kind in kinds)
    return f"{written[0].upper()}{written[1:]}.".replace(" ,", ",")


def _phrases(words: int, generator: np.random.Generator) -> list[str]:
    """Returns the kinds of words of a sentence of `words` words, by phrase."""
    if words in SHORT:
        return [SHORT[words]]
    first = int(generator.integers(5, 7))
    phrases, remaining = [FIRST_CLAUSES[first]], words - first
    while remaining:
        size = remaining if remaining < 3 else int(generator.integers(3, min(remaining, max(ENDINGS)) + 1))
        phrases.append(ENDINGS[size])
        remaining -= size
    return phrases
