"""Connected digits in noise, made from recordings of single digits by one speaker each.

The Free Spoken Digit Dataset is read as published, a folder of wav files, or as one file.

recordings -> a string of 1 to 12 digits of one speaker, with pauses -> noise at one of several levels
"""

from __future__ import annotations

import functools
import re
import zipfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lengthwise import files
from lengthwise.checks import check_choice, check_number, check_whole, value_error
from lengthwise_recipes.skipped import Skipped
from lengthwise_recipes.speech.corpus import Corpus, Samples, Utterance
from lengthwise_recipes.speech.wav import check_samples, read_header, read_samples

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
RATE = 8000  # samples a second
MAX_DIGITS = 12
TEST_RECORDINGS = 5  # of each digit and speaker: numbers 0 to 4, as in the split of the data set
PAUSE_SECONDS = (0.02, 0.3)  # between two digits, and before the first and after the last
LARGEST = 32768.0  # of 16-bit samples
NAMED = re.compile(r"([0-9])_(.+)_([0-9]+)\.wav", re.IGNORECASE)  # digit_speaker_number.wav
ARRAYS = ("audio", "offsets", "digit", "speaker", "index")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recordings:
    """Single spoken digits.

    Attributes:
        samples: The sound of each recording, from -1 to 1, at `RATE`.
        digits: The spoken digit, [recordings], 0 to 9.
        speakers: The speaker, [recordings].
        numbers: The number among the recordings of this digit and speaker, [recordings].
    """

    samples: tuple[Samples, ...]
    digits: NDArray[np.int64]
    speakers: NDArray[np.str_]
    numbers: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Strings:
    """Settings of the strings of digits.

    Attributes:
        count: Number of strings.
        seed: Seed of the strings; string i does not depend on `count`.
        part: "train" or "test"; the two share no recording.
        test_speakers: The speakers of the test strings, and of no others. By default every speaker is in both parts,
            and recordings 0 to 4 of each digit are for the test.
        noise_ratios: Signal-to-noise ratios in decibels; each string has one of them. Infinity means no noise.
    """

    count: int
    seed: int = 0
    part: str = "train"
    test_speakers: tuple[str, ...] = ()
    noise_ratios: tuple[float, ...] = (20.0, 15.0, 10.0, 5.0)

    def __post_init__(self) -> None:
        check_whole("count", self.count, minimum=1, remedy="Give the number of strings.")
        check_whole("seed", self.seed, minimum=0, remedy="Give a whole number.")
        check_choice("part", self.part, ("train", "test"))
        if not self.noise_ratios:
            remedy = "Give decibels such as 10.0, and float('inf') for clean strings."
            raise value_error("noise_ratios", "at least one number", self.noise_ratios, remedy)
        for ratio in self.noise_ratios:
            if ratio != np.inf:
                check_number("noise_ratios", ratio, minimum=-100.0, maximum=100.0, remedy="Give decibels such as 10.0.")


def read_recordings(path: str | Path) -> Recordings:
    """Reads an `.npz` of single digits, such as the Free Spoken Digit Dataset as one file.

    The arrays, for N samples of R recordings:

    - audio [N], int16.
    - offsets [R + 1]: recording r has the samples offsets[r] up to offsets[r + 1].
    - digit [R], from 0 to 9.
    - speaker [R], texts.
    - index [R]: the number among the recordings of this digit and speaker.

    Raises:
        ValueError: The file is no .npz, or an array is missing, of another type, or does not fit the others.
    """
    audio, offsets, digits, speakers, numbers = _read_arrays(Path(path))
    _check_fit(audio, offsets, (digits, speakers, numbers))
    samples = (audio / LARGEST).astype(np.float32)
    return Recordings(
        samples=tuple(np.split(samples, offsets[1:-1])),
        digits=digits.astype(np.int64),
        speakers=speakers.astype(np.str_),
        numbers=numbers.astype(np.int64),
    )


def is_digit_folder(folder: Path) -> bool:
    """Returns True if a folder has wav files, all with names like 7_jackson_32.wav."""
    names = [path.name for path in folder.iterdir() if path.suffix.lower() == ".wav"]
    return bool(names) and all(NAMED.fullmatch(name) for name in names)


