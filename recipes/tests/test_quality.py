"""The study of what mixing is worth: comparisons and sentences by hand, and the whole in miniature."""

import json

import numpy as np
import pytest

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
pytest.importorskip("jiwer")
pytest.importorskip("altair")
pytest.importorskip("soundfile")

import lengthwise as lw  # noqa: E402
from lengthwise.cli import main  # noqa: E402
from lengthwise_recipes.intervals import interval  # noqa: E402
from lengthwise_recipes.quality.contrasts import (  # noqa: E402
    dynamic_pairs,
    mean_losses,
    ours_to_orders,
    pooled,
    relative_differences,
    sorted_to_random,
    sorted_to_random_early,
)
from lengthwise_recipes.quality.page import (  # noqa: E402
    chance_sentence,
    contrast_table,
    dynamic_table,
    lead,
    losses_table,
    orders_sentence,
    page,
)
from lengthwise_recipes.quality.strategies import (  # noqa: E402
    FITTED,
    TOLERANCE,
    Candidate,
    candidates,
    choose_setups,
    list_left_out,
)
from lengthwise_recipes.quality.study import list_runs, seconds_per_epoch  # noqa: E402
from lengthwise_recipes.quality.tasks import KINDS, Source  # noqa: E402
from lengthwise_recipes.study.results import EpochRow, RunRow  # noqa: E402
from letter_tones import write_folder  # noqa: E402
from tones import store, tones  # noqa: E402

CUT = lw.FixedSize(16)
LENGTHS = lw.example_lengths("speech")[:256]


def row(strategy, *, seed, epoch, loss, seconds=1.0):
    """An epoch that took `seconds` in all, a tenth of it for its plan."""
    rest = dict.fromkeys(("mixing", "straggler_waste", "training_loss"), 0.0)
    return EpochRow(
        strategy=strategy,
        processes=1,
        averaging="none",
        seed=seed,
        epoch=epoch,
        steps=4,
        seconds=0.9 * seconds,
        planning_seconds=0.1 * seconds,
        elapsed_seconds=0.9 * seconds * epoch,
        sequences=64,
        useful_frames=640,
        padding_share=0.2,
        metrics={"validation_loss": loss, "test_loss": 2 * loss, "character_error_rate": loss / 10},
        **rest,
    )


def test_a_run_has_the_seconds_and_losses_of_its_epochs_and_its_metrics_after_the_last():
    rows = [row("a", seed=seed, epoch=epoch, loss=seed + epoch) for seed in (0, 1) for epoch in (2, 1)]
    tests = [RunRow(strategy="a", processes=1, averaging="none", seed=1, metrics={"word_error_rate": 0.5})]
    first, second = list_runs(rows, tests, KINDS["handwriting"])
    assert (first["strategy"], first["seed"], second["seed"]) == ("a", 0, 1)
    assert second["losses"] == [2, 3]
    assert second["test_losses"] == [4, 6]
    assert second["seconds"] == pytest.approx([1.0, 1.0])  # 0.9 of training and 0.1 of planning
    assert first["metrics"] == {"character_error_rate": 0.2}
    assert second["metrics"] == {"character_error_rate": 0.3, "word_error_rate": 0.5}


def test_minutes_in_which_the_machine_is_busy_make_no_strategy_slow():
    seconds = {"a": np.ones((1, 4)), "b": np.ones((1, 4)), "c": np.full((1, 4), 0.5)}
    for label, busy in {"a": 3, "b": 2, "c": 2}.items():  # in the third epoch of "a" alone
        seconds[label][:, :busy] *= 9
    assert seconds_per_epoch(seconds) == pytest.approx({"a": 5.0, "b": 5.0, "c": 2.5})  # the median round: 5 seconds


def strategy(label, *, order=None, padding=None, mixing=0.1, seconds=1.0, steps=4.0, dynamic=False, scaling="none"):
    return {
        "label": label,
        "order": order or label,
        "strategy": label,
        "padding": padding,
        "padding_share": padding or 0.0,
        "mixing": mixing,
        "dynamic": dynamic,
        "learning_rate_scaling": scaling,
        "steps": steps,
        "seconds_per_epoch": seconds,
    }


def study_of(strategies, losses, *, task="speech", paddings=(0.1,)):
    """A document with test losses by label, seed and epoch. The losses on validation sequences are half of them."""
    runs = [
        {"strategy": label, "seed": seed, "test_losses": run, "losses": [None if x is None else x / 2 for x in run]}
        for label, seeds in losses.items()
        for seed, run in enumerate(seeds)
    ]
    return {
        "task": task,
        "ours": "max-entropy",
        "reference": "random",
        "paddings": list(paddings),
        "settings": {"seeds": len(next(iter(losses.values())))},
        "strategies": strategies,
        "runs": runs[::-1],
    }


