"""Recent: keeps the most recent of what was found, so that it is found once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, Generic, TypeVar

_Found = TypeVar("_Found")
_NOTHING = object()


class Recent(Generic[_Found]):
    """Of what was found, the `most` that were asked for last; for several threads, and for processes forked meanwhile.

    >>> squares = Recent(most=2)
    >>> [squares.get(number, lambda: number**2) for number in (1, 2, 1, 3)]
    [1, 4, 1, 9]
    >>> 1 in squares, 2 in squares, 3 in squares
    (True, False, True)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, about: Hashable, find: Callable[[], _Found]) -> _Found:
        """What is kept `about` this; else what `find` returns."""
        found = self._kept.get(about, _NOTHING)
        if found is _NOTHING:  # two threads may find the same at once
            found = find()
        self._kept[about] = found
        with suppress(KeyError):  # another thread has made room. A lock would stay locked in a process forked meanwhile
            self._kept.move_to_end(about)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return found

    def __contains__(self, about: Hashable) -> bool:
        return about in self._kept

    def clear(self) -> None:
        """Forgets all."""
        self._kept.clear()


class Same:
    """An object that equals itself alone, and lives as long as what is kept about it."""

    def __init__(self, thing: object) -> None:
        # Held, not only its id: the id of an object that is gone may become another's.
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)
