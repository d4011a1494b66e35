"""The rerun of Doetsch et al. 2017: batchings and verdicts by hand, and the whole in miniature on tones."""

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")
pytest.importorskip("jiwer")
pytest.importorskip("soundfile")
pytest.importorskip("altair")

import soundfile  # noqa: E402

import lengthwise as lw  # noqa: E402
from lengthwise.cli import main  # noqa: E402
from lengthwise_recipes.acoustic.labelling import choose_labelling  # noqa: E402
from lengthwise_recipes.doetsch2017.batchings import (  # noqa: E402
    MXNET,
    OURS,
    PAPER_CHUNKS,
    RANDOM,
    SORTED,
    TrueFrames,
    batchings,
    bins_label,
    chunk_label,
    figure_batchings,
    span_edges,
)
from lengthwise_recipes.doetsch2017.claims import claims, claims_of, paper_rows  # noqa: E402
from lengthwise_recipes.doetsch2017.outcomes import Outcome, outcomes  # noqa: E402
from lengthwise_recipes.doetsch2017.page import FIGURES, nearer, page  # noqa: E402
from lengthwise_recipes.doetsch2017.rerun import FULL, SMALL, Size, prepare_for, reproduce  # noqa: E402
from lengthwise_recipes.record import read  # noqa: E402
from lengthwise_recipes.speech.digits import RATE, WORDS, Strings, digit_strings  # noqa: E402
from lengthwise_recipes.speech.parts import digit_parts  # noqa: E402
from lengthwise_recipes.study.results import EpochRow, RunRow, Study  # noqa: E402
from tones import SPEAKERS, tones  # noqa: E402

EXPECTED_LOSS = 2.8  # nats a frame
BINS = (2, 3, 4)
UTTERANCES = 8738
MINIATURE = Size(
    name="miniature",
    count=24,
    validating=6,
    testing=6,
    epochs=2,
    seeds=1,
    hidden=12,
    stack=4,
    bins=BINS,
    splits=0,
    frames=700,
)
LENGTHS = np.array([30, 260, 120, 90, 510, 40, 75, 300, 20, 150])


@pytest.fixture(scope="module")
def parts():
    return digit_parts(tones(takes=7), count=MINIATURE.count, validating=6, testing=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("doetsch2017")


@pytest.fixture(scope="module")
def document(parts, folder):
    prepared = prepare_for(parts, MINIATURE, folder=folder)
    made = reproduce(prepared, MINIATURE, folder=folder, command="by hand")
    return json.loads(json.dumps(made, allow_nan=False))


def outcome(speed, error, *, memory=100, padding=0.0):
    """Two seeds, the second a tenth faster and as much in error."""
    return Outcome(
        utterances_per_second=[speed, 1.1 * speed],
        word_error_rates=[error, error],
        frame_error_rates=[error, error],
        peak_bytes=memory,
        padding_share=padding,
    )


def judged(found):
    return claims(found, BINS, frames=3_000_000, utterances=UTTERANCES)


def papers_outcomes():
    """What the paper's own tables would be here."""
    rows = paper_rows(BINS)
    return {label: outcome(row.speed, row.error / 100, memory=round(row.memory * 1e9)) for label, row in rows.items()}


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 120), st.lists(st.integers(1, 39), max_size=3)
)
def test_batches_hold_as_many_true_frames_as_they_may(lengths, frames, boundaries):
    array = np.array(lengths)[:, None]
    borders = np.array(sorted({boundary for boundary in boundaries if boundary < len(lengths)}), np.int64)
    cuts = TrueFrames(frames)(array, borders, cost=lw.Padded(), longest=array.max(axis=0))
    offsets = cuts.offsets.tolist()
    assert (offsets[0], offsets[-1]) == (0, len(lengths))
    assert cuts.kept.tolist() == list(range(len(lengths)))
    assert set(borders.tolist()) <= set(offsets)
    for start, stop in itertools.pairwise(offsets):
        assert sum(lengths[start:stop]) <= frames or stop == start + 1
        full = stop == len(lengths) or stop in borders or sum(lengths[start : stop + 1]) > frames
        assert full
        assert stop > start


