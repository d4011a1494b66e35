"""The cache of compiled kernels: a damaged file counts as missing, and a folder that cannot be written is told once."""

import ast
import importlib
import inspect
import os
import pickle
import pkgutil
import runpy
import shutil
import subprocess
import sys
import textwrap
import threading
import types
import warnings
from collections import Counter
from contextlib import contextmanager

import numba
import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

from lengthwise import _compile, _kernels
from lengthwise._compile import machine_code

MODULE = """
from lengthwise._compile import compile_kernel

@compile_kernel
def double(number):
    return 2 * number

@compile_kernel
def half(number):
    return number / 2
"""


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """Makes the kernels anew, as another process does, on one cache: a call gives them by name."""
    module, folder = tmp_path / "tiny.py", tmp_path / "cache"
    module.write_text(MODULE)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(folder))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))  # from which Numba sets the other again when it compiles
    machine_code._warn.cache_clear()
    return lambda: runpy.run_path(str(module))


@pytest.fixture
def full_disk(monkeypatch):
    """While it is entered, Numba's writes run into a full disk, and the old files stay."""
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")

    @contextmanager
    def open_for_write(_, path):
        with open("/dev/full", "wb", buffering=0) as file:
            yield file
        raise AssertionError(f"{path} was written")

    @contextmanager
    def enter():
        with monkeypatch.context() as patch:
            patch.setattr(IndexDataCacheFile, "_open_for_write", open_for_write)
            yield

    return enter()


def files_of(tmp_path, kind):
    return sorted((tmp_path / "cache").rglob(f"*.{kind}"))


def was_read(kernel):
    return sum(kernel.compiled.stats.cache_hits.values()) > 0


def changed_byte(content, at):
    return content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :]


