"""The command line as a process of its own."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

import lengthwise as lw

COMMAND = [sys.executable, "-W", "error", "-m", "lengthwise"]


def test_json_is_all_of_standard_output():
    words = ["compare", "--strategies", "random,max-entropy:0.1", "--subset", "500", "--json", "-"]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["strategy"] for row in json.loads(done.stdout)["rows"]] == ["random", "max-entropy:0.1"]


def test_a_complaint_is_one_line_and_status_2():
    done = subprocess.run([*COMMAND, "compare", "nofile.csv"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_version():
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"lengthwise {lw.__version__}\n")


@pytest.mark.parametrize("more", [(), ("--json", "-")])
def test_a_reader_that_leaves_early_is_no_error(more):
    words = [*COMMAND, "buckets", "--buckets", "2", *more]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # as `head -0` does, long before there is anything to read
        complaint = process.stderr.read()
    assert (process.returncode, complaint) == (1, b"")


def test_a_terminal_without_unicode_gets_plain_bars(four):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = [*COMMAND, "inspect", four]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "#" * 48 in done.stdout


def test_a_plot_without_matplotlib_is_refused_before_the_work(tmp_path):
    script = f"""
    import sys

    sys.modules["matplotlib"] = None
    from lengthwise.cli import main

    sys.exit(main(["compare", "--json", "-", "--plot", {str(tmp_path / "plot.png")!r}]))
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'pip install "lengthwise[plot]"' in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_warning_is_a_sentence_on_standard_error():
    words = ["compare", "--strategies", "max-entropy:0.9", "--subset", "2000", "--json", "-"]
    done = subprocess.run([sys.executable, "-m", "lengthwise", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["rows"]) == 1
    start = "lengthwise compare: `padding` must be within 0.02 of what was asked, 0.9, but is 0."
    assert (done.stderr.startswith(start), done.stderr.count("\n")) == (True, 1)
