"""Other engines write the same file: Ray, Dask, and `datasets`."""

import functools

import pyarrow as pa
import pytest

import lengthwise as lw
from table_files import write_table

# Of 6 files, in the order of their names: enough that engines which race would mix them.
ROWS = [[(7 * file + row) % 23 + 1 for row in range(20)] for file in range(6)]
LENGTHS = [n for rows in ROWS for n in rows]


def columns_of(rows):
    return {
        "tokens": [[1] * n for n in rows],
        "text": ["x " * n for n in rows],
        "audio": [{"frames": 10 * n, "channels": 2} for n in rows],
        "n": rows,
        "gaps": [None if n == 7 else n for n in rows],
    }


@pytest.fixture
def folder(tmp_path):
    for number, rows in enumerate(ROWS):
        write_table(tmp_path / "tokens" / f"{number:03}.parquet", **columns_of(rows))
    return tmp_path / "tokens"


def pairs(offset):
    """Made anew, so that it travels by its code, as the functions of a script do."""
    return lambda batch: [[n, n + offset] for n in batch["n"].to_pylist()]


def check_lengths(source, out):
    """Checks that lengths and bad rows are in order, by a column and by a function; returns the bad rows."""
    bad = [row for row, n in enumerate(LENGTHS) if n == 7]
    written = lw.write_lengths(source, out, column="gaps", bad="one", batch_size=4)
    assert written.bad_rows == [(row, "`gaps` must be given, but is None. Fill it in, or drop the row.") for row in bad]
    assert written.lengths.tolist() == [1 if n == 7 else n for n in LENGTHS]
    written = lw.write_lengths(source, out, length=pairs(3), batch_size=4)
    assert written.lengths.tolist() == [[n, n + 3] for n in LENGTHS]
    return bad


def check_engine(source, out):
    """Checks an engine: all kinds of columns, and what is wrong with them in one sentence."""
    bad = check_lengths(source, out)
    write = functools.partial(lw.write_lengths, source, out, batch_size=4)
    assert write(column="tokens").lengths.tolist() == LENGTHS
    assert write(column="text", count="words").lengths.tolist() == LENGTHS
    assert write(column="audio.frames,audio.channels").lengths.tolist() == [[10 * n, 2] for n in LENGTHS]
    with pytest.raises(ValueError, match=rf"^{len(bad)} of 120 rows of `source` have no length\..* Row {bad[0]}: "):
        write(column="gaps")
    with pytest.raises(ValueError, match=r"^`text` must be a number, but is 'x .*if these are texts, give `count` as"):
        write(column="text")
    for name in ("token", "audi.frames"):
        with pytest.raises(ValueError, match=rf"^`column` must be one of (\w+, )+\w+, but is '{name}'"):
            write(column=name)
    with pytest.raises(ValueError, match=r"^`column` must be one of \w+, \w+, but is 'frame' at audio of the data set"):
        write(column="audio.frame")


def test_data_sets_of_pyarrow(folder, out):
    from pyarrow import dataset

    check_engine(dataset.dataset(str(folder)), out)


@pytest.fixture(scope="module")
def cluster():
    """Two processes of Ray on this machine, which race for the blocks."""
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'ray[data]'")
    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    ray.init(num_cpus=2, object_store_memory=80_000_000, **quiet)
    yield ray
    ray.shutdown()


# Ray warns of its own settings, and leaves its sockets to the end of the process.
@pytest.mark.processes
@pytest.mark.filterwarnings("ignore")
def test_data_sets_of_ray(cluster, out):
    from ray import data

    data.DataContext.get_current().enable_progress_bars = False
    # Tables in memory are quicker than files, of which each is a task.
    whole = data.from_arrow([pa.table(columns_of(rows)) for rows in ROWS])
    check_lengths(whole, out)
    with pytest.raises(ValueError, match=r"^`text` must be a number, but is 'x .*if these are texts, give `count` as"):
        lw.write_lengths(whole, out, column="text")
    assert not whole.context.execution_options.preserve_order  # as it was
    as_arrays = whole.map_batches(lambda rows: {"tokens": rows["tokens"]})  # which Ray keeps as tensors
    assert lw.write_lengths(as_arrays, out, column="tokens").lengths.tolist() == LENGTHS
    with pytest.raises(ValueError, match=r"^`source` must be a ray\.data\.Dataset, but is 'ObjectRef'\. Read one by"):
        lw.write_lengths(cluster.put([1]), out, column="n")


