"""Words as rows of units: the letters they are spelled with, or the phonemes of a lexicon.

units  the units of each word, such as {"two": ["T", "UW"]}; every unit has three states, one after the other
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from lengthwise.checks import value_error
from lengthwise_recipes.acoustic.hmm import WordStates

PLACES = 3  # states of a unit
NO_UNIT = ""  # the left neighbour of a word's first unit, and the right neighbour of its last

Units = Mapping[str, Sequence[str]]


class Context(NamedTuple):
    """One of the states of a unit between two others."""

    unit: str
    place: int
    left: str
    right: str


def spell_words(words: Sequence[str], *, units: Units | None = None, silence: int = 1) -> WordStates:
    """Gives every unit three states, the same in all words.

    Args:
        words: The vocabulary.
        units: Units of each word, such as phonemes; None takes its letters.
        silence: Number of silence states.

    Raises:
        ValueError: A word has no units.

    >>> spell_words(["aba"]).rows
    ((1, 2, 3, 4, 5, 6, 1, 2, 3),)
    """
    keys = [[(context.unit, context.place) for context in contexts_of(word, units)] for word in words]
    return WordStates(words=tuple(words), rows=number_states(keys, silence=silence), silence=silence)


def contexts_of(word: str, units: Units | None) -> list[Context]:
    """Returns the states of a word with their contexts; `units` as for `spell_words`.

    >>> [tuple(context) for context in contexts_of("ab", None)][::3]
    [('a', 0, '', 'b'), ('b', 0, 'a', '')]
    """
    row = tuple(word) if units is None else tuple(units.get(word, ()))
    if not row:
        raise value_error("units", "of at least one unit for every word", row, "Add the word.", at=f"word {word!r}")
    framed = (NO_UNIT, *row, NO_UNIT)
    around = zip(framed[:-2], row, framed[2:], strict=True)
    return [Context(unit, place, left, right) for left, unit, right in around for place in range(PLACES)]


def number_states(keys: Sequence[Sequence[Hashable]], *, silence: int) -> tuple[tuple[int, ...], ...]:
    """Numbers every different key in the order of first use, after the states of silence.

    >>> number_states(["no", "on"], silence=1)
    ((1, 2), (2, 1))
    """
    numbers: dict[Hashable, int] = {}
    return tuple(tuple(numbers.setdefault(key, silence + len(numbers)) for key in row) for row in keys)
