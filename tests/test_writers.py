"""One room writes files, `files`: read from the source, where no other file opens, makes or moves one."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "src", ROOT / "recipes" / "src")
FILES = sorted(path for source in SOURCES for path in source.rglob("*.py") if path.name != "files.py")

# Calls that make, write or move a file, by their last name, or by their last two.
NAMES = {"write_text", "write_bytes", "touch", "tofile", "mkstemp", "NamedTemporaryFile", "rename", "symlink_to"}
NAMES |= {"hardlink_to", "savez", "savez_compressed", "savetxt", "savefig", "dump", "memmap", "copyfile", "copytree"}
DOTTED = {"np.save", "torch.save", "os.replace", "os.open", "os.link", "os.symlink", "shutil.copy", "shutil.move"}
OPENERS = {"", "io", "os", "wave", "gzip", "bz2", "lzma", "zipfile", "codecs"}  # whose first argument is the path
READING = {"'r'", "'rb'", "'rt'"}


def lines_that_write(source):
    tree = ast.parse(source)
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and "BytesIO()" in ast.unparse(node.value)]
    harmless = {"os.devnull", *(ast.unparse(node.targets[0]) for node in made)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if _writes(call) and not harmless & set(map(ast.unparse, call.args))]


def _writes(call):
    owner, _, name = ast.unparse(call.func).rpartition(".")
    if name == "open" and owner != "os":
        modes = [ast.unparse(each) for each in call.args[1 if owner in OPENERS else 0 :][:1]]
        modes += [ast.unparse(each.value) for each in call.keywords if each.arg == "mode"]
        return not READING.issuperset(modes)
    # Text is replaced by text, a path by one argument: where it is moved to.
    moved = name == "replace" and len(call.args) == 1 and not call.keywords
    return moved or name in NAMES or f"{owner.rpartition('.')[2]}.{name}" in DOTTED


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_other_room_writes_files(path):
    assert lines_that_write(path.read_text(encoding="utf-8")) == []


WRITING = """
open(path, "w")
open(path, mode="ab")
path.open("x")
path.write_text(text)
np.save(path, array)
torch.save(state, path)
json.dump(document, file)
os.replace(draft, path)
draft.replace(path)
shutil.copy(draft, path)
os.open(path, os.O_WRONLY)
wave.open(path, "wb")
"""


def test_lines_that_write_are_known():
    assert lines_that_write(WRITING) == [number for number, line in enumerate(WRITING.splitlines(), 1) if line]
