"""What `advise` recommends, in a report: drawn from what its answer holds."""

import re
from typing import NamedTuple

import pytest

import lengthwise as lw
from html_pages import Page
from lengthwise.cli.strategies import parse_strategies
from lengthwise.report import save
from lengthwise.report.advised import advice_section
from lengthwise.report.contents import Contents
from lengthwise.report.reports import write_page
from lengthwise.report.words import percent

LENGTHS = lw.example_lengths(count=400)


class Row(NamedTuple):
    label: str
    ships_in: str
    measures: lw.Measures
    price: float
    mixing: float
    on_front: bool


class Answer(NamedTuple):
    candidates: tuple[Row, ...]
    best: Row
    unit: str = "frames"
    sentence: str = "Take max-entropy:0.1: it computes 1.1 frames & mixes most."
    world_size: int = 1
    micro_batches: int = 1


def answer():
    plans = {
        label: lw.make_plan(LENGTHS, batching)
        for label, batching in parse_strategies("random,sorted,max-entropy:0.1", cut=lw.FixedSize(8)).items()
    }
    rows = []
    for label, plan in plans.items():
        found = lw.measure(plan, LENGTHS)
        ships_in = "PyTorch" if label == "random" else ""
        rows.append(Row(label, ships_in, found, 1 / (1 - found.padding_share), found.mixing, label != "random"))
    return Answer(tuple(rows), rows[-1]), plans


def test_the_recommendation_is_drawn_and_told():
    advice, plans = answer()
    section = advice_section(advice)
    rows = {row.label: row.measures.as_dict() for row in advice.candidates}
    page = Page(write_page(Contents(lengths=LENGTHS, plans=plans, rows=rows, outcomes=(section,))))
    assert advice.sentence in page.said("p")
    (table,) = (table for table in page.tables if table[0][:2] == ["strategy", "ships in"])
    assert [row[0] for row in table[1:]] == ["random", "sorted", "max-entropy:0.1 (recommended)"]
    assert [row[1] for row in table[1:]] == ["PyTorch", "", ""]
    names = [each["aria-label"].split(":")[0] for each in page.of("li") if "aria-label" in each]
    assert names.count("random") == 2  # on this front, and on that of padding


def test_of_many_candidates_some_are_named():
    advice, _ = answer()
    row = advice.candidates[1]
    many = tuple(row._replace(label=f"buckets:{number}", price=1 + number / 100) for number in range(60))
    section = advice_section(Answer((*many, advice.best), advice.best))
    (chart,) = section.charts
    assert len(chart.points) == 61
    assert 2 <= len(chart.keys) <= 8
    assert len(section.table.rows) == len(chart.keys)


@pytest.mark.parametrize(
    ("unit", "head", "axis"),
    [
        ("frames", "computed / useful", "frames computed for each frame of data"),
        ("seconds", "seconds an epoch", "seconds of an epoch, as predicted"),
        ("cost", "cost of an epoch", "cost of an epoch"),
    ],
)
def test_each_candidate_is_told_by_its_own_numbers(unit, head, axis):
    advice, _ = answer()
    first = advice.candidates[1]
    section = advice_section(
        advice._replace(best=first, unit=unit, world_size=2), write_cut=lambda row: row.label[::-1]
    )
    for cells, row in zip(section.table.rows, advice.candidates, strict=True):
        found = dict(zip(section.table.heads, cells, strict=True))
        assert found.pop("strategy") == row.label + " (recommended)" * (row is first)
        assert found == {
            **{"ships in": row.ships_in, "cut": row.label[::-1], head: f"{row.price:.2f}"},
            **{"padding": percent(row.measures.padding_share), "waiting": percent(row.measures.straggler_waste)},
            "step mixing": f"{row.mixing:.3f}",
        }
    (chart,) = section.charts
    assert [(point.name, point.kind) for point in chart.points][-1] == (first.label, "chosen")
    assert chart.x_label == f"{axis}, of the slowest rank"


@pytest.mark.parametrize(
    ("ranks", "heads"),
    [
        (1, ["strategy", "ships in", "padding", "mixing", "computed / useful"]),
        (2, ["strategy", "ships in", "padding", "waiting", "step mixing", "computed / useful"]),
    ],
)
def test_ranks_have_their_own_columns(ranks, heads):
    advice, _ = answer()
    section = advice_section(advice._replace(world_size=ranks))
    (chart,) = section.charts
    assert list(section.table.heads) == heads
    assert section.table.rows[-1][-1] == f"{advice.best.price:.2f}"
    assert chart.y_label == heads[-2]
    assert chart.x_label == "frames computed for each frame of data" + ", of the slowest rank" * (ranks > 1)


def test_on_a_phone_each_cell_of_a_wide_table_has_its_head_and_an_empty_one_is_left_out(tmp_path):
    lengths = lw.example_lengths(count=200)
    save(tmp_path / "page.html", lengths, {"a": lw.make_plan(lengths, lw.Batching(budget=20_000))})
    page = (tmp_path / "page.html").read_text()
    tables = re.findall(r'<table class="many">.*?</table>', page, re.DOTALL)
    assert tables
    for table in tables:
        heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)
        told = re.findall(r'<td data-head="(.*?)"', table)
        assert set(told) <= set(heads)
        assert len(told) == table.count("<td")
    assert re.search(r"\.many td:empty \{ display: none; \}", page)
