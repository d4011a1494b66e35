"""How pictures are written and coloured."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import matplotlib
from matplotlib.colors import to_rgb
from matplotlib.text import Text

import lengthwise as lw
from lengthwise import plot
from lengthwise.cli.strategies import STRATEGIES, parse_strategy
from lengthwise.plot import style

pytestmark = pytest.mark.slow


def picture():
    return plot.bucket_histogram([1, 2, 9, 10], [2, 10])


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG"])
def test_the_same_figure_gives_the_same_bytes(tmp_path, suffix):
    plot.save(picture(), tmp_path / f"one{suffix}")
    plot.save(picture(), tmp_path / "folder" / "made" / f"two{suffix}")
    one = (tmp_path / f"one{suffix}").read_bytes()
    assert one == (tmp_path / "folder" / "made" / f"two{suffix}").read_bytes()
    assert one.startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix.lower()])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", f"one{suffix}"]  # no draft is left


def test_a_picture_is_1200_pixels_wide(tmp_path):
    plot.save(picture(), tmp_path / "one.png")
    assert int.from_bytes((tmp_path / "one.png").read_bytes()[16:20], "big") == 1200


@pytest.mark.parametrize("name", ["plan.jpeg", "plan", "plan.png.gz"])
def test_another_suffix_is_refused_before_anything_is_made(tmp_path, name):
    with pytest.raises(
        ValueError, match=r"`path` must be a file of one of the kinds \.png, \.svg, \.pdf, but is '.*plan"
    ):
        plot.save(picture(), tmp_path / "folder" / name)
    assert not (tmp_path / "folder").exists()


def test_a_failed_save_leaves_what_stood_there(tmp_path):
    target = tmp_path / "one.png"
    target.write_bytes(b"before")
    figure = picture()
    figure.text(0.5, 0.5, "$\\nosuchcommand$")  # fails only when it is drawn
    with pytest.raises(ValueError, match="nosuchcommand"):
        plot.save(figure, target)
    assert target.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["one.png"]


def test_the_settings_of_the_user_neither_matter_nor_change(tmp_path):
    plot.save(picture(), tmp_path / "one.png")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 20}):
        before = dict(matplotlib.rcParams)
        plot.save(picture(), tmp_path / "two.png")
        assert dict(matplotlib.rcParams) == before
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_every_strategy_has_a_look_of_its_own():
    assert set(style.LOOKS) == set(STRATEGIES)
    assert len(set(style.LOOKS.values())) == len(STRATEGIES)


def test_unknown_strategies_are_told_apart_by_their_number():
    looks = [style.look(f"mine{number}", number) for number in range(18)]
    assert len({(look.colour, look.dash) for look in looks}) == 18
    assert len({look.colour for look in looks[:6]}) == 6  # as many as packers that the command line compares


def test_one_meaning_a_colour():
    own = [style.LENGTHS, style.PADDING, *style._OTHERS]
    assert len(set(own)) == len(own)
    assert not {look.colour for look in style.LOOKS.values()} & set(own)


@pytest.mark.parametrize("colour", [look.colour for look in style.LOOKS.values()])
def test_names_of_any_colour_can_be_read_on_white(colour):
    rgb = np.array(to_rgb(style.readable(colour)))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    assert 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) >= 4.45  # 4.5, less the rounding to 8 bits


def test_shades_go_from_light_to_dark():
    assert style.shades("#7A4FB5", 1) == ["#7a4fb5"]
    sums = [sum(to_rgb(shade)) for shade in style.shades("#7A4FB5", 6)]
    assert sums == sorted(sums, reverse=True)
    assert len(set(sums)) == 6


LENGTHS = lw.example_lengths("speech", count=600)
PLANS = {name: lw.make_plan(LENGTHS, parse_strategy(name, cut=lw.FixedSize(8))) for name in ("random", "sorted")}


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plot.batch_padding(LENGTHS, PLANS, title="speech"),
        lambda: plot.epoch_lengths(LENGTHS, PLANS),
        lambda: plot.bucket_histogram(LENGTHS, lw.optimal_edges(LENGTHS, 5)),
        lambda: plot.knob_curves(LENGTHS, lw.FixedSize(8), selected={"semi-sorted": 0.1}, points=3),
        lambda: plot.trade_off(plot.sweep(LENGTHS, lw.FixedSize(8), points=3, epochs=2), lengths=LENGTHS),
    ],
    ids=["batch_padding", "epoch_lengths", "bucket_histogram", "knob_curves", "trade_off"],
)
def test_every_word_can_be_read_on_a_white_ground_and_there_is_no_legend(draw):
    figure = draw()
    figure.draw_without_rendering()
    words = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    assert {text.get_text() for text in words if text.get_fontsize() < 8.5} == set()
    assert to_rgb(figure.get_facecolor()) == (1.0, 1.0, 1.0)
    assert not figure.legends
    assert not any(axes.get_legend() for axes in figure.axes)


def test_matplotlib_waits_until_something_is_drawn():
    code = "import sys, lengthwise, lengthwise.plot; assert 'matplotlib' not in sys.modules; dir(lengthwise.plot)"
    code += "; lengthwise.plot.sweep; assert 'matplotlib' not in sys.modules; lengthwise.plot.save"
    code += "; assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_the_extra_is_named():
    code = "import sys; sys.modules['matplotlib'] = None; from lengthwise import plot; plot.{}"
    for name in ("batch_padding", "epoch_lengths", "bucket_histogram", "knob_curves", "trade_off", "save"):
        run = subprocess.run([sys.executable, "-c", code.format(name)], capture_output=True, text=True)
        assert run.returncode == 1
        assert 'Drawing needs matplotlib. Install it with: pip install "lengthwise[plot]"' in run.stderr


def test_names_that_do_not_exist_are_missed():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        plot.nothing  # noqa: B018


def test_tab_completion_shows_what_is_public():
    for door in (lw.plot, lw.report):
        shown = [name for name in dir(door) if not name.startswith("_")]
        assert shown == sorted(door._ROOMS)
