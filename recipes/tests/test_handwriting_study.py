"""The study in miniature: equal starts, equal results from equal seeds, a loss that falls, and JSON that says all."""

import dataclasses
import io
import json

import numpy as np
import pytest

from lengthwise.cli.strategies import parse_strategies

torch = pytest.importorskip("torch")
pytest.importorskip("HersheyFonts")
pytest.importorskip("jiwer")

import lengthwise as lw  # noqa: E402
from lengthwise_recipes.handwriting.data import Samples  # noqa: E402
from lengthwise_recipes.handwriting.model import Recognizer  # noqa: E402
from lengthwise_recipes.handwriting.prepared import prepare, select_learnable  # noqa: E402
from lengthwise_recipes.handwriting.task import HandwritingTask, Network  # noqa: E402
from lengthwise_recipes.record import processor_name  # noqa: E402
from lengthwise_recipes.study.results import EpochRow, Study, summarise  # noqa: E402
from lengthwise_recipes.study.runs import first_runs  # noqa: E402
from lengthwise_recipes.study.settings import Settings  # noqa: E402
from lengthwise_recipes.study.setups import setups  # noqa: E402
from lengthwise_recipes.study.study import run_study  # noqa: E402

MINIATURE = Settings(epochs=2, learning_rate=0.02)
NETWORK = Network(hidden=16, layers=1, stack=4)


@pytest.fixture(scope="module")
def task(corpus):
    return HandwritingTask.of(corpus, NETWORK)


@pytest.fixture(scope="module")
def batchings():
    return parse_strategies("random,max-entropy:0.05", cut=lw.FixedSize(4))


@pytest.fixture(scope="module")
def study(task, batchings):
    return run_study(task, batchings, MINIATURE, command="by hand")


def test_the_loss_falls(study):
    # Two epochs of 30 steps bring it below half the mean of the first epoch.
    for label in ("random", "max-entropy:0.05"):
        first, last = (row for row in study.rows if row.strategy == label)
        assert last.validation_loss < first.training_loss / 2
        assert last.metrics["character_error_rate"] < 1.0


def test_the_rows_count_what_was_computed(study, corpus):
    assert [(row.strategy, row.epoch) for row in study.rows] == [
        ("random", 1),
        ("max-entropy:0.05", 1),
        ("random", 2),
        ("max-entropy:0.05", 2),
    ]  # interleaved
    for row in study.rows:
        assert row.steps == 30
        assert row.useful_frames == corpus.train.lengths.sum()
        assert row.seconds > 0.0
    random, entropy = study.summaries
    assert random.share_of_first_seconds == 1.0
    assert entropy.padding_share < 0.1 < random.padding_share


def test_the_same_seed_gives_the_same_losses(study, task, batchings):
    again = run_study(task, batchings, MINIATURE)
    assert [row.validation_loss for row in again.rows] == [row.validation_loss for row in study.rows]
    assert [row.training_loss for row in again.rows] == [row.training_loss for row in study.rows]


def test_a_strategy_more_changes_no_other(corpus, batchings):
    dropping = HandwritingTask.of(corpus, dataclasses.replace(NETWORK, dropout=0.2))
    once = dataclasses.replace(MINIATURE, epochs=1)
    alone = run_study(dropping, {"max-entropy:0.05": batchings["max-entropy:0.05"]}, once)
    both = run_study(dropping, batchings, once)
    assert alone.rows[0].validation_loss == both.rows[1].validation_loss


def test_strategies_start_from_the_same_weights(task, batchings):
    made = setups(batchings, MINIATURE)
    first, second = first_runs(task, made, MINIATURE, seed=1).values()
    for one, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(one, other)
        assert one.data_ptr() != other.data_ptr()
    elsewhere, _ = first_runs(task, made, MINIATURE, seed=2).values()
    assert not torch.equal(next(first.model.parameters()), next(elsewhere.model.parameters()))


