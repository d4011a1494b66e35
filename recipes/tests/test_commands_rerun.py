"""What the reruns of papers share: sizes by their options, the folder, and what is written and printed."""

import json
from dataclasses import dataclass

import pytest

from lengthwise.cli.parser import Parser
from lengthwise_recipes.claims import Claim
from lengthwise_recipes.commands import rerun
from lengthwise_recipes.commands.options import explain_missing

CLAIM = Claim(
    claim="it is faster",
    where="section 2",
    paper="twice",
    ours=[1.25, 1.5, 1.75],
    no_effect=1.0,
    effect=1.0,
    holds="part",
    why="It is a little.",
)
ROWS = [{"strategy": "column loss", "loss": 0.5}, {"strategy": "b", "loss": None}]
DOCUMENT = {"size": {"name": "small"}, "study": {"data": {"name": "made up", "skipped": []}, "rows": ROWS}}


@dataclass(frozen=True, kw_only=True)
class Size:
    name: str
    epochs: int
    seeds: int = 3
    device: str = "cpu"
    bands: int = 20


SMALL, FULL = Size(name="small", epochs=8), Size(name="full", epochs=30, device="cuda")


def parsed(*words):
    parser = Parser(prog="lengthwise")
    size = rerun.add(
        parser.add_subparsers(),
        "paper1999",
        run=len,
        help="In short.",
        description="At length.",
        add_data=lambda _: None,
        small="a minute",
        full="a day",
        epochs="8; full 30",
        seeds="3",
    )
    size.add_argument("--bands", type=int)
    return parser.parse_args(["paper1999", *words])


def page(document, *, json_link):
    return f"{document['study']['data']['name']}: {json_link}\n"


def write_figures(document, folder):
    (folder / "figure.txt").write_text(document["study"]["data"]["name"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), SMALL),
        (("--small",), SMALL),
        (("--full",), FULL),
        (("--full", "--device", "cpu", "--seeds", "1"), Size(name="full", epochs=30, seeds=1)),
        (("--epochs", "0", "--bands", "80"), Size(name="small", epochs=0, bands=80)),  # a size refuses what it must
    ],
)
def test_the_size_is_what_is_asked_for(words, expected):
    assert rerun.size_of(parsed(*words), SMALL, FULL) == expected


def test_small_and_full_are_one_or_the_other(capsys):
    with pytest.raises(SystemExit):
        parsed("--small", "--full")
    assert "must be left out if --small is given" in capsys.readouterr().err


def test_the_help_says_what_sizes_are_and_that_a_rerun_goes_on(capsys):
    with pytest.raises(SystemExit):
        parsed("--help")
    told = " ".join(capsys.readouterr().out.split())
    assert "At length. If a rerun is interrupted, call it again: it goes on where it was." in told
    assert "--small a minute (by default) --full a day --epochs EPOCHS epochs of each run (8; full 30)" in told
    assert "for all files that the command writes (out/paper1999)" in told


def test_all_is_written_to_a_folder_that_need_not_be_there(tmp_path, capsys):
    folder = rerun.folder_of(parsed("--output", str(tmp_path / "new" / "out")))
    read = rerun.write(DOCUMENT, folder, name="paper1999", page=page, write_figures=write_figures)
    assert read == DOCUMENT
    written = json.loads((folder / "paper1999-small.json").read_text())
    assert written["study"]["rows"] == {"strategy": ["column loss", "b"], "loss": [0.5, None]}
    assert (folder / "paper1999.md").read_text() == "made up: paper1999-small.json\n"
    assert (folder / "figure.txt").read_text() == "made up"
    rerun.print_claims(read, [CLAIM], folder, notes=["One left out."])
    told = " ".join(capsys.readouterr().out.split())
    assert told.startswith("made up where paper ours could tell apart verdict")
    assert "section 2 twice 1.50 (1.25 to 1.75) 0.82 partly" in told
    assert "section 2: it is faster. It is a little. One left out. JSON, figures and page are in " in told


def test_a_file_is_no_folder(tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("")
    with pytest.raises(ValueError, match=r"`output` must be a folder, but is '.*taken'"):
        rerun.folder_of(parsed("--output", str(taken)))


def test_a_package_that_is_missing_is_told_with_how_to_install_it():
    rule = r"`no_such_package` must be installed for a study, but is None\. In a clone: pip install \./recipes\."
    with pytest.raises(ModuleNotFoundError, match=rule), explain_missing("a study"):
        import no_such_package  # noqa: F401
