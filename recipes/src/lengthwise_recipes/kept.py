"""Checks of files that recipes continue from: a damaged file is not read.

NumPy and PyTorch both write zip archives with a checksum for each member. PyTorch does not compare them when it loads,
so training could continue from damaged weights.
"""

from __future__ import annotations

import struct
import warnings
import zipfile
import zlib
from pathlib import Path

from lengthwise.checks import sentence

# The errors of `zipfile` for damaged headers; it may take them for encryption or an unknown method.
UNREADABLE = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, RuntimeError, ValueError, OverflowError)


def is_whole(path: Path) -> bool:
    """Returns True for a plain file that is a zip archive with correct checksums.

    Pipes and devices are not opened: reading them could wait or never end.
    """
    try:
        if not path.is_file():
            return False
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except UNREADABLE:
        return False


def pass_over(name: str, path: Path, remedy: str) -> None:
    """Warns of a damaged file and says what happens without it.

    Removes a link, a pipe or a device at its path, because a file written there later would be lost.
    """
    warnings.warn(sentence(name, "whole", "damaged", remedy, at=str(path)), stacklevel=2)
    if path.is_symlink() or not (path.is_file() or path.is_dir()):
        path.unlink()
