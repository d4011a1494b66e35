"""Commands of other packages: found by entry points, and imported when they are named."""

import sys

import pytest

TOKENS = """
from lengthwise.cli import show
from lengthwise.checks import value_error

def add(subparsers):
    parser = subparsers.add_parser("count-tokens", description="Counts tokens.")
    parser.add_argument("text")
    parser.add_argument("--most", type=int, default=9)
    show.add(parser)
    parser.set_defaults(run=run, file_option="--texts")

def run(arguments):
    count = len(arguments.text.split())
    if count > arguments.most:
        raise value_error("text", f"of at most {arguments.most} tokens", count, "Shorten it.")
    show.write_json({"tokens": count}, arguments.json)
    return 0
"""
ENTRIES = """[lengthwise.commands]
count-tokens = tokens_of_a_package
torn = torn_package
compare = tokens_of_a_package
"""


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    """A package that counts words, cannot load a second command, and names a third as one of ours."""
    (tmp_path / "tokens_of_a_package.py").write_text(TOKENS)
    (tmp_path / "torn_package.py").write_text("import no_such_package")
    facts = tmp_path / "tokens-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: tokens\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("tokens_of_a_package", None)


def complaint(done):
    """Returns the one line on standard error of a command that was refused."""
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    return done.err


def test_a_command_of_another_package_runs(run):
    assert run("count-tokens", "to be or not", "--json", "-").json == {"tokens": 4}


def test_what_is_wrong_with_it_is_one_sentence(run):
    told = complaint(run("count-tokens", "to be or not", "--most", "3"))
    assert told == "lengthwise count-tokens: `text` must be of at most 3 tokens, but is 4. Shorten it.\n"
    assert "`--most` must be a whole number, but is 'x'." in complaint(run("count-tokens", "a", "--most", "x"))
    assert "must follow its option, as --texts b." in complaint(run("count-tokens", "a", "b"))
    assert complaint(run("torn")) == "lengthwise: No module named 'no_such_package'\n"


def test_help_lists_the_commands_of_packages_and_imports_none(run, monkeypatch):
    assert " count-tokens a command of tokens " in " ".join(run("--help").out.split())
    assert run("compare", "--help").out.startswith("usage: lengthwise compare ")
    told = complaint(run("foo"))
    assert all(name in told for name in ("`COMMAND` must be one of ", "inspect", "buckets", "count-tokens"))
    assert "tokens_of_a_package" not in sys.modules
    monkeypatch.setattr("lengthwise.cli.entry_points", lambda **_: [])
    assert run("--help").out.endswith("\n\nMore commands, study and reproduce: pip install ./recipes, in a clone\n")