# Random batches take twice the time. Means over the last three of four epochs: 4 and 8; 5 and 6.
PLAIN = [strategy("random", mixing=0.9, seconds=2.0), strategy("sorted", mixing=0.02)]
PLAIN_LOSSES = {
    "random": [[9.0, 6.0, 4.0, 2.0], [9.0, 9.0, 8.0, 7.0]],
    "sorted": [[9.0, 5.0, 5.0, 5.0], [9.0, 6.0, 6.0, 6.0]],
}


def test_a_loss_is_the_mean_over_the_last_epochs():
    document = study_of(PLAIN, PLAIN_LOSSES)
    assert mean_losses(document, "random").tolist() == [4.0, 8.0]
    assert mean_losses(document, "random", part="losses").tolist() == [2.0, 4.0]
    assert sorted_to_random(document, "epochs").tolist() == [0.25, -0.25]


def test_in_equal_time_the_slower_strategy_trains_fewer_epochs():
    document = study_of(PLAIN, PLAIN_LOSSES)
    # Random batches: after 1, 1.5 and 2 epochs 9, 7.5, 6 and 9, 9, 9.
    assert mean_losses(document, "random", pace=0.5).tolist() == [7.5, 9.0]
    assert sorted_to_random(document, "time") == pytest.approx([5.0 / 7.5 - 1.0, 6.0 / 9.0 - 1.0])
    assert np.isnan(mean_losses(document, "random", pace=0.4)).all()  # the first of the three before the first epoch


ORDERS = [
    strategy(f"{order} {padding}", order=order, padding=padding, mixing=mixing)
    for padding in (0.05, 0.1)
    for order, mixing in (("max-entropy", 0.2), ("semi-sorted", 0.1), ("bucketed", 0.04))
]
ORDER_LOSSES = {
    "max-entropy 0.05": [[3.0], [4.0]],
    "semi-sorted 0.05": [[3.0], [5.0]],  # the means of the two: 4 and 4
    "bucketed 0.05": [[5.0], [3.0]],
    "max-entropy 0.1": [[5.0], [4.0]],
    "semi-sorted 0.1": [[4.0], [4.0]],
    "bucketed 0.1": [[4.0], [6.0]],
}


def test_max_entropy_is_compared_with_the_mean_of_the_other_orders_at_each_padding():
    document = study_of(ORDERS, ORDER_LOSSES, paddings=(0.05, 0.1))
    # Seed 0: -1/4 and +1/4; seed 1: 0 and -1/5.
    assert ours_to_orders(document, "epochs") == pytest.approx([0.0, -0.1])
    alone = study_of(ORDERS[:1], ORDER_LOSSES, paddings=(0.05, 0.1))
    assert np.isnan(ours_to_orders(alone, "epochs")).all()
    assert orders_sentence([alone]).endswith("is not known.")


def test_tasks_are_pooled_seed_by_seed():
    first, second = study_of(PLAIN, PLAIN_LOSSES), study_of(PLAIN, {"random": [[1.0], [2.0]], "sorted": [[1.5], [2.5]]})
    # 0.25 and -0.25; 0.5 and 0.25: the means by seed are 0.375 and 0.
    assert pooled([first, second], sorted_to_random, "epochs") == interval([0.375, 0.0])


def test_the_first_half_of_the_epochs_is_compared_by_itself():
    document = study_of(PLAIN, {"random": [[4.0, 4.0, 1.0, 1.0]], "sorted": [[5.0, 4.0, 1.0, 1.0]]})
    assert sorted_to_random_early(document).tolist() == [0.125]


def test_dynamic_sizes_are_compared_with_a_fixed_size_after_equally_many_epochs_and_steps():
    strategies = [
        strategy("random", mixing=0.9),
        strategy("random, constant", order="random", steps=2.0, dynamic=True),
        strategy("random, root", order="random", steps=2.0, dynamic=True, scaling="root"),
    ]
    losses = {
        "random": [[9.0, 6.0, 4.0, 2.0]] * 2,
        "random, constant": [[9.0, 8.0, 8.0, 8.0]] * 2,
        "random, root": [[9.0, 6.0, 6.0, 6.0], [9.0, 6.0, 6.0, 5.9]],
    }
    document = study_of(strategies, losses)
    assert dynamic_pairs(document) == [("random, root", "random")]
    assert relative_differences(document, "random, root", ["random"], "epochs")[0] == pytest.approx(0.5)  # 6 over 4
    assert relative_differences(document, "random, root", ["random"], "steps")[0] == pytest.approx(-0.2)  # 6 over 7.5
    _, _, line = dynamic_table([document]).splitlines()
    assert line.startswith("| speech | `random` | root | 2, fixed 4 | **+49.6 % (")
    losses["random, root"][0][3] = None  # a run that diverged
    assert dynamic_pairs(study_of(strategies, losses)) == [("random, constant", "random")]