def test_the_json_has_its_schema(study):
    document = json.loads(json.dumps(study.as_dict(), allow_nan=False))
    assert document["schema"] == "lengthwise-study-2"
    assert document["command"] == "by hand"
    assert document["date"].endswith("+00:00")
    assert set(document["machine"]) == {"platform", "python", "cpu", "torch", "threads", "device", "device_name"}
    assert document["settings"]["learning_rate"] == 0.02
    assert (document["settings"]["hidden"], document["settings"]["stack"]) == (16, 4)
    assert document["data"]["train_samples"] == 120
    assert list(document["strategies"]) == ["random", "max-entropy:0.05"]
    fields = {field.name for field in dataclasses.fields(EpochRow)} - {"metrics"}
    assert fields | {"validation_loss", "character_error_rate"} <= set(document["rows"][0])
    for summary in document["summary"]:
        assert set(summary["validation_loss"]) == {"mean", "least", "greatest"}


def test_what_is_too_short_is_skipped_by_name_or_refused(corpus):
    texts = ("lll", "o" * 40, *corpus.train.texts[2:])  # the second sample has no 79 frames
    short = dataclasses.replace(corpus, train=dataclasses.replace(corpus.train, texts=texts))
    kept, skipped = select_learnable(short, stack=4)
    assert len(kept.train) == 119 - (len(short.train.strokes[0]) < 17)  # lll needs 5 frames of 4 points
    assert any("train sample 1" in line and "needs 79" in line for line in skipped)
    with pytest.raises(ValueError, match="train sample"):
        select_learnable(short, stack=4, strict=True)


def test_the_stack_that_would_keep_what_is_too_short_is_told(corpus):
    # 17 points are 5 frames of 4, 6 of 3, 9 of 2 and 17 of 1.
    points = tuple(sample[:17] for sample in corpus.train.strokes[:6])
    texts = ("volvo", "volvol", "volvolv", "volvol" * 2, "volvol" * 3, "volvol" * 4)
    train = dataclasses.replace(corpus.train, strokes=points, texts=texts)
    validation = dataclasses.replace(corpus.validation, strokes=corpus.train.strokes[-1:], texts=("v",))
    kept, skipped = select_learnable(dataclasses.replace(corpus, train=train, validation=validation), stack=4)
    assert (len(kept.train), len(skipped)) == (1, 5)
    assert kept.advice == (
        "Samples with fewer frames than their text needs: 5. Of these `lengthwise study handwriting` would keep "
        "1 with --stack 3, 2 with --stack 2, 3 with --stack 1.",
        "Samples that no stack keeps, with fewer points than their text needs frames: 2.",
    )
    learnt = dataclasses.replace(corpus, train=kept.train, validation=validation)
    assert select_learnable(learnt, stack=4)[0].advice == ()
    for stack, more in ((3, 1), (2, 2), (1, 3)):
        again, _ = select_learnable(dataclasses.replace(corpus, train=train, validation=validation), stack=stack)
        assert len(again.train) == 1 + more


def test_labels_count_from_one(corpus):
    prepared = prepare(Samples(strokes=corpus.train.strokes[:1], texts=("vol",)), "lov", 4)
    assert prepared.labels[0].tolist() == [3, 2, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "`epochs` must be at least 1, but is 0"),
        ({"optimizer": "sgd"}, "`optimizer` must be one of adam, adadelta, but is 'sgd'"),
        ({"learning_rate": 0.0}, "`learning_rate` must be finite and above 0"),
        ({"weight_decay": -1.0}, "`weight_decay` must be finite and at least 0, but is -1.0"),
        ({"clipped_norm": 0}, "`clipped_norm` must be finite and above 0, but is 0"),
        ({"device": "tpu"}, "`device` must be one of cpu, cuda"),
    ],
)
def test_bad_settings_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        Settings(**change)


