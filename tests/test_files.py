"""Files are written whole or not at all, also through links, whoever else writes or reads them."""

import errno
import os
import resource
import stat
import subprocess
import sys

import pytest

import lengthwise as lw
from lengthwise import files

LENGTHS = [5, 9, 2, 4, 7, 7, 1, 3]
HOUR = 3600


def a_plan(seed=0):
    return lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(2), order=lw.Shuffled()), seed=seed)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("content", ["größer\n", "größer\n".encode(), memoryview("größer\n".encode()), b""])
def test_what_is_written_is_there(tmp_path, content):
    files.write(tmp_path / "one", content)
    assert (tmp_path / "one").read_bytes() == (content.encode() if isinstance(content, str) else bytes(content))
    assert names_in(tmp_path) == ["one"]
    longest = "ö" * 127  # 254 bytes of the 255 that names may have
    files.write(tmp_path / longest, content)
    assert names_in(tmp_path) == ["one", longest]
    files.append(tmp_path / "one", "a line more\n")
    assert (tmp_path / "one").read_bytes().endswith(b"a line more\n")


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_of_the_umask_and_an_old_one_keeps_its_own(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        files.write(tmp_path / "one", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == mode
    (tmp_path / "one").chmod(0o640)
    files.write(tmp_path / "one", "newer")
    assert ((tmp_path / "one").read_text(), stat.S_IMODE((tmp_path / "one").stat().st_mode)) == ("newer", 0o640)


@pytest.mark.parametrize("target", ["old", "none yet", None])
def test_a_link_stays_and_its_target_is_written(tmp_path, target):
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").mkdir()
    if target == "old":
        (tmp_path / "real" / "plan.npz").write_bytes(b"old")
    (tmp_path / "between").symlink_to("real/plan.npz")
    (tmp_path / "linked" / "plan.npz").symlink_to("../between")
    a_plan().save(tmp_path / "linked" / "plan.npz")
    assert (tmp_path / "linked" / "plan.npz").is_symlink()
    assert lw.Plan.load(tmp_path / "real" / "plan.npz").fingerprint() == a_plan().fingerprint()
    assert names_in(tmp_path / "real") == names_in(tmp_path / "linked") == ["plan.npz"]


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("nowhere/plan.npz", "in a folder that exists, but is .* Make the folder"),
        ("a_file/plan.npz", "in a folder that exists, but is .* Make the folder"),
        ("link", "in a folder that exists, but is .* Make the folder"),
        ("", "a file that can be written, but is .* Is a directory"),
        ("pipe", "a file that can be written, but is .* a pipe or a device"),
        ("itself", "a file that can be written, but is .* Too many levels"),
    ],
)
def test_a_path_that_cannot_be_written_is_named(tmp_path, path, rule):
    (tmp_path / "a_file").write_text("no folder")
    (tmp_path / "link").symlink_to("nowhere/plan.npz")
    (tmp_path / "itself").symlink_to("itself")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=f"^`path` must be {rule}"):
        a_plan().save(tmp_path / path)
    with pytest.raises(OSError, match=f"^`path` must be {rule}"), files.draft(tmp_path / path):
        pass
    assert names_in(tmp_path) == ["a_file", "itself", "link", "pipe"]


def save_chart(path):
    pytest.importorskip("altair")
    lw.report.save_chart(lw.report.histogram([1, 2]), path)


@pytest.mark.parametrize(
    "use",
    [
        lambda path: files.write(path, "text"),
        lambda path: lw.make_plan([1, 2], lw.Batching(budget=9)).save(path),
        lw.Plan.load,
        lw.StepCost.load,
        lambda path: lw.report.save_page({"random": lw.make_plan([1, 2], lw.Batching(budget=9))}, [1, 2], path),
        save_chart,
    ],
)
def test_what_names_no_file_is_refused_in_a_sentence(use):
    for path in (None, 7, b"plan.npz", ["plan.npz"]):
        with pytest.raises(TypeError, match=r"^`path` must be the path of a file, but is .*\. Give "):
            use(path)
    with pytest.raises(ValueError, match=r"^`path` must be the path of a file, without a zero byte, but is 'a\\x00b'"):
        use("a\0b")


def test_a_full_disk_leaves_the_old_file_whole(tmp_path):
    files.write(tmp_path / "one", "old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        rule = r"^`path` must be a file that can be written, but is .* too large"
        with pytest.raises(OSError, match=rule) as refused:
            files.write(tmp_path / "one", bytes(5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert refused.value.errno == errno.EFBIG
    assert (tmp_path / "one").read_text() == "old"
    assert names_in(tmp_path) == ["one"]


def test_the_draft_of_a_writer_that_was_killed_goes_with_the_next_write(tmp_path):
    old, young = f".lengthwise-{0:016x}.draft", f".lengthwise-{1:016x}.draft"
    others = [".lengthwise-cache.json", "lengthwise-0.draft", f".lengthwise-{0:016x}.draft.txt"]
    for name in (old, young, *others):
        (tmp_path / name).write_text("half")
        if name != young:
            os.utime(tmp_path / name, (os.stat(tmp_path).st_mtime - 2 * HOUR,) * 2)
    files.write(tmp_path / "one", "new")
    assert names_in(tmp_path) == sorted(["one", young, *others])


WRITER = """
import sys, threading
import lengthwise as lw
from lengthwise import files

path, seed = sys.argv[1], int(sys.argv[2])
batching = lw.Batching(cut=lw.FixedSize(2), order=lw.Shuffled())
plans = [lw.make_plan([5, 9, 2, 4, 7, 7, 1, 3], batching, seed=seed + each) for each in range(3)]

def save(plan):
    for _ in range(5):
        plan.save(path)

threads = [threading.Thread(target=save, args=(plan,)) for plan in plans]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@pytest.mark.slow
def test_every_load_is_whole_while_threads_and_processes_write(tmp_path):
    path = tmp_path / "plan.npz"
    known = {a_plan(seed).fingerprint() for seed in range(6)}
    a_plan().save(path)
    commands = [[sys.executable, "-W", "error", "-c", WRITER, str(path), str(seed)] for seed in (0, 3)]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE) for command in commands]
    found = set()
    while any(writer.poll() is None for writer in writers):
        found.add(lw.Plan.load(path).fingerprint())
    assert [writer.communicate()[1] for writer in writers] == [b"", b""]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert found | {lw.Plan.load(path).fingerprint()} <= known
    assert names_in(tmp_path) == ["plan.npz"]


def test_a_file_is_on_the_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    """After a power cut the name would stand for an empty file."""
    done, sync, move = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: done.append("sync") or sync(file))
    monkeypatch.setattr(os, "replace", lambda *paths: done.append("move") or move(*paths))
    files.write(tmp_path / "new", "text")
    assert done == ["sync", "move"]


def test_a_draft_appears_when_its_block_ends_and_never_if_it_raises(tmp_path):
    path = tmp_path / "one"
    with files.draft(path) as more:
        more(b"gr\xc3\xb6")
        assert not path.exists()
        more(memoryview(b"\xc3\x9fer"))
    assert path.read_text(encoding="utf-8") == "größer"

    def write_half():
        with files.draft(path) as more:
            more(b"half")
            raise OSError("of the block itself")

    with pytest.raises(OSError, match=r"^of the block itself$"):
        write_half()
    assert path.read_text(encoding="utf-8") == "größer"
    assert names_in(tmp_path) == ["one"]
