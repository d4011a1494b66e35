"""The command line as a process of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

import lengthwise as lw

pytestmark = pytest.mark.slow

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


STREAMS = {
    "no output": ("buckets --buckets 2 --json - >&-", 0, ""),
    "no streams": ("buckets --buckets 2 <&- >&- 2>&-", 0, ""),
    "no complaints": ("buckets --buckets 0 2>&-", 2, ""),
    "no progress": ("compare --subset 99 --strategies random --json - 2>&- >/dev/null", 0, ""),
    "a full disk": (
        "buckets --buckets 2 >/dev/full",
        2,
        "lengthwise buckets: The system says: No space left on device.\n",
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_that_are_closed_or_full_leave_no_traceback(name):
    words, status, complaint = STREAMS[name]
    command = ["sh", "-c", f'"$@" {words}', "sh", *COMMAND]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", complaint)


def test_a_plan_is_saved_whole_where_standard_output_is_closed(tmp_path):
    path = tmp_path / "plan.npz"
    words = ["sh", "-c", '"$@" >&-', "sh", *COMMAND, "plan", "--strategy", "random", "--output", str(path)]
    subprocess.run(words, check=True)
    assert lw.Plan.load(path).count == 10_480


def test_an_interrupt_of_a_command_at_work_is_said_in_a_line(tmp_path):
    # Printing the table imports rich: in its place comes Ctrl-C.
    (tmp_path / "rich.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-m", "lengthwise", "compare", "--subset", "9"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        # What a shell starts in the background ignores Ctrl-C, these tests too, and hands that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "lengthwise compare: stopped\n")


def test_a_terminal_without_unicode_gets_plain_bars(four):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = [*COMMAND, "inspect", four]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "#" * 48 in done.stdout


def test_a_plot_without_altair_is_refused_before_the_work(tmp_path):
    script = f"""
    import sys

    sys.modules["altair"] = None
    from lengthwise.cli import main

    sys.exit(main(["compare", "--json", "-", "--plot", {str(tmp_path / "plot.png")!r}]))
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'pip install "lengthwise[report]"' in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_warning_is_a_sentence_on_standard_error():
    words = ["compare", "--strategies", "max-entropy:0.9", "--subset", "2000", "--json", "-"]
    done = subprocess.run([sys.executable, "-m", "lengthwise", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["rows"]) == 1
    start = "lengthwise compare: `padding` must be within 0.02 of what was asked, 0.9, but is 0."
    assert (done.stderr.startswith(start), done.stderr.count("\n")) == (True, 1)


def test_the_first_command_of_an_installation_says_on_a_terminal_that_it_compiles(tmp_path):
    """A kernel takes seconds to compile, in which a terminal stood still without a word."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    words = [sys.executable, "-m", "lengthwise", "buckets", "--subset", "100", "--buckets", "2"]
    said = []
    for _ in range(2):
        terminal, theirs = os.openpty()
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=theirs, env=environment, check=True)
        os.close(theirs)
        said.append(read_all(terminal))
    told = "lengthwise buckets: compiling, once for this installation: some seconds"
    assert [text.count(told) for text in said] == [1, 0]


def read_all(terminal):
    """All that was written to a terminal whose other end is closed."""
    parts = []
    with contextlib.suppress(OSError):  # Linux ends with an error of input and output
        while part := os.read(terminal, 4096):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()
