"""Reports: what the page says, that it holds all that it shows, and what it refuses."""

import re

import numpy as np
import pytest

import lengthwise as lw
from choices import ARRANGEMENTS, CHUNKS, DEALS, ORDERS, cuts
from html_pages import Page
from lengthwise.cli.strategies import parse_strategies, parse_strategy
from lengthwise.report.contents import Code, Contents, Section
from lengthwise.report.epochs import read
from lengthwise.report.headline import Tile
from lengthwise.report.marks import Chart, Mark, Point, Table, Tick
from lengthwise.report.padding import sample_batches
from lengthwise.report.pages import Page as RenderedPage
from lengthwise.report.pages import render
from lengthwise.report.reports import save, write_page
from lengthwise.report.settings import write_code
from lengthwise.report.words import percent

LENGTHS = lw.example_lengths(count=600)
STRATEGIES = "random,sorted,optimal:4,max-entropy:0.1"


def planned(lengths, text=STRATEGIES, *, cut=None, **options):
    batchings = parse_strategies(text, cut=cut or lw.FixedSize(8))
    return {label: lw.make_plan(lengths, batching, **options) for label, batching in batchings.items()}


def written(tmp_path, lengths, plans, **options):
    save(tmp_path / "report.html", lengths, plans, **options)
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


def test_the_numbers_of_the_table_are_those_of_measure(page):
    table = page.table("strategy")
    for label, plan in planned(LENGTHS, world_size=2).items():
        found = lw.measure(plan, LENGTHS)
        assert table[label]["padding"] == f"{100 * found.padding_share:.1f} %"
        assert table[label]["computed / useful"] == f"{1 / (1 - found.padding_share):.2f}"
        assert table[label]["mixing"] == f"{found.mixing:.3f}"
        assert table[label]["step mixing"] == f"{found.step_mixing:.3f}"
        assert table[label]["waiting"] == percent(found.straggler_waste)
        assert table[label]["batches"] == f"{found.batches:,}"


def test_every_section_is_there_and_linked(page):
    names = [each["id"] for each in page.of("section")]
    assert names == ["lengths", "padding", "trade-off", "ranks", "batches", "epoch", "memory", "measures", "settings"]
    assert [each["href"] for each in page.of("a")] == [f"#{name}" for name in names]


