"""Data sets of Hugging Face, by their own `map`: batches, processes, and a cache of what was computed.

A piece is a range of rows, mapped by itself, so that a run that is killed loses one range at most.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import datasets  # pyright: ignore[reportMissingImports] - an extra of few

from lengthwise.checks import check_whole, value_error
from lengthwise.engines.parts import Piece
from lengthwise.engines.rows import Block, Rule, pack_blocks, unpack_blocks
from lengthwise.lengths.arrow import select_names, top_of

ROWS = 2**20  # of one piece


class MappedSource:
    """Ranges of rows of a `datasets.Dataset`.

    Args:
        dataset: The data set.
        batch_size: The rows that are measured at once.
        workers: Processes that measure; None for this one.
        resume: Whether what `map` has kept in its cache is taken from there.

    Raises:
        ValueError: A dict of data sets, a stream, or a data set with a transform.
    """

    resumes = True

    def __init__(self, dataset: Any, *, batch_size: int, workers: int | None, resume: bool) -> None:
        if not isinstance(dataset, datasets.Dataset):
            remedy = "Name one of its splits; lengths of a stream are planned by `lengthwise.torch.StreamBatches`."
            raise value_error("source", "a datasets.Dataset", type(dataset).__name__, remedy)
        if dataset.format["type"] == "custom":  # `map` is given the rows as they are stored
            remedy = "Its rows change only when they are read: give `map` the transform, or measure its result."
            raise value_error("source", "a data set without with_transform", "one with a transform", remedy)
        if workers is not None:
            check_whole("workers", workers, minimum=1, remedy="Give a number of processes, or leave it out.")
        self._dataset = dataset
        self._batch_size = batch_size
        self._workers = workers
        self._resume = resume
        # `datasets` names by it what `map` keeps: it follows from the files and all that was done to their rows. There
        # is no public name for it.
        starts = range(0, len(dataset), ROWS)
        self._ranges = [range(start, min(start + ROWS, len(dataset))) for start in starts]
        self.pieces: list[Piece] = [
            Piece(f"rows {rows[0]} to {rows[-1]}", dataset._fingerprint) for rows in self._ranges
        ]
        self.facts: dict[str, Any] = {"dataset": dataset._fingerprint}

    def names(self, column: str | None) -> tuple[str, ...]:
        """The columns that are meant, which are there."""
        return tuple(select_names(column, self._dataset.features.arrow_schema, "the data set"))

    def measure(self, numbers: Sequence[int], rule: Rule) -> Iterator[Iterable[Block]]:
        """Yields the blocks of each of these pieces, in order."""
        tops = [top_of(name, self._dataset.column_names) for name in rule.names]
        # Columns that are not read are not decoded: of audio or images nothing is.
        shown = self._dataset if rule.length is not None else self._dataset.select_columns(list(dict.fromkeys(tops)))
        return (self._map(shown.with_format("arrow"), self._ranges[number], rule) for number in numbers)

    def _map(self, dataset: Any, rows: range, rule: Rule) -> Iterator[Block]:
        part = dataset.select(rows)
        with _hide_bars():
            found = part.map(
                functools.partial(_measure, rule=rule),
                batched=True,
                batch_size=self._batch_size,
                # Not more than there are rows, which `map` would warn of.
                num_proc=None if self._workers is None else min(self._workers, len(part)),
                remove_columns=part.column_names,
                # Of a function in a module, `datasets` compares the name alone: an edited one would be found in the
                # cache. So would a tokenizer.json that was written anew.
                new_fingerprint=_name(part, rule, self._batch_size),
                load_from_cache_file=self._resume,
            )
        for table in found.iter(self._batch_size):
            yield from unpack_blocks(table)


def _name(part: Any, rule: Rule, batch_size: int) -> str:
    """What the cache calls the lengths of these rows by this rule."""
    facts = json.dumps([part._fingerprint, rule.facts, batch_size])
    return hashlib.blake2b(facts.encode(), digest_size=8).hexdigest()


def _measure(table: Any, rule: Rule) -> Any:
    return pack_blocks(rule.blocks(table))


@contextmanager
def _hide_bars() -> Iterator[None]:
    """Hides the bars of `map`, of which there would be one for each piece below our own."""
    hidden = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if not hidden:
            datasets.enable_progress_bars()
