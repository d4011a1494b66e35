"""Commands of other packages: found by entry points, and imported when they are named."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

HEAVY = ("torch", "jax", "altair", "pyarrow", "soundfile", "lengthwise_recipes", "tokens")

# A command that counts the words it is given, one that cannot be loaded, and one of a name that is taken.
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
MODULES = {
    "tokens": TOKENS,
    "torn": "import no_such_package",
    "taken": TOKENS.replace("count-tokens", "compare"),
}
ENTRIES = """[lengthwise.commands]
count-tokens = tokens
torn = torn
compare = taken
"""


# Imports the command line once, and then runs each line of words that it reads in a fork: as new as a process is,
# but not as dear. A line is a list of words in JSON, and so is what the command left: status, output, and errors.
FORKS = f"""
import json, os, sys, tempfile, traceback
from importlib.metadata import MetadataPathFinder

def without_recipes(*given, found=MetadataPathFinder.find_distributions):
    return (each for each in found(*given) if each.name != "lengthwise-recipes")

MetadataPathFinder.find_distributions = without_recipes
from lengthwise.cli import main

def run(words):
    sys.argv = ["lengthwise", *words]
    try:
        status = main()
    except SystemExit as leaving:
        status = leaving.code
    except BaseException:
        status = traceback.print_exc() or 1
    print(*(name for name in {HEAVY!r} if name in sys.modules), end="")
    return status

for line in sys.stdin:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            status = run(json.loads(line))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        left = [os.pread(each.fileno(), 1 << 20, 0).decode() for each in (out, err)]
    print(json.dumps([status, *left]), flush=True)
"""


@pytest.fixture(scope="module")
def lengthwise(tmp_path_factory):
    """Runs the command line in a process that has the package `tokens-1.0` installed, and not the recipes."""
    folder = tmp_path_factory.mktemp("packages")
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    facts = folder / "tokens-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: tokens\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(ENTRIES)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]), "COLUMNS": "80"}
    command = [sys.executable, "-W", "error", "-c", FORKS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as forks:

        def run(*words):
            forks.stdin.write(json.dumps(words) + "\n")
            forks.stdin.flush()
            return subprocess.CompletedProcess(words, *json.loads(forks.stdout.readline()))

        yield run


def complaint(done):
    """The one line on standard error of a command that was refused."""
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_command_of_another_package_runs(lengthwise):
    done = lengthwise("count-tokens", "to be or not", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '{\n  "tokens": 4\n}\ntokens'


def test_what_is_wrong_with_it_is_one_sentence(lengthwise):
    told = complaint(lengthwise("count-tokens", "to be or not", "--most", "3"))
    assert told == "lengthwise count-tokens: `text` must be of at most 3 tokens, but is 4. Shorten it.\n"
    assert "`--most` must be a whole number, but is 'x'." in complaint(lengthwise("count-tokens", "a", "--most", "x"))
    assert "with its option, --texts b." in complaint(lengthwise("count-tokens", "a", "b"))


def test_help_lists_the_commands_of_packages_and_imports_none(lengthwise):
    done = lengthwise("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert " count-tokens a command of tokens " in " ".join(done.stdout.split())
    assert done.stdout.endswith("\n\nMore commands, study and reproduce: pip install lengthwise-recipes\n")
    assert lengthwise("buckets", "--help").stdout.rpartition("\n")[2] == ""


def test_a_command_that_cannot_be_loaded_is_one_sentence_and_the_others_work(lengthwise):
    assert complaint(lengthwise("torn")) == "lengthwise: No module named 'no_such_package'\n"
    assert lengthwise("buckets", "--buckets", "2", "--json", "-").returncode == 0


def test_a_command_of_lengthwise_is_its_own(lengthwise):
    done = lengthwise("compare", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("usage: lengthwise compare [-h] [--example {long-tailed,speech}]")
    assert done.stdout.endswith("\n")  # nothing else was imported


def test_a_word_that_is_no_command_is_refused_with_a_list(lengthwise):
    told = complaint(lengthwise("foo"))
    assert "`COMMAND` must be one of " in told
    assert all(name in told for name in ("inspect", "buckets", "count-tokens"))