def test_a_bad_network_is_named():
    with pytest.raises(ValueError, match=r"`dropout` must be at least 0 and at most 0\.9"):
        Network(dropout=1.0)


def test_a_study_needs_whole_sequences_and_a_strategy(task, batchings):
    with pytest.raises(ValueError, match="at least one strategy"):
        run_study(task, {}, MINIATURE)
    chunked = dataclasses.replace(batchings["random"], chunks=lw.Chunks(size=50, step=25))
    with pytest.raises(ValueError, match="of whole sequences"):
        run_study(task, {"chunked": chunked}, MINIATURE)


def test_what_a_plan_pads_to_is_computed(corpus, task):
    # Two buckets padded to their edges: every batch is as wide as an edge, in frames of 4 points.
    edges = (int(np.median(corpus.train.lengths)), int(corpus.train.lengths.max()))
    batching = lw.Batching(order=lw.Bucketed(edges=edges, pad_to_edge=True), cut=lw.FixedSize(8))
    widths = []

    def note(module, inputs):
        if isinstance(module, Recognizer) and module.training:
            widths.append(inputs[0].shape[1])

    handle = torch.nn.modules.module.register_module_forward_pre_hook(note)
    try:
        study = run_study(task, {"edges": batching}, dataclasses.replace(MINIATURE, epochs=1))
    finally:
        handle.remove()
    trained = widths[1:]  # the first is the warm-up
    assert len(trained) == study.rows[0].steps
    assert set(trained) == {-(-edge // 4) for edge in edges}


def row(validation_loss=2.0, **change):
    values = {
        "strategy": "random",
        "processes": 1,
        "averaging": "none",
        "seed": 0,
        "epoch": 1,
        "steps": 10,
        "seconds": 2.0,
        "planning_seconds": 0.01,
        "elapsed_seconds": 2.0,
        "sequences": 20,
        "useful_frames": 100,
        "padding_share": 0.5,
        "mixing": 0.9,
        "straggler_waste": 0.0,
        "training_loss": 3.0,
    }
    metrics = {"validation_loss": validation_loss, "character_error_rate": 0.5}
    return EpochRow(**(values | change), metrics=metrics)


def test_summaries_by_hand():
    rows = [
        row(),
        row(epoch=2, seconds=4.0, validation_loss=1.0),
        row(seed=1),
        row(seed=1, epoch=2, seconds=4.0, validation_loss=3.0),
        row(strategy="sorted", seconds=1.5, padding_share=0.1),
    ]
    random, by_length = summarise(rows)
    assert random.useful_frames_per_second == pytest.approx(400 / 12)
    assert random.seconds_per_epoch == 3.0
    assert (random.validation_loss.mean, random.validation_loss.least, random.validation_loss.greatest) == (
        2.0,
        1.0,
        3.0,
    )
    assert random.best_validation_loss.mean == 1.5  # the best of 2, 1 and the best of 2, 3
    assert by_length.share_of_first_seconds == 0.5
    assert by_length.padding_share == 0.1


def test_a_run_that_diverged_is_null_in_json():
    rows = (row(validation_loss=float("nan")),)
    study = Study(
        rows=rows, summaries=summarise(rows), settings={}, strategies={}, data={}, machine={}, date="", command=""
    )
    document = json.loads(json.dumps(study.as_dict(), allow_nan=False))
    assert document["rows"][0]["validation_loss"] is None
    assert document["summary"][0]["validation_loss"]["mean"] is None


def test_the_processor_has_a_name(tmp_path):
    table = tmp_path / "cpuinfo"
    table.write_text("processor\t: 0\nmodel name\t: Abacus 9\nprocessor\t: 1\nmodel name\t: other\n")
    assert processor_name(table) == "Abacus 9"
    assert isinstance(processor_name(tmp_path / "absent"), str)


def test_packed_and_padded_learn_alike(corpus, batchings):
    one = {"random": batchings["random"]}
    settings = dataclasses.replace(MINIATURE, epochs=1)
    padded, packed = (
        run_study(HandwritingTask.of(corpus, dataclasses.replace(NETWORK, packed=packed)), one, settings)
        for packed in (False, True)
    )
    assert packed.rows[0].training_loss == pytest.approx(padded.rows[0].training_loss, rel=1e-3)


def test_the_command_writes_json_alone_to_standard_output(capsys, tmp_path):
    from lengthwise_recipes.commands.study import add

    parser = _parser(add)
    arguments = parser.parse_args(
        "study handwriting --count 24 --epochs 1 --hidden 8 --layers 1 --batch-size 8 --strategies random,sorted "
        f"--memory --quiet --json - --plot {tmp_path / 'curves.png'}".split()
    )
    assert arguments.run(arguments) == 0
    printed = capsys.readouterr()
    document = json.load(io.StringIO(printed.out))
    assert [summary["strategy"] for summary in document["summary"]] == ["random", "sorted"]
    assert document["data"]["train_samples"] == 23
    assert "useful" in printed.err
    assert "One run of each strategy: another seed may change" in " ".join(printed.err.split())
    assert "The most memory that a step takes, in MB: random " in printed.err
    assert all(summary["peak_bytes"] > 0 for summary in document["summary"])
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_report_shows_what_was_learned(capsys, tmp_path):
    pytest.importorskip("jinja2")
    from lengthwise_recipes.commands.study import add

    path = tmp_path / "report.html"
    words = "study handwriting --count 24 --epochs 2 --seeds 2 --hidden 8 --layers 1 --batch-size 8 --quiet --json -"
    arguments = _parser(add).parse_args([*words.split(), "--strategies", "random,sorted", "--html", str(path)])
    assert arguments.run(arguments) == 0
    printed = capsys.readouterr()
    first, last = json.loads(printed.out)["summary"]
    said = "2 runs of each strategy: other seeds may change these losses by more than strategies differ."
    assert f"{said} --seeds 5 shows" in " ".join(printed.err.split())
    page = path.read_text(encoding="utf-8")
    assert f"<h1>An epoch of random took {first['seconds_per_epoch']:.3g} s" in page
    assert f"{last['validation_loss']['mean']:.3f}.</h1>" in page
    assert (
        page.count('aria-roledescription="line mark"') == 6
    )  # two seeds of each strategy, and random's behind sorted's
    assert "Grey: random." in page
    assert said in page


def test_the_report_of_one_run_says_that_it_is_one(tmp_path):
    pytest.importorskip("jinja2")
    from lengthwise_recipes.commands.study import add

    path = tmp_path / "report.html"
    words = "study handwriting --count 24 --epochs 1 --hidden 8 --layers 1 --batch-size 8 --quiet --json -"
    arguments = _parser(add).parse_args([*words.split(), "--strategies", "random", "--html", str(path)])
    assert arguments.run(arguments) == 0
    page = path.read_text(encoding="utf-8")
    assert "One run of each strategy: another seed may change these losses" in page
    assert "Grey: " not in page
    assert page.count("seconds of training: ") >= 1  # an epoch alone is a dot


def test_the_help_is_of_sentences(capsys):
    from lengthwise_recipes.commands.study import add

    with pytest.raises(SystemExit):
        _parser(add).parse_args(["study", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "Train under several batching strategies and compare time and loss." in printed
    assert "handwriting A bidirectional LSTM with CTC on online handwriting." in printed


def test_the_command_refuses_a_missing_folder_before_training(tmp_path):
    from lengthwise_recipes.commands.study import add

    arguments = _parser(add).parse_args(["study", "handwriting", "--json", str(tmp_path / "no" / "x.json")])
    with pytest.raises(FileNotFoundError, match="`json` must be in a folder that exists"):
        arguments.run(arguments)


def _parser(add):
    import argparse

    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    return parser
