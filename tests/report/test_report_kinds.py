"""Reports of all kinds of plans: of packed rows, of chunks, of one sequence, where the first is best; and odd names."""

import base64
import hashlib
import re

import numpy as np
import pytest

import lengthwise as lw
from html_pages import Page
from lengthwise.cli.strategies import parse_strategies
from lengthwise.report.contents import Contents
from lengthwise.report.epochs import read
from lengthwise.report.front import draw_front, draw_seconds
from lengthwise.report.reports import save, write_page
from lengthwise.report.sequences import Axis, draw_sequences
from lengthwise.report.words import percent

LENGTHS = lw.example_lengths(count=600)


def planned(lengths, text, *, cut=None, **options):
    batchings = parse_strategies(text, cut=cut or lw.FixedSize(8))
    return {label: lw.make_plan(lengths, batching, **options) for label, batching in batchings.items()}


def written(tmp_path, lengths, plans, **options):
    save(tmp_path / "report.html", lengths, plans, **options)
    return Page((tmp_path / "report.html").read_text(encoding="utf-8"))


def test_where_the_first_is_best_it_alone_is_put_forward():
    equal = np.full(64, 9)
    plans = planned(equal, "random,sorted")
    rows = {label: lw.measure(plan, equal).as_dict() for label, plan in plans.items()}
    found = Page(write_page(Contents(lengths=equal, plans=plans, rows=rows, best="random")))
    assert (
        found.said("h1")
        == "Random batches compute 1.00 frames for each frame of data; no strategy computes clearly less."
    )
    assert "to sorted" not in found.said("p")
    assert "lw.Shuffled()" in found.said("code")
    (chart,) = draw_front(equal, read(plans, equal), rows, best="random")
    assert [(point.name, point.kind) for point in chart.points] == [("sorted", ""), ("random", "chosen")]
    (chart,) = draw_seconds({"random": 1.0, "sorted": 1.0}, rows, best="random")
    assert [(point.name, point.kind) for point in chart.points] == [("sorted", ""), ("random", "chosen")]


def test_packed_rows_have_words_of_their_own(tmp_path):
    plans = planned(LENGTHS, "best-fit,pool:16", cut=lw.Rows(8_192, rows=2))
    found = written(tmp_path, LENGTHS, plans)
    assert "padded to its longest" not in found.said("p")
    assert "All rows are padded to the capacity." in found.said("p")
    assert "Batches, row by row" in found.said("h2")


def test_the_best_is_put_forward_wherever_it_stands():
    plans = planned(LENGTHS, "random,sorted,semi-sorted:0.3", world_size=2)
    rows = {label: lw.measure(plan, LENGTHS).as_dict() for label, plan in plans.items()}
    found = Page(write_page(Contents(lengths=LENGTHS, plans=plans, rows=rows, best="sorted")))
    computed = {label: 1 / (1 - row["padding_share"]) for label, row in rows.items()}
    told = f" {computed['random']:.2f} frames for each frame of data; sorted computes {computed['sorted']:.2f}."
    assert found.said("h1").endswith(told)
    assert plans["sorted"].fingerprint() in found.said("code")
    assert list(found.table("strategy")) == list(plans)  # in the order that was given
    for label in ("random", "sorted"):
        assert f"{label}: ranks wait {percent(rows[label]['straggler_waste'])} of the time" in found.said("h3")
    assert "semi-sorted:0.3: ranks wait" not in found.said("h3")


def test_micro_batches_alone_make_steps_too(tmp_path):
    table = written(tmp_path, LENGTHS, planned(LENGTHS, "random,sorted", micro_batches=4)).table("strategy")
    assert {"step mixing", "steps vary"} <= set(table["sorted"])


def test_of_several_epochs_the_first_is_drawn(tmp_path):
    epochs = [planned(LENGTHS, "random", epoch=epoch)["random"] for epoch in range(3)]
    assert epochs[0].fingerprint() in written(tmp_path, LENGTHS, {"random": epochs}).said("code")


