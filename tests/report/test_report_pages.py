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
from lengthwise.advice.code import write_plan
from lengthwise.cli.strategies import parse_strategies, parse_strategy
from lengthwise.report import save_page
from lengthwise.report.page import Contents, write_page
from lengthwise.report.tables import Table
from lengthwise.report.words import percent
from menu import ARRANGEMENTS, CHUNKS, DEALS, ORDERS, cuts

pytestmark = pytest.mark.slow

LENGTHS = lw.example_lengths(count=600)
STRATEGIES = "random,sorted,optimal:4,max-entropy:0.1"


def planned(lengths, text=STRATEGIES, *, cut=None, **options):
    batchings = parse_strategies(text, cut=cut or lw.FixedSize(8))
    return {label: lw.make_plan(lengths, batching, **options) for label, batching in batchings.items()}


def written(tmp_path, lengths, plans, **options):
    save_page(plans, lengths, tmp_path / "report.html", **options)
    return Page((tmp_path / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return written(tmp_path_factory.mktemp("report"), LENGTHS, planned(LENGTHS, world_size=2), title="train.csv")


def test_the_answer_comes_first_with_its_numbers(page):
    plans = planned(LENGTHS, world_size=2)
    first, last = (1 / (1 - lw.measure(plans[label], LENGTHS).padding_share) for label in ("random", "max-entropy:0.1"))
    answer = f"Random batches compute {first:.2f} frames for each frame of data; max-entropy:0.1 computes {last:.2f}."
    assert (page.said("h1"), page.said("title").startswith(answer)) == (answer, True)
    assert "train.csv" in page.said("p")
    assert page.text.index(plans["max-entropy:0.1"].fingerprint()) < page.text.index(
        "<figure>"
    )  # the code comes second


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
        "How random steps are, for what they pad",
        "Batches, sequence by sequence",
        "Ranks that wait",
        "Memory, step by step",
        "600 sequences of 51 to 3,363 frames",
    ]


def test_a_page_loads_nothing(page):
    (policy,) = (each for each in page.of("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"].startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    loaded = [attributes.get(name) for _, attributes in page.elements for name in ("src", "href", "srcset", "data")]
    assert [each for each in loaded if each and not each.startswith(("#", "data:,"))] == []
    assert re.findall(r"https?://|@import|url\((?!#)", page.text) == []
    assert [tag for tag, _ in page.elements if tag in ("img", "iframe", "object", "embed", "form", "base")] == []


def test_the_script_is_the_one_that_the_page_allows(page):
    (script,) = re.findall("<script>(.*?)</script>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page.text


def test_what_is_seen_can_be_heard(page):
    plots = [each for each in page.of("svg") if each.get("role") == "img"]
    assert len(plots) == page.text.count("<figure>") == page.text.count("<summary>Data of this chart") == 6
    assert all(len(each["aria-label"]) > 40 for each in plots)
    tables = [each["aria-label"] for each in page.of("div") if each.get("role") == "region"]
    assert len(set(tables)) == len(tables) == len(plots) + 2  # of each chart, the lengths and all measures
    assert [each["lang"] for each in page.of("html")] == ["en"]
    assert "<title>strategy: random; part: padding" in page.text or "part: padding</title>" in page.text  # a tooltip


def test_parts_of_a_drawing_have_names_of_their_own(page):
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(names)) == len(names)
    assert set(re.findall(r"url\(#([^)]*)\)", page.text)) <= set(names)


def test_marks_have_the_colours_of_the_readers_theme(page):
    drawings = "".join(re.findall(r"<svg.*?</svg>", page.text, re.DOTALL))
    assert re.findall(r'"#[0-9a-f]{3,8}"', drawings) == []
    assert {"var(--data)", "var(--padding)", "var(--recommended)"} <= set(re.findall(r"var\(--\w+\)", drawings))


@pytest.mark.parametrize(
    "evil", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & 'b' {{ evil }} {% evil %}"]
)
def test_whatever_users_give_is_escaped(tmp_path, evil):
    plans = planned(LENGTHS, "random,sorted")
    harmless = written(tmp_path, LENGTHS, {"a": plans["random"], "b": plans["sorted"]}, title="t", unit="u")
    found = written(tmp_path, LENGTHS, {evil: plans["random"], f"{evil}2": plans["sorted"]}, title=evil, unit=evil)
    drawn = {"path", "g", "text", "tspan", "title", "line"}  # a long name takes the place of a tick
    assert [tag for tag, _ in found.elements if tag not in drawn] == [
        tag for tag, _ in harmless.elements if tag not in drawn
    ]
    assert not [name for _, attributes in found.elements for name in attributes if name.startswith("on")]
    assert evil in found.said("p")
    assert evil in found.table("strategy")


def test_every_text_of_a_page_is_escaped():
    plans = planned(LENGTHS, "random")
    rows = {"random": lw.measure(plans["random"], LENGTHS).as_dict()}
    evil = "</code></pre><script>alert(1)</script>"
    texts = dict.fromkeys(("command", "loading", "title", "answer", "lead"), evil)
    tables = [Table((evil,) * 5, [(evil,) * 5], evil, meanings=[(evil, evil)], note=evil)]
    found = Page(write_page(Contents(lengths=LENGTHS, plans=plans, rows=rows, tables=tables, **texts)))
    assert len(found.of("script")) == 1
    assert found.said("code").count(evil) == 2


def test_long_epochs_make_no_large_page(tmp_path):
    many = lw.example_lengths(count=300_000)
    assert len(written(tmp_path, many, planned(many, "random,max-entropy:0.1")).text) < 300_000


def test_many_ranks_and_micro_batches_make_no_large_page(tmp_path):
    lengths = lw.example_lengths(count=40_000)
    plans = planned(lengths, "random,sorted", cut=lw.FixedSize(4), world_size=64, micro_batches=32)
    assert len(written(tmp_path, lengths, plans).text) < 300_000


@pytest.mark.parametrize("lengths", [[7], [3, 3], [5, 1, 9], [1, 10**9]])
@pytest.mark.parametrize("world_size", [1, 3])
def test_few_sequences_have_a_page(tmp_path, lengths, world_size):
    plans = planned(np.array(lengths), "random,sorted", cut=lw.FixedSize(1), world_size=world_size)
    assert written(tmp_path, lengths, plans).said("h1").startswith("Random batches compute 1.00 frames")


def test_an_empty_epoch_has_a_page(tmp_path):
    plan = lw.make_plan([], lw.Batching(cut=lw.FixedSize(2), order=lw.Shuffled()))
    assert "sequences" in written(tmp_path, [], {"random": plan}).said("th")


def test_two_lengths_have_a_histogram_each(tmp_path):
    pairs = np.stack([LENGTHS, LENGTHS[::-1]], axis=1)
    found = written(tmp_path, pairs, planned(pairs, "random,max-entropy:0.1"), unit="tokens")
    assert "length 1 (tokens)" in found.text
    assert "length 2 (tokens)" in found.text


def test_packed_rows_are_told_by_their_fill(tmp_path):
    plans = planned(LENGTHS, "random,pool:256", cut=lw.Rows(8_192, rows=2), world_size=2)
    found = written(tmp_path, LENGTHS, plans)
    fill = 100 * lw.measure(plans["pool:256"], LENGTHS).fill
    assert f"Rows of random are {fill:.2f} % data, as those of pool:256 are." in found.said("h1")
    assert found.table("strategy")["pool:256"]["fill"] == f"{fill:.2f} %"
    assert "Batches, row by row" in titles(found)
    assert not any("How random" in title for title in titles(found))


def test_chunks_are_told_as_they_are_padded(tmp_path):
    batching = lw.Batching(cut=lw.FixedSize(8), order=lw.Shuffled(), chunks=lw.Chunks(50))
    plan = lw.make_plan(LENGTHS, batching)
    share = 1 / (1 - lw.measure(plan, LENGTHS).padding_share)
    found = written(tmp_path, LENGTHS, {"random": plan})
    assert f"compute {share:.2f} frames" in found.said("h1")
    assert "Batches, chunk by chunk" in titles(found)


def test_edges_are_drawn_where_the_best_strategy_has_some(tmp_path):
    assert "4 buckets, padded to the edge" in written(tmp_path, LENGTHS, planned(LENGTHS, "random,optimal:4")).text
    assert "padded to the edge" not in written(tmp_path, LENGTHS, planned(LENGTHS, "random,sorted")).text


def test_several_epochs_are_measured_together_and_the_first_is_drawn(tmp_path):
    batching = parse_strategy("random", cut=lw.FixedSize(8))
    plans = [lw.make_plan(LENGTHS, batching, epoch=epoch) for epoch in range(5)]
    found = written(tmp_path, LENGTHS, {"random": plans})
    assert found.table("strategy")["random"]["padding"] == f"{100 * lw.measure(plans, LENGTHS).padding_share:.1f} %"
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
        assert f"{label}: ranks wait {percent(rows[label]['straggler_waste'])} of the time" in titles(found)
    assert "semi-sorted:0.3: ranks wait" not in found.text


def test_where_the_first_is_best_it_alone_is_put_forward():
    equal = np.full(64, 9)
    plans = planned(equal, "random,sorted")
    rows = {label: lw.measure(plan, equal).as_dict() for label, plan in plans.items()}
    found = Page(write_page(Contents(lengths=equal, plans=plans, rows=rows, best="random")))
    told = "Random batches compute 1.00 frames for each frame of data; no strategy computes clearly less."
    assert found.said("h1") == told
    assert "lw.Shuffled()" in found.said("code")


def test_of_packed_rows_the_first_may_be_best():
    plans = planned(LENGTHS, "pool:16,pool:1", cut=lw.Rows(8_192, rows=2))
    rows = {label: lw.measure(plan, LENGTHS).as_dict() for label, plan in plans.items()}
    found = Page(write_page(Contents(lengths=LENGTHS, plans=plans, rows=rows, best="pool:16")))
    assert found.said("h1") == f"Rows of pool:16 are {100 * rows['pool:16']['fill']:.2f} % data."


def test_micro_batches_alone_make_steps_too(tmp_path):
    table = written(tmp_path, LENGTHS, planned(LENGTHS, "random,sorted", micro_batches=4)).table("strategy")
    assert {"randomness", "waiting"} <= set(table["sorted"])


def test_a_file_whose_name_is_no_utf8_is_named(tmp_path):
    found = written(tmp_path, LENGTHS, planned(LENGTHS, "random"), title="train-\udcff.csv")  # as of a byte 0xff
    assert "train-?.csv" in found.said("p")


ALL = {
    **{name: {"order": order} for name, order in ORDERS.items()},
    **{name: {"cut": cut} for name, cut in cuts(40_000, 900).items()},
    **{name: {"deal": deal} for name, deal in DEALS.items()},
    **{name: {"arrange": arrangement} for name, arrangement in ARRANGEMENTS.items()},
    **{name: {"chunks": chunks} for name, chunks in CHUNKS.items()},
    "quadratic": {"cost": lw.Quadratic(quadratic=0.01)},
    "largest": {"cost": lw.Padded(dims="largest")},
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ALL)
def test_the_settings_as_code_make_the_plan_again(name, capsys):
    choices = ALL[name]
    lengths = np.minimum(LENGTHS[:200], 800)
    order = {} if "order" in choices else {"order": lw.Shuffled()}
    batching = lw.Batching(**{"cut": lw.FixedSize(4), **order, **choices})
    plan = lw.make_plan(lengths, batching, seed=3, epoch=2, world_size=2, micro_batches=2)
    code = write_plan(plan, loading="lengths = given")
    ran = {"given": lengths}
    exec(code, ran)  # its last line prints the fingerprint
    assert ran["plan"].fingerprint() == plan.fingerprint() == capsys.readouterr().out.strip()
    assert ran["batching"] == batching


def test_the_settings_of_copies_ask_for_the_times(capsys):
    times = np.linspace(0.1, 2, len(LENGTHS))
    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(8)), seed=3, epoch=2, times=times)
    code = write_plan(plan, loading="lengths = given")
    assert "\ntimes = ...  # how often epochs take each sequence\n" in code
    exec(code.replace("times = ...", "times = asked"), {"given": LENGTHS, "asked": times})
    assert capsys.readouterr().out.strip() == plan.fingerprint()