@pytest.fixture
def dask():
    package = pytest.importorskip("dask", reason="needs Dask: pip install 'dask[dataframe]'")
    pytest.importorskip("pandas", reason="needs pandas: pip install 'dask[dataframe]'")
    with package.config.set(scheduler="threads", num_workers=2):
        yield package


# Of pandas about Dask's own use of it.
@pytest.mark.processes
@pytest.mark.filterwarnings("ignore")
def test_data_frames_of_dask(dask, folder, out):
    import dask.dataframe as frames
    import pandas
    from dask import bag

    frame = frames.read_parquet(str(folder))
    check_engine(frame, out)
    with dask.config.set(scheduler="processes", num_workers=2):
        written = lw.write_lengths(frame, out, length=pairs(2))
    assert written.lengths.tolist() == [[n, n + 2] for n in LENGTHS]
    assert lw.write_lengths(frame[frame.n > 9], out, column="n").lengths.tolist() == [n for n in LENGTHS if n > 9]
    mixed = frame.head(2).astype(object).assign(n=[1, "a"])
    with (
        dask.config.set({"dataframe.convert-string": False}),
        pytest.raises(ValueError, match=r"^`source` must be of columns of one type each, but is 'a partition'"),
    ):
        lw.write_lengths(frames.from_pandas(mixed, npartitions=1), out, column="n")
    # By default Dask writes lists of pandas as texts.
    lists = frames.from_pandas(pandas.DataFrame({"x": [[5, 6], [7]], "n": [2, 1]}), npartitions=1)
    with pytest.raises(ValueError, match=r"^`x` must be a number, but is '\[5, 6\]'"):
        lw.write_lengths(lists, out, column="x")
    assert lw.write_lengths(lists, out, column="n").lengths.tolist() == [2, 1]
    for wrong in (bag.from_sequence([1, 2]), frame.n, dask.delayed(frame), frame.n.values):
        with pytest.raises(ValueError, match=r"^`source` must be a dask\.dataframe\.DataFrame, but is '\w+'"):
            lw.write_lengths(wrong, out, column="n")


@pytest.fixture
def hub(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    return pytest.importorskip("datasets", reason="needs datasets: pip install datasets")


@pytest.fixture
def saved(hub, tmp_path):
    whole = hub.Dataset.from_dict(columns_of(LENGTHS))
    whole.save_to_disk(tmp_path / "saved", num_shards=3)
    return hub.load_from_disk(tmp_path / "saved")


def test_data_sets_of_hugging_face(hub, saved, out):
    check_engine(saved, out)
    sizes = lw.write_lengths(saved, out, length=lambda batch: [batch.num_rows] * batch.num_rows, batch_size=7).lengths
    assert sizes.max() == 7
    shuffled = saved.shuffle(seed=1)
    assert lw.write_lengths(shuffled, out, column="tokens").lengths.tolist() == shuffled["n"]
    parts = hub.concatenate_datasets([saved.select(range(50, 60)), saved.select(range(3))])
    assert lw.write_lengths(parts, out, column="tokens").lengths.tolist() == [*LENGTHS[50:60], *LENGTHS[:3]]

    class Chosen(hub.Dataset):
        """A class of the user's own."""

    chosen = Chosen(pa.table({"n": [3, 1]}))
    assert lw.write_lengths(chosen, out, column="n").lengths.tolist() == [3, 1]


def test_splits_streams_and_transforms_of_hugging_face_are_refused(hub, saved, out):
    for wrong in (hub.DatasetDict(train=saved), saved.to_iterable_dataset()):
        with pytest.raises(ValueError, match=r"^`source` must be a datasets.Dataset, but is '\w+'\. Give one split"):
            lw.write_lengths(wrong, out, column="n")
    changed = saved.with_transform(lambda rows: {"tokens": [row[:1] for row in rows["tokens"]]})
    with pytest.raises(ValueError, match=r"^`source` must be a data set without with_transform, but is 'one with a tr"):
        lw.write_lengths(changed, out, column="tokens")
