"""Pages: what they say, that they hold all that they show, and what they refuse."""

import base64
import hashlib
import re

import numpy as np
import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")

import lengthwise as lw
from html_pages import Page
from lengthwise.cli.strategies import parse_strategies, parse_strategy
from lengthwise.report import save_page
from lengthwise.report.page import Contents, write_page
from lengthwise.report.tables import Table
from lengthwise.report.words import percent

pytestmark = pytest.mark.slow

LENGTHS = lw.example_lengths(count=600)
STRATEGIES = "random,sorted,optimal:4,max-entropy:0.1"


def planned(lengths, text=STRATEGIES, *, cut=None, **options):
    batchings = parse_strategies(text, cut=cut or lw.FixedSize(8))
    return {label: lw.make_plan(lengths, batching, **options) for label, batching in batchings.items()}


def written(tmp_path, lengths, plans, **options):
    save_page(plans, lengths, tmp_path / "report.html", **options)
    return Page.of_file(tmp_path / "report.html")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return written(tmp_path_factory.mktemp("report"), LENGTHS, planned(LENGTHS, world_size=2), title="train.csv")


def test_the_answer_comes_first_with_its_numbers(page):
    plans = planned(LENGTHS, world_size=2)
    first, last = (1 / (1 - lw.measure(plans[label], LENGTHS).padding_share) for label in ("random", "max-entropy:0.1"))
    answer = f"Random batches compute {first:.2f} frames for each frame of data; max-entropy:0.1 computes {last:.2f}."
    assert (page.said("h1"), page.said("title").startswith(answer)) == (answer, True)
    assert "train.csv" in page.said("p")
    code, figure = page.text.index(plans["max-entropy:0.1"].fingerprint()), page.text.index("<figure>")
    assert code < figure  # the code comes second


def test_the_numbers_of_the_table_are_those_of_measure(page):
    table = page.table("strategy")
    for label, plan in planned(LENGTHS, world_size=2).items():
        found = lw.measure(plan, LENGTHS)
        assert table[label]["padding"] == f"{100 * found.padding_share:.1f} %"
        assert table[label]["computed / useful"] == f"{1 / (1 - found.padding_share):.2f}"
        assert table[label]["randomness"] == f"{found.randomness:.2f}"
        assert table[label]["waiting"] == percent(found.straggler_waste)
        assert table[label]["batches"] == f"{found.batches:,}"


def titles(page):
    """The titles of the charts, in their order."""
    return re.findall(r"aria-label=\"Title text '([^']*)'", page.text)


def test_every_chart_is_there(page):
    assert [title for title in titles(page) if ":" not in title] == [
        "Padding, as a share of what is computed",
        "Batches, sequence by sequence",
        "600 sequences of 51 to 3,363 frames",
    ]


