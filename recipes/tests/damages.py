"""What may come of a file that a recipe kept: each damage leaves something at its path that must not be trusted."""

import os


def empty(path):
    path.write_bytes(b"")


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def flip(path):
    """Other bits in the middle half, where the numbers of an archive lie."""
    content = path.read_bytes()
    quarter = len(content) // 4
    middle = bytes(byte ^ 0xFF for byte in content[quarter:-quarter])
    path.write_bytes(content[:quarter] + middle + content[-quarter:])


def overwrite(path):
    path.write_text("half of it")


def make_pipe(path):
    """A pipe that nobody writes to: who opens it waits."""
    path.unlink()
    os.mkfifo(path)


def link_to_device(path):
    """A device without end."""
    path.unlink()
    path.symlink_to("/dev/zero")


DAMAGES = (empty, truncate, flip, overwrite, make_pipe, link_to_device)
