"""How pictures are written and coloured."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import matplotlib
from matplotlib.colors import to_rgb

from lengthwise_recipes.pictures import style

pytestmark = pytest.mark.slow


def picture():
    return style.blank_figure(height=1.0)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG"])
def test_the_same_figure_gives_the_same_bytes(tmp_path, suffix):
    style.save(picture(), tmp_path / f"one{suffix}")
    style.save(picture(), tmp_path / "folder" / "made" / f"two{suffix}")
    one = (tmp_path / f"one{suffix}").read_bytes()
    assert one == (tmp_path / "folder" / "made" / f"two{suffix}").read_bytes()
    assert one.startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix.lower()])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", f"one{suffix}"]  # no draft is left


def test_a_picture_is_1200_pixels_wide(tmp_path):
    style.save(picture(), tmp_path / "one.png")
    assert int.from_bytes((tmp_path / "one.png").read_bytes()[16:20], "big") == 1200


@pytest.mark.parametrize("name", ["plan.jpeg", "plan", "plan.png.gz"])
def test_another_suffix_is_refused_before_anything_is_made(tmp_path, name):
    with pytest.raises(
        ValueError, match=r"`path` must be a file of one of the kinds \.png, \.svg, \.pdf, but is '.*plan"
    ):
        style.save(picture(), tmp_path / "folder" / name)
    assert not (tmp_path / "folder").exists()


def test_a_failed_save_leaves_what_stood_there(tmp_path):
    target = tmp_path / "one.png"
    target.write_bytes(b"before")
    figure = picture()
    figure.text(0.5, 0.5, "$\\nosuchcommand$")  # fails only when it is drawn
    with pytest.raises(ValueError, match="nosuchcommand"):
        style.save(figure, target)
    assert target.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["one.png"]


def test_the_settings_of_the_user_neither_matter_nor_change(tmp_path):
    style.save(picture(), tmp_path / "one.png")
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 20}):
        before = dict(matplotlib.rcParams)
        style.save(picture(), tmp_path / "two.png")
        assert dict(matplotlib.rcParams) == before
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


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