def test_a_page_loads_nothing(page):
    (policy,) = (each for each in page.of("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"].startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    loaded = [attributes.get(name) for _, attributes in page.elements for name in ("src", "href", "srcset", "data")]
    assert [each for each in loaded if each and not each.startswith(("#", "data:,"))] == []
    assert re.findall(r"https?://|@import|url\((?!#)", page.text) == []
    assert [tag for tag, _ in page.elements if tag in ("img", "iframe", "object", "embed", "form", "base")] == []


def test_what_is_seen_can_be_heard(page):
    plots = [each for each in page.of("svg") if each.get("role") == "img"]
    assert len(plots) == page.text.count('<figure class="chart">') == page.text.count("<summary>Data of this chart")
    assert all(len(each["aria-label"]) > 40 for each in plots)
    points = [each for each in page.of("li") if "aria-label" in each]
    assert [each["aria-label"].split(": ")[0] for each in points] == list(planned(LENGTHS))
    assert {each["tabindex"] for each in points} == {"0"}
    tables = [each["aria-label"] for each in page.of("div") if each.get("role") == "region"]
    assert len(set(tables)) == len(tables) == len(plots) + 2  # of each chart, the lengths and all measures
    assert [each["lang"] for each in page.of("html")] == ["en"]


@pytest.mark.parametrize(
    "evil", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & 'b' {{ evil }} {% evil %}"]
)
def test_whatever_users_give_is_escaped(tmp_path, evil):
    plans = planned(LENGTHS, "random,sorted")
    harmless = written(tmp_path, LENGTHS, {"a": plans["random"], "b": plans["sorted"]}, title="t", unit="u")
    found = written(tmp_path, LENGTHS, {evil: plans["random"], f"{evil}2": plans["sorted"]}, title=evil, unit=evil)
    # Long labels ask for leaders; all else stays.
    leaders = {"path", "svg", "text"}
    assert [tag for tag, _ in found.elements if tag not in leaders] == [
        tag for tag, _ in harmless.elements if tag not in leaders
    ]
    assert not [name for _, attributes in found.elements for name in attributes if name.startswith("on")]
    assert evil in found.said("p")
    assert evil in found.table("strategy")


def test_every_text_of_a_page_is_escaped():
    def written(text):
        chart = Chart(
            **{"title": text, "text": text, "x_label": text, "y_label": text, "caption": text},
            table=Table((text, text), [(text, text)]),
            x_ticks=[Tick(0, text)],
            y_ticks=[Tick(0, text)],
            marks=[Mark("text", {"class": text}, text, text, (Mark("text", {}, text, text),))],
            paths=[(text, text)],
            points=[Point(0, 0, text, text)],
            keys=[(text, text)],
        )
        sections = [
            Section(name, text, [chart], Table((text,) * 4, [(text,) * 4]), [(text, text)], text, text, item=text)
            for name in ("epoch", "memory")
        ]
        tiles = [Tile(text, text, f"{text} after", text)]
        return render(RenderedPage(text, text, (text, f"{text} after"), tiles, sections, Code(text, text), text))

    harmless, found = (Page(written(text)) for text in ("a", "<img onerror='b'>\"c & {{ d }}"))
    assert [tag for tag, _ in found.elements] == [tag for tag, _ in harmless.elements]
    # What is before is of the first label, for those who do not see where it stands.
    assert re.search(r'"hidden">a: </span>a</span>.*"hidden">a after: </span>a after<', harmless.text)


def test_code_and_command_are_escaped_too():
    plans = planned(LENGTHS, "random")
    rows = {"random": lw.measure(plans["random"], LENGTHS).as_dict()}
    evil = "</code></pre><script>alert(1)</script>"
    found = Page(write_page(Contents(lengths=LENGTHS, plans=plans, rows=rows, command=evil, loading=evil)))
    assert len(found.of("script")) == 1
    assert found.said("code").count(evil) == 2


def test_nothing_is_left_unsaid_of_long_epochs(tmp_path):
    many = lw.example_lengths(count=300_000)
    found = written(tmp_path, many, planned(many, "random,max-entropy:0.1"))
    assert len(found.text) < 200_000
    captions = found.said("p")
    assert "60 of its 37,500 batches" in captions
    assert "480 of 300,000 sequences" in captions or "of 300,000 sequences" in captions


@pytest.mark.parametrize("lengths", [[7], [3, 3], [5, 1, 9], [1, 10**9]])
@pytest.mark.parametrize("world_size", [1, 3])
def test_few_sequences_have_a_report(tmp_path, lengths, world_size):
    plans = planned(np.array(lengths), "random,sorted", cut=lw.FixedSize(1), world_size=world_size)
    assert written(tmp_path, lengths, plans).said("h1").startswith("Random batches compute 1.00 frames")


def test_an_empty_epoch_has_a_report(tmp_path):
    plan = lw.make_plan([], lw.Batching(cut=lw.FixedSize(2), order=lw.Shuffled()))
    assert "sequences" in written(tmp_path, [], {"random": plan}).said("th")


def test_two_lengths_have_a_histogram_each(tmp_path):
    pairs = np.stack([LENGTHS, LENGTHS[::-1]], axis=1)
    found = written(tmp_path, pairs, planned(pairs, "random,max-entropy:0.1"), unit="tokens")
    assert "Length 1 in tokensLength 2 in tokens" in found.said("h3")


def test_packed_rows_are_told_by_their_fill(tmp_path):
    plans = planned(LENGTHS, "random,pool:256", cut=lw.Rows(8_192, rows=2), world_size=2)
    found = written(tmp_path, LENGTHS, plans)
    fill = 100 * lw.measure(plans["pool:256"], LENGTHS).fill
    assert f"Rows of random are {fill:.2f} % data, as those of pool:256 are." in found.said("h1")
    assert found.table("strategy")["pool:256"]["fill"] == f"{fill:.2f} %"
    assert "trade-off" not in [each["id"] for each in found.of("section")]


def test_chunks_are_told_as_they_are_padded(tmp_path):
    batching = lw.Batching(cut=lw.FixedSize(8), order=lw.Shuffled(), chunks=lw.Chunks(50))
    plan = lw.make_plan(LENGTHS, batching)
    share = 1 / (1 - lw.measure(plan, LENGTHS).padding_share)
    assert f"compute {share:.2f} frames" in written(tmp_path, LENGTHS, {"random": plan}).said("h1")


def test_edges_are_drawn_where_a_strategy_has_some(tmp_path):
    edges = lw.optimal_edges(LENGTHS, 4)
    found = written(tmp_path, LENGTHS, planned(LENGTHS))
    assert f"the edges of optimal:4 ({', '.join(f'{edge:,}' for edge in edges)})." in found.said("p")
    assert sum(each.get("class") == "edge" for each in found.of("line")) == 4
    assert "the edges of" not in written(tmp_path, LENGTHS, planned(LENGTHS, "random,sorted")).said("p")


def test_several_epochs_are_measured_together(tmp_path):
    batching = parse_strategy("random", cut=lw.FixedSize(8))
    plans = [lw.make_plan(LENGTHS, batching, epoch=epoch) for epoch in range(5)]
    table = written(tmp_path, LENGTHS, {"random": plans}).table("strategy")
    assert table["random"]["mixing"] == f"{lw.measure(plans, LENGTHS).mixing:.3f}"
    assert table["random"]["batches"] == "75"  # 600 / 8, of one epoch


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
    code = write_code(plan, loading="lengths = given")
    ran = {"given": lengths}
    exec(code, ran)  # its last line prints the fingerprint
    assert ran["plan"].fingerprint() == plan.fingerprint() == capsys.readouterr().out.strip()
    assert ran["batching"] == batching


def test_the_settings_of_copies_ask_for_the_times(capsys):
    times = np.linspace(0.1, 2, len(LENGTHS))
    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(8)), seed=3, epoch=2, times=times)
    code = write_code(plan, loading="lengths = given")
    assert "\ntimes = ...  # how often epochs take each sequence\n" in code
    exec(code.replace("times = ...", "times = asked"), {"given": LENGTHS, "asked": times})
    assert capsys.readouterr().out.strip() == plan.fingerprint()


