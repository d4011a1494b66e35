"""A study that is interrupted goes on as if it had not been, on one process and on two."""

import dataclasses
import itertools
import multiprocessing
import threading

import pytest

from damages import truncate
from lengthwise.cli.strategies import parse_strategies, parse_strategy

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_ranks")]

torch = pytest.importorskip("torch")
pytest.importorskip("HersheyFonts")
pytest.importorskip("jiwer")

import lengthwise as lw  # noqa: E402
from lengthwise_recipes.handwriting.task import HandwritingTask, Network  # noqa: E402
from lengthwise_recipes.study.checkpoints import Checkpoints  # noqa: E402
from lengthwise_recipes.study.settings import Settings  # noqa: E402
from lengthwise_recipes.study.setups import setups  # noqa: E402
from lengthwise_recipes.study.study import run_study  # noqa: E402
from lengthwise_recipes.study.training import train  # noqa: E402

PATIENCE = 120.0  # seconds after which a hang is a failure
MINIATURE = Settings(epochs=3, seeds=2, optimizer="adadelta")
ON_TWO = Settings(epochs=2, processes=(1, 2), averaging=("parameter",))
NETWORK = Network(hidden=8, layers=1, dropout=0.2)
BATCHINGS = parse_strategies("random,optimal:3,pad_to_edge=true", cut=lw.FixedSize(8))


@pytest.fixture(scope="module")
def task(corpus):
    return HandwritingTask.of(corpus, NETWORK)


def learned(rows):
    """What training comes to, and not how long it took."""
    timed = ("seconds", "planning_seconds", "elapsed_seconds")
    return [{name: value for name, value in dataclasses.asdict(row).items() if name not in timed} for row in rows]


@pytest.fixture(scope="module")
def whole(task):
    """What training finds that is not interrupted."""
    return list(train(task, setups(BATCHINGS, MINIATURE), MINIATURE))


@pytest.mark.parametrize("finished", [1, 5])
def test_an_interrupted_training_goes_on_bit_by_bit(task, whole, tmp_path, finished):
    planned = setups(BATCHINGS, MINIATURE)
    checkpoints = Checkpoints(tmp_path)
    begun = train(task, planned, MINIATURE, checkpoints=checkpoints)
    before = list(itertools.islice(begun, finished))
    begun.close()
    resumed = list(train(task, planned, MINIATURE, checkpoints=checkpoints))
    assert resumed[:finished] == before  # seconds too: they were not trained again
    assert learned(resumed) == learned(whole)


def test_finished_runs_are_not_trained_again_and_more_epochs_go_on_from_them(task, tmp_path):
    short = dataclasses.replace(MINIATURE, epochs=1, seeds=1)
    first = run_study(task, BATCHINGS, short, checkpoints=tmp_path)
    assert run_study(task, BATCHINGS, short, checkpoints=tmp_path).rows == first.rows
    longer = dataclasses.replace(MINIATURE, epochs=2, seeds=1)
    went_on = run_study(task, BATCHINGS, longer, checkpoints=tmp_path)
    assert went_on.rows[:2] == first.rows
    assert learned(went_on.rows) == learned(run_study(task, BATCHINGS, longer).rows)


def test_runs_whose_names_differ_in_letters_of_no_file_name_keep_their_own(task, tmp_path):
    named = {"випадково": BATCHINGS["random"], "за довжиною": parse_strategy("sorted", cut=lw.FixedSize(8))}
    short = dataclasses.replace(MINIATURE, epochs=1, seeds=1)
    first = run_study(task, named, short, checkpoints=tmp_path)
    assert [row.strategy for row in first.rows] == list(named)
    assert run_study(task, named, short, checkpoints=tmp_path).rows == first.rows


def test_checkpoints_of_other_texts_and_pens_of_the_same_lengths_are_refused(corpus, tmp_path):
    short = dataclasses.replace(MINIATURE, epochs=1, seeds=1)
    run_study(HandwritingTask.of(corpus, NETWORK), BATCHINGS, short, checkpoints=tmp_path)
    texts = tuple(text[::-1] for text in corpus.train.texts)
    ink = tuple(2 * sample for sample in corpus.validation.strokes)
    for part in (
        {"train": dataclasses.replace(corpus.train, texts=texts)},
        {"validation": dataclasses.replace(corpus.validation, strokes=ink)},
    ):
        other = HandwritingTask.of(dataclasses.replace(corpus, **part), NETWORK)
        with pytest.raises(ValueError, match="`checkpoints` must be of the same data, strategies and settings"):
            run_study(other, BATCHINGS, short, checkpoints=tmp_path)


def test_ranks_whose_whole_checkpoints_are_an_epoch_apart_go_on_from_the_one_they_share(task, tmp_path):
    batchings = {"random": BATCHINGS["random"]}
    timer = threading.Timer(PATIENCE, lambda: [child.kill() for child in multiprocessing.active_children()])
    timer.start()
    try:
        whole = run_study(task, batchings, ON_TWO, checkpoints=tmp_path)
        (last,) = tmp_path.glob("random-2-processes-parameter-seed-0_*_rank1_epoch2.pt")
        truncate(last)
        resumed = run_study(task, batchings, ON_TWO, checkpoints=tmp_path)
    finally:
        timer.cancel()
    assert learned(resumed.rows) == learned(whole.rows)
    *kept, trained = zip(whole.rows, resumed.rows, strict=True)
    assert all(before.seconds == after.seconds for before, after in kept)
    assert trained[0].seconds != trained[1].seconds


def test_checkpoints_of_another_study_are_refused(corpus, task, tmp_path):
    short = dataclasses.replace(MINIATURE, epochs=1, seeds=1)
    run_study(task, {"random": BATCHINGS["random"]}, short, checkpoints=tmp_path)
    wider = HandwritingTask.of(corpus, dataclasses.replace(NETWORK, hidden=9))
    faster = dataclasses.replace(short, learning_rate=2.0)
    for another, settings in ((wider, short), (task, faster)):
        with pytest.raises(ValueError, match="`checkpoints` must be of the same data, strategies and settings, but is"):
            run_study(another, {"random": BATCHINGS["random"]}, settings, checkpoints=tmp_path)


def test_the_last_two_epochs_of_a_rank_are_kept(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    for epoch in range(8, 12):
        checkpoints.save("Q = 3, seed 0", 1, epoch, {"weight": torch.tensor([float(epoch)])})
    checkpoints.save("Q = 3, seed 10", 1, 1, {})
    assert checkpoints.epochs("Q = 3, seed 0", 1) == [10, 11]
    assert checkpoints.epochs("Q = 3, seed 0", 0) == []
    states = checkpoints.load("Q = 3, seed 0", 1)
    assert {epoch: state["weight"].tolist() for epoch, state in states.items()} == {10: [10.0], 11: [11.0]}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "Q-3-seed-0_f3a43437_rank1_epoch10.pt",
        "Q-3-seed-0_f3a43437_rank1_epoch11.pt",
        "Q-3-seed-10_16599bf2_rank1_epoch1.pt",
    ]