def test_the_lead_says_which_differences_exclude_0():
    alike = study_of(PLAIN, {"random": [[1.0], [1.0]], "sorted": [[1.1], [0.9]]}, task="alike")
    apart = study_of(PLAIN, {"random": [[1.0], [1.0]], "sorted": [[1.2], [1.21]]}, task="apart")
    assert "show no difference on alike." in lead([alike])[0]
    text, mixing, _ = lead([alike, apart])
    assert "differ on apart. Sorted minus random, in percent of the loss: alike +0.0 % (-127.1 to +127.1)" in text
    assert "apart +20.5 % (+14.1 to +26.9). With 2 seeds we would detect" in text  # 12.706 * 0.5
    assert mixing == "Sorted batches have a mixing of 0.02, random ones of 0.90."
    assert (
        chance_sentence([alike, apart])
        == "0 lies outside 1 of these 2 intervals. By chance it would lie outside about 0.1."
    )
    assert "cannot be compared" in lead([study_of(PLAIN, {"random": [[1.0]], "sorted": [[1.1]]})])[0]
    assert "cannot be compared" in lead([study_of(PLAIN, {"random": [[None], [1.0]], "sorted": [[1.1], [1.0]]})])[0]


def test_a_table_has_a_row_for_each_task_and_one_for_their_mean():
    document = study_of(PLAIN, PLAIN_LOSSES)
    assert "mean of the tasks" not in contrast_table([document], sorted_to_random)
    *_, task, mean = contrast_table([document, document], sorted_to_random).splitlines()
    assert mean == task.replace("speech", "mean of the tasks")


def test_losses_of_an_order_that_a_task_leaves_out_are_empty():
    losses = {**PLAIN_LOSSES, "windowed": [[1.0], [3.0]]}
    text = losses_table([study_of([*PLAIN, strategy("windowed", padding=0.1)], losses), study_of(PLAIN, PLAIN_LOSSES)])
    assert "| `windowed` | 10 % | 0.10 | 2.000 ± 12.706 |  |  |" in text


def test_every_strategy_that_is_compared_pads_what_it_should():
    found = candidates(LENGTHS, (0.1,), batch_size=16)
    assert [each.order for each in found if each.padding == 0.1 and not each.dynamic] == list(FITTED)
    chosen = choose_setups(LENGTHS, found, base_batch=16.0)
    for each in chosen:
        shares = [lw.measure(lw.make_plan(LENGTHS, each.setup.batching, epoch=epoch), LENGTHS) for epoch in range(16)]
        if each.candidate.padding is not None:
            assert np.mean([share.padding_share for share in shares]) == pytest.approx(0.1, abs=TOLERANCE + 0.001)
    dynamic = [each for each in chosen if each.candidate.dynamic]
    assert [each.setup.learning_rate_scaling for each in dynamic[:3]] == ["none", "linear", "root"]
    assert [each.setup.base_batch for each in dynamic[:3]] == [None, 16.0, 16.0]
    assert len({each.label for each in chosen}) == len(chosen)
    assert len(list_left_out(found)) == len([each for each in found if not each.near])


def test_what_pads_otherwise_is_left_out_and_named():
    far = Candidate(order="bucketed", strategy="bucketed:16", padding=0.1, padding_share=0.04, cut=CUT)
    assert choose_setups(LENGTHS, [far], base_batch=16.0) == []
    near = Candidate(order="windowed", strategy="windowed:32", padding=0.1, padding_share=0.1, cut=CUT)
    plain = Candidate(order="random", strategy="random", padding=None, padding_share=0.5, cut=CUT)
    assert list_left_out([plain, far, near]) == ["bucketed at 10 %, since the nearest is 4.0 %, by bucketed:16"]


@pytest.mark.parametrize("paddings", [(), (0.1, 0.05), (0.1, 0.105), (0.0,), (1.5,)])
def test_shares_that_nothing_can_be_compared_at_are_refused(paddings):
    with pytest.raises(ValueError, match="`paddings` must be"):
        candidates(LENGTHS, paddings, batch_size=16)


def test_less_than_sorting_pads_is_refused():
    with pytest.raises(ValueError, match="what sorted batches pad"):
        candidates(LENGTHS, (0.01,), batch_size=16)


def test_a_task_that_needs_speech_says_so():
    with pytest.raises(ValueError, match="`data` must be the path of speech"):
        KINDS["acoustic"].make(Source(data=None, count=8))


