"""The only module that writes files. A path holds whole content: the old or the new, never a part of either.

A file is written as a draft beside its target, under a name of its own, and then moved onto the target. So a reader, a
second writer, a full disk and a kill leave a whole file. A link stays: its target is written. Devices and pipes cannot
be replaced: they are refused.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from lengthwise import checks

# The target's name is no part of it: that name may be as long as names can be.
_DRAFT = re.compile(r"\.lengthwise-[0-9a-f]{16}\.draft")
_ABANDONED_SECONDS = 3600.0  # a draft lives for one write; the writer of one this old was killed


def write(path: str | os.PathLike[str], content: str | bytes | memoryview) -> None:
    """Writes `content` to `path`, whole or not at all; text in UTF-8.

    An existing file keeps its permissions; a new one gets those that the umask leaves. A writer that is killed leaves
    its draft, `.lengthwise-*.draft`. The first write of a process into that folder removes drafts older than an hour.

    Raises:
        FileNotFoundError: There is no folder to write it in.
        OSError: The system refuses, as on a full disk, or the path is a pipe or a device; the old file is still there,
            whole.
    """
    with draft(path) as more:
        more(content.encode() if isinstance(content, str) else content)


@contextmanager
def draft(path: str | os.PathLike[str]) -> Iterator[Callable[[bytes | memoryview], None]]:
    """Yields what adds bytes to a file that appears whole when the block ends, and not at all if the block raises.

    For content that is too large for memory. All else is as in `write`.

    Raises:
        FileNotFoundError: There is no folder to write it in.
        OSError: The system refuses, or the path is a pipe or a device; the old file is still there, whole.
    """
    with refusals(path, "written"):
        check_folder("path", path)
        check_regular(path)
        target, old = Path(os.path.realpath(path)), None
        with suppress(FileNotFoundError):
            old = os.stat(path)
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if old is not None and not os.access(target, os.W_OK):  # a move would not ask
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        _remove_abandoned(target.parent)
        drafted = target.with_name(f".lengthwise-{secrets.token_hex(8)}.draft")
        file = open(drafted, "xb")  # noqa: SIM115 - closed below, in every case

    def more(data: bytes | memoryview) -> None:
        with refusals(path, "written"):
            file.write(data)

    try:
        # What the block itself raises is none of this file's refusals.
        yield more
        with refusals(path, "written"):
            _move(file, drafted, target, old)
    finally:
        with suppress(OSError):
            file.close()
        with suppress(OSError):
            drafted.unlink()


def append(path: str | os.PathLike[str], text: str) -> None:
    """Writes `text`, in UTF-8, behind what the file holds; makes the file where there is none.

    Raises:
        OSError: The system refuses.
    """
    with refusals(path, "written"), open(path, "ab") as file:
        file.write(text.encode())


def check_path(name: str, path: object) -> None:
    """Refuses a name of no file: anything but text or a path, and text with a zero byte, which no system takes.

    Raises:
        TypeError: It is neither text nor a path; bytes are not.
        ValueError: It holds a zero byte.
    """
    remedy = 'Give "plan.npz", for example.'
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        raise checks.type_error(name, "the path of a file", path, remedy)
    if "\0" in text:
        raise checks.value_error(name, "the path of a file, without a zero byte", text, remedy)


def check_folder(name: str, path: str | os.PathLike[str]) -> None:
    """Refuses a path whose folder is not there; of a link, the folder of its target.

    Raises:
        FileNotFoundError: There is no such folder.
        TypeError: As in `check_path`.
        ValueError: As in `check_path`.
    """
    check_path(name, path)
    folder = Path(os.path.realpath(path) if os.path.islink(path) else path).parent
    if not folder.is_dir():
        remedy = f"Make the folder {folder} first."
        raise FileNotFoundError(checks.sentence(name, "in a folder that is there", os.fspath(path), remedy))


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuses to read a pipe or a device: its reader might wait without end.

    Raises:
        OSError: It is one. A path where nothing is passes: opening it raises.
        TypeError: As in `check_path`.
        ValueError: As in `check_path`.
    """
    check_path("path", path)
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise OSError(errno.EINVAL, "a pipe or a device", os.fspath(path))


@contextmanager
def refusals(path: str | os.PathLike[str], action: str) -> Iterator[None]:
    """Says in one sentence why the system refuses to let a file be "written" or "read", in the system's class of error.

    Raises:
        OSError: What the system raises within; FileNotFoundError, for example.
    """
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # a sentence already
            raise
        remedy = f"The system says: {error.strerror}. Mend that, or name another file."
        refusal = type(error)(checks.sentence("path", f"a file that can be {action}", os.fspath(path), remedy))
        refusal.errno = error.errno
        raise refusal from error


def _move(file: BinaryIO, drafted: Path, target: Path, old: os.stat_result | None) -> None:
    file.flush()
    # On the disk before it is moved: after a power cut, the new name must not stand for an empty file.
    os.fsync(file.fileno())
    file.close()
    if old is not None:
        # Before the move, so that a reader never meets a file with the rights of a new one.
        os.chmod(drafted, stat.S_IMODE(old.st_mode))
    os.replace(drafted, target)


@lru_cache(maxsize=64)  # once a process and folder: one that holds thousands of files is not listed for each of them
def _remove_abandoned(folder: Path) -> None:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _DRAFT.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > _ABANDONED_SECONDS:
                os.unlink(entry)