def test_steps_do_not_depend_on_the_padding():
    lengths = lw.example_lengths("speech", count=2000)
    orders = (lw.Sorted(), lw.Shuffled())
    plans = [lw.make_plan(lengths, lw.Batching(order=order, cut=TrueFrames(20_000))) for order in orders]
    first, second = (lw.measure(plan, lengths) for plan in plans)
    assert first.padding_share < 0.05 < 0.2 < second.padding_share
    assert first.steps == pytest.approx(second.steps, rel=0.02)
    bounded = lw.make_plan(lengths, lw.Batching(order=lw.Shuffled(), cut=lw.Budget(20_000)))
    assert bounded.steps > 1.2 * second.steps  # padding counted


def test_max_entropy_batching_is_fitted_to_batches_of_true_frames():
    lengths = lw.example_lengths("speech", count=4000)
    batching = lw.Batching(order=lw.MaxEntropy(padding=0.1), cut=TrueFrames(20_000))
    assert lw.measure(lw.make_plan(lengths, batching), lengths).padding_share == pytest.approx(0.1, abs=0.01)


def test_every_row_of_the_paper_is_a_batching():
    made = batchings(LENGTHS, frames=600, bins=BINS)
    assert next(iter(made)) == RANDOM
    assert set(paper_rows(BINS)) < set(made)
    assert made[chunk_label(50)].chunks == lw.Chunks(50)
    assert list(made)[-1] == OURS
    for label in (SORTED, *map(bins_label, BINS)):
        assert made[label].arrange == lw.InOrder()
    for label, batching in made.items():
        plan = lw.make_plan(LENGTHS, batching, seed=1, epoch=2)
        spans = plan.spans if plan.spans is not None else np.stack([plan.sequences, 0 * plan.sequences], axis=1)
        assert set(spans[plan.sequences if plan.spans is not None else slice(None), 0]) == set(range(10)), label


def test_buckets_span_250_lengths_and_are_padded_to_the_edge():
    assert span_edges(LENGTHS) == (250, 500, 750)
    assert span_edges(np.array([250])) == (250,)
    mxnet = batchings(LENGTHS, frames=600, bins=BINS)[MXNET]
    assert isinstance(mxnet.cut, lw.FixedSize)
    assert mxnet.cut.batch_size == 4  # 600 over a mean of 159.5
    plan = lw.make_plan(LENGTHS, mxnet)
    assert set(plan.padded_lengths[:, 0].tolist()) == {250, 500, 750}