def test_settings_of_your_own_are_named_in_a_remark():
    def by_hand(counts, padded_lengths):
        return np.asarray(counts) * np.asarray(padded_lengths, float).max(axis=1)

    plan = lw.make_plan(LENGTHS, lw.Batching(cut=lw.FixedSize(8), order=lw.Shuffled(), cost=by_hand))
    assert "by_hand" in write_code(plan)


@pytest.mark.parametrize("plans", [{}, None, [1]])
def test_no_plan_is_refused(tmp_path, plans):
    with pytest.raises(ValueError, match="`plans` must be at least one plan by its label"):
        save(tmp_path / "x.html", LENGTHS, plans)


@pytest.mark.parametrize("plan", [3, "random", [], [1], [[0, 1]], None])
def test_what_is_no_plan_is_refused(tmp_path, plan):
    with pytest.raises((TypeError, ValueError), match="`plans` must be "):
        save(tmp_path / "x.html", LENGTHS, {"random": plan})
    assert not (tmp_path / "x.html").exists()


def test_many_ranks_and_micro_batches_make_no_large_page(tmp_path):
    lengths = lw.example_lengths(count=40_000)
    plans = planned(lengths, "random,sorted", cut=lw.FixedSize(4), world_size=64, micro_batches=32)
    found = written(tmp_path, lengths, plans)
    assert len(found.text) < 200_000
    assert "16 of 64 ranks" in found.said("p")
    assert "A rank takes 32 batches in a step." in found.said("p")


def test_the_budget_is_drawn_where_there_is_one(tmp_path):
    found = written(tmp_path, LENGTHS, planned(LENGTHS, "random", cut=lw.Budget(20_000)))
    assert sum(each.get("class") == "budget" for each in found.of("line")) == 1
    most = lw.measure(planned(LENGTHS, "random", cut=lw.Budget(20_000))["random"], LENGTHS).largest_cost
    assert f"random: at most {most:,.0f}, {100 * most / 20_000:.1f} % of the budget" in found.said("h3")
    assert "budget" not in written(tmp_path, LENGTHS, planned(LENGTHS, "random")).said("h3")


def test_other_lengths_are_refused_and_the_old_page_stays(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="`lengths` must be those of the plan"):
        save(path, LENGTHS[1:], planned(LENGTHS, "random"))
    assert path.read_text() == "old"
    with pytest.raises(FileNotFoundError, match="Make the folder"):
        save(tmp_path / "none" / "x.html", LENGTHS, planned(LENGTHS, "random"))


