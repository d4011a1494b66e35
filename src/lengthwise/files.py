"""The only module that writes files. A file always has its whole old or its whole new content.

A file is written as a draft in the same folder, and then moved onto its target. So the file stays whole if a second
writer comes, the disk is full, or the process is killed. If the path is a link, its target is written. Devices and
pipes are refused.
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

# A draft's name does not repeat the target's, which may already be as long as the system allows.
_DRAFT = re.compile(r"\.lengthwise-[0-9a-f]{16}\.draft")
_ABANDONED_SECONDS = 3600.0  # an older draft is from a writer that was killed


def write(path: str | os.PathLike[str], content: str | bytes | memoryview) -> None:
    """Writes `content` to `path`, whole or not at all; texts in UTF-8.

    An existing file keeps its permissions; a new one gets those that the umask leaves. A writer that is killed leaves
    its draft, `.lengthwise-*.draft`. The first write of a process into that folder removes drafts older than an hour.

    Raises:
        FileNotFoundError: The folder of `path` does not exist.
        OSError: The system refuses, as on a full disk, or the path is a pipe or a device. The old file is unchanged.
    """
    with draft(path) as add:
        add(content.encode() if isinstance(content, str) else content)


@contextmanager
def draft(path: str | os.PathLike[str]) -> Iterator[Callable[[bytes | memoryview], None]]:
    """Yields a function that adds bytes to a draft. The file appears when the block ends without an error.

    Use it for content that is too large for memory, and `write` for all else.

    Raises:
        FileNotFoundError: The folder of `path` does not exist.
        OSError: The system refuses, or the path is a pipe or a device. The old file is unchanged.
    """
    with refusals(path, "written"):
        check_folder("path", path)
        check_regular(path)
        target, old = Path(os.path.realpath(path)), None
        with suppress(FileNotFoundError):
            old = os.stat(path)
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if old is not None and not os.access(target, os.W_OK):  # a move would replace a read-only file
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        _remove_abandoned(target.parent)
        draft_path = target.with_name(f".lengthwise-{secrets.token_hex(8)}.draft")
        file = open(draft_path, "xb")  # noqa: SIM115 - closed below, in every case

    def add(data: bytes | memoryview) -> None:
        with refusals(path, "written"):
            file.write(data)

    try:
        # Outside of `refusals`: an error of the caller's block is not about this file.
        yield add
        with refusals(path, "written"):
            _move(file, draft_path, target, old)
    finally:
        with suppress(OSError):
            file.close()
        with suppress(OSError):
            draft_path.unlink()


def append(path: str | os.PathLike[str], text: str) -> None:
    """Appends `text`, in UTF-8, to a file, which may be new.

    Raises:
        OSError: The system refuses.
    """
    with refusals(path, "written"), open(path, "ab") as file:
        file.write(text.encode())


def check_path(name: str, path: object) -> None:
    """Checks that `path` is a text or a path, without a zero byte, which no system accepts.

    Raises:
        TypeError: `path` is not a text or a path; bytes are refused.
        ValueError: `path` has a zero byte.
    """
    remedy = 'Give "plan.npz", for example.'
    text = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(text, str):
        raise checks.type_error(name, "the path of a file", path, remedy)
    if "\0" in text:
        raise checks.value_error(name, "the path of a file, without a zero byte", text, remedy)


def check_folder(name: str, path: str | os.PathLike[str]) -> None:
    """Refuses a path whose folder does not exist; for a link, the folder of its target.

    Raises:
        FileNotFoundError: The folder does not exist.
        TypeError: As in `check_path`.
        ValueError: As in `check_path`.
    """
    check_path(name, path)
    folder = Path(os.path.realpath(path) if os.path.islink(path) else path).parent
    if not folder.is_dir():
        remedy = f"Make the folder {folder} first."
        raise FileNotFoundError(checks.sentence(name, "in a folder that exists", os.fspath(path), remedy))


def check_regular(path: str | os.PathLike[str]) -> None:
    """Refuses a pipe or a device: reading it might never end.

    Raises:
        OSError: It is a pipe or a device. A path that does not exist passes: opening it raises.
        TypeError: As in `check_path`.
        ValueError: As in `check_path`.
    """
    check_path("path", path)
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise OSError(errno.EINVAL, "a pipe or a device", os.fspath(path))


@contextmanager
def refusals(path: str | os.PathLike[str], action: str) -> Iterator[None]:
    """Rewrites an error of the system as one sentence, of the same class; `action` is "written" or "read".

    Raises:
        OSError: The system raised, for example a FileNotFoundError.
    """
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # a sentence already
            raise
        remedy = f"The system says: {error.strerror}. Fix that, or name another file."
        refusal = type(error)(checks.sentence("path", f"a file that can be {action}", os.fspath(path), remedy))
        refusal.errno = error.errno
        raise refusal from error


def _move(file: BinaryIO, draft_path: Path, target: Path, old: os.stat_result | None) -> None:
    file.flush()
    # Write to disk before the move: otherwise a power cut could leave an empty file.
    os.fsync(file.fileno())
    file.close()
    if old is not None:
        # Before the move, so that a reader never sees the permissions of a new file.
        os.chmod(draft_path, stat.S_IMODE(old.st_mode))
    os.replace(draft_path, target)


@lru_cache(maxsize=64)  # lists a folder once in a process, not for every file
def _remove_abandoned(folder: Path) -> None:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _DRAFT.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > _ABANDONED_SECONDS:
                os.unlink(entry)