def test_the_orders_of_the_figure_stay_in_order():
    plans = {label: lw.make_plan(LENGTHS, each) for label, each in figure_batchings(LENGTHS).items()}
    assert list(plans) == ["random", "sorted", "mxnet, spans of 250", "alternated:12"]
    assert LENGTHS[plans["sorted"].sequences].tolist() == sorted(LENGTHS)
    in_buckets = LENGTHS[plans["mxnet, spans of 250"].sequences]
    assert (np.diff((in_buckets - 1) // 250) >= 0).all()


def test_a_paper_that_holds_holds_whole():
    found = {each.where + ", " + each.claim.partition(";")[0][:30]: each for each in judged(papers_outcomes())}
    holds = {name: each.holds for name, each in found.items()}
    assert holds.pop("section 4, two utterances share one of N ") == "none"  # of 8,738 a third, not a sixth
    assert list(holds.values()) == ["whole"] * 12
    speeds, errors = ([each for each in found.values() if each.kind == kind] for kind in ("speed", "word error rate"))
    by_claim = [*speeds[:2], *errors[:2], speeds[2], errors[2], errors[4], errors[5], *list(found.values())[-2:]]
    assert by_claim[0].mean == pytest.approx(31.1 / 7.0)
    assert by_claim[0].why.startswith("The effect is 3.44, in the paper 3.44. ")
    assert "a frame of a chunk takes 0.23 times as long" in by_claim[0].why  # 7.0 over 31.1: nothing is padded here
    assert by_claim[2].mean == pytest.approx(21.3 / 8.9)
    assert (by_claim[0].paper, by_claim[1].paper, by_claim[2].paper, by_claim[4].paper) == (
        "4.44",
        "5.2",
        "2.39",
        "1.46",
    )
    assert by_claim[3].why.endswith("in the same order: 21.3, 10.1, 9.2, 9.0, 8.9 %.")
    assert by_claim[5].why.startswith(
        "Mean word error rates, the least first: random 8.9 %, alternated:4 9.1 %, alternated:3 9.5 %, mxnet 9.6 %"
    )
    assert [each.mean for each in by_claim[-2:]] == [pytest.approx(5.4 / 1.6), pytest.approx(4.2 / 5.4)]
    assert by_claim[7].mean == pytest.approx(9.5 / 9.6)
    assert by_claim[7].why.startswith("Speed over that of bucketing, which pads 0%: 1.05, in the paper 1.05. ")
    assert by_claim[6].why.startswith("4 bins have 56% of the speed that sorting gains, in the paper 56%.")


def test_what_holds_in_part_is_told_from_what_does_not():
    part = papers_outcomes() | {
        chunk_label(50): outcome(9.0, 0.095, memory=5_000_000_000),
        chunk_label(10): outcome(20.0, 0.1),
        chunk_label(100): outcome(29.0, 0.08),
        SORTED: outcome(7.8, 0.0951, memory=4_900_000_000),
    }
    held = [each.holds for each in judged(part)]
    assert held == [
        *("part", "part", "part", "whole"),
        *("part", "none", "part", "whole", "part"),  # chunks of 100 are better than whole utterances
        *("whole", "none", "part", "part"),
    ]
    same = {label: outcome(7.0, 0.1) for label in papers_outcomes()}
    held = [each.holds for each in judged(same)]
    # The most bins are near to random, and sorting wins nothing that they could keep.
    assert held == ["none"] * 8 + ["part"] + ["none"] * 4


def test_alternated_sorting_that_is_as_slow_as_random_batches_is_not_as_fast_as_sorted():
    found = papers_outcomes() | {bins_label(BINS[-1]): outcome(7.3, 0.09)}
    alike = judged(found)[8]
    assert alike.holds == "part"
    assert alike.why.startswith("4 bins have 9% of the speed that sorting gains, in the paper 56%.")


def test_bins_are_ahead_of_mxnet_where_they_are_faster_under_the_same_seed():
    slower = papers_outcomes()[bins_label(BINS[1])]
    # In the mean over seeds more utterances a second, but of as many under either seed not the same share.
    uneven = dataclasses.replace(slower, utterances_per_second=[30.0, 5.0])
    mxnet = dataclasses.replace(papers_outcomes()[MXNET], utterances_per_second=[28.0, 6.0])
    found = papers_outcomes() | {bins_label(BINS[1]): uneven, MXNET: mxnet}
    assert judged(found)[9].holds == "part"  # the rate is lower
    worse = papers_outcomes() | {bins_label(BINS[1]): dataclasses.replace(slower, word_error_rates=[0.11, 0.12])}
    assert judged(worse)[9].holds == "part"  # faster at a higher rate
    slow = dataclasses.replace(slower, utterances_per_second=[9.0, 9.0], word_error_rates=[0.11, 0.12])
    assert judged(papers_outcomes() | {bins_label(BINS[1]): slow})[9].holds == "none"


def test_error_rates_that_runs_cannot_tell_apart_decide_nothing_on_mxnet():
    noisy = dataclasses.replace(papers_outcomes()[bins_label(BINS[1])], word_error_rates=[0.08, 0.11])
    found = judged(papers_outcomes() | {bins_label(BINS[1]): noisy})[9]
    assert (found.holds, found.verdict) == ("part", "undecided")  # it is faster


def test_a_larger_effect_than_the_papers_and_an_order_of_equals_hold_in_part():
    sorted_faster = papers_outcomes() | {SORTED: outcome(12.2, 0.102)}  # 1.74 times, in the paper 1.46
    assert judged(sorted_faster)[2].holds == "part"
    noisy = dataclasses.replace(papers_outcomes()[chunk_label(50)], utterances_per_second=[30.0, 40.5])
    alike = judged(papers_outcomes() | {chunk_label(50): noisy})[1]  # 36.7 and 40.4 of chunks of 10
    assert alike.holds == "part"
    assert alike.why.endswith("Not shown faster than the next: chunks of 10, chunks of 50.")


def test_speed_and_errors_fall_with_the_number_of_bins_or_not():
    speed, error = (judged(papers_outcomes())[place] for place in (3, 7))
    assert (speed.mean, error.mean) == (pytest.approx(10.1 / 8.8), pytest.approx(9.9 / 9.1))
    assert speed.why == "Utterances a second: 10.6, 10.5, 9.2 with 2, 3, 4 bins."
    assert error.why == "Word error rates: 9.9 %, 9.5 %, 9.1 % with 2, 3, 4 bins."
    rising = papers_outcomes() | {bins_label(BINS[2]): outcome(11.0, 0.1)}
    assert [judged(rising)[place].holds for place in (3, 7)] == ["none", "none"]
    uneven = papers_outcomes() | {bins_label(BINS[1]): outcome(8.0, 0.09)}
    assert [judged(uneven)[place].holds for place in (3, 7)] == ["part", "part"]


def test_the_chance_to_share_a_bin_is_that_of_the_others_in_it():
    shared = judged(papers_outcomes())[10]
    assert shared.ours == [pytest.approx((UTTERANCES / 3 - 1) / (UTTERANCES - 1))]
    assert (shared.paper, shared.verdict) == ("0.167", "differs, in one run")


def test_nothing_is_claimed_of_memory_that_was_not_measured():
    found = {label: dataclasses.replace(each, peak_bytes=None) for label, each in papers_outcomes().items()}
    assert len(judged(found)) == 11


def row(label, seed, epoch, *, seconds, sequences=10, error=0.5):
    zeros = dict.fromkeys(("planning_seconds", "elapsed_seconds", "straggler_waste", "training_loss"), 0.0)
    return EpochRow(
        strategy=label,
        processes=1,
        averaging="none",
        seed=seed,
        epoch=epoch,
        steps=4 + epoch,
        seconds=seconds,
        sequences=sequences,
        useful_frames=100,
        padding_share=0.25 * epoch,
        mixing=0.5,
        metrics={"validation_loss": 1.0, "frame_error_rate": error},
        **zeros,
    )


def test_outcomes_by_hand():
    study = Study(
        rows=(
            row("a", 0, 1, seconds=2.0),
            row("a", 0, 2, seconds=3.0, error=0.25),
            row("a", 1, 1, seconds=1.0),
            row("a", 1, 2, seconds=1.0, error=0.75),
        ),
        summaries=(),
        settings={},
        strategies={},
        data={},
        machine={},
        date="",
        command="",
        tests=tuple(
            RunRow(strategy="a", processes=1, averaging="none", seed=seed, metrics={"word_error_rate": 0.1 * seed})
            for seed in (1, 0)
        ),
        peak_bytes={"a": 7},
    )
    found = Outcome(
        utterances_per_second=[4.0, 10.0],
        word_error_rates=[0.0, 0.1],
        frame_error_rates=[0.25, 0.75],
        peak_bytes=7,
        padding_share=0.375,
    )
    assert outcomes(study) == {"a": found}
    timed = tuple(row("a", repeat, 1, seconds=seconds) for repeat, seconds in enumerate((5.0, 2.0, 1.0)))
    apart = outcomes(dataclasses.replace(study, timed=timed))
    assert apart == {"a": dataclasses.replace(found, utterances_per_second=[2.0, 5.0, 10.0])}


def test_the_miniature_learns_as_expected(document):
    losses = {(each["strategy"], each["epoch"]): each["validation_loss"] for each in document["study"]["rows"]}
    labels = {label for label, _ in losses}
    assert len(losses) == 2 * len(labels) == 2 * 11
    falling = [label for label in labels if losses[label, 2] < losses[label, 1]]
    assert len(falling) >= 10, losses
    assert losses[RANDOM, 2] == pytest.approx(EXPECTED_LOSS, rel=0.2)


def test_the_document_says_what_was_trained(document):
    found = claims_of(document)
    assert len(found) == 13
    sized = [each for each in found if each.size is not None]
    assert (len(sized), {each.size.ours for each in sized}) == (6, {document["study"]["data"]["train_frames"]})
    assert {each.at_our_size.partition(", ")[2] for each in found} == {"in one run"}
    told = document["study"]
    assert (told["settings"]["optimizer"], told["settings"]["learning_rate"]) == ("adam", 0.01)
    assert told["data"]["network"] == {"hidden": 12, "layers": 3, "stack": 4}
    assert (document["lm_scale"], document["size"]["frames"]) == (12.0, 700)
    assert len(document["lengths"]) == MINIATURE.count
    assert sum(document["lengths"]) == told["data"]["train_frames"]
    for label, each in document["outcomes"].items():
        assert len(each["word_error_rates"]) == 1, label
        assert 0.0 <= each["word_error_rates"][0] <= 1.5
        assert each["peak_bytes"] > 10_000
    assert document["outcomes"][chunk_label(10)]["padding_share"] < document["outcomes"][RANDOM]["padding_share"]
    assert 0.0 <= document["gmm_word_error_rate"] <= 1.0


def test_a_rerun_that_is_called_again_trains_nothing(document, parts, folder):
    prepared = prepare_for(parts, MINIATURE, folder=folder)
    again = json.loads(json.dumps(reproduce(prepared, MINIATURE, folder=folder, command="by hand")))
    assert again["study"]["rows"] == document["study"]["rows"]  # seconds too
    assert again["outcomes"] == document["outcomes"]
    assert claims_of(again) == claims_of(document)


def test_the_page_is_made_from_the_json(document):
    text = page(document, json_link="doetsch2017.json")
    for number, each in enumerate(claims_of(document), 1):
        assert f"| {number}. {each.claim} | {each.sized_verdict} | {each.where} |" in text
        assert f"\n{number}. {each.reason}\n" in text
    assert all(text.count(f"| `{label}` |") == (2 if label == RANDOM else 1) for label in document["outcomes"])
    assert "Numbers of bins (utterances in each): 2 (12), 3 (8), 4 (6)" in text


def test_a_rerun_that_is_nearer_to_the_paper_has_a_section_of_the_page(document):
    text, judged = nearer(document, json_link="larger.json"), claims_of(document)
    assert text.startswith("## With as many utterances as one microphone gave\n\nUtterances: 24, frames: ")
    assert all(text.count(f"| `{label}` |") == 1 for label in document["outcomes"])
    assert "| batches | utt/s of whole | WER, % | of whole |" in text
    first = [str(number) for number, each in enumerate(judged, 1) if each.sized_verdict == judged[0].sized_verdict]
    assert f"The claims above are {judged[0].sized_verdict}: {', '.join(first)}" in text
    labelling = {"labelling": {"units": "a lexicon of 10 words"}}
    tied = document | {"study": document["study"] | {"data": document["study"]["data"] | labelling}}
    assert nearer(tied, json_link="").startswith("## With states of phonemes in context\n")


def test_a_page_is_made_of_a_study_that_measured_no_memory(document):
    bare = {label: each | {"peak_bytes": None} for label, each in document["outcomes"].items()}
    assert "| `sorted` |" in page(document | {"outcomes": bare}, json_link="")


def test_digits_have_words_and_other_speech_tied_units(parts):
    assert choose_labelling(parts, splits=SMALL.splits).tree is None
    assert choose_labelling(parts, splits=SMALL.splits).rounds.splits == 2
    tied = choose_labelling(dataclasses.replace(parts, any_order=False), splits=FULL.splits)
    assert tied.tree is not None
    assert tied.tree.classes == 1500
    assert choose_labelling(parts, splits=2, units={"two": ("T", "UW")}).tree is not None


def test_the_full_size_is_the_papers():
    assert (FULL.bins, FULL.frames, FULL.stack, FULL.device) == ((8, 64, 256), 5000, 1, "cuda")
    assert PAPER_CHUNKS == (10, 50, 100, 500)
    with pytest.raises(ValueError, match=r"`bins` must be three, rising, of 1 to 400, but is \(8, 8, 9\)"):
        dataclasses.replace(SMALL, bins=(8, 8, 9))
    for bins in ((0, 1, 2), (2, 3, 401)):
        with pytest.raises(ValueError, match="`bins` must be three, rising, of 1 to 400"):
            dataclasses.replace(SMALL, bins=bins)
    with pytest.raises(ValueError, match="`testing` must be at least 1"):
        dataclasses.replace(SMALL, testing=0)


def write_speech(folder, count):
    """Strings of digits as wav files beside their texts, of two speakers."""
    strings = Strings(count=count, part="test", noise_ratios=(20.0,))
    for utterance in digit_strings(tones(speakers=SPEAKERS[:2]), strings).utterances:
        path = folder / utterance.speaker / f"{utterance.name}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, utterance.load(), RATE, subtype="PCM_16")
        path.with_suffix(".txt").write_text(" ".join(utterance.words))


def test_the_command_writes_all_and_refuses_the_checkpoints_of_other_speech(tmp_path, capsys):
    write_speech(tmp_path / "speech", 14)
    (tmp_path / "speech" / "ann" / "mute.wav").write_text("no sound")
    words = ["reproduce", "doetsch2017", "--data", str(tmp_path / "speech"), "--output", str(tmp_path / "out")]
    lexicon = tmp_path / "lexicon.txt"  # every digit is two tones
    lexicon.write_text("".join(f"{word} low{digit} high{digit}\n" for digit, word in enumerate(WORDS)))
    words += ["--lexicon", str(lexicon), "--epochs", "1", "--seeds", "1", "--quiet"]
    assert main(words) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "table 1: chunks of 10 have a higher word error rate" in told
    assert "`text` must be the words of every wav, but is 'missing' at ann/mute." in told
    document = read(tmp_path / "out" / "doetsch2017-small.json")
    assert document["study"]["data"]["labelling"]["units"] == "a lexicon of 10 words"
    text = (tmp_path / "out" / "doetsch2017.md").read_text()
    assert text.startswith("# Doetsch et al. 2017")
    named = [f"doetsch2017-{name}.svg" for name in FIGURES]
    files = [f"doetsch2017-{name}{page}.svg" for name in FIGURES for page in ("", "-dark")]
    assert sorted(path.name for path in (tmp_path / "out").glob("*.svg")) == sorted(files)
    assert all(f"({name})" in text for name in named)
    assert main([*words, "--data-seed", "1"]) == 2
    assert "`checkpoints` must be of the same data, strategies and settings" in capsys.readouterr().err


def test_without_data_the_command_says_where_there_is_some(tmp_path, capsys):
    assert main(["reproduce", "doetsch2017", "--output", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "`data` must be the path of speech, but is None. Give an .npz or a folder of single digits" in told
    assert "Free Spoken Digit Dataset" in told
    assert "CC BY-SA 4.0" in told


def test_bad_speech_is_named(tmp_path, capsys):
    (tmp_path / "u1.wav").write_text("no sound")
    (tmp_path / "u1.txt").write_text("to be")
    words = ["reproduce", "doetsch2017", "--data", str(tmp_path), "--strict", "--output", str(tmp_path / "out")]
    assert main(words) == 2
    assert "`wav` must be audio that can be read, but is 'broken'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_what_the_machine_lacks_is_told_before_anything_is_read(tmp_path, capsys):
    words = ["reproduce", "doetsch2017", "--full", "--data", str(tmp_path / "gone.npz"), "--output", str(tmp_path)]
    assert main(words) == 2
    assert "`device` must be available, but is 'cuda'" in capsys.readouterr().err


def test_a_perfect_row_makes_no_ratio():
    found = papers_outcomes() | {RANDOM: outcome(7.0, 0.0)}
    assert math.isinf(judged(found)[4].mean)