def test_the_same_plans_give_the_same_page(tmp_path):
    one, two = (written(tmp_path, LENGTHS, planned(LENGTHS)).text for _ in range(2))
    assert one == two


def contrast(one, two):
    """The contrast of two colours, WCAG 2.1."""

    def luminance(colour):
        parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_told_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_text_and_marks_can_be_told_from_the_paper(page):
    themes = re.findall(r":root \{(.*?)\}", page.text, re.DOTALL)
    assert len(themes) == 3  # light, dark, print
    for theme in themes:
        colours = dict(re.findall(r"--(\w+): (#\w{6})", theme))
        for paper in ("paper", "card"):
            assert min(contrast(colours[name], colours[paper]) for name in ("ink", "soft", "link")) >= 4.5
        assert min(contrast(colours[name], colours["paper"]) for name in ("data", "pad", "wait", "mark")) >= 3.0


def test_a_page_needs_jinja2_and_says_so(monkeypatch):
    import importlib
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "lengthwise.report.pages")
    with pytest.raises(
        ImportError, match=re.escape('A report needs jinja2. Install it with: pip install "lengthwise[report]"')
    ):
        importlib.import_module("lengthwise.report.pages")
    assert callable(render)


def test_a_chart_of_steps_says_step_mixing_and_promises_no_limit_of_means(tmp_path):
    plans = planned(LENGTHS, "random,sorted", world_size=2, micro_batches=2)
    text = written(tmp_path, LENGTHS, plans).text
    assert '<p class="axis">step mixing</p>' in text
    assert '<th scope="col">step mixing</th>' in text
    assert "A step is the 4 batches of one update" in text
    assert "no batching passes" not in text
    assert "a point may lie above it" in text


def test_the_edges_are_told_apart_from_the_value_in_the_label(tmp_path):
    text = written(tmp_path, LENGTHS, planned(LENGTHS, "random,optimal:4")).text
    assert re.search(r"the edges of optimal:4 \([\d, ]+\)\.", text)


@pytest.mark.parametrize(("world", "micro_batches"), [(1, 1), (2, 1), (8, 1), (8, 4), (128, 1)])
def test_batches_are_drawn_from_steps_all_along_the_epoch(world, micro_batches):
    lengths = lw.example_lengths(count=3000)
    plans = planned(lengths, "random", world_size=world, micro_batches=micro_batches)
    (epoch,) = read(plans, lengths)
    numbers = sample_batches(epoch)
    steps = [int(np.argwhere(epoch.plan.grid == number)[0][0]) for number in numbers]
    assert len(set(numbers.tolist())) == len(numbers) <= 60
    assert steps == sorted(steps)
    assert len(set(steps)) >= min(12, epoch.plan.steps)
    ranks = {int(np.argwhere(epoch.plan.grid == number)[0][2]) for number in numbers}
    assert len(ranks) >= min(world, 8)


def test_every_batch_of_a_short_epoch_is_drawn():
    lengths = lw.example_lengths(count=400)
    (epoch,) = read(planned(lengths, "random", world_size=4), lengths)
    assert sample_batches(epoch).tolist() == epoch.plan.grid.reshape(-1).tolist()


def test_points_upon_each_other_share_a_label(tmp_path):
    lengths = np.full(64, 7)
    text = written(tmp_path, lengths, planned(lengths, "random,sorted,semi-sorted:0.1")).text
    assert text.count(">semi-sorted:0.1, random, 1 more<") == 2  # placed for a screen, and for a page
    assert ">A B C<" in text


def test_no_line_of_the_headline_breaks_within_a_name(page):
    assert '<span class="whole">max-entropy:0.1</span> computes' in page.text


def test_a_giant_among_small_ones_asks_for_a_logarithmic_axis(tmp_path):
    lengths = np.array([*range(10, 60), 50_000])
    page = written(tmp_path, lengths, planned(lengths, "random"))
    assert "The axis is logarithmic" in page.said("p")
    counts = [int(row[1].replace(",", "")) for row in page.tables[0][1:]]
    assert (sum(counts), counts[-1], len(counts) <= 40) == (51, 1, True)
    assert max(counts[:-1]) < 20
