"""Reports in a browser: nothing runs over the edge of a phone, nothing is refused, light and dark both show."""

import html
import json
import re
import shutil
import subprocess

import pytest

import lengthwise as lw
from lengthwise.cli.strategies import parse_strategies
from lengthwise.report import save_page

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium, so no page is opened")]
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--enable-logging=stderr"),
)
WIDTHS = (320, 400, 640, 1400)
PHONES = WIDTHS[:3]
# Each width is that of a frame, for a window of a browser without a screen is at least 500 wide.
PROBE = """
<script>
onload = () => {
  const found = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, root = page.documentElement, own = page.defaultView;
    const scrolls = ".scroll, pre, .hidden, details";
    const over = [...page.querySelectorAll("main *")].filter(each => {
      const box = each.getBoundingClientRect();
      return (box.right > root.clientWidth + 1 || box.left < -1) && !each.closest(scrolls) && box.width > 0;
    });
    const marks = [...page.querySelectorAll('[aria-label$="part: padding"]')];
    return {
      wide: own.innerWidth, scroll: root.scrollWidth, over: over.map(each => each.outerHTML.slice(0, 80)),
      paper: own.getComputedStyle(page.body).backgroundColor, copy: page.querySelectorAll(".code button").length,
      heads: page.querySelectorAll("h2").length, charts: page.querySelectorAll("figure").length,
      padding: [...new Set(marks.map(each => own.getComputedStyle(each).fill))],
      sideways: [...page.querySelectorAll(".scroll")].filter(
        each => each.scrollWidth > each.clientWidth && !each.closest("details")
      ).map(each => each.getAttribute("aria-label")),
    };
  });
  document.documentElement.dataset.found = JSON.stringify(found);
};
</script>
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report with all sections, and a label and a title that no line can break."""
    lengths = lw.example_lengths(count=2_000)
    batchings = parse_strategies("random,sorted,optimal:6,alternated:58,max-entropy:0.1", cut=lw.Budget(20_000))
    plans = {label: lw.make_plan(lengths, batching, world_size=4) for label, batching in batchings.items()}
    plans["long" * 20] = plans["sorted"]
    path = tmp_path_factory.mktemp("report") / "report.html"
    save_page(plans, lengths, path, title="a-folder/" * 20)
    return path


def opened(page, folder, *flags):
    """The page after its scripts ran, and what the console said."""
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [BROWSER, *FLAGS, profile, *flags, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def probed(report, folder, *flags):
    """What each of the widths shows."""
    source = html.escape(report.read_text(encoding="utf-8"))
    frames = "".join(f'<iframe width="{width}" height="900" srcdoc="{source}"></iframe>' for width in WIDTHS)
    page = folder / "probe.html"
    page.write_text(f"<!DOCTYPE html><meta charset=utf-8>{PROBE}{frames}", encoding="utf-8")
    dom, said = opened(page, folder, *flags)
    assert said == []
    return json.loads(html.unescape(re.search(r'data-found="([^"]*)"', dom)[1]))


def test_the_console_says_nothing_and_the_copy_button_is_there(report, tmp_path):
    dom, said = opened(report, tmp_path)
    assert said == []
    assert '<button type="button">Copy</button>' in dom


def test_what_a_page_may_not_do_would_be_seen(report, tmp_path):
    spoilt = tmp_path / "spoilt.html"
    text = report.read_text(encoding="utf-8")
    spoilt.write_text(text.replace("</body>", "<script>1</script></body>"), encoding="utf-8")
    _, said = opened(spoilt, tmp_path)
    assert any("Content Security Policy" in line for line in said)


@pytest.mark.parametrize(
    ("scheme", "paper", "padding"),
    [(1, "rgb(255, 255, 255)", "rgb(209, 122, 0)"), (0, "rgb(20, 24, 28)", "rgb(240, 163, 42)")],
)
def test_nothing_runs_over_the_edge_in_light_and_in_dark(report, tmp_path, scheme, paper, padding):
    found = probed(report, tmp_path, f"--blink-settings=preferredColorScheme={scheme}")
    assert [each["wide"] for each in found] == list(WIDTHS)
    for each in found:
        assert (each["over"], each["scroll"] <= each["wide"]) == ([], True)
        assert (each["paper"], each["padding"], each["copy"]) == (paper, [padding], 1)
        assert (each["heads"], each["charts"]) == (3, 3)
        assert each["sideways"] == [] or each["wide"] not in PHONES
