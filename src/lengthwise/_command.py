"""Ctrl-C while the command `lengthwise` loads, which takes a second: it ends the process without a traceback.

No program that imports the package is touched, only the command itself.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path


def _is_command() -> bool:
    """Whether this process is `lengthwise` or `python -m lengthwise`, asked while it loads."""
    name = sys.argv[0] if sys.argv else ""
    if name != "-m":
        return Path(name).stem == "lengthwise"
    # While Python looks for the module of -m: ["python", "-W", "error", "-m", "lengthwise", "plan"] was called, and the
    # module stands before the words that it is given, here ["-m", "plan"].
    return sys.orig_argv[-len(sys.argv)].removeprefix("-m") == "lengthwise"


def _end_on_interrupt() -> bool:
    """Lets Ctrl-C end the process at once, as the system does by default. Returns whether that is a change."""
    # Python lets only the main thread handle signals. A handler that somebody else has set is left alone.
    alone = threading.current_thread() is threading.main_thread()
    if not (alone and _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
        return False
    # Python's own handler would raise in the middle of an import, and print all of its frames.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return True


_ENDS = _end_on_interrupt()


def raise_on_interrupt() -> None:
    """Lets Ctrl-C raise `KeyboardInterrupt` again: the command has loaded, and catches it."""
    if _ENDS:
        signal.signal(signal.SIGINT, signal.default_int_handler)
