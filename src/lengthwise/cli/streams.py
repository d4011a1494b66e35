"""The standard streams. The caller of the command may have closed some of them."""

from __future__ import annotations

import os
import sys


def open_closed() -> None:
    """Opens streams that the caller closed (`>&-`), and discards what is written to them.

    A free descriptor would go to the first file that is opened, and messages could end up in a saved plan.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest that is free
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


def give_up_output() -> None:
    """Discards what standard output no longer takes: its reader left, as `head` does, or its disk is full.

    Otherwise the interpreter would try once more when it ends, and print an error.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