@pytest.mark.parametrize("name", KINDS)
def test_a_task_measures_what_it_is_judged_by(name, tmp_path, characters):
    texts = {f"LJ{number}": "abc hgfe dcb"[: 4 + number] for number in range(8)}
    data = {
        "handwriting": lambda: characters,
        "acoustic": lambda: store(tones(takes=7), tmp_path / "digits.npz"),
        "synthesis": lambda: write_folder(tmp_path / "voice", texts),
    }
    kind = KINDS[name]
    task = kind.make(Source(data=data[name](), count=8, folder=tmp_path / "kept"))
    model = task.model().eval()
    with torch.no_grad():
        found = {**task.validate(model), **task.test(model)}
    assert {kind.loss, kind.test_loss, *kind.metrics} <= set(found)
    assert task.lengths.ndim == 1


@pytest.fixture(scope="module")
def characters(tmp_path_factory):
    """Three characters, each a vertical line and a dash, by each of four drawers."""
    drawn = [[[drawer, 10], [0, 4 + label], [3, 1], [5, 0]] for drawer in range(4) for label in range(3)]
    path = tmp_path_factory.mktemp("characters") / "characters.npz"
    np.savez(
        path,
        dxy=np.array(drawn, np.int16).reshape(-1, 2),
        pen_up=np.tile(np.array([0, 1, 0, 1], np.uint8), 12),
        offsets=np.arange(0, 49, 4),
        label=np.tile(np.arange(3, dtype=np.int16), 4),
        drawer=np.repeat(np.arange(4, dtype=np.int16), 3),
        vocab=np.frombuffer(b"Greek/1\nGreek/2\nGreek/3", np.uint8),
    )
    return path


@pytest.fixture(scope="module")
def command(tmp_path_factory, characters):
    """The command on 80 words to learn, 5 steps an epoch, and the folder that it writes to."""
    folder = tmp_path_factory.mktemp("quality")
    words = ["study", "quality", "--task", "handwriting", "--data", str(characters), "--count", "120"]
    words += ["--padding", "0.25", "--seeds", "2", "--epochs", "2", "--checkpoints", str(folder / "kept"), "--quiet"]
    written = {"--json": "out.json", "--plot": "out.png"}
    return [*words, *(word for option, name in written.items() for word in (option, str(folder / name)))], folder


@pytest.fixture(scope="module")
def document(command):
    words, folder = command
    assert main(words) == 0
    return json.loads((folder / "out.json").read_text())


def test_the_whole_in_miniature(document):
    strategies = {each["label"]: each for each in document["strategies"]}
    assert document["sequences"] == 80
    assert len(document["runs"]) == 2 * len(strategies)
    for each in strategies.values():
        assert each["padding"] is None or abs(each["padding_share"] - each["padding"]) < 0.03  # 4 plans of 5 batches
    assert strategies["sorted"]["mixing"] < strategies["random"]["mixing"]
    first, last = (np.mean([run["losses"][epoch] for run in document["runs"]]) for epoch in (0, 1))
    assert last < first
    assert min(second for run in document["runs"] for second in run["seconds"]) > 0


def test_called_again_nothing_is_trained_and_all_is_the_same(command, document, capsys):
    words, folder = command
    assert main(words) == 0
    again = json.loads((folder / "out.json").read_text())
    assert again["runs"] == document["runs"]  # seconds too: they are those that were measured once
    assert again["strategies"] == document["strategies"]
    shown = capsys.readouterr().out
    assert "80 sequences of words joined from the characters" in shown


def test_the_picture_is_drawn(command, document):
    assert document["strategies"]
    assert (command[1] / "out.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_has_every_task_and_order(document):
    documents = {"results/a.json": document, "results/b.json": {**document, "task": "acoustic"}}
    text = page(documents)
    assert text.split("\n\n")[1] == lead(list(documents.values()))[0]
    assert "### Handwriting" in text
    assert "### Acoustic" in text
    assert text.count("![") == 1
    for order in {each["order"] for each in document["strategies"]}:
        assert f"| `{order}` |" in text


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--task", "acoustic"], "`data` must be the path of speech"),
        (["--task", "handwriting", "--padding", "0.1,0.05"], "`paddings` must be rising"),
        (["--task", "handwriting", "--count", "1"], "`count` must be at least 2"),
        (["--task", "handwriting", "--seeds", "0"], "`seeds` must be at least 1"),
    ],
)
def test_what_cannot_be_studied_is_told_in_a_sentence(words, complaint, capsys):
    assert main(["study", "quality", *words]) == 2
    assert complaint in capsys.readouterr().err


def test_shares_that_are_no_numbers_are_refused_by_the_parser(capsys):
    with pytest.raises(SystemExit):
        main(["study", "quality", "--task", "handwriting", "--padding", "0.1,little"])
    assert "must be numbers such as 0.05,0.1" in capsys.readouterr().err