def test_a_page_loads_nothing_and_runs_its_one_script(page):
    (policy,) = (each for each in page.of("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"].startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    loaded = [attributes.get(name) for _, attributes in page.elements for name in ("src", "href", "srcset", "data")]
    assert [each for each in loaded if each and not each.startswith(("#", "data:,"))] == []
    assert re.findall(r"https?://|@import|url\((?!#)", page.text) == []
    assert [tag for tag, _ in page.elements if tag in ("img", "iframe", "object", "embed", "form", "base")] == []
    (script,) = re.findall("<script>(.*?)</script>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page.text


def test_what_is_seen_can_be_heard(page):
    plots = [each for each in page.of("svg") if each.get("role") == "img"]
    assert len(plots) == page.text.count("<figure>") == 3
    assert all(len(each["aria-label"]) > 40 for each in plots)
    tables = [each["aria-label"] for each in page.of("div") if each.get("role") == "region"]
    assert tables == ["The lengths", "All measures"]
    assert [each["lang"] for each in page.of("html")] == ["en"]
    assert "<title>strategy: random; part: padding" in page.text or "part: padding</title>" in page.text  # a tooltip


def test_parts_of_a_drawing_have_names_of_their_own_and_the_colours_of_the_readers_theme(page):
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(names)) == len(names)
    assert set(re.findall(r"url\(#([^)]*)\)", page.text)) <= set(names)
    drawings = "".join(re.findall(r"<svg.*?</svg>", page.text, re.DOTALL))
    assert re.findall(r'"#[0-9a-f]{3,8}"', drawings) == []
    assert {"var(--data)", "var(--padding)", "var(--recommended)"} <= set(re.findall(r"var\(--\w+\)", drawings))


def test_every_text_of_a_page_is_escaped():
    evil = "</code></pre><script>alert(1)</script>\"'{{ evil }}{% evil %}&"
    plans = {evil: planned(LENGTHS, "random")["random"]}
    rows = {evil: lw.measure(plans[evil], LENGTHS).as_dict()}
    texts = dict.fromkeys(("command", "loading", "title", "answer", "lead"), evil)
    tables = [Table((evil,) * 5, [(evil,) * 5], evil, meanings=[(evil, evil)], note=evil)]
    found = Page(write_page(Contents(lengths=LENGTHS, plans=plans, rows=rows, tables=tables, unit=evil, **texts)))
    assert len(found.of("script")) == 1
    assert evil in found.said("p")
    assert found.said("code").count(evil) == 3  # the command, and in the code the loading and the label
    assert not [name for _, attributes in found.elements for name in attributes if name.startswith("on")]


def test_many_ranks_and_micro_batches_make_no_large_page(tmp_path):
    lengths = lw.example_lengths(count=20_000)
    plans = planned(lengths, "random,sorted", cut=lw.FixedSize(4), world_size=64, micro_batches=32)
    assert len(written(tmp_path, lengths, plans).text) < 300_000


def test_a_page_may_have_few_sequences_none_or_two_lengths_of_each(tmp_path):
    plans = planned(np.array([1, 10**9]), "random,sorted", cut=lw.FixedSize(1), world_size=3)
    assert written(tmp_path, [1, 10**9], plans).said("h1").startswith("Random batches compute 1.00 frames")
    plan = lw.make_plan([], lw.Batching(cut=lw.FixedSize(2), order=lw.Shuffled()))
    assert "sequences" in written(tmp_path, [], {"random": plan}).said("th")
    pairs = np.stack([LENGTHS, LENGTHS[::-1]], axis=1)
    found = written(tmp_path, pairs, planned(pairs, "random", micro_batches=4), unit="tokens", title="train-\udcff.csv")
    assert "length 1 (tokens)" in found.text
    assert "length 2 (tokens)" in found.text
    assert {"randomness", "waiting"} <= set(found.table("strategy")["random"])
    assert "train-?.csv" in found.said("p")  # a name that is no UTF-8, as of a byte 0xff


def test_packed_rows_are_told_by_their_fill(tmp_path):
    plans = planned(LENGTHS, "random,pool:256", cut=lw.Rows(8_192, rows=2), world_size=2)
    found = written(tmp_path, LENGTHS, plans)
    fill = 100 * lw.measure(plans["pool:256"], LENGTHS).fill
    assert f"Rows of random are {fill:.2f} % data, as those of pool:256 are." in found.said("h1")
    assert found.table("strategy")["pool:256"]["fill"] == f"{fill:.2f} %"
    assert "Batches, row by row" in titles(found)
    assert not any("How random" in title for title in titles(found))
    rows = {label: lw.measure(plan, LENGTHS).as_dict() for label, plan in plans.items()}
    found = Page(write_page(Contents(lengths=LENGTHS, plans=plans, rows=rows, best="random")))
    assert found.said("h1") == f"Rows of random are {100 * rows['random']['fill']:.2f} % data."


def test_several_epochs_are_measured_together_and_the_first_is_drawn(tmp_path):
    batching = parse_strategy("random", cut=lw.FixedSize(8))
    plans = [lw.make_plan(LENGTHS, batching, epoch=epoch) for epoch in range(5)]
    found = written(tmp_path, LENGTHS, {"random": plans})
    assert found.table("strategy")["random"]["padding"] == percent(lw.measure(plans[0], LENGTHS).padding_share)
    assert found.table("strategy")["random"]["randomness"] == f"{lw.measure(plans, LENGTHS).randomness:.2f}"
    assert found.table("strategy")["random"]["batches"] == "75"  # 600 / 8, of one epoch
    assert plans[0].fingerprint() in found.said("code")


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
        assert f"{label}: {percent(rows[label]['padding_share'])} padding" in titles(found)
    assert "semi-sorted:0.3: " not in found.text
    found = Page(write_page(Contents(lengths=LENGTHS, plans=plans, rows=rows, best="random")))
    assert found.said("h1").endswith("for each frame of data; no strategy computes clearly less.")


def test_what_is_no_plan_and_no_text_is_refused(tmp_path):
    page, plan = tmp_path / "x.html", planned(LENGTHS, "random")["random"]
    for wrong in (3, "random", [], [1], [[0, 1]], None):
        with pytest.raises((TypeError, ValueError), match="`plans` must be "):
            save_page({"random": wrong}, LENGTHS, page)
    for no_plans in ({}, None, [1]):
        with pytest.raises(ValueError, match="`plans` must be at least one plan by its label"):
            save_page(no_plans, LENGTHS, page)
    with pytest.raises(ValueError, match="`plans` must be under labels whose texts differ"):
        save_page({1: plan, "1": plan}, LENGTHS, page)
    for name in ("title", "unit"):
        with pytest.raises(TypeError, match=f"`{name}` must be a text, but is None"):
            save_page({"random": plan}, LENGTHS, page, **{name: None})
    with pytest.raises(ValueError, match="`lengths` must be those of the plan"):
        save_page({"random": plan}, LENGTHS[1:], page)
    assert not page.exists()


def test_letters_that_cannot_be_drawn_are_written_out(tmp_path):
    letters = ["\x1b[31m", "\0", "\x9b", "\ud800", "\uffff"]
    text = written(tmp_path, LENGTHS, {f"a{''.join(letters)}": planned(LENGTHS, "random")["random"]}).text
    assert not [letter for letter in letters if letter in text]


def test_on_a_phone_each_cell_of_a_wide_table_has_its_head(page):
    tables = re.findall(r'<table class="many">.*?</table>', page.text, re.DOTALL)
    assert tables
    for table in tables:
        heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)
        told = re.findall(r'<td data-head="(.*?)"', table)
        assert set(told) <= set(heads)
        assert len(told) == table.count("<td")