def test_the_script_is_the_one_that_the_page_allows(tmp_path):
    text = written(tmp_path, LENGTHS, planned(LENGTHS, "random")).text
    (script,) = re.findall("<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in text or f"script-src 'sha256-{digest}'" in text


def test_of_packed_rows_the_first_may_be_best():
    plans = planned(LENGTHS, "pool:16,pool:1", cut=lw.Rows(8_192, rows=2))
    rows = {label: lw.measure(plan, LENGTHS).as_dict() for label, plan in plans.items()}
    found = Page(write_page(Contents(lengths=LENGTHS, plans=plans, rows=rows, best="pool:16")))
    assert found.said("h1") == f"Rows of pool:16 are {100 * rows['pool:16']['fill']:.2f} % data."


def test_names_that_are_no_utf8_are_written(tmp_path):
    plans = planned(LENGTHS, "random")
    found = written(tmp_path, LENGTHS, {"a\udcff": plans["random"]}, title="train-\udcff.csv")  # as of a byte 0xff
    assert "train-?.csv" in found.said("p")
    assert "a?" in found.table("strategy")


@pytest.mark.parametrize("name", ["title", "unit"])
def test_a_name_that_is_no_text_is_refused(tmp_path, name):
    with pytest.raises(TypeError, match=f"`{name}` must be text, but is None"):
        save(tmp_path / "x.html", LENGTHS, planned(LENGTHS, "random"), **{name: None})


def test_labels_that_are_written_alike_are_refused(tmp_path):
    plan = planned(LENGTHS, "random")["random"]
    with pytest.raises(ValueError, match="`plans` must be under labels that differ as text"):
        save(tmp_path / "x.html", LENGTHS, {1: plan, "1": plan})


def test_chunks_are_called_so(tmp_path):
    chunked = lw.Batching(cut=lw.FixedSize(8), order=lw.Shuffled(), chunks=lw.Chunks(100))
    found = written(tmp_path, LENGTHS, {"random": lw.make_plan(LENGTHS, chunked)})
    assert "Batches, chunk by chunk" in found.said("h2")
    assert "a chunk" in found.said("span")
    assert f"480 of {len(lw.make_plan(LENGTHS, chunked).spans):,} chunks" in found.said("p")


def test_one_is_written_in_the_singular(tmp_path):
    found = written(tmp_path, [7], planned(np.array([7]), "random", cut=lw.FixedSize(1)))
    assert "1 sequence, 1 batch" in found.said("text")


def test_batches_of_few_giants_are_drawn_on_a_logarithmic_axis():
    # Of three orders, one has its giants in the middle, where batches are drawn.
    lengths = np.repeat([2, 50_000, 2], 640)
    bare = lw.Batching(cut=lw.FixedSize(8), order=lw.Sorted(), arrange=lw.InOrder())
    short = lw.make_plan(lengths, bare)  # 1,280 of 2, then 640 of 50,000: the middle is short
    mixed = lw.make_plan(lengths, lw.Batching(cut=lw.FixedSize(8), order=lw.Shuffled()))
    charts = draw_sequences(read({"a": short, "b": short, "c": mixed}, lengths), lengths, unit="frames")
    assert [chart.caption for chart in charts] == ["The axis is logarithmic: areas are not frames."] * 3
    assert [tick.text for tick in charts[0].y_ticks] == ["0", "100", "10k"]
    (linear,) = draw_sequences(read({"c": mixed}, lengths), lengths, unit="frames")
    assert linear.caption == ""


def test_places_on_the_axis_of_batches():
    assert [Axis(99.0, logarithmic=True)(length) for length in (0, 9, 99, 500)] == pytest.approx([0, 0.5, 1, 1])
    assert [Axis(100.0, logarithmic=False)(length) for length in (0, 50, 500)] == [0, 0.5, 1]
