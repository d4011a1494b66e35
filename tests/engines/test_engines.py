"""Other engines write the same file: Ray on two nodes, Dask, and `datasets`."""

import ast
import functools
import os
import re
import subprocess
import sys

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'lengthwise[io]'")
import pyarrow.parquet as parquet  # noqa: E402

import lengthwise as lw  # noqa: E402

# Of 20 files, in the order of their names: enough that engines which race would mix them. For Ray each is a task.
ROWS = [[(7 * file + row) % 23 + 1 for row in range(10)] for file in range(20)]
LENGTHS = [n for rows in ROWS for n in rows]


def columns_of(rows):
    return {
        "tokens": [[1] * n for n in rows],
        "text": ["x " * n for n in rows],
        "audio": [{"frames": 10 * n, "channels": 2} for n in rows],
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tokens").mkdir()
    for number, rows in enumerate(ROWS):
        table = pa.table({**columns_of(rows), "n": rows})
        parquet.write_table(table, tmp_path / "tokens" / f"{number:03}.parquet")
    return tmp_path / "tokens"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "lengths.npy"


def functions():
    """Two to measure by, made anew: so they travel by their code, as those of a script do."""

    def count(batch):
        return [len(row) for row in batch["tokens"]]

    def pairs(batch):
        if 7 in batch["n"].to_pylist():
            raise KeyError("seven")
        return [[n, n + 1] for n in batch["n"].to_pylist()]

    return count, pairs


COUNT, PAIRS = functions()
PAIRS_LEFT = [[n, n + 1] for n in LENGTHS if n != 7]
FEW = 4  # files of a Ray data set


def check_bad_rows(write, lengths=LENGTHS):
    """Bad rows are found one by one, whatever shape the others have, and the others keep their numbers."""
    found = write(length=PAIRS, bad="drop")
    left = [n for n in lengths if n != 7]
    assert found.lengths.tolist() == [[n, n + 1] for n in left]
    assert [lengths[row] for row in found.rows(np.arange(len(left)))] == left
    assert {row.reason for row in found.bad_rows} == {"length raised KeyError: 'seven'"}


def check_sentences(write):
    """What is wrong with all rows is said once, wherever it was found."""
    with pytest.raises(ValueError, match=r"^`text` must be a column of numbers or lists, but is 'text'\. Give `count`"):
        write(column="text")
    with pytest.raises(ValueError, match=r"^`column` must be one of (\w+, )+\w+, but is 'token'"):
        write(column="token")


def check_engine(write):
    assert write(column="tokens").lengths.tolist() == LENGTHS
    assert write(column="text", count="words").lengths.tolist() == LENGTHS
    assert write(length=COUNT).lengths.tolist() == LENGTHS
    assert write(column="audio.frames,audio.channels").lengths.tolist() == [[10 * n, 2] for n in LENGTHS]
    check_bad_rows(write)
    check_sentences(write)


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one processor each, on this machine."""
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'ray[data]'")
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 80_000_000}
    nodes = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False})
    nodes.add_node(**node)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()
    nodes.shutdown()


def of_ray(test):
    """Ray warns of its own settings, and leaves its sockets to the end of the process."""
    for mark in (pytest.mark.processes, pytest.mark.filterwarnings("ignore")):
        test = mark(test)
    return test


@of_ray
def test_files_on_a_ray_cluster(cluster, folder, out):
    assert len([node for node in cluster.nodes() if node["Alive"]]) == 2
    check_engine(functools.partial(lw.write_lengths, folder, out, engine="ray"))
    again = lw.write_lengths(folder, out, column="tokens", engine="ray")
    assert again.find(19) == (str(folder / "001.parquet"), 9)


@of_ray
@pytest.mark.usefixtures("cluster")
def test_a_data_set_of_ray(folder, out):
    from ray import data

    data.DataContext.get_current().enable_progress_bars = False
    for path in sorted(folder.iterdir())[FEW:]:  # each file is a task that takes a second, in each of three runs
        path.unlink()
    lengths = LENGTHS[: 10 * FEW]
    whole = data.read_parquet(str(folder))
    assert lw.write_lengths(whole, out, column="tokens").lengths.tolist() == lengths
    check_sentences(functools.partial(lw.write_lengths, whole, out))
    as_arrays = whole.map_batches(lambda rows: rows)  # which Ray keeps as tensors
    assert lw.write_lengths(as_arrays, out, column="tokens").lengths.tolist() == lengths
    mapped = whole.map_batches(lambda rows: {"n": rows["n"] + 0})
    check_bad_rows(functools.partial(lw.write_lengths, mapped, out), lengths)
    assert not mapped.context.execution_options.preserve_order  # as it was
    with pytest.raises(
        ValueError, match=r"^`engine` must be left out here, but is 'ray'\. A data set of ray is read by"
    ):
        lw.write_lengths(whole, out, column="n", engine="ray")


@pytest.fixture
def dask():
    found = pytest.importorskip("dask", reason="needs Dask: pip install 'dask[dataframe]'")
    pytest.importorskip("pandas", reason="needs pandas: pip install 'dask[dataframe]'")
    with found.config.set(scheduler="threads", num_workers=2):
        yield found


of_dask = pytest.mark.filterwarnings("ignore")  # of pandas about Dask's own use of it


@of_dask
@pytest.mark.usefixtures("dask")
def test_files_by_dask(folder, out):
    check_engine(functools.partial(lw.write_lengths, folder, out, engine="dask"))


@of_dask
@pytest.mark.processes
def test_files_by_processes_of_dask(dask, folder, out):
    with dask.config.set(scheduler="processes", num_workers=2):
        assert lw.write_lengths(folder, out, length=COUNT, engine="dask").lengths.tolist() == LENGTHS


@of_dask
def test_a_data_frame_of_dask(dask, folder, out):
    import dask.dataframe as frames
    from dask import bag

    frame = frames.read_parquet(str(folder))
    check_engine(functools.partial(lw.write_lengths, frame, out))
    found = lw.write_lengths(frame[frame.n > 3], out, column="n")
    assert found.lengths.tolist() == [n for n in LENGTHS if n > 3]
    assert len(found.pieces) == frame.npartitions
    assert lw.write_lengths(frame[frame.n > 9], out, column="n").lengths.tolist() == [n for n in LENGTHS if n > 9]
    assert lw.write_lengths(frame.partitions[:1], out, column="n").lengths.tolist() == ROWS[0]
    mixed = frame.head(2).astype(object).assign(n=[1, "a"])
    with (
        dask.config.set({"dataframe.convert-string": False}),
        pytest.raises(ValueError, match=r"^`source` must be of columns of one type each, but is 'a partition'"),
    ):
        lw.write_lengths(frames.from_pandas(mixed, npartitions=1), out, column="n")
    with pytest.raises(
        ValueError, match=r"^`engine` must be left out here, but is 'ray'\. A data set of dask is read by"
    ):
        lw.write_lengths(frame, out, column="n", engine="ray")
    for wrong in (bag.from_sequence([1, 2]), frame.n, dask.delayed(frame), frame.n.values):
        with pytest.raises(ValueError, match=r"^`source` must be a dask\.dataframe\.DataFrame, but is '\w+'"):
            lw.write_lengths(wrong, out, column="n")


@of_dask
@pytest.mark.usefixtures("dask")
def test_a_frame_whose_files_have_changed_since_is_measured_again(folder, out):
    import dask.dataframe as frames

    for path in sorted(folder.iterdir())[1:]:
        path.unlink()
    frame = frames.read_parquet(str(folder))
    assert lw.write_lengths(frame, out, column="n").lengths.tolist() == ROWS[0]
    (path,) = folder.iterdir()
    parquet.write_table(pa.table({"n": [4, 4, 4]}), path)
    assert lw.write_lengths(frame, out, column="n").lengths.tolist() == [4, 4, 4]
    with pytest.raises(
        ValueError, match=r"^`source` must be a data frame whose columns have texts as names, but is 0\."
    ):
        lw.write_lengths(frame.rename(columns={"n": 0}), out, column="0")


@of_dask
def test_partitions_that_were_done_are_not_computed_again(dask, folder, out):
    import dask.dataframe as frames

    with dask.config.set(scheduler="sync"):
        frame = frames.read_parquet(str(folder))
        bad = functools.partial(lw.write_lengths, frame, out, length=PAIRS)
        with pytest.raises(ValueError, match=r"^`max_bad` must be at least the number of bad rows, but is 2"):
            bad(max_bad=2, bad="drop")
        done = len(list(out.parent.glob("lengths.npy.parts/*.part")))
        assert bad(bad="drop").lengths.tolist() == PAIRS_LEFT
    assert 0 < done < frame.npartitions


NAMES_OF_FRAMES = """
import sys
import dask.dataframe
from lengthwise.engines.dask import PartitionedSource

def same(frame):
    return frame

files = dask.dataframe.read_parquet(sys.argv[1])
frames = [files, files[files.n > 3], files.map_partitions(same), files.map_partitions(lambda frame: frame)]
print([PartitionedSource(frame).facts["frame"] for frame in frames])
"""


@of_dask
@pytest.mark.processes
@pytest.mark.usefixtures("dask")
def test_a_frame_of_the_same_files_has_the_same_name_in_every_process(folder):
    command = [sys.executable, "-W", "ignore", "-c", NAMES_OF_FRAMES, str(folder)]

    def names():
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        return [each.communicate()[0] for each in started]

    first, second = names()
    assert first == second
    assert len(set(ast.literal_eval(first))) == 4
    os.utime(sorted(folder.iterdir())[1], ns=(1, 1))
    other, _ = names()
    assert not set(ast.literal_eval(first)) & set(ast.literal_eval(other))


@pytest.fixture
def hub(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    return pytest.importorskip("datasets", reason="needs datasets: pip install datasets")


@pytest.fixture
def saved(hub, tmp_path):
    whole = hub.Dataset.from_dict({**columns_of(LENGTHS), "n": LENGTHS})
    whole.save_to_disk(tmp_path / "saved", num_shards=3)
    return hub.load_from_disk(tmp_path / "saved")


@pytest.mark.parametrize("rows", [64, 1000])
def test_a_data_set_of_hugging_face(saved, out, monkeypatch, rows):
    monkeypatch.setattr("lengthwise.engines.datasets.ROWS", rows)
    check_engine(functools.partial(lw.write_lengths, saved, out, batch_size=10))
    sizes = lw.write_lengths(saved, out, length=lambda batch: [batch.num_rows] * batch.num_rows, batch_size=7).lengths
    assert sizes.max() == 7
    for seed in (1, 2):  # as many rows of the same columns, in another order
        shuffled = saved.shuffle(seed=seed)
        found = lw.write_lengths(shuffled, out, column="tokens")
        assert found.lengths.tolist() == shuffled["n"]
    assert found.pieces == [
        (f"rows {at} to {min(at + rows, 200) - 1}", min(rows, 200 - at)) for at in range(0, 200, rows)
    ]


@pytest.mark.parametrize("hidden", [True, False])
def test_bars_of_hugging_face_are_hidden_meanwhile(hub, saved, out, hidden, capsys):
    set_bars = (hub.enable_progress_bars, hub.disable_progress_bars)
    set_bars[hidden]()
    try:
        lw.write_lengths(saved, out, length=lambda batch: [1 + hub.are_progress_bars_disabled()] * batch.num_rows)
        assert set(np.load(out).tolist()) == {2}
        assert hub.are_progress_bars_disabled() == hidden
    finally:
        hub.enable_progress_bars()
    assert capsys.readouterr().err == ""


@pytest.mark.processes
def test_processes_of_hugging_face(saved, out):
    assert lw.write_lengths(saved, out, column="tokens", workers=2).lengths.tolist() == LENGTHS
    found = lw.write_lengths(saved, out, length=lambda batch: [os.getpid()] * batch.num_rows, workers=2)
    assert os.getpid() not in found.lengths
    with pytest.raises(ValueError, match=r"^`workers` must be at least 1, but is 0\."):
        lw.write_lengths(saved, out, column="tokens", workers=0)


def test_ranges_that_were_done_are_not_mapped_again(saved, out, monkeypatch):
    monkeypatch.setattr("lengthwise.engines.datasets.ROWS", 50)
    with pytest.raises(ValueError, match=r"^`max_bad` must be at least the number of bad rows, but is 4"):
        lw.write_lengths(saved, out, length=PAIRS, max_bad=4, bad="drop")
    done = {path.name: path.stat().st_mtime_ns for path in out.parent.glob("lengths.npy.parts/*.part")}
    assert 0 < len(done) < 4
    os.utime(f"{out}.parts/00000000.part", ns=(1, 1))
    with pytest.raises(ValueError, match="is bad: 9 of 200 rows have none"):
        lw.write_lengths(saved, out, length=PAIRS)
    assert os.stat(f"{out}.parts/00000000.part").st_mtime_ns == 1
    assert len(lw.write_lengths(saved, out, length=PAIRS, bad="one")) == 200


def test_an_edited_function_is_called_again_whatever_hugging_face_has_kept(saved, out, monkeypatch, tmp_path):
    """`datasets` knows a function of a module by its name alone, and would take the lengths of the old one."""
    text = "HOP = 1\n\n\ndef length(batch):\n    return [HOP * n for n in batch['n'].to_pylist()]\n"
    (tmp_path / "own_lengths.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import own_lengths

    def write(**given):
        return lw.write_lengths(saved, out, length=own_lengths.length, **given).lengths.tolist()

    def edit(old, new):
        path = tmp_path / "own_lengths.py"
        path.write_text(path.read_text().replace(old, new))
        code = compile(path.read_text(), str(path), "exec")  # `reload` may find the file as it was compiled before
        exec(code, vars(own_lengths))

    assert write() == LENGTHS
    edit("HOP * n", "HOP * n + 7")
    assert write() == [n + 7 for n in LENGTHS]
    edit("HOP = 1", "HOP = 3")  # a global variable, which is not compared
    assert write() == [n + 7 for n in LENGTHS]
    assert write(resume=False) == [3 * n + 7 for n in LENGTHS]


def test_splits_and_streams_of_hugging_face_are_refused(hub, saved, out):
    for wrong in (hub.DatasetDict(train=saved), saved.to_iterable_dataset()):
        with pytest.raises(ValueError, match=r"^`source` must be a datasets.Dataset, but is '\w+'\. Name one of its"):
            lw.write_lengths(wrong, out, column="n")


def test_a_data_set_whose_rows_change_when_they_are_read_is_refused(saved, out):
    changed = saved.with_transform(lambda rows: {"tokens": [each[:1] for each in rows["tokens"]]})
    with pytest.raises(ValueError, match=r"^`source` must be a data set without with_transform, but is 'one with a tr"):
        lw.write_lengths(changed, out, column="tokens")


def test_an_engine_is_for_files_alone(saved, out):
    message = "`engine` must be left out here, but is 'ray'. A data set of datasets is read by datasets."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        lw.write_lengths(saved, out, column="n", engine="ray")