def read_digit_folder(folder: Path, *, strict: bool = False) -> tuple[Recordings, tuple[str, ...]]:
    """Reads single digits, such as `7_jackson_32.wav`: a seven by Jackson, recording number 32.

    Args:
        folder: Wav files of one channel and 8,000 samples per second.
        strict: Raise for the first unusable recording; else it is left out.

    Returns:
        The recordings, and for each file that was left out a sentence that says why.

    Raises:
        ValueError: No recording can be used, or see `strict`.
    """
    skipped = Skipped(strict=strict)
    rows: list[tuple[Samples, int, str, int]] = []
    for path in sorted(folder.iterdir()):
        if match := NAMED.fullmatch(path.name):
            try:
                rows.append((_read_wav(path), int(match[1]), match[2], int(match[3])))
            except ValueError as error:
                skipped.add(error)
    if not rows:
        remedy = f"The first complaint: {skipped.sentences[0]}" if skipped.sentences else "Name them 7_jackson_32.wav."
        raise value_error("folder", "of single digits that can be used", str(folder), remedy)
    samples, digits, speakers, numbers = zip(*rows, strict=True)
    recordings = Recordings(
        samples=samples, digits=np.array(digits), speakers=np.array(speakers), numbers=np.array(numbers)
    )
    return recordings, skipped.sentences


def select_speakers(recordings: Recordings, speakers: Collection[str]) -> Recordings:
    """Returns the recordings of some speakers."""
    numbers = np.flatnonzero(np.isin(recordings.speakers, sorted(speakers)))
    return Recordings(
        samples=tuple(recordings.samples[int(number)] for number in numbers),
        digits=recordings.digits[numbers],
        speakers=recordings.speakers[numbers],
        numbers=recordings.numbers[numbers],
    )


def digit_strings(recordings: Recordings, strings: Strings) -> Corpus:
    """Joins digits of one speaker to strings of 1 to 12, in noise.

    Every number of digits is equally likely, and so is every recording of the speaker. The noise is Gaussian, with a
    power that falls as 1 / frequency ** slope; the slope is uniform from 0 to 1.5. The signal-to-noise ratio of the
    string with its pauses is one of `noise_ratios`.

    Returns:
        Utterances named by part, seed and number. `load` makes the sound each time.

    Raises:
        ValueError: A test speaker has no recordings, or the part has no speaker.

    References:
        Replaces the noisy speech of CHiME-4 in Doetsch et al. 2017, section 5. As there, lengths vary by more than a
        factor of ten. The noise is synthetic.
    """
    voices = _voices(recordings, strings)
    return Corpus(
        name=f"connected digits, {strings.part}, seed {strings.seed}",
        rate=RATE,
        utterances=tuple(_utterance(recordings, strings, voices, number) for number in range(strings.count)),
    )


def add_noise(samples: Samples, ratio: float, slope: float, generator: np.random.Generator) -> Samples:
    """Adds noise whose power falls as 1 / frequency ** slope, at a signal-to-noise ratio in decibels."""
    if ratio == np.inf:
        return samples
    spectrum = np.fft.rfft(generator.standard_normal(len(samples)))
    frequencies = np.maximum(np.arange(len(spectrum)), 1.0)
    noise = np.fft.irfft(spectrum * frequencies ** (-slope / 2), len(samples))
    noise_power = np.mean(np.square(samples, dtype=np.float64)) * 10 ** (-ratio / 10)
    return (samples + noise * np.sqrt(noise_power / np.mean(noise**2))).astype(np.float32)


