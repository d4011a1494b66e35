"""Cells of a column as files hold them: numbers, texts that are numbers or are counted, and lists."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise.checks import value_error
from lengthwise.lengths.columns import Column, Unit, unit_of
from lengthwise.lengths.counts import COUNT_REMEDY, TextCount, count_items, turn_field
from lengthwise.lengths.rules import LONGEST, Place, bad_value

_DROP = "Put a number there or drop the sequence."
_ITEMS = {int, float, bool, NoneType}  # of a list whose length is its count


def column_of_cells(
    name: str,
    cells: Sequence[Any],
    place: Place,
    count: TextCount | None,
    *,
    unit: Unit = "unknown",
    beside: bool = False,
    remedy: str = _DROP,
) -> Column:
    """Makes a column of the cells of a table, or of values as JSON holds them.

    Args:
        name: Of the column.
        cells: [n] numbers, texts or lists.
        place: Says where a cell stands.
        count: The count of texts.
        unit: Where the format says it.
        beside: Whether it is one of several columns of a table, in which all cells are texts: if they are all numbers,
            they are then not counted.
        remedy: The advice about what is no number.

    Raises:
        ValueError: A value of another kind than the first, or of none that has a length.
    """
    # The first cell decides. A later one of another kind is refused by its line.
    kind = type(cells[0]) if cells else float
    counted = count is not None and kind is str and not (beside and all(map(_is_decimal, cells)))
    if kind is list or counted:
        for at, cell in enumerate(cells):
            if type(cell) is not kind:
                rule = f"a {'list' if kind is list else 'text'}, as at the first sequence"
                raise value_error(name, rule, cell, "Put one there or drop the sequence.", at=place(at))
    if kind is list:
        return _count_lists(name, cells, place, count)
    if count is not None and counted:
        return Column(name=name, values=count(cells), place=place, unit="counts", kind="texts")
    values = _numbers(cells, name, place, remedy)
    return Column(name=name, values=values, place=place, unit=unit_of(name) if unit == "unknown" else unit)


def _is_decimal(text: str) -> bool:
    return text.isascii() and "_" not in text and is_number(text)


def _count_lists(name: str, cells: Sequence[Any], place: Place, count: TextCount | None) -> Column:
    """Counts the items of each list, or the texts in it where `count` says how."""
    # The first item that there is decides. Lists of items of another kind are refused by their line.
    item = next((item for cell in cells for item in cell if item is not None), None)
    field = turn_field(item) if count is not None and type(item) is dict else None
    if field is not None:
        name, item = f"{name}.*.{field}", ""
        cells = [[turn.get(field) if type(turn) is dict else turn for turn in cell] for cell in cells]
    if count is not None and type(item) is str:
        counts = count_items(cells, name=name, place=place, count=count)
        return Column(name=name, values=counts, place=place, unit="counts", kind="texts")
    for at, cell in enumerate(cells):
        if not _ITEMS.issuperset(map(type, cell)):
            raise nested_lists(cell, name=name, at=place(at), item=item)
    counts = np.fromiter(map(len, cells), dtype=np.int64, count=len(cells))
    return Column(name=name, values=counts, place=place, unit="counts", kind="lists")


def _numbers(cells: Sequence[Any], name: str, place: Place, remedy: str) -> NDArray[Any]:
    kinds = set(map(type, cells))
    if kinds == {str}:
        return parse_numbers(cells, name=name, place=place, remedy=remedy)
    # Looked at one by one only where some cell is no number: the set of types has told.
    for at, cell in enumerate(cells if kinds - {int, float} else ()):
        if type(cell) not in (int, float):
            raise not_a_number(cell, name=name, at=place(at), remedy=remedy)
    try:
        return np.array(cells, dtype=np.int64 if kinds == {int} else np.float64)
    except OverflowError as error:
        raise _beyond_64_bits(cells, name, place) from error


def parse_numbers(texts: Sequence[str], *, name: str, place: Place, remedy: str = _DROP) -> NDArray[Any]:
    """Reads [n] texts as int64 if all are whole, else as float64.

    Texts that only Python reads as numbers are refused: 1_000, and the digits of other scripts.

    Raises:
        ValueError: At the first text that is not a number, or a whole one beyond 64 bits.

    >>> parse_numbers(["3", "1.5"], name="dur", place=str)
    array([3. , 1.5])
    """
    # One look at all of them together is much quicker than one at each.
    together = "".join(texts)
    if together.isascii() and "_" not in together:
        try:
            return np.fromiter(map(int, texts), dtype=np.int64, count=len(texts))
        except OverflowError as error:
            raise _beyond_64_bits(list(map(int, texts)), name, place) from error
        except ValueError:
            # Not whole: perhaps they are seconds. What is no number either is found below.
            with suppress(ValueError):
                return np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
    at = next(k for k, text in enumerate(texts) if not _is_decimal(text))
    raise not_a_number(texts[at], name=name, at=place(at), remedy=remedy)


def is_number(text: str) -> bool:
    """Says whether Python reads a text as a number; `parse_numbers` is stricter."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _beyond_64_bits(values: Sequence[float], name: str, place: Place) -> ValueError:
    at = next(at for at, value in enumerate(values) if abs(value) > LONGEST)
    return bad_value(np.array(values, dtype=object), at, name=name, place=place)


def not_a_number(value: object, *, name: str, at: str, remedy: str = _DROP) -> ValueError:
    """Writes the error for a value that is no number, with advice for a text, a list and an object."""
    if isinstance(value, dict) and value:
        remedy = f"Name one of its fields, as {name}.{turn_field(value) or next(iter(value))}."
    elif isinstance(value, str) and is_number(value):
        # "7" beside numbers in JSON; 1_000.
        digits = "Write it in the digits 0 to 9, without underscores."
        remedy = "Write it as a number, without quotes." if _is_decimal(value) else digits
    elif isinstance(value, str) and is_number(value.replace(",", ".")):  # 1,25 in a table whose cells end at semicolons
        remedy = "Write fractions with a point, as 1.25, and thousands without a comma, as 1250."
    elif isinstance(value, str) and any(map(str.isalpha, value)):
        remedy = f"{remedy.removesuffix('.')}; if these are texts, {COUNT_REMEDY}."
    return value_error(name, "a number", value, remedy, at=at)


def nested_lists(value: object, *, name: str, at: str, item: object = None) -> ValueError:
    """Writes the error for a list whose count is a guess: turns of a chat, sentences of tokens, features [80, 3000].

    Args:
        value: The list, or its type.
        name: Of the column.
        at: The place of the list.
        item: One of its items, which decides the advice.
    """
    remedy = "Write a column with the length that you mean, and name that."
    field = turn_field(item) if isinstance(item, dict) else None
    if field is not None:
        texts = f"{name}.*.{field}"
        remedy = (
            f'Count the texts in it: column="{texts}", count="words" (on the command line: "FILE:{texts}" '
            "--count words)."
        )
    elif isinstance(item, str):
        remedy = f"These are texts: {COUNT_REMEDY}."
    return value_error(name, "a list of numbers, whose count is its length", value, remedy, at=at)
