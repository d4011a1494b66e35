"""Folders as Hugging Face `datasets` saves them: Arrow streams and two small JSON files."""

import json
import re

import pytest

from lengthwise import write_lengths
from lengthwise.lengths import read_lengths
from table_files import write_table

NAMES = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]


def write_shard(path, **columns):
    write_table(path.with_suffix(".stream"), **columns).rename(path)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "dataset_info.json").write_text("{}")
    write_shard(tmp_path / NAMES[0], n=[3, 1], input_ids=[[1, 2], [3]], text=["a", "b"])
    write_shard(tmp_path / NAMES[1], n=[2], input_ids=[[4, 5, 6]], text=["c"])
    set_state(tmp_path, _data_files=[{"filename": name} for name in NAMES])
    return tmp_path


def set_state(folder, **state):
    (folder / "state.json").write_text(json.dumps(state))


def refuse(folder, words, **options):
    with pytest.raises(ValueError, match=re.escape(words.format(folder))):
        read_lengths(folder, **options)


def test_columns_of_numbers_and_of_lists(folder):
    assert read_lengths(folder, column="n").tolist() == [3, 1, 2]
    assert read_lengths(folder, column="input_ids,n").tolist() == [[2, 3], [1, 1], [3, 2]]
    refuse(folder, "`column` must be one of input_ids, ", column="input_id")
    refuse(folder, "`column` must be one of n, input_ids, text, but is None at {}.")
    refuse(folder, "`text` must be a number, but is 'a' at row 0 of {}.", column="text")


def test_files_that_map_left_beside_the_shards_are_not_read(folder):
    write_shard(folder / "cache-1f.arrow", n=[9], input_ids=[[9]], text=["x"])
    assert read_lengths(folder, column="n").tolist() == [3, 1, 2]
    assert write_lengths(folder, folder / "n.npy", column="n").lengths.tolist() == [3, 1, 2]


def test_a_dict_of_datasets_names_its_splits(folder):
    for split in ("train", "test"):
        (folder / split).mkdir()
        (folder / split / "state.json").write_text("{}")
    (folder / "dataset_dict.json").write_text("{}")
    words = "`source` must be one split, but is '{0}'. Give {0}/SPLIT, where SPLIT is one of: test, train."
    refuse(folder, words)
    with pytest.raises(ValueError, match=re.escape(words.format(folder))):
        write_lengths(folder, folder / "n.npy", column="n")


def test_damaged_folders_are_refused(folder):
    shard = folder / NAMES[1]
    shard.write_bytes(shard.read_bytes()[:-200])
    refuse(folder, f"`source` must be a Parquet or an Arrow file, but is '{{}}/{NAMES[1]}'.", column="n")
    set_state(folder, _data_files=[{"filename": "gone.arrow"}])
    refuse(folder, "`source` must be a Parquet or an Arrow file, but is '{}/gone.arrow'.", column="n")
    set_state(folder, _data_files=[{}])
    refuse(folder, "Save it again, because its state.json lists no files")
    set_state(folder, _data_files=[])
    refuse(folder, "`source` must be a file with sequences, but is '{}'.")
    set_state(folder, _data_files=[], _indices_files=[{"filename": "indices.arrow"}])
    refuse(folder, "`source` must be a dataset without an indices mapping, but is '{}'. Call `flatten_indices()`")
    for state in ("{", "[" * 100_000, '{"_data_files":' * 100_000):
        (folder / "state.json").write_text(state)
        refuse(folder, "`source` must be a saved dataset, but is '{}'. Save it again")


def test_shards_of_lists_and_of_numbers_are_not_mixed(folder):
    write_shard(folder / NAMES[1], n=[7], input_ids=[512], text=["c"])
    assert read_lengths(folder, column="n").tolist() == [3, 1, 7]
    told = "`input_ids` must be lists, as in the rows before, but is 'numbers' at row 2 of {}. Write the column again"
    refuse(folder, told, column="input_ids")
