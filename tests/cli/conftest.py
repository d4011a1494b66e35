"""Runs the command line in this process, and files of lengths to run it on."""

import json
from typing import NamedTuple

import pytest

from lengthwise.cli import main


class Done(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self):
        """What stands on standard output, which must be JSON and nothing else."""
        return json.loads(self.out)


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)

    def command(*words):
        capsys.readouterr()
        try:
            status = main([str(word) for word in words])
        except SystemExit as leaving:
            status = leaving.code
        return Done(status, *capsys.readouterr())

    return command


@pytest.fixture
def four(tmp_path):
    """Sorted in twos they make the batches (2, 4) and (5, 9): 26 frames for 20."""
    path = tmp_path / "four.csv"
    path.write_text("name,frames,other\na,4,1\nb,2,1\nc,9,1\nd,5,1\n")
    return f"{path}:frames"


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("source,target\n" + "".join(f"{3 + n % 7},{2 + n % 5}\n" for n in range(40)))
    return f"{path}:source,target"


@pytest.fixture
def unwritable(tmp_path):
    return tmp_path / "no_such_folder" / "file.json"
