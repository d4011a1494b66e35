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


def test_version():
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"lengthwise {lw.__version__}\n"


def test_a_reader_that_leaves_early_is_no_error():
    words = [*COMMAND, "buckets", "--buckets", "2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # as `head -0` does, long before there is anything to read
        complaint = process.stderr.read()
    assert (process.returncode, complaint) == (1, b"")


# What the shell does with the command, its exit status, and its complaint.
STREAMS = {
    "no output": ("plan --strategy random --output plan.npz >&-", 0, ""),
    "no streams": ("buckets --buckets 2 <&- >&- 2>&-", 0, ""),
    "no complaints": ("buckets --buckets 0 2>&-", 2, ""),
    "a full disk": ("inspect >/dev/full", 2, "lengthwise inspect: The system says: No space left on device.\n"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams_that_are_closed_or_full_leave_no_traceback(tmp_path, name):
    words, status, complaint = STREAMS[name]
    command = ["sh", "-c", f'"$@" {words}', "sh", *COMMAND]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", complaint)
    if name == "no output":
        assert lw.Plan.load(tmp_path / "plan.npz").count == 10_480


def test_a_picture_or_a_page_without_their_packages_is_refused_before_the_work(tmp_path):
    script = """
    import sys
    from lengthwise.cli import main

    for package, option in (("altair", "--plot"), ("jinja2", "--html")):
        sys.modules[package] = None
        print(main(["compare", "--json", "-", option, "missing.png"]))
        del sys.modules[package]
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "2\n2\n")
    told = "Charts need Altair, jinja2 and vl-convert: pip install altair jinja2 vl-convert-python"
    assert done.stderr == 2 * f"lengthwise compare: {told}\n"


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


def test_a_warning_is_a_sentence_on_standard_error_beside_the_json():
    words = ["plan", "--strategy", "max-entropy:0.9", "--subset", "500", "--json", "-"]
    done = subprocess.run([sys.executable, "-m", "lengthwise", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["lengths"]["count"] == 500
    start = "lengthwise plan: `padding` must be within 0.02 of the 0.9 asked for, but is 0."
    assert (done.stderr.startswith(start), done.stderr.count("\n")) == (True, 1)


def test_the_first_command_of_an_installation_says_on_a_terminal_that_it_compiles(tmp_path):
    """A kernel takes seconds to compile, in which a terminal stood still without a word."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    words = [sys.executable, "-m", "lengthwise", "buckets", "--subset", "100", "--buckets", "2"]
    told = "lengthwise buckets: compiling, once for this installation: some seconds"
    for times in (1, 0):
        terminal, theirs = os.openpty()
        subprocess.run(words, stdout=subprocess.DEVNULL, stderr=theirs, env=environment, check=True)
        os.close(theirs)
        assert read_all(terminal).count(told) == times


def read_all(terminal):
    """All that was written to a terminal whose other end is closed."""
    parts = []
    with contextlib.suppress(OSError):  # Linux ends with an error of input and output
        while part := os.read(terminal, 4096):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()
