"""The study on two processes: they average as one process does by hand, and where one ends early none hangs."""

import copy
import dataclasses
import json
import multiprocessing
import os
import signal
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from lengthwise.cli.strategies import parse_strategies

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_ranks")]

torch = pytest.importorskip("torch")
pytest.importorskip("HersheyFonts")
pytest.importorskip("jiwer")

import lengthwise as lw  # noqa: E402
from lengthwise_recipes.handwriting.model import ctc_losses, pad_frames  # noqa: E402
from lengthwise_recipes.handwriting.task import HandwritingTask, Network  # noqa: E402
from lengthwise_recipes.study.parallel import on_ranks  # noqa: E402
from lengthwise_recipes.study.runs import first_runs  # noqa: E402
from lengthwise_recipes.study.settings import Settings  # noqa: E402
from lengthwise_recipes.study.setups import Setup, setups, waiting_share  # noqa: E402
from lengthwise_recipes.study.study import run_study  # noqa: E402
from lengthwise_recipes.study.training import judge_model  # noqa: E402

PATIENCE = 120.0  # seconds after which a hang is a failure
MINIATURE = Settings(epochs=2, learning_rate=0.02, processes=(1, 2), alpha=0.9, beta=0.001)
BATCHINGS = parse_strategies("random,max-entropy:0.05", cut=lw.Budget(500))  # batches of 1 to 12 sequences
ALONE, PARAMETER, GRADIENT = "random", "random, 2 processes, parameter", "random, 2 processes, gradient"


@contextmanager
def patience():
    """Ends the processes that were started here, should they hang: whoever waits for them then hears of it."""
    timer = threading.Timer(PATIENCE, lambda: [child.kill() for child in multiprocessing.active_children()])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@pytest.fixture(scope="module")
def task(corpus):
    return HandwritingTask.of(corpus, Network(hidden=8, layers=1))


@pytest.fixture(scope="module")
def study(task):
    with patience():
        return run_study(task, BATCHINGS, MINIATURE, command="by hand")


def rows_of(study, label):
    return [row for row in study.rows if row.strategy == label]


