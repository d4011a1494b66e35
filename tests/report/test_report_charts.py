"""Charts of a report: the numbers below each are those of its plan, and what is drawn is as high as they say."""

import math
import re

import numpy as np
import pytest

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategies
from lengthwise.report import headline, marks, words
from lengthwise.report.along import draw_along
from lengthwise.report.contents import Contents
from lengthwise.report.costs import draw_costs
from lengthwise.report.curves import draw_curves
from lengthwise.report.epochs import read
from lengthwise.report.front import draw_front, draw_seconds
from lengthwise.report.histogram import draw_lengths, edges_of
from lengthwise.report.labels import LETTER, Box, place_labels
from lengthwise.report.padding import draw_padding
from lengthwise.report.reports import write_page
from lengthwise.report.sequences import draw_sequences
from lengthwise.report.steps import draw_steps
from lengthwise.report.tables import facts, measures

LENGTHS = lw.example_lengths(count=160)
PAIRS = np.stack([LENGTHS, 1 + LENGTHS[::-1] // 3], axis=1)
CHUNKED = lw.Batching(cut=lw.FixedSize(4), order=lw.Shuffled(), chunks=lw.Chunks(300))
FOUR = {"world_size": 2, "micro_batches": 2}


def planned(lengths, text="random,sorted", *, cut=None, **world):
    batchings = parse_strategies(text, cut=cut or lw.FixedSize(4))
    return {label: lw.make_plan(lengths, batching, **world) for label, batching in batchings.items()}


GIANT = np.append(LENGTHS, [20 * LENGTHS.max()])

EPOCHS = {
    "one": (LENGTHS, planned(LENGTHS)),
    "four batches a step": (LENGTHS, planned(LENGTHS, **FOUR)),
    "a giant": (GIANT, planned(GIANT)),
    "pairs": (PAIRS, planned(PAIRS, **FOUR)),
    "chunks": (LENGTHS, {"random": lw.make_plan(LENGTHS[:40], CHUNKED, **FOUR)}),
}
EPOCHS["chunks"] = (LENGTHS[:40], EPOCHS["chunks"][1])


def taken(plan, lengths):
    """The batches of an epoch as they are taken: (lengths of its sequences, padded length, cost) of each."""
    whole = lengths if lengths.ndim == 1 else lengths.sum(axis=1)
    items = whole if plan.spans is None else plan.spans[:, 2] - plan.spans[:, 1]
    numbers = plan.grid.reshape(-1).tolist()
    members = [plan.sequences[plan.offsets[number] : plan.offsets[number + 1]] for number in numbers]
    padded = plan.padded_lengths.sum(axis=1)
    return [(items[own], int(padded[number]), plan.costs[number]) for own, number in zip(members, numbers, strict=True)]


def places(path, letter="M"):
    return [tuple(map(float, each)) for each in re.findall(rf"{letter}([\d.]+),([\d.]+)", path)]


of_epochs = pytest.mark.parametrize(("lengths", "plans"), EPOCHS.values(), ids=EPOCHS)


@of_epochs
def test_lengths_along_the_epoch(lengths, plans):
    charts = draw_along(read(plans, lengths), unit="frames")
    epochs = [taken(plan, lengths) for plan in plans.values()]
    ordered = [np.concatenate([own for own, _, _ in batches]) for batches in epochs]
    top = min(max(each.max() for each in ordered), 1.25 * max(np.quantile(each, 0.99) for each in ordered))
    for chart, batches, own in zip(charts, epochs, ordered, strict=True):
        padded = np.repeat([longest for _, longest, _ in batches], [len(each) for each, _, _ in batches])
        at = (np.arange(len(own)) + 0.5) / len(own)
        rows = []
        for tenth in range(10):
            held = (at >= tenth / 10) & (at < (tenth + 1) / 10)
            told = own[held].min(), own[held].mean(), own[held].max(), padded[held].mean()
            name = f"{10 * tenth} to {10 * tenth + 10} %"
            rows.append((name, f"{told[0]:,}", f"{told[1]:,.1f}", f"{told[2]:,}", f"{told[3]:,.1f}"))
        assert chart.table.rows == rows
        inside = own <= top
        expected = np.stack([1000 * at[inside], 1000 - 1000 * own[inside] / top], axis=1)
        assert np.array(places(chart.paths[0][1])) == pytest.approx(expected, abs=1)
        line = np.array(places(chart.paths[1][1]))
        held = (at * min(90, len(own))).astype(int)
        means = np.array([padded[held == part].mean() for part in np.unique(held)])
        assert line[:, 1] == pytest.approx(1000 - 1000 * np.minimum(means, top) / top, abs=1)
        over = f"; {(~inside).sum():,} of them longer than the axis." if not inside.all() else "s."
        assert chart.caption.endswith(over)


@of_epochs
def test_costs_of_the_costliest_batch_of_each_step(lengths, plans):
    for chart, plan in zip(draw_costs(read(plans, lengths)), plans.values(), strict=True):
        costs = np.array([cost for _, _, cost in taken(plan, lengths)]).reshape(plan.steps, -1).max(axis=1)
        assert chart.table.rows == [(str(step), *[words.number(cost)] * 2) for step, cost in enumerate(costs)]
        top = 1.04 * max(plan.costs.max() for plan in plans.values())
        heights = [float(mark.attributes["height"]) for mark in chart.marks]
        assert heights == pytest.approx(chart.height * costs / top, abs=0.1)


def test_costs_of_many_steps_are_told_from_the_cheapest_to_the_costliest():
    lengths = lw.example_lengths(count=1_003)
    plans = planned(lengths, "random", cut=lw.FixedSize(2))
    (chart,) = draw_costs(read(plans, lengths))
    costs = [cost for _, _, cost in taken(plans["random"], lengths)]
    assert len(costs) == 502
    rows = []
    for column in range(100):
        start, end = column * 502 // 100, (column + 1) * 502 // 100
        own = costs[start:end]
        rows.append((f"{start:,} to {end - 1:,}", words.number(min(own)), words.number(max(own))))
    assert chart.table.rows == rows


@of_epochs
def test_padding_of_each_batch(lengths, plans):
    shares = dict.fromkeys(plans, 0.25)
    charts = draw_padding(read(plans, lengths), shares, unit="frames")
    top = max(len(own) * longest for plan in plans.values() for own, longest, _ in taken(plan, lengths))
    for chart, plan in zip(charts, plans.values(), strict=True):
        rows, bars = [], []
        for own, longest, _ in taken(plan, lengths):
            data, whole = int(own.sum()), len(own) * longest
            rows.append((str(len(own)), f"{data:,}", f"{whole - data:,}", words.percent(1 - data / whole)))
            height = chart.height / top
            bars += [(chart.height - whole * height, (whole - data) * height)]
            bars += [(chart.height - data * height, data * height)]
        assert chart.table.rows == rows  # few batches: all are drawn
        drawn = [(float(mark.attributes["y"]), float(mark.attributes["height"])) for mark in chart.marks]
        assert np.array(drawn) == pytest.approx(np.array(bars), abs=0.1)


def test_steps_and_the_waiting_of_their_ranks():
    plans = planned(LENGTHS, **FOUR)
    charts = draw_steps(read(plans, LENGTHS), {"random": 0.1, "sorted": 0.2})
    for chart, (label, plan), waits in zip(charts, plans.items(), ("10.0 %", "20.0 %"), strict=True):
        assert chart.title == f"{label}: ranks wait {waits} of the time"
        costs = np.array([cost for _, _, cost in taken(plan, LENGTHS)]).reshape(plan.steps, 2, 2).sum(axis=1)
        rows, titles = [], []
        for step in range(3, 7):  # 4 of 10, from the middle
            mean, most = costs[step].mean(), costs[step].max()
            rows.append((str(step), words.number(mean), words.number(most), words.percent(1 - mean / most)))
            for rank, cost in enumerate(costs[step]):
                waiting = words.percent(1 - cost / most)
                titles.append(f"step {step}, rank {rank}: cost {words.number(cost)}, waiting {waiting}")
        assert chart.table.rows == rows
        assert list(dict.fromkeys(mark.title for mark in chart.marks)) == titles


@of_epochs
def test_batches_sequence_by_sequence(lengths, plans):
    lengths = np.concatenate([lengths] * 6)  # more than are drawn, so that the middle differs from the begin
    batchings = {label: lw.Batching.from_json(plan.batching) for label, plan in plans.items()}
    plans = {label: lw.make_plan(lengths, batching) for label, batching in batchings.items()}
    charts = draw_sequences(read(plans, lengths), lengths, unit="frames")
    for chart, plan in zip(charts, plans.values(), strict=True):
        batches = [(str(len(own)), f"{own.mean():,.1f}", f"{longest:,}") for own, longest, _ in taken(plan, lengths)]
        shown = len(chart.table.rows)
        (at,) = (at for at in range(len(batches)) if batches[at : at + shown] == chart.table.rows)
        assert at <= len(batches) // 2 < at + shown
        # The last bar is as high as its sequence, from below.
        tops = [longest for _, longest, _ in taken(plan, lengths)[at : at + shown]]
        heights = [float(height) for height in re.findall(r"V([\d.]+)H", dict(chart.paths)["pad"])]
        assert np.argmin(heights) == np.argmax(
            [top for top, before in zip(tops, [0, *tops], strict=False) if top != before]
        )


def test_points_of_the_trade_off():
    for world, field in (({}, "mixing"), (FOUR, "step_mixing")):
        plans = planned(LENGTHS, "random,sorted,semi-sorted:0.2", **world)
        rows = {label: lw.measure(plan, LENGTHS).as_dict() for label, plan in plans.items()}
        (chart,) = draw_front(LENGTHS, read(plans, LENGTHS), rows, best="sorted")
        assert [row[0] for row in chart.table.rows] == ["random", "semi-sorted:0.2", "sorted"]
        end = 1.06 * max(row["padding_share"] for row in rows.values())
        for (label, padding, mixing), point in zip(chart.table.rows, chart.points, strict=True):
            row = rows[label]
            assert (padding, mixing) == (words.percent(row["padding_share"]), f"{row[field]:.3f}")
            assert point.x == pytest.approx(100 * row["padding_share"] / end, abs=0.01)
            assert point.y == pytest.approx(chart.height * (1 - row[field]), abs=0.01)
        assert chart.text.split(". ")[1].startswith(f"{max(rows, key=lambda label: rows[label][field])} mixes most")
        assert dict(chart.keys) == {"A": "random", "B": "semi-sorted:0.2", "C": "sorted"}
    (chart,) = draw_seconds({"random": 4.0, "sorted": 2.0}, rows, best="sorted")
    mixing = [f"{rows[label]['mixing']:.3f}" for label in ("random", "sorted")]
    assert chart.table.rows == [("random", "4", mixing[0]), ("sorted", "2", mixing[1])]


def test_letters_of_many_points_are_different():
    rows = {f"strategy {number}": {"mixing": number / 60} for number in range(60)}
    (chart,) = draw_seconds(dict(zip(rows, range(1, 61), strict=True)), rows, best="strategy 9")
    assert len(dict(chart.keys)) == 60


def test_the_limit_of_chunks_is_that_of_their_lengths():
    plans = {label: lw.make_plan(LENGTHS, CHUNKED, epoch=epoch) for epoch, label in enumerate("ab")}
    rows = {label: lw.measure(plan, LENGTHS).as_dict() for label, plan in plans.items()}
    (chart,) = draw_front(LENGTHS, read(plans, LENGTHS), rows, best="b")
    spans = plans["a"].spans
    share = 1.06 * max(row["padding_share"] for row in rows.values())
    most = lw.mixing_limit(spans[:, 2] - spans[:, 1], share, bins=rows["a"]["mixing_bins"])
    assert places(dict(chart.paths)["limit"] + " ", letter="[M ]")[-1][1] == pytest.approx(1000 - 1000 * most, abs=0.1)


@pytest.mark.parametrize("long", [9, 50_000])
def test_bars_hold_the_lengths_that_they_name(long):
    lengths = np.append(LENGTHS, long * LENGTHS.max())
    edges = np.array([LENGTHS.min() + 1, *range(600, 6_000, 300), lengths.max()])
    (chart,) = draw_lengths(lengths, unit="frames", edges=("mine", edges))
    for span, count in chart.table.rows:
        low, _, high = span.replace(",", "").partition(" to ")
        assert f"{((lengths >= int(low)) & (lengths <= int(high or low))).sum():,}" == count
    assert sum(int(count) for _, count in chart.table.rows) == len(lengths)
    most = max(chart.table.rows, key=lambda row: int(row[1]))
    assert chart.text.endswith(f"Most, {most[1]}, have {most[0]}.")
    # An edge lies behind the bars of the lengths that it holds.
    drawn = [float(mark.attributes["x1"].removesuffix("%")) for mark in chart.marks if mark.tag == "line"]
    bars = {mark.title.split(" ")[0]: mark for mark in chart.marks if mark.tag == "rect"}
    first = chart.table.rows[0][0].split(" ")[0]
    assert len(drawn) == len(edges)
    assert drawn == sorted(drawn)
    assert drawn[0] > float(bars[first].attributes["x"].removesuffix("%")) == 0.0
    assert drawn[-1] <= 100.0
    assert chart.caption.endswith(f" and {len(edges) - 12} more).")


def test_edges_are_those_of_the_last_strategy_that_has_some():
    plans = planned(LENGTHS, "optimal:3,uniform:4,random")
    label, edges = edges_of(plans, LENGTHS)
    assert (label, edges.tolist()) == ("uniform:4", lw.uniform_edges(LENGTHS, 4).tolist())
    (chart,) = draw_lengths(LENGTHS, unit="frames", edges=(label, edges))
    drawn = [float(mark.attributes["x1"].removesuffix("%")) for mark in chart.marks if mark.tag == "line"]
    bars = [mark for mark in chart.marks if mark.tag == "rect"]
    low, wide = LENGTHS.min(), (int(chart.table.rows[1][0].split(" ")[0]) - LENGTHS.min())
    whole = wide * len(bars)
    assert drawn == pytest.approx(100 * (edges + 1 - low) / whole, abs=0.01)


def test_curves_by_hand():
    nan = float("nan")
    runs = {
        "a": [[(0.0, 4.0), (2.0, 2.0)], [(0.0, 3.0), (4.0, 1.0)]],
        "b": [[(0.0, 2.0), (1.0, nan)]],
        "c": [[(2.0, 0.5)]],
    }
    first, second, third = draw_curves(runs, x_label="seconds", y_label="loss")
    assert [kind for kind, _ in first.paths] == ["line own", "line own"]
    assert [kind for kind, _ in second.paths] == ["line pale", "line pale", "line own single"]
    assert first.caption == "At the end 1.000 to 2.000, of 2 runs."
    assert second.caption == "It did not end in a finite value."
    assert third.caption == "At the end 0.500."
    # 4 seconds are the end of the axis, and 1.05 x 4 its top.
    assert first.paths[0][1] == f"M0,{1000 - 4000 / 4.2:.0f} 500,{1000 - 2000 / 4.2:.0f}"
    assert second.paths[-1][1] == f"M0,{1000 - 2000 / 4.2:.0f}h0"  # a dot: a line to nowhere is not seen
    assert first.table.rows == [("0", "4"), ("2", "2"), ("0", "3"), ("4", "1")]


def test_the_headline_says_where_nothing_differs():
    rows = {"random": {"padding_share": 0.4, "fill": 0.6}, "mine": {"padding_share": 0.4, "fill": 0.6}}
    told = headline.write_headline(rows, packed=False)
    assert told == "Random batches compute 1.67 frames for each frame of data, as mine does."
    assert headline.write_headline(rows, packed=True) == "Rows of random are 60.00 % data, as those of mine are."


def test_the_numbers_that_matter():
    rows = {
        "random": {"padding_share": 0.5, "mixing": 0.8, "step_mixing": 0.9, "pair_mixing": 0.7, "steps": 1_200},
        "mine": {"padding_share": 0.1, "mixing": 0.3, "step_mixing": 0.6, "pair_mixing": 0.2, "steps": 1_200},
    }
    rows = {label: {**row, "batches": 7, "straggler_waste": 0.25} for label, row in rows.items()}
    padding, same = ("50.0 %", "10.0 %"), ("", "1,200")

    def told(**asked):
        asked = {"slots": 1, "ranks": 1, "packed": False, "seconds": {}, **asked}
        return {tile.name: (tile.before, tile.after) for tile in headline.tiles(rows, **asked)}

    assert told() == {"padding": padding, "mixing": ("0.80", "0.30"), "steps": same}
    steps = {"padding": padding, "step mixing": ("0.90", "0.60"), "steps": same}
    assert told(slots=4) == steps
    assert told(slots=4, ranks=2) == steps | {"waiting": ("", "25.0 %")}
    assert told(packed=True)["pair mixing"] == ("0.70", "0.20")
    for packed, meaning in ((False, "ranks"), (True, "ranks, by the cost of the plan")):
        (waiting,) = (
            tile for tile in headline.tiles(rows, slots=4, ranks=2, packed=packed, seconds={}) if tile.name == "waiting"
        )
        assert waiting.meaning == f"of the time of all {meaning}"
    assert told(seconds={"random": 4.0, "mine": 2.5})["seconds"] == ("4", "2.5")
    assert "seconds" not in told(seconds={"mine": 2.5, "other": 1.0})


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("steps", [False, True])
def test_every_column_of_the_table_of_measures(packed, steps):
    cut = lw.Rows(8_192, rows=2) if packed else lw.Budget(4_000)
    plans = planned(LENGTHS, "random,sorted", cut=cut, **(FOUR if steps else {}))
    rows = {label: lw.measure(plan, LENGTHS).as_dict() | {"seconds": 0.25} for label, plan in plans.items()}
    assert not {"dropped", "over the budget"} & set(measures(rows, steps=steps, packed=packed).heads)
    rows["sorted"] |= {"dropped": 3, "over_max_cost": 4}  # of one of them is enough for a column
    table = measures(rows, steps=steps, packed=packed)
    for label, *cells in table.rows:
        found, row = dict(zip(table.heads[1:], cells, strict=True)), rows[label]
        fields = {
            **{"batches": f"{row['batches']:,}", "planned in ms": "250", "rows": f"{row['rows']:,}"},
            **{"padding": words.percent(row["padding_share"])},
            **{"computed / useful": words.computed(row["padding_share"])},
            **{"fill": f"{100 * row['fill']:.2f} %", "pair mixing": f"{row['pair_mixing']:.3f}"},
            **{"mixing": f"{row['mixing']:.3f}", "step mixing": f"{row['step_mixing']:.3f}"},
            **{"cost spread": words.percent(row["cost_spread"]), "largest cost": f"{row['largest_cost']:,.0f}"},
            **{"steps vary": f"{row['step_length_variance']:.3g}", "waiting": words.percent(row["straggler_waste"])},
            **{"dropped": f"{row['dropped']:,}", "over the budget": f"{row['over_max_cost']:,}"},
        }
        low, high = row["smallest_batch"], row["largest_batch"]
        assert found.pop("batch size") in {f"{low}-{high}", f"{low}" if low == high else ""}
        assert found == {head: fields[head] for head in found}
    expected = {"batches", "batch size", "planned in ms", "dropped", "over the budget"}
    assert expected | ({"step mixing"} if steps and not packed else set()) <= set(table.heads)


def test_facts_of_the_lengths():
    rows = {name: cells for name, *cells in facts(PAIRS).rows}
    for dim, column in enumerate(PAIRS.T):
        told = {name: cells[dim] for name, cells in rows.items()}
        assert (told["shortest"], told["longest"]) == (f"{column.min():,}", f"{column.max():,}")
        assert (told["total"], told["mean"]) == (f"{column.sum():,}", f"{column.mean():,.1f}")
        for share in (5, 50, 95):
            most = int(told[f"{share} % are at most"].replace(",", ""))
            assert (column <= most).mean() >= share / 100 > (column < most).mean()


@pytest.mark.parametrize(
    ("lengths", "written"),
    [([37], ["37"]), ([64, 64], ["64"]), ([301, 340], ["301", "340"]), ([10**9], ["1,000,000,000"])],
)
def test_an_axis_of_lengths_says_where_it_begins_and_ends_where_no_round_length_is_on_it(lengths, written):
    (chart,) = draw_lengths(np.array(lengths), unit="frames", edges=None)
    assert [tick.text for tick in chart.x_ticks] == written


def test_the_scale_of_an_axis():
    assert marks.upward(4.0, 100)(1.0) == 75.0


def test_a_label_stands_beside_its_own_point_and_not_on_what_is_taken():
    # 40 pixels to the left of the first point and a little below lies another: below the first is beside the other.
    points = [(100.0, 100.0), (58.0, 115.0), (157.0, 103.0)]
    first, *_ = place_labels(points, ["max-entropy:0.1", "", ""], width=400, height=200)
    assert first is not None
    assert first.far
    assert math.dist((first.x, first.y), points[0]) < math.dist((first.x, first.y), points[1])
    beside, _ = place_labels([(100.0, 100.0), (300.0, 100.0)], ["a", "b"], width=400, height=200)
    taken = [Box(105, 90, 130, 110)]
    moved, same = place_labels([(100.0, 100.0), (300.0, 100.0)], ["a", "b"], width=400, height=200, taken=taken)
    assert [each and each.anchor for each in (beside, moved, same)] == ["start", "end", "start"]


def test_what_is_put_forward_has_a_label_also_in_a_crowd():
    # Strategies that hardly pad lie in the corner, where the labels of those to the right of them take the room.
    lengths = lw.example_lengths("long-tailed")
    text = "random,sorted,semi-sorted:0.02,bucketed:64,optimal:8,max-entropy:0.02,max-entropy:0.05,max-entropy:0.1"
    plans = planned(lengths, f"{text},alternated:58", cut=lw.FixedSize(16))
    rows = {label: lw.measure(plan, lengths).as_dict() for label, plan in plans.items()}
    epochs = read(plans, lengths)
    for best in plans:
        (chart,) = draw_front(lengths, epochs, rows, best=best)
        for kind in ("vast", "wide"):
            written = [mark.text for mark in chart.marks if mark.tag == "text" and kind in mark.attributes["class"]]
            assert any(best in text or text.endswith("more") for text in written), (best, kind)


def test_the_label_of_the_first_point_finds_its_place_before_all_others():
    # The text of the right one has no place but on the left, where that of the left one would stand.
    points, texts = [(8.0, 10.0), (60.0, 10.0)], ["abcd", "abcdef"]
    assert [each is None for each in place_labels(points, texts, width=62, height=12)] == [True, False]
    assert [each is None for each in place_labels(points, texts, width=62, height=12, first=0)] == [False, True]


def test_the_name_of_the_limit_is_never_written_over():
    lengths = np.repeat([100, 900], 400)
    text = "random,sorted,optimal:8,max-entropy:0.05,max-entropy:0.1,max-entropy:0.15,max-entropy:0.2"
    plans = planned(lengths, text, cut=lw.FixedSize(16))
    rows = {label: lw.measure(plan, lengths).as_dict() for label, plan in plans.items()}
    (chart,) = draw_front(lengths, read(plans, lengths), rows, best="max-entropy:0.1")
    (name,) = [mark for mark in chart.marks if mark.text == "the limit"]
    for kind, width in (("vast", 870), ("wide", 560), ("narrow", 290)):
        others = [mark for mark in chart.marks if mark.tag == "text" and kind in mark.attributes["class"].split()]
        assert others
        assert not any(written(name, width).meets(written(other, width)) for other in others)


def written(mark, width):
    """Where the words of a mark stand, in pixels."""
    given = mark.attributes
    at, base = float(given["x"].rstrip("%")) / 100 * width + float(given["dx"]), float(given["y"])
    wide = LETTER * len(mark.text)
    left = {"start": at, "end": at - wide, "middle": at - wide / 2}[given["text-anchor"]]
    return Box(left, base - 11, left + wide, base + 3)


def test_one_bar_is_neither_first_nor_last_and_sequences_are_counted_in_whole_numbers():
    plans = planned([3, 5, 9], "random", cut=lw.FixedSize(4))
    epochs = read(plans, np.array([3, 5, 9]))
    charts = [*draw_padding(epochs, {"random": 0.4}, unit="frames"), *draw_costs(epochs)]
    assert [chart.x_ticks for chart in charts] == [[], []]
    assert charts[0].caption == "Its only batch."
    (histogram,) = draw_lengths(np.array([3, 5, 9]), unit="frames", edges=None)
    assert [tick.text for tick in histogram.y_ticks] == ["0", "1"]


def test_the_axis_of_several_lengths_says_that_it_is_of_their_sum():
    plans = planned(PAIRS)
    rows = {label: lw.measure(plan, PAIRS).as_dict() for label, plan in plans.items()}
    page = write_page(Contents(lengths=PAIRS, plans=plans, rows=rows))
    assert "length (frames, the sum of 2 lengths)" in page
