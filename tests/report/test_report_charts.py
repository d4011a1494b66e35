"""Charts: what they draw is what the library measures, in colours of one table, and every kind of file is written."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("altair")

import lengthwise as lw
from lengthwise import report
from lengthwise.choices.buckets import padded_frames
from lengthwise.cli.strategies import parse_strategies
from lengthwise.report import style

pytestmark = pytest.mark.slow

LENGTHS = lw.example_lengths(count=600)
CUT = lw.FixedSize(8)
TEXTS = "random,sorted,semi-sorted:0.1,max-entropy:0.1"


def planned(text=TEXTS, lengths=LENGTHS, *, cut=CUT, **world):
    batchings = parse_strategies(text, cut=cut)
    return {label: lw.make_plan(lengths, batching, **world) for label, batching in batchings.items()}


PLANS = planned()
MEASURES = {label: lw.measure(plan, LENGTHS) for label, plan in PLANS.items()}
CHARTS = {
    "histogram": lambda: report.histogram(LENGTHS, edges=lw.optimal_edges(LENGTHS, 4)),
    "histogram of two lengths": lambda: report.histogram(np.stack([LENGTHS, LENGTHS[::-1]], axis=1)),
    "padding": lambda: report.padding(MEASURES, best="max-entropy:0.1"),
    "batches": lambda: report.batches(PLANS, LENGTHS),
}


def rows_of(chart):
    """The rows of the first data set of a chart, and of others with the same fields."""
    rows = [row for values in chart.to_dict()["datasets"].values() for row in values]
    return [row for row in rows if row.keys() == rows[0].keys()]


@pytest.fixture(scope="module", params=CHARTS)
def chart(request):
    return CHARTS[request.param]()


def test_a_chart_has_the_colours_of_one_table_a_description_and_shows_in_a_notebook(chart):
    used = set(re.findall(r'"(#[0-9a-fA-F]{3,8})"', json.dumps(chart.to_dict())))
    assert used <= {paper for paper, _ in style.COLOURS.values()}
    assert len(chart.to_dict()["description"]) > 40
    assert "lengthwise" not in type(chart).__module__  # Altair's own, which notebooks know
    assert any("vegalite" in kind or kind == "text/html" for kind in chart._repr_mimebundle_())


@pytest.mark.parametrize(("suffix", "start"), [(".PNG", b"\x89PNG"), (".svg", b"<svg"), (".pdf", b"%PDF")])
def test_every_kind_of_file_is_written_whole(tmp_path, suffix, start):
    path = tmp_path / f"lengths{suffix}"
    report.save_chart(report.histogram(LENGTHS), path)
    light = path.read_bytes()
    report.save_chart(report.histogram(LENGTHS), path, dark=True)
    assert path.read_bytes().startswith(start)
    assert path.read_bytes() != light
    assert [path.name for path in tmp_path.iterdir()] == [path.name]  # no draft is left
    for name in ("plan.jpeg", "plan", "plan.png.gz"):
        with pytest.raises(ValueError, match=r"^`path` must be a file of one of the kinds \.png, \.svg, \.pdf, but is"):
            report.save_chart(report.histogram(LENGTHS), tmp_path / name)


def test_a_histogram_counts_each_sequence_once_and_a_giant_asks_for_a_logarithmic_axis():
    rows = rows_of(report.histogram([2, 3, 3, 7, 7, 7]))
    assert [(row["from"], row["sequences"]) for row in rows if row["sequences"]] == [(2, 1), (3, 2), (7, 3)]
    lengths = np.array([*range(10, 60), 50_000])
    chart = report.histogram(lengths)
    counts = [row["sequences"] for row in rows_of(chart)]
    assert (sum(counts), counts[-1], len(counts) <= 40) == (51, 1, True)
    assert '"type": "log"' in json.dumps(chart.to_dict())


def test_edges_say_what_they_pad():
    edges = lw.optimal_edges(LENGTHS, 4)
    share = 100 * (1 - LENGTHS.sum() / padded_frames(LENGTHS, edges))
    told = f"the edges of 4 buckets, under which {share:.1f} % is padding"
    assert told in json.dumps(report.histogram(LENGTHS, edges=edges).to_dict())


def test_the_padding_of_each_strategy_is_what_measure_says():
    rows = rows_of(chart := report.padding(MEASURES))
    for label, measures in MEASURES.items():
        assert (
            f"{label} {100 * measures.padding_share:.1f} %, randomness {measures.randomness:.2f}" in chart.description
        )
        parts = {row["part"]: row["frames"] for row in rows if row["strategy"] == label}
        assert parts["data"] == 1
        assert parts["padding"] / (1 + parts["padding"]) == pytest.approx(measures.padding_share)


def test_a_page_shows_all_digits_of_a_small_padding():
    chart = report.padding({"rows": {"padding_share": 0.00098, "randomness": 1.0}})
    assert ">0.098 %</text>" in style.inline_svg(chart, "x")


@pytest.mark.parametrize(
    ("lengths", "cut", "drawn"),
    [
        ([5, 9, 2, 4], lw.FixedSize(2), [(1, 2, 4), (1, 4, 4), (2, 5, 9), (2, 9, 9)]),
        # 3 sequences in 4 rows, of which the last is not drawn, then 2.
        ([3, 3, 9, 9, 3], lw.Budget(18, count_multiple_of=2), [(1, 3, 3), (1, 3, 3), (1, 3, 3), (2, 9, 9), (2, 9, 9)]),
    ],
)
def test_batches_are_drawn_as_they_are_delivered(lengths, cut, drawn):
    plan = lw.make_plan(lengths, lw.Batching(cut=cut, order=lw.Sorted(), arrange=lw.InOrder()))
    rows = rows_of(report.batches(plan, lengths))[:-1]  # a step needs a place more
    assert sorted((row["batch"], row["length"], row["padded to"]) for row in rows) == drawn


@pytest.mark.parametrize(
    ("choices", "item"),
    [({}, "sequence"), ({"chunks": lw.Chunks(100)}, "chunk"), ({"cut": lw.Rows(8_192, rows=2)}, "row")],
)
def test_whatever_a_batch_holds_is_named(choices, item):
    plan = lw.make_plan(LENGTHS, lw.Batching(**{"cut": CUT, "order": lw.Shuffled(), **choices}))
    assert f"A thin bar is a {item}." in json.dumps(report.batches(plan, LENGTHS).to_dict())


@pytest.mark.parametrize("lengths", [[], [7], [1, 10**9]])
def test_few_sequences_can_be_drawn(lengths):
    lengths = np.array(lengths, np.int64)
    plan = planned("random", lengths, cut=lw.FixedSize(1), world_size=2)["random"]
    assert style.inline_svg(report.batches(plan, lengths), "x").startswith("<svg")
    if len(lengths):
        assert style.inline_svg(report.padding({"random": lw.measure(plan, lengths)}), "x").startswith("<svg")


def test_what_is_no_plan_and_no_measures_is_refused():
    with pytest.raises(ValueError, match="`plans` must be at least one plan by its label"):
        report.batches({}, LENGTHS)
    with pytest.raises(TypeError, match="`plans` must be a Plan, but is 3"):
        report.batches({"random": 3}, LENGTHS)
    with pytest.raises(ValueError, match="`measures` must be measures by the label of the strategy"):
        report.padding({})
    with pytest.raises(ValueError, match="`lengths` must be at least one sequence"):
        report.histogram([])


def contrast(one, two):
    """The contrast of two colours, WCAG 2.1."""

    def luminance(colour):
        parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [0, 1])
def test_text_and_marks_can_be_told_from_the_paper(dark):
    colours = {name: pair[dark] for name, pair in style.COLOURS.items()}
    for paper in ("paper", "card"):
        assert min(contrast(colours[name], colours[paper]) for name in ("ink", "soft", "recommended")) >= 4.5
    assert min(contrast(colours[name], colours["paper"]) for name in ("data", "padding")) >= 3.0


@pytest.mark.parametrize("letter", ["\x1b", "\0", "\ud800", "\uffff"])
def test_control_characters_are_refused_and_end_no_process(tmp_path, letter):
    labelled = {f"a{letter}": PLANS["random"], "b": PLANS["sorted"]}
    for chart, name in (report.histogram(LENGTHS, unit=letter), "a.svg"), (report.batches(labelled, LENGTHS), "a.png"):
        with pytest.raises(ValueError, match=r"^`labels` must be of letters that can be drawn, but is "):
            report.save_chart(chart, tmp_path / name)