def test_every_strategy_is_run_on_every_number_of_processes_and_every_way(study):
    labels = [ALONE, PARAMETER, GRADIENT]
    labels += [label.replace("random", "max-entropy:0.05") for label in labels]
    assert [row.strategy for row in study.rows] == labels * 2  # epochs interleaved
    assert [row.epoch for row in study.rows] == [1] * 6 + [2] * 6
    assert [(row.processes, row.averaging) for row in study.rows[:3]] == [
        (1, "none"),
        (2, "parameter"),
        (2, "gradient"),
    ]
    alone, parameter, gradient = (row.steps for row in study.rows[:3])
    assert gradient == -(-alone // 2)  # a batch of each in a step
    assert parameter in (gradient, gradient + 1)
    assert len({row.useful_frames for row in study.rows}) == 1
    assert all(row.seconds > 0.0 for row in study.rows)


def test_one_process_of_several_learns_as_one_alone(study, task):
    alone = run_study(task, {"random": BATCHINGS["random"]}, Settings(epochs=2, learning_rate=0.02))
    for one, other in zip(alone.rows, rows_of(study, ALONE), strict=True):
        assert one.validation_loss == other.validation_loss
        assert one.training_loss == other.training_loss


def first_run(task, label):
    """What both ranks start from."""
    made = {setup.label: setup for setup in setups(BATCHINGS, MINIATURE)}
    alone = Setup(label=label, batching=made[label].batching)
    return first_runs(task, [alone], MINIATURE, seed=0)[label]


def losses(model, task, batch):
    frames, counts = pad_frames([task.prepared["train"].frames[number] for number in batch])
    return ctc_losses(model(frames, counts), counts, [task.prepared["train"].labels[number] for number in batch])


def validation_loss(task, model):
    return judge_model(task.validate, model)["validation_loss"]


def step(model, optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def planned(run, task, epoch):
    return lw.make_plan(task.lengths, run.setup.batching, seed=0, epoch=epoch, world_size=2)


def test_averaged_gradients_are_those_of_the_whole_step_in_one_process(study, task):
    run = first_run(task, GRADIENT)
    for row in rows_of(study, GRADIENT):
        plan = planned(run, task, row.epoch)
        seen = []
        for both in zip(plan.batches(0), plan.batches(1), strict=True):
            own = torch.cat([losses(run.model, task, batch) for batch in both])
            step(run.model, run.optimizer, own.mean())
            seen.append(own.detach())
        assert row.training_loss == pytest.approx(float(torch.cat(seen).mean()), rel=1e-4)
        assert row.validation_loss == pytest.approx(validation_loss(task, run.model), rel=1e-3)
        assert row.straggler_waste == pytest.approx(lw.measure(plan, task.lengths).straggler_waste)


def test_averaged_parameters_follow_equation_3(study, task):
    run = first_run(task, PARAMETER)
    ranks = [(run.model, run.optimizer)]
    other = copy.deepcopy(run.model)
    ranks.append((other, torch.optim.Adam(other.parameters(), lr=0.02)))
    before = [parameter.detach().clone() for parameter in run.model.parameters()]
    for row in rows_of(study, PARAMETER):
        plan = planned(run, task, row.epoch)
        for rank, (model, optimizer) in enumerate(ranks):
            for batch in plan.batches(rank):
                step(model, optimizer, losses(model, task, batch).mean())
        for place, pair in enumerate(zip(*(model.parameters() for model, _ in ranks), strict=True)):
            mean = (pair[0].detach() + pair[1].detach()) / 2
            before[place] = before[place] + 0.9 * (mean - before[place]) - 0.001 * before[place]
            for parameter in pair:
                parameter.detach().copy_(before[place])
        assert row.validation_loss == pytest.approx(validation_loss(task, run.model), rel=1e-3)


def test_parameters_are_averaged_over_portions_dealt_anew(task):
    run = first_run(task, PARAMETER)
    portions = []
    for epoch in (1, 2):
        ranks = [set(np.concatenate(list(planned(run, task, epoch).batches(rank))).tolist()) for rank in (0, 1)]
        assert ranks[0].isdisjoint(ranks[1])
        assert len(ranks[0] | ranks[1]) == 120
        portions.append(ranks[0])
    assert portions[0] != portions[1]


def test_ranks_wait_in_every_step_for_gradients_and_once_for_parameters():
    # Two steps: rank 0 pays 2 and 4, rank 1 pays 4 and 2.
    batching = lw.Batching(cut=lw.FixedSize(1), order=lw.Sorted(), arrange=lw.InOrder())
    sorted_plan = lw.make_plan([2, 2, 4, 4], batching, world_size=2)
    plan = dataclasses.replace(sorted_plan, grid=np.array([[[0, 2]], [[3, 1]]]))
    assert plan.costs[plan.grid[:, 0]].tolist() == [[2.0, 4.0], [4.0, 2.0]]
    each, once = (
        waiting_share(Setup(label="", batching=batching, processes=2, averaging=averaging), plan)
        for averaging in ("gradient", "parameter")
    )
    assert each == 0.25  # 6 of 8 paid for in each step
    assert once == 0.0  # 6 each in the end
    apart = dataclasses.replace(plan, grid=np.array([[[0, 2]], [[1, 3]]]))
    setup = Setup(label="", batching=batching, processes=2, averaging="parameter")
    assert waiting_share(setup, apart) == 0.25  # 4 and 8


def test_the_json_and_the_picture_tell_the_runs_apart(study):
    pytest.importorskip("altair")
    from lengthwise_recipes.pictures import learning_curves

    document = json.loads(json.dumps(study.as_dict(), allow_nan=False))
    assert document["settings"]["processes"] == [1, 2]
    assert document["settings"]["averaging"] == ["parameter", "gradient"]
    assert document["strategies"][PARAMETER]["deal"]["choice"] == "deal.Portions"
    assert document["strategies"][GRADIENT]["deal"]["choice"] == "deal.Balanced"
    summaries = {each["strategy"]: each for each in document["summary"]}
    assert (summaries[GRADIENT]["processes"], summaries[GRADIENT]["averaging"]) == (2, "gradient")
    assert summaries[ALONE]["straggler_waste"] == 0.0 < summaries[GRADIENT]["straggler_waste"]
    encoding = learning_curves(document["rows"]).to_dict()["spec"]["layer"][1]["encoding"]
    colours, dashes = (encoding[name]["scale"]["range"] for name in ("color", "strokeDash"))
    assert len(set(zip(colours, map(tuple, dashes), strict=True))) == 6


def test_the_table_shows_seconds_steps_waiting_and_loss_side_by_side(study, capsys):
    from lengthwise_recipes.commands.study import print_table

    print_table(study, to_stderr=False)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 80
    head = " ".join(printed.split("max-entropy")[0].split())
    assert head.startswith("s per of the valid. strategy epoch first steps waiting padding loss CER random")
    assert "2 processes, gradient" in head
    (row,) = rows_of(study, GRADIENT)[1:]
    assert f"{row.validation_loss:.3f}" in head


def fails(place):
    """A rank that meets an error, while the other waits for it."""
    yield f"rank {place.rank}"
    place.wait_for(2)
    if place.rank == 1:
        raise KeyError("weights")
    place.wait_for(2)


def dies(place):
    """A rank that is killed, as by a system without memory."""
    yield f"rank {place.rank}"
    place.wait_for(2)
    if place.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    place.wait_for(2)


@pytest.mark.parametrize(
    ("work", "complaint"),
    [
        (fails, "`rank 1 of 2` must be at work to the end, but is 'ended by KeyError'. It said: KeyError: 'weights'"),
        (dies, "`rank 1 of 2` must be at work to the end, but is 'ended by SIGKILL'. Give fewer processes"),
    ],
)
def test_the_end_of_one_process_is_told_and_ends_all(work, complaint):
    with patience():
        heard = on_ranks(work, (1, 2))
        assert next(heard) == "rank 0"
        with pytest.raises(ChildProcessError) as told:
            list(heard)
    assert str(told.value).startswith(complaint)
    assert multiprocessing.active_children() == []


def test_what_cannot_be_planned_is_refused_before_any_process_is_started(task):
    small = {"random": lw.Batching(order=lw.Shuffled(), cut=lw.Budget(10))}
    with pytest.raises(ValueError, match="`budget` must be at least the cost of the costliest sequence"):
        run_study(task, small, MINIATURE)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"processes": (0,)}, ValueError, "`processes` must be at least 1, but is 0."),
        ({"processes": 2}, TypeError, "`processes` must be a tuple, but is 2. Give processes=(1, 2), for example."),
        ({"processes": (2, 2)}, ValueError, "`processes` must be different from each other, and at least one"),
        (
            {"processes": (2,), "averaging": ()},
            ValueError,
            "`averaging` must be different from each other, and at least",
        ),
        ({"processes": (2,), "averaging": ("loss",)}, ValueError, "`averaging` must be one of parameter, gradient"),
        (
            {"averaging": ("gradient",)},
            ValueError,
            "`averaging` must be left out with one process, but is",
        ),
        ({"beta": 0.0}, ValueError, "`alpha, beta` must be left out without parameter averaging, but is (1.0, 0.0)."),
        ({"processes": (2,), "alpha": -1.0}, ValueError, "`alpha` must be finite and above 0, but is -1.0."),
    ],
)
def test_bad_settings_of_processes_are_named(change, kind, message):
    with pytest.raises(kind) as caught:
        Settings(**change)
    assert str(caught.value).startswith(message)


def test_the_words_of_the_command_line():
    from lengthwise.cli.parser import Parser
    from lengthwise_recipes.commands.study import add

    parser = Parser()
    add(parser.add_subparsers())
    words = "study handwriting --processes 1,2 --averaging gradient --alpha 0.5 --beta 0"
    parsed = parser.parse_args(words.split())
    assert (parsed.processes, parsed.averaging, parsed.alpha, parsed.beta) == ((1, 2), ("gradient",), 0.5, 0.0)
    given_nothing = parser.parse_args(["study", "handwriting"])
    assert given_nothing.processes == Settings().processes
    assert given_nothing.averaging == Settings().averaging


def test_processes_that_are_no_numbers_are_refused(capsys):
    from lengthwise.cli import main

    with pytest.raises(SystemExit):
        main(["study", "handwriting", "--processes", "1,two"])
    assert "`--processes` must be whole numbers such as 1,2, but is '1,two'" in capsys.readouterr().err
