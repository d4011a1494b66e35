"""Written lines: the same from the same seed, readable by CTC, within sane bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("HersheyFonts")

from lengthwise_recipes.handwriting.pen import as_sample, height, resample, split_strokes
from lengthwise_recipes.handwriting.strokes import Writer, draw_text, draw_writer, write, write_lines

PLAIN = Writer(
    font="futural",
    slant=0.0,
    width=1.0,
    size=1.0,
    size_jitter=0.0,
    points_per_unit=10.0,
    speed_jitter=0.0,
    drift=0.0,
    tremor=0.0,
    noise=0.0,
    gap=0.0,
)


def test_a_plain_l_is_one_straight_stroke():
    # Hershey's l is a line from cap to base: 1 cap height, so 1 + 10 points, each one step down.
    sample = write("l", PLAIN, np.random.default_rng(0))
    expected = np.zeros((11, 3))
    expected[1:, 1] = -1.0
    expected[-1, 2] = 1.0
    np.testing.assert_allclose(sample, expected, atol=1e-6)


def test_a_space_only_moves_the_pen():
    together, apart = (write(text, PLAIN, np.random.default_rng(0)) for text in ("ll", "l l"))
    assert len(together) == len(apart) == 22
    # From the foot of the first l to the head of the second: up 10 steps and right by one or two widths.
    assert together[11, 1] == pytest.approx(10.0)
    assert apart[11, 0] == pytest.approx(together[11, 0] + 10 * 16 / 21)  # Hershey's space is 16 of 21 wide


@pytest.mark.parametrize(
    ("change", "points"), [({"size": 3.0}, 11), ({"points_per_unit": 20.0}, 21), ({"width": 2.0}, 11)]
)
def test_only_speed_changes_the_points(change, points):
    changed = {name: getattr(PLAIN, name) for name in Writer.__dataclass_fields__} | change
    assert len(write("l", Writer(**changed), np.random.default_rng(0))) == points


def test_lines_repeat_from_their_seed_and_differ_from_others():
    samples, texts = write_lines(20, seed=3)
    again, same_texts = write_lines(30, seed=3)
    assert texts == same_texts[:20]
    assert all(np.array_equal(first, second) for first, second in zip(samples, again, strict=False))
    assert write_lines(20, seed=4)[1] != texts


def test_lines_stay_what_committed_results_were_trained_on():
    # Of each line the points, the path of the pen along x and y, and where it ends.
    samples, texts = write_lines(4, seed=3)
    assert texts == ["an and an evening pict", "soon cat", "late seco", "out"]
    assert [len(sample) for sample in samples] == [471, 200, 274, 68]
    paths = [[340.14, 382.7], [160.78, 137.97], [273.98, 245.68], [41.02, 79.13]]
    ends = [[184.299, 4.38], [72.946, 5.551], [107.937, -3.918], [18.954, -0.786]]
    for sample, path, end in zip(samples, paths, ends, strict=True):
        np.testing.assert_allclose(np.abs(sample[:, :2]).sum(axis=0), path, atol=0.02)
        np.testing.assert_allclose(sample[:, :2].sum(axis=0), end, atol=0.002)


def test_lines_are_long_tailed_and_bounded():
    samples, texts = write_lines(400)
    lengths = np.array([len(sample) for sample in samples])
    assert all(sample.dtype == np.float32 and sample.shape[1] == 3 for sample in samples)
    assert all(np.isfinite(sample).all() for sample in samples)
    assert max(float(np.abs(sample[:, :2]).max()) for sample in samples) < 100  # no jump past seven cap heights
    assert lengths.min() >= 10
    assert lengths.max() <= 3000
    assert lengths.max() > 3 * np.median(lengths)
    assert max(map(len, texts)) <= 60
    assert all(text == text.strip() and text for text in texts)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.text(alphabet="abcdefghijklmnopqrstuvwxyz ", min_size=1, max_size=12))
def test_any_hand_writes_any_text(seed, text):
    generator = np.random.default_rng(seed)
    writer = draw_writer(generator)
    if not text.strip():
        with pytest.raises(ValueError, match="`text` must be at least one letter"):
            write(text, writer, generator)
        return
    sample = write(text, writer, generator)
    assert np.isfinite(sample).all()
    assert set(np.unique(sample[:, 2])) <= {0.0, 1.0}
    assert sample[-1, 2] == 1.0


@given(st.integers(0, 1000), st.integers(1, 40))
def test_texts_have_the_characters_asked_for(seed, characters):
    text = draw_text(np.random.default_rng(seed), characters)
    assert characters - 1 <= len(text) <= characters
    assert text == text.strip()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: write("A", PLAIN, np.random.default_rng(0)), "`text` must be small letters .* 'A' at character 0"),
        (lambda: write_lines(0), "`count` must be at least 1, but is 0"),
        (lambda: write_lines(5, seed=-1), "`seed` must be at least 0, but is -1"),
        (lambda: draw_text(np.random.default_rng(0), 0), "`characters` must be at least 1, but is 0"),
        (lambda: Writer(**_of_plain(font="comic")), "`font` must be one of futural, scripts, but is 'comic'"),
        (lambda: Writer(**_of_plain(size=0.0)), "`size` must be finite and above 0, but is 0.0"),
        (lambda: Writer(**_of_plain(noise=-1.0)), "`noise` must be finite and at least 0, but is -1.0"),
        (lambda: write_lines(5, spread=-1.0), "`spread` must be finite and at least 0, but is -1.0"),
    ],
)
def test_bad_values_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=1, max_size=12),
    st.sampled_from([0.5, 1.0, 3.0]),
)
def test_resampled_strokes_keep_their_ends_and_their_pace(points, step):
    stroke = np.array(points, np.float64)
    path = float(np.hypot(*np.diff(stroke, axis=0).T).sum())
    placed = resample(stroke, step)
    np.testing.assert_allclose(placed[[0, -1]], stroke[[0, -1]], atol=1e-9)
    assert len(placed) == (1 if path == 0 else 1 + max(1, round(path / step)))
    # A chord is never longer than the path between its ends.
    assert np.hypot(*np.diff(placed, axis=0).T).max(initial=0.0) <= path / max(len(placed) - 1, 1) + 1e-9


def test_a_pace_moves_the_points_not_the_ends():
    stroke = np.array([[0.0, 0.0], [12.0, 0.0]])
    placed = resample(stroke, 4.0, pace=np.array([1.0, 2.0, 3.0]))  # three intervals of 12 * 1/6, 2/6, 3/6
    np.testing.assert_allclose(placed[:, 0], [0.0, 2.0, 6.0, 12.0])


def test_samples_and_strokes_turn_into_each_other():
    strokes = [
        np.array([[2.0, 3.0], [4.0, 3.0], [4.0, 9.0]]),
        np.array([[0.0, 0.0]]),
        np.array([[1.0, 1.0], [2.0, 2.0]]),
    ]
    sample = as_sample(strokes, unit=2.0)
    assert sample[:, 2].tolist() == [0, 0, 1, 1, 0, 1]
    back = split_strokes(sample[:, :2] * 2.0, sample[:, 2].astype(np.int64))
    for first, second in zip(strokes, back, strict=True):
        np.testing.assert_allclose(second + strokes[0][0], first)


def test_flat_ink_has_a_height():
    assert height([np.array([[0.0, 5.0], [9.0, 5.0]])]) == 3.0
    assert height([np.array([[5.0, 5.0]])]) > 0.0


def _of_plain(**change):
    return {name: getattr(PLAIN, name) for name in Writer.__dataclass_fields__} | change