DAMAGES = {
    "empty": lambda _: b"",
    "one byte": lambda content: content[:1],
    "half": lambda content: content[: len(content) // 2],
    "all but one": lambda content: content[:-1],
    "zeros": lambda content: bytes(len(content)),
    "zeros at the end": lambda content: content[: len(content) // 2] + bytes(len(content) // 2),
    "text": lambda _: "größer\n".encode(),
    "no unicode": lambda _: b"\x80\x04\x8c\x04\xff\xff\xff\xff.",
    "another object": lambda _: pickle.dumps([1, 2]),
    "two objects": lambda _: pickle.dumps(numba.__version__) + pickle.dumps((None, 7)),
    "a changed byte early": lambda content: changed_byte(content, 40),
    "a changed byte in the middle": lambda content: changed_byte(content, len(content) // 2),
    "a changed byte late": lambda content: changed_byte(content, len(content) - 60),
}


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_written_anew_without_a_word(kernels, tmp_path, kind, damage):
    kernels()["double"](4)
    [file] = files_of(tmp_path, kind)
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert kernels()["double"](4) == 8
    again = kernels()["double"]
    assert again(4) == 8
    assert was_read(again)


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_in_the_place_of_a_file_is_replaced_and_not_waited_for(kernels, tmp_path, kind, linked):
    kernels()["double"](4)
    [file] = files_of(tmp_path, kind)
    file.unlink()
    pipe = tmp_path / "pipe" if linked else file
    os.mkfifo(pipe)
    if linked:
        file.symlink_to(pipe)
    assert kernels()["double"](4) == 8
    again = kernels()["double"]
    assert again(4) == 8
    assert was_read(again)
    assert file.is_file()


def test_what_is_whole_is_read(kernels):
    first, second = kernels()["double"], kernels()["double"]
    assert [first(4), second(4)] == [8, 8]
    assert [was_read(first), was_read(second)] == [False, True]


ALLOCATES = """
import numpy as np
from lengthwise._compile import compile_kernel

@compile_kernel
def count_up(count):
    made = np.empty(count)
    for place in range(count):
        made[place] = place
    return made
"""
RUNS_ALONE = """
import sys
sys.path.insert(0, sys.argv[1])
from counting import count_up
print(count_up.compiled(3).tolist(), count_up.compiled.stats.cache_hits.total(), "numba.np.arraymath" in sys.modules)
"""


@pytest.mark.usefixtures("kernels")
def test_kept_code_runs_in_a_new_process_without_the_compiler(tmp_path, monkeypatch):
    # In this process Numba's memory is there already: without it, code that makes an array would end the process.
    (tmp_path / "counting.py").write_text(ALLOCATES)
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("counting").count_up.compiled(3).tolist() == [0.0, 1.0, 2.0]
    monkeypatch.delitem(sys.modules, "counting")
    again = [sys.executable, "-c", RUNS_ALONE, str(tmp_path)]
    done = subprocess.run(again, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[0.0, 1.0, 2.0] 1 False\n"), done.stderr


def test_code_for_other_types_is_not_run(kernels, tmp_path):
    # Two processes fill an empty cache: each names its data file .1.nbc, one wins the index, the other the data.
    kernels()["double"](4)
    [of_whole_numbers] = files_of(tmp_path, "nbc")
    kept = of_whole_numbers.read_bytes()
    shutil.rmtree(tmp_path / "cache")
    kernels()["double"](1.5)
    [of_fractions] = files_of(tmp_path, "nbc")
    of_fractions.write_bytes(kept)
    assert kernels()["double"](1.5) == 3.0


def test_code_is_compiled_anew_if_the_file_of_a_kernel_that_it_calls_has_changed(kernels, tmp_path, monkeypatch):
    """A `git pull` may change one file of two: 4 x 5 + 1 would be kept on disk beside a source that says 4 x 5 + 2."""
    monkeypatch.syspath_prepend(tmp_path)
    called = "from lengthwise._compile import compile_kernel\n\n@compile_kernel\ndef {}(number):\n    return {}\n"
    (tmp_path / "deep.py").write_text(called.format("add", "number + 1"))
    (tmp_path / "between.py").write_text("from deep import add\n" + called.format("pass_on", "add(number)"))
    (tmp_path / "tiny.py").write_text("from between import pass_on\n" + called.format("four", "pass_on(4 * number)"))

    def four():
        for name in ("deep", "between"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        return kernels()["four"]

    assert four()(5) == 21
    kernel = four()
    assert (kernel(5), was_read(kernel)) == (21, True)
    (tmp_path / "deep.py").write_text(called.format("add", "number +  2"))  # another size: the clock may stand still
    assert four()(5) == 22


def test_a_folder_that_cannot_be_written_is_told_once(kernels, tmp_path):
    made = kernels()
    for name in ("double", "half"):
        assert made[name].compiled  # from here on each knows its folder
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_text("a file where a folder was")
    with pytest.warns(UserWarning, match="keep compiled kernels") as told:
        assert (made["double"](4), made["half"](5)) == (8, 2.5)
    [sentence] = {str(each.message) for each in told}
    assert len(told) == 1
    assert sentence.startswith(f"`cache` must be a folder to keep compiled kernels in, but is '{str(tmp_path)[:40]}")
    assert "set NUMBA_CACHE_DIR" in sentence


def test_a_file_in_the_place_of_the_folder_sends_the_cache_beside_the_source(kernels, tmp_path):
    (tmp_path / "cache").write_text("a file where a folder should be")
    assert kernels()["double"](4) == 8
    assert len(list((tmp_path / "__pycache__").glob("*.nbc"))) == 1


def test_a_disk_that_is_full_is_told_and_leaves_nothing_behind(kernels, tmp_path, full_disk):
    made = kernels()
    with full_disk, pytest.warns(UserWarning, match="keep compiled kernels") as told:
        assert (made["double"](4), made["half"](5)) == (8, 2.5)
    assert len(told) == 1
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []
    again = kernels()
    assert (again["double"](4), kernels()["double"](4)) == (8, 8)
    assert len(files_of(tmp_path, "nbi")) == 1  # there is room again


def test_a_disk_that_fills_up_keeps_what_stood_there(kernels, full_disk):
    kernels()["double"](4)
    with full_disk, pytest.warns(UserWarning, match="keep compiled kernels"):
        assert kernels()["double"](1.5) == 3.0
    again = kernels()["double"]
    assert again(4) == 8
    assert was_read(again)


@pytest.fixture
def small_files():
    """While it is entered, the system lets no file grow beyond 100 bytes: less than any machine code."""
    resource = pytest.importorskip("resource")

    @contextmanager
    def enter():
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return enter()


def test_a_write_that_breaks_off_leaves_no_part_of_a_file(kernels, tmp_path, small_files):
    with small_files, pytest.warns(UserWarning, match="keep compiled kernels"):
        assert kernels()["double"](4) == 8
    assert files_of(tmp_path, "nbc") == []
    assert kernels()["double"](4) == 8
    assert len(files_of(tmp_path, "nbc")) == 1


def test_an_index_that_cannot_be_replaced_is_told(kernels, tmp_path):
    kernels()["double"](4)
    [index] = files_of(tmp_path, "nbi")
    index.unlink()
    (index / "inside").mkdir(parents=True)
    with pytest.warns(UserWarning, match="keep compiled kernels"):
        assert kernels()["double"](4) == 8


def test_without_any_folder_kernels_are_compiled_and_it_is_told_once(monkeypatch):
    # No file of this name: nowhere to keep a cache beside it.
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/nowhere")
    machine_code._warn.cache_clear()
    made = {}
    exec(compile(MODULE, "<no file>", "exec"), made)
    with pytest.warns(UserWarning, match="but is '/nowhere'") as told:
        assert (made["double"](4), made["half"](5)) == (8, 2.5)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made["double"](1.5) == 3.0


def test_who_listens_is_told_of_each_kernel_before_it_is_compiled(kernels):
    told = []
    with _compile.listen(lambda: told.append(1)):
        made = kernels()
        assert (made["double"](4), made["half"](5)) == (8, 2.5)
        compiled = len(told)
        assert compiled >= 2
        again = kernels()
        assert (again["double"](4), again["half"](5)) == (8, 2.5)
        assert len(told) == compiled  # read from the cache
    kernels()["double"](4.5)
    assert len(told) == compiled  # nobody listens


SMALL = """
import numpy as np

from lengthwise._compile import compile_kernel

@compile_kernel
def add(one, other):
    return one + other

@compile_kernel(linear=True)
def total(numbers, sums):
    sums[0] = 0
    for index in range(numbers.size):
        sums[0] = add(sums[0], numbers[index])
    return sums[0]

@compile_kernel(linear=True, in_python=lambda numbers: int(np.prod(numbers)))
def product(numbers):
    found = 1
    for index in range(numbers.size):
        found *= numbers[index]
    return found
"""


@pytest.fixture
def small_kernels(kernels, tmp_path, monkeypatch):
    """As `kernels`, of kernels whose small calls run in Python for so many seconds, of which some are over."""

    def make(*, read=9e9, compiled=9e9, ran=0.0):
        if (tmp_path / "tiny.py").read_text() != SMALL:  # what is kept is of this file
            (tmp_path / "tiny.py").write_text(SMALL)
        monkeypatch.setattr(_compile, "BEFORE_READING", read)
        monkeypatch.setattr(_compile, "BEFORE_COMPILING", compiled)
        monkeypatch.setattr(_compile.Kernel, "seconds", ran)
        return kernels()

    return make


def run_as_machine_code(kernel):
    return "compiled" in vars(kernel) and len(kernel.compiled.overloads) > 0


def sum_of(kernel, numbers):
    sums = np.zeros(1, np.int64)
    assert kernel(numbers, sums) == sums[0]
    return int(sums[0])


def test_small_calls_run_in_python_and_large_ones_as_machine_code(small_kernels):
    made = small_kernels(read=99.5e-6, compiled=99.5e-6)  # an entry is expected to take a millionth
    assert sum_of(made["total"], np.arange(98)) == 4753  # 98 numbers and 1 sum
    _compile.Kernel.seconds = made["total"]._seconds = 0.0
    assert made["product"](np.arange(1, 6)) == 120
    _compile.Kernel.seconds = 0.0
    assert not any(run_as_machine_code(made[name]) for name in ("add", "total", "product"))
    assert sum_of(made["total"], np.arange(99)) == 4851
    assert run_as_machine_code(made["total"])
    assert sum_of(made["total"], np.arange(3)) == 3
    assert _compile.Kernel.seconds == 0.0
    assert made["add"](2, 3) == 5
    assert run_as_machine_code(made["add"])  # whoever does not say that its work is linear is compiled


def test_kept_machine_code_is_read_once_python_took_as_long(small_kernels):
    made = small_kernels(read=0.0, compiled=0.0)
    assert sum_of(made["total"], np.arange(4)) == 6  # compiled, and kept
    made = small_kernels(read=0.5, ran=0.4)
    assert sum_of(made["total"], np.arange(4)) == 6
    assert not run_as_machine_code(made["total"])
    made = small_kernels(read=0.5, ran=0.6)
    assert sum_of(made["total"], np.arange(4)) == 6
    assert was_read(made["total"])


def test_a_kernel_that_is_not_kept_is_compiled_once_it_took_as_long_in_python(small_kernels):
    with _compile.listen(lambda: told.append(1)):
        told = []
        made = small_kernels(read=0.0, compiled=1.0)
        for _ in range(3):
            assert sum_of(made["total"], np.arange(4)) == 6
        assert made["total"](np.arange(4.0), np.zeros(1)) == 6.0  # of other types
        assert not run_as_machine_code(made["total"])
        assert not told
        made["total"]._seconds = 1.5
        assert sum_of(made["total"], np.arange(4)) == 6
        assert run_as_machine_code(made["total"])
        assert told


def test_the_time_in_python_is_counted_for_each_kernel_and_for_all(small_kernels):
    made = small_kernels(ran=0.25)
    for _ in range(2):
        sum_of(made["total"], np.arange(20_000))
    made["product"](np.arange(9))
    assert made["total"]._seconds > made["product"]._seconds > 0
    assert _compile.Kernel.seconds == pytest.approx(0.25 + made["total"]._seconds + made["product"]._seconds)


@pytest.mark.parametrize("kind", ["uint16", "int16", "uint32", "int32", "uint8"])
def test_narrow_numbers_are_computed_in_64_bits(small_kernels, kind):
    made = small_kernels()
    numbers = np.full(200, np.iinfo(kind).max, kind)
    assert sum_of(made["total"], numbers) == 200 * np.iinfo(kind).max
    narrow = np.zeros(1, kind)
    assert made["total"](np.full(3, 25, kind), narrow) == 75
    assert narrow[0] == 75  # and what is written to a narrow array arrives there
    read_only = np.full(3, 7, kind)
    read_only.flags.writeable = False
    assert sum_of(made["total"], read_only) == 21


@pytest.mark.parametrize("linear", [True, False])
def test_where_numba_is_turned_off_numbers_wrap_without_a_word_and_not_before_64_bits(
    small_kernels, monkeypatch, linear
):
    small_kernels(read=0.0, compiled=0.0)
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)

    @_compile.compile_kernel
    def double(word):
        return word + word

    @_compile.compile_kernel(linear=linear)
    def add_doubled(numbers, words, sums):
        for index in range(numbers.size):
            sums[0] += numbers[index] * numbers[index]
            words[index] = double(words[index])
        return words[0]

    for _ in range(2):  # at first it may wait
        words, sums = np.full(3, 2**63 + 5, np.uint64), np.zeros(1, np.int64)
        assert add_doubled(np.full(3, 300, np.int16), words, sums) == 10
        assert (words.tolist(), sums.tolist()) == ([10] * 3, [3 * 300**2])
        assert not _compile._here.in_python


def test_what_is_given_for_python_runs_in_place_of_the_kernel(small_kernels):
    small_kernels()
    ran = []
    kernel = _compile.compile_kernel(linear=True, in_python=lambda numbers: ran.append(numbers) or 7)(len)
    assert kernel(np.arange(3)) == 7
    assert len(ran) == 1


def test_what_is_given_for_python_of_a_single_number_runs_within_a_kernel_that_runs_in_python(small_kernels):
    small_kernels()
    halve = _compile.compile_kernel(in_python=lambda number: number / 2)(lambda number: number * 0.5 + 1_000)

    @_compile.compile_kernel(linear=True)
    def halve_first(numbers):
        return halve(numbers[0])

    assert halve_first(np.array([6.0])) == 3


def test_a_kernel_that_takes_lists_is_handed_them_and_writes_its_arrays(small_kernels):
    small_kernels()

    @_compile.compile_kernel(linear=True, lists=("sums", "found"))
    def add_to(numbers, words, sums, used, found):
        taken.extend([numbers, words])
        for index in range(len(sums)):
            sums[index] += numbers[index]
            used[index] = 7
        del found[1:]
        found[0] = 5
        return words[0] << np.uint64(63)

    taken, sums, used, found = [], np.array([1.5, 2.5], np.float32), np.zeros(2), np.zeros(3)
    numbers = np.array([200, 100], np.uint8)
    numbers.flags.writeable = False
    assert add_to(numbers, np.array([3], np.uint64), sums, used, found) == 2**63
    assert sums.tolist() == [201.5, 102.5]
    assert used.tolist() == [0.0, 0.0]  # nobody reads it afterwards
    assert found.tolist() == [5.0, 0.0, 0.0]
    assert taken[0] == [200, 100]
    assert isinstance(taken[0], list)
    assert isinstance(taken[1][0], np.uint64)  # which wraps


def test_a_kernel_is_compiled_in_any_thread(small_kernels):
    made, sums = small_kernels(), []
    thread = threading.Thread(target=lambda: sums.append(made["add"](2, 3)))
    thread.start()
    thread.join()
    assert sums == [5]


def test_an_error_in_python_leaves_the_next_call_as_it_was(small_kernels):
    made = small_kernels()
    with pytest.raises(IndexError):
        made["total"](np.arange(3), np.zeros(0, np.int64))
    assert not _compile._here.in_python
    made = small_kernels(read=0.0)
    assert sum_of(made["total"], np.arange(3)) == 3  # is looked for on the disk, and not found
    assert not _compile._here.only_kept


def test_what_runs_in_python_in_one_thread_does_not_in_another(small_kernels, monkeypatch):
    """Else a plan of ten million sequences would run in Python because a small one does."""
    made = small_kernels()
    monkeypatch.setattr(_compile._here, "in_python", True)
    others = []
    thread = threading.Thread(target=lambda: others.append(_compile._here.in_python))
    thread.start()
    thread.join()
    assert others == [False]
    assert made["add"](2, 3) == 5
    assert not run_as_machine_code(made["add"])  # called by a kernel in Python


KERNELS = {
    kernel.py_func: kernel
    for module in pkgutil.iter_modules(_kernels.__path__, "lengthwise._kernels.")
    for kernel in vars(importlib.import_module(module.name)).values()
    if isinstance(kernel, _compile.Kernel)
}


def literals_given_to_kernels(function):
    """Each number or truth value that the source of `function` writes as it calls a kernel."""
    tree, names = ast.parse(textwrap.dedent(inspect.getsource(function))), function.__globals__
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)]
    calls = [each for each in calls if isinstance(names.get(each.func.id), _compile.Kernel)]
    given = [each for call in calls for each in (*call.args, *(keyword.value for keyword in call.keywords))]
    known = constants_of(tree, names)
    return [ast.unparse(each) for each in given if is_literal(each, known)]


def constants_of(tree, names):
    """Names that stand for one number: constants of the module, and what is set once, to a number."""
    stored = Counter(
        each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    )
    known = {name for name, value in names.items() if isinstance(value, int)}.difference(stored)
    for each in ast.walk(tree):
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name):
            name = each.targets[0].id
            known |= {name} if stored[name] == 1 and is_literal(each.value, known) else set()
    return known


def is_literal(node, known):
    if isinstance(node, ast.UnaryOp):
        return is_literal(node.operand, known)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)  # of a truth value, too
    return isinstance(node, ast.Name) and node.id in known


def test_no_kernel_is_compiled_a_second_time_for_a_number_written_in_the_source():
    """`helper(values, 0)` compiles `helper` for a literal, and again for a number: half a second for nothing."""
    found = {function.__name__: literals_given_to_kernels(function) for function in KERNELS}
    assert {name: each for name, each in found.items() if each} == {}
    assert len(found) > 50


def test_a_number_that_is_written_out_is_found():
    def caller(values):
        one, two = values
        five = 5
        six = 6
        six += 1
        helper(values, one, two, five, six, -7, True, EIGHT, 1.5, key=9)  # noqa: F821

    names = {"helper": next(iter(KERNELS.values())), "EIGHT": 8}
    caller = types.FunctionType(caller.__code__, names)
    assert literals_given_to_kernels(caller) == ["five", "-7", "True", "EIGHT", "9"]
