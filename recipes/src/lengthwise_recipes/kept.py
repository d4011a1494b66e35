"""What recipes keep on disk to go on from: it is read again only where every byte is as it was written.

NumPy and PyTorch both write zip archives with a checksum of each member. PyTorch compares none as it loads, so a
damaged weight would be trained on.
"""

from __future__ import annotations

import struct
import warnings
import zipfile
import zlib
from pathlib import Path

from lengthwise.checks import sentence

# What `zipfile` raises on archives of damaged headers: encrypted or of an unknown method, as it then seems.
UNREADABLE = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, RuntimeError, ValueError, OverflowError)


def is_whole(path: Path) -> bool:
    """Whether a path is a plain file and a zip archive whose members have their checksums.

    A pipe or a device is not: whoever opened it would wait, or read without end.
    """
    try:
        if not path.is_file():
            return False
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except UNREADABLE:
        return False


def pass_over(name: str, path: Path, remedy: str) -> None:
    """Warns of a file that is there and cannot be read, and says what is done without it.

    A link, a pipe or a device in its place is removed: what is written there later would not be kept.
    """
    warnings.warn(sentence(name, "whole", "damaged", remedy, at=str(path)), stacklevel=2)
    if path.is_symlink() or not (path.is_file() or path.is_dir()):
        path.unlink()
