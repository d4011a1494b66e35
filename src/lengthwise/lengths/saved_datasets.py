"""Folders that Hugging Face `datasets` writes with `save_to_disk`, read without `datasets`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lengthwise.lengths.arrow import read_arrow
from lengthwise.lengths.columns import Column
from lengthwise.lengths.counts import TextCount
from lengthwise.lengths.sources import source_error


def is_saved_dataset(folder: Path) -> bool:
    """Says whether a folder was written by `save_to_disk`, of a Dataset or of a DatasetDict."""
    return (folder / "dataset_dict.json").is_file() or (
        (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file()
    )


def read_saved_dataset(folder: Path, column: str | None, count: TextCount | None = None) -> list[Column]:
    """Reads columns of a saved Dataset; a list column, as `input_ids`, gives the length of each list.

    Args:
        folder: Where `state.json` is.
        column: A name, several separated by commas, or None where there is one only.
        count: What is counted of texts.

    Raises:
        ValueError: The folder of a DatasetDict, a dataset with an indices mapping, a file that is absent or
            damaged, and what `read_parquet` refuses.
    """
    if (folder / "dataset_dict.json").is_file():
        splits = _load(folder / "dataset_dict.json").get("splits")
        named = ", ".join(map(str, splits)) if isinstance(splits, list) else "its dataset_dict.json lists none"
        remedy = f"Give {folder}/SPLIT with one of its splits: {named}."
        raise source_error("one split", folder, remedy)
    state = _load(folder / "state.json")
    # A dataset that was filtered or shuffled keeps its old files, and says by indices which rows are left.
    if state.get("_indices_files") or state.get("_indices_data_files"):
        remedy = "Call `flatten_indices()` and save it again, because its rows are not in the order of its files."
        raise source_error("a dataset without an indices mapping", folder, remedy)
    shards = _shards(folder, state)
    # No shards: a dataset without rows.
    return read_arrow(shards, column, count, source=folder) if shards else []


def _shards(folder: Path, state: dict[str, Any]) -> list[Path]:
    try:
        shards = [folder / entry["filename"] for entry in state["_data_files"]]
    except (KeyError, TypeError) as error:
        raise source_error("a saved dataset", folder, "Its state.json lists no files.") from error
    for shard in shards:
        if not shard.is_file():
            remedy = "Its state.json lists this file: copy it there or save the dataset again."
            raise source_error("a whole saved dataset", shard, remedy)
    return shards


def _load(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # RecursionError: a hundred thousand brackets
        raise source_error("a saved dataset", path, f"Save it again ({error}).") from error
    return found if isinstance(found, dict) else {}
