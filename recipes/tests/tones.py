"""Recordings in which a digit is two tones, one after the other, and parts of a corpus made of them."""

import numpy as np

from lengthwise_recipes.speech.digits import RATE, Recordings

SPEAKERS = ("ann", "ben", "cem", "dan")  # each a little higher than the one before


def tones(*, takes=3, speakers=SPEAKERS):
    """Every speaker says every digit `takes` times, each a little higher or lower, longer or shorter."""
    generator = np.random.default_rng(0)
    rows = [(digit, speaker, take) for digit in range(10) for speaker in speakers for take in range(takes)]
    digits, named, numbers = zip(*rows, strict=True)
    return Recordings(
        samples=tuple(_tone(digit, SPEAKERS.index(speaker), generator) for digit, speaker, _ in rows),
        digits=np.array(digits),
        speakers=np.array(named),
        numbers=np.array(numbers),
    )


def _tone(digit, voice, generator):
    count = int(generator.integers(1200, 2000))
    pitches = np.repeat([300 + 300 * digit, 3500 - 310 * digit], [count // 2, count - count // 2])
    phases = np.cumsum(pitches * (0.97 + 0.02 * voice) * generator.uniform(0.99, 1.01)) * 2 * np.pi / RATE
    return (0.3 * np.sin(phases)).astype(np.float32)


def store(recordings, path):
    """Writes recordings as an .npz, as `digits.read_recordings` reads it."""
    samples = [np.round(each * 32767).astype(np.int16) for each in recordings.samples]
    np.savez(
        path,
        audio=np.concatenate(samples),
        offsets=np.append(0, np.cumsum([len(each) for each in samples])),
        digit=recordings.digits,
        speaker=recordings.speakers,
        index=recordings.numbers,
    )
    return path
