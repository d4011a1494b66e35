"""What recipes kept on disk is whole or not, byte by byte; no path makes them wait."""

import zipfile

import numpy as np
import pytest

from damages import DAMAGES

torch = pytest.importorskip("torch")

from lengthwise_recipes.kept import is_whole  # noqa: E402

WEIGHTS = {"weight": [1.0, -2.5, 3.25]}


def write_numpy(path):
    np.savez_compressed(path, **{name: np.array(values) for name, values in WEIGHTS.items()})


def write_torch(path):
    torch.save({name: torch.tensor(values) for name, values in WEIGHTS.items()}, path)


def read(path):
    loaded = np.load(path) if path.suffix == ".npz" else torch.load(path, weights_only=True)
    return {name: loaded[name].tolist() for name in WEIGHTS}


@pytest.fixture(params=[("kept.npz", write_numpy), ("kept.pt", write_torch)], ids=["NumPy", "PyTorch"])
def path(tmp_path, request):
    name, write = request.param
    write(tmp_path / name)
    return tmp_path / name


def test_a_file_is_whole_as_it_was_written(path):
    assert is_whole(path)
    assert read(path) == WEIGHTS


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_not_whole(path, damage):
    damage(path)
    assert not is_whole(path)


def test_nothing_and_a_folder_are_not_whole(tmp_path):
    assert not is_whole(tmp_path / "gone")
    assert not is_whole(tmp_path)


def test_no_change_of_a_byte_changes_what_is_read_from_a_whole_file(path):
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        end = archive.start_dir  # behind it lies the table of contents, whose bytes have no checksum
    damaged = 0
    for place in range(0, end, 3):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        if is_whole(path):
            try:
                assert read(path) == WEIGHTS
            except (RuntimeError, ValueError, KeyError):  # refused as it is loaded
                damaged += 1
        else:
            damaged += 1
    assert damaged > 20


def test_no_beginning_of_a_file_is_whole(path):
    content = path.read_bytes()
    for size in range(0, len(content), 11):
        path.write_bytes(content[:size])
        assert not is_whole(path)
