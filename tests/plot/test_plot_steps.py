"""The picture of steps shows what ranks compute and how long they wait, and says what whole epochs come to."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import lengthwise as lw
from lengthwise.plot import batch_padding, epoch_lengths, save, step_padding, style

SPEECH = lw.example_lengths("speech", count=3_000)
CUT = lw.FixedSize(16)


def stairs(axes):
    return [patch.get_data() for patch in axes.patches]


def said(axes):
    return [text.get_text() for text in axes.texts]


def test_four_sequences_on_two_ranks():
    """Steps of (9, 5) and (4, 2), one sequence to a rank: the second of each waits for the first."""
    lengths = [5, 9, 2, 4]
    batching = lw.Batching(cut=lw.FixedSize(1), order=lw.Sorted(), arrange=lw.ShortestFirst(reverse=True))
    figure = step_padding(
        lengths, {"sorted": lw.make_plan(lengths, batching, world_size=2)}, unit="tokens", title="Two"
    )
    (axes,) = figure.axes
    waiting, bars, padding, outline, *second = stairs(axes)
    assert waiting.values.tolist() == [9, 9]
    assert waiting.baseline.tolist() == bars.values.tolist() == outline.values.tolist() == [9, 5]
    assert padding.values.tolist() == [9, 5]
    assert second[0].values.tolist() == [4, 4]
    assert second[0].baseline.tolist() == [4, 2]
    assert second[0].edges[0] > bars.edges[-1]  # a gap between the steps
    assert said(axes)[:2] == ["padding 0 %", "waiting 23 %"]  # both ranks take 9 + 4, and 6 of these 26 are waiting
    assert said(axes)[3:] == ["padded length", "length", "waiting"]  # nothing is padding, and nothing is named so
    assert {text.get_fontweight() for text in axes.texts} == {"normal"}  # beside nothing, nothing is the worst
    assert [text.get_text() for text in axes.get_xticklabels()] == ["2 batches of 1"] * 2
    assert axes.get_xlabel() == "the batches of each step, side by side: area is time, the same for all ranks"
    assert (figure.get_supylabel(), figure.get_suptitle()) == ("length (tokens)", "Two")


def test_measures_are_those_of_all_epochs_and_the_worst_is_bold():
    batchings = {
        "random": lw.Batching(cut=CUT, order=lw.Shuffled()),
        "max-entropy": lw.Batching(cut=CUT, padding=0.05, deal=lw.Mixed()),
        "random-steps": lw.Batching(cut=CUT, order=lw.Shuffled(), deal=lw.RandomSteps()),
    }
    plans = {
        label: [lw.make_plan(SPEECH, batching, world_size=4, epoch=epoch) for epoch in range(3)]
        for label, batching in batchings.items()
    }
    figure = step_padding(SPEECH, plans, steps=2)
    bold = []
    for axes, epochs in zip(figure.axes, plans.values(), strict=True):
        found = lw.measure(epochs, SPEECH)
        shares = style.percent(found.padding_share), style.percent(found.straggler_waste)
        assert said(axes)[:3] == [
            f"padding {shares[0]}",
            f"waiting {shares[1]}",
            f"step mixing {found.step_mixing:.2f}",
        ]
        bold.append({text.get_text().split()[0] for text in axes.texts if text.get_fontweight() == "bold"})
    found = [lw.measure(epochs, SPEECH) for epochs in plans.values()]
    worst = {
        "padding": np.argmax([each.padding_share for each in found]),
        "waiting": np.argmax([each.straggler_waste for each in found]),
        "step": np.argmin([each.step_mixing for each in found]),
    }
    assert bold == [{word for word, at in worst.items() if at == number} for number in range(3)]
    assert said(figure.axes[1])[3:] == ["waiting"]


@pytest.mark.parametrize("cut", [CUT, lw.Budget(9_000)], ids=repr)
@pytest.mark.parametrize("shape", [(8, 1), (4, 2), (1, 1)])
def test_every_rank_has_the_same_area_in_a_step(cut, shape):
    world_size, micro_batches = shape
    batching = lw.Batching(cut=cut, padding=0.1, deal=lw.Mixed())
    plan = lw.make_plan(SPEECH, batching, world_size=world_size, micro_batches=micro_batches)
    from lengthwise.plot.steps import middle_steps

    first = (plan.steps - 3) // 2
    for number, step in enumerate(middle_steps(plan, SPEECH, 3)):
        taken = plan.costs[plan.grid[first + number]].sum(axis=0)  # of each rank, one batch after the other
        assert (step.each.sizes * step.tops).sum() == pytest.approx(world_size * taken.max(), rel=0.01)
        areas = step.each.sizes * step.tops
        worked = step.each.sizes * step.each.padded
        assert (step.tops >= step.each.padded).all()
        assert areas.sum() >= worked.sum()
        if micro_batches == 1:
            assert areas == pytest.approx(np.full(len(areas), worked.max()), rel=0.01)
        assert (np.diff(step.each.padded) <= 0).all()


@pytest.mark.parametrize("count", [0, 1, 5])
def test_small_epochs_are_drawn(count, tmp_path):
    lengths = np.arange(1, count + 1)
    save(step_padding(lengths, {"random": lw.make_plan(lengths, lw.Batching(cut=CUT))}), tmp_path / "steps.png")


def test_costs_that_are_no_frames_are_no_areas():
    batching = lw.Batching(cut=CUT, cost=lw.Quadratic(linear=1, quadratic=0.01))
    (axes,) = step_padding(SPEECH, {"random": lw.make_plan(SPEECH, batching, world_size=2)}).axes
    assert axes.get_xlabel() == "the batches of each step, side by side"


def test_bad_values_are_refused():
    with pytest.raises(ValueError, match=r"`plans` must be at least one plan"):
        step_padding(SPEECH, {})
    with pytest.raises(ValueError, match=r"`steps` must be at least 1"):
        step_padding(SPEECH, {"random": lw.make_plan(SPEECH, lw.Batching(cut=CUT))}, steps=0)


def test_what_stands_below_steps_never_overlaps():
    plans = {"random": lw.make_plan(SPEECH, lw.Batching(cut=CUT, order=lw.Shuffled()), world_size=2)}
    for steps, written in ((1, 1), (3, 3), (4, 4), (50, 0)):
        (axes,) = step_padding(SPEECH, plans, steps=steps).axes
        assert sum(bool(label.get_text()) for label in axes.get_xticklabels()) == written


def test_one_batch_is_no_plural():
    plan = lw.make_plan([5, 3], lw.Batching(cut=lw.FixedSize(2)))
    (axes,) = step_padding([5, 3], {"one": plan}).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1 batch of 2"]


@pytest.mark.parametrize("draw", [step_padding, batch_padding, epoch_lengths])
def test_a_long_label_ends_before_what_stands_beside_it(draw):
    label = "semi-sorted:0.02,arrange=costliest-first,waiting=5%,in a file of a long name"
    figure = draw(SPEECH, {label: lw.make_plan(SPEECH, lw.Batching(cut=CUT), world_size=2)})
    figure.canvas.draw()
    first = figure.axes[0]
    title = first._left_title if first._left_title.get_text() else first.title
    end = title.get_window_extent().x1
    others = [text.get_window_extent() for text in first.texts[:1]] if draw is step_padding else []
    others += [other._left_title.get_window_extent() for other in figure.axes[1:]]
    assert end <= min([figure.bbox.x1, *(box.x0 for box in others)])