def test_settings_of_your_own_are_named_in_a_remark():
    def by_hand(counts, padded_lengths):
        return np.asarray(counts) * np.asarray(padded_lengths, float).max(axis=1)

    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(8), order=lw.Shuffled(), cost=by_hand))
    assert "by_hand" in write_plan(plan)


@pytest.mark.parametrize("plans", [{}, None, [1]])
def test_no_plan_is_refused(tmp_path, plans):
    with pytest.raises(ValueError, match="`plans` must be at least one plan by its label"):
        save_page(plans, LENGTHS, tmp_path / "x.html")


@pytest.mark.parametrize("plan", [3, "random", [], [1], [[0, 1]], None])
def test_what_is_no_plan_is_refused(tmp_path, plan):
    with pytest.raises((TypeError, ValueError), match="`plans` must be "):
        save_page({"random": plan}, LENGTHS, tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("name", ["title", "unit"])
def test_a_name_that_is_no_text_is_refused(tmp_path, name):
    with pytest.raises(TypeError, match=f"`{name}` must be text, but is None"):
        save_page(planned(LENGTHS, "random"), LENGTHS, tmp_path / "x.html", **{name: None})


@pytest.mark.parametrize("letter", ["\x1b[31m", "\0", "\x9b", "\ud800", "\uffff", "</script><b>"])
def test_letters_that_cannot_be_drawn_are_written_out(tmp_path, letter):
    plan = planned(LENGTHS, "random")["random"]
    save_page({f"a{letter}": plan}, LENGTHS, tmp_path / "x.html")
    assert letter not in (tmp_path / "x.html").read_text()


def test_labels_that_are_written_alike_are_refused(tmp_path):
    plan = planned(LENGTHS, "random")["random"]
    with pytest.raises(ValueError, match="`plans` must be under labels that differ as text"):
        save_page({1: plan, "1": plan}, LENGTHS, tmp_path / "x.html")


def test_other_lengths_are_refused_and_the_old_page_stays(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="`lengths` must be those of the plan"):
        save_page(planned(LENGTHS, "random"), LENGTHS[1:], path)
    assert path.read_text() == "old"
    with pytest.raises(FileNotFoundError, match="Make the folder"):
        save_page(planned(LENGTHS, "random"), LENGTHS, tmp_path / "none" / "x.html")


def test_the_same_plans_give_the_same_page(tmp_path):
    one, two = (written(tmp_path, LENGTHS, planned(LENGTHS)).text for _ in range(2))
    assert one == two


def test_on_a_phone_each_cell_of_a_wide_table_has_its_head(page):
    tables = re.findall(r'<table class="many">.*?</table>', page.text, re.DOTALL)
    assert tables
    for table in tables:
        heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)
        told = re.findall(r'<td data-head="(.*?)"', table)
        assert set(told) <= set(heads)
        assert len(told) == table.count("<td")