def _utterance(recordings: Recordings, strings: Strings, voices: Sequence[NDArray[np.int64]], number: int) -> Utterance:
    generator = np.random.default_rng(np.random.SeedSequence([strings.seed, number, strings.part == "test"]))
    voice = voices[int(generator.integers(len(voices)))]
    recording_numbers = voice[generator.integers(len(voice), size=generator.integers(1, MAX_DIGITS + 1))]
    low, high = (round(seconds * RATE) for seconds in PAUSE_SECONDS)
    pauses = generator.integers(low, high + 1, size=len(recording_numbers) + 1)
    clips = tuple(recordings.samples[int(recording)] for recording in recording_numbers)
    ratio = strings.noise_ratios[int(generator.integers(len(strings.noise_ratios)))]
    key = (strings.seed, number, 2 + (strings.part == "test"))
    return Utterance(
        name=f"{strings.part}-{strings.seed}-{number}",
        speaker=str(recordings.speakers[voice[0]]),
        words=tuple(WORDS[int(recordings.digits[recording])] for recording in recording_numbers),
        count=int(pauses.sum()) + sum(len(clip) for clip in clips),
        load=functools.partial(_sound, clips, pauses, ratio, key),
    )


def _sound(clips: Sequence[Samples], pauses: NDArray[np.int64], ratio: float, key: tuple[int, ...]) -> Samples:
    generator = np.random.default_rng(np.random.SeedSequence(key))
    silences = [np.zeros(pause, np.float32) for pause in pauses]
    pieces = [piece for pair in zip(silences, clips, strict=False) for piece in pair]
    return add_noise(np.concatenate([*pieces, silences[-1]]), ratio, generator.uniform(0.0, 1.5), generator)


def _voices(recordings: Recordings, strings: Strings) -> list[NDArray[np.int64]]:
    """Returns the numbers of the recordings of each speaker of the part."""
    speakers = np.unique(recordings.speakers)
    for name in strings.test_speakers:
        if name not in speakers:
            remedy = "Name speakers as the recordings do."
            raise value_error("test_speakers", "some of " + ", ".join(speakers), name, remedy)
    if strings.test_speakers:
        tested = np.isin(recordings.speakers, strings.test_speakers)
    else:
        tested = recordings.numbers < TEST_RECORDINGS
    wanted = tested if strings.part == "test" else ~tested
    voices = [np.flatnonzero(wanted & (recordings.speakers == speaker)) for speaker in speakers]
    voices = [voice for voice in voices if len(voice)]
    if not voices:
        raise value_error("part", "spoken by someone", strings.part, "Give more recordings, or fewer test speakers.")
    return voices


def _read_arrays(path: Path) -> list[NDArray[Any]]:
    """Reads the arrays of `ARRAYS`, in that order."""
    files.check_regular(path)
    with path.open("rb") as file:
        rule = "an .npz with the arrays " + ", ".join(ARRAYS)
        if not zipfile.is_zipfile(file):
            raise value_error("path", rule, str(path), "Write it with numpy.savez.")
        file.seek(0)
        with np.load(file, allow_pickle=False) as stored:
            missing = [name for name in ARRAYS if name not in stored.files]
            if missing:
                raise value_error("path", rule, str(path), f"Add {', '.join(missing)}.")
            return [stored[name] for name in ARRAYS]


def _read_wav(path: Path) -> Samples:
    header = read_header(path)
    if header.rate != RATE:
        raise value_error("wav", f"of {RATE} samples a second", header.rate, "Bring it to that rate.", at=str(path))
    return check_samples(read_samples(path, 0, header.count), header.count)


def _check_fit(audio: NDArray[Any], offsets: NDArray[Any], named: tuple[NDArray[Any], ...]) -> None:
    if audio.dtype != np.int16:
        raise value_error("audio", "samples of 16 bits, int16", str(audio.dtype), "Store it as int16.")
    rises = len(offsets) > 1 and offsets[0] == 0 and offsets[-1] == len(audio) and bool(np.all(np.diff(offsets) > 0))
    if not rises:
        rule = f"strictly rising from 0 to the number of samples, {len(audio)}"
        raise value_error("offsets", rule, offsets[:6].tolist(), "Drop empty recordings.")
    sizes = tuple(len(array) for array in named)
    if set(sizes) != {len(offsets) - 1}:
        raise value_error("digit, speaker, index", f"{len(offsets) - 1} long each", sizes, "Store them together.")
    digits = named[0]
    if digits.min() < 0 or digits.max() > 9:
        raise value_error("digit", "from 0 to 9", [int(digits.min()), int(digits.max())], "Drop other recordings.")
