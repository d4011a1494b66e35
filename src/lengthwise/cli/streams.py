"""The standard streams, some of which whoever called the command may have closed."""

from __future__ import annotations

import os
import sys


def open_closed() -> None:
    """Sends to nowhere what a stream that was closed (`>&-`) would have taken: nobody asked for it.

    A descriptor that stayed free would be that of the first file written, and messages could end up in a saved plan.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest that is free
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


def give_up_output() -> None:
    """Sends to nowhere what standard output no longer takes: its reader left, as `head` does, or its disk is full.

    Else the interpreter would try once more when it ends, and complain.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
