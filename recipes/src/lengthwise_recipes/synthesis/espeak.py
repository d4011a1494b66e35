"""Speaks one sentence with eSpeak NG: text on standard input, a wav of one channel and 16 bits on standard output.

    python -I espeak.py LIBRARY DATA VOICE < sentence.txt > sentence.wav

It is a separate program, with the standard library only. eSpeak NG keeps the state of its oscillators between
sentences, so only the first sentence of a process sounds the same every time.

References:
    The C interface of eSpeak NG 1.52, speak_lib.h.
"""

import ctypes
import io
import sys
import wave

SYNCHRONOUS = 2  # AUDIO_OUTPUT_SYNCHRONOUS: the callback receives the samples, and the call returns after the last
DO_NOT_EXIT = 0x8000  # espeakINITIALIZE_DONT_EXIT: return an error
CHARACTERS = 1  # POS_CHARACTER
UTF8 = 1  # espeakCHARS_UTF8


def speak(library: str, data: str, voice: str, text: bytes) -> bytes:
    """Returns the wav of a sentence in UTF-8.

    Args:
        library: Path of the shared library.
        data: Path of its folder espeak-ng-data.
        voice: A name that eSpeak NG knows, such as en-us.
        text: The sentence.
    """
    engine = ctypes.CDLL(library)
    rate = engine.espeak_Initialize(SYNCHRONOUS, 0, data.encode(), DO_NOT_EXIT)
    if rate <= 0 or engine.espeak_SetVoiceByName(voice.encode()) != 0:
        sys.exit(f"eSpeak NG does not start with the data {data} and the voice {voice}.")
    pieces: list[bytes] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    def keep(samples: int | None, count: int, _: int | None) -> int:
        if samples and count > 0:
            pieces.append(ctypes.string_at(samples, 2 * count))
        return 0

    engine.espeak_SetSynthCallback(keep)
    engine.espeak_Synth(text, ctypes.c_size_t(len(text) + 1), 0, CHARACTERS, 0, UTF8, None, None)
    engine.espeak_Synchronize()
    return as_wav(b"".join(pieces), rate)


def as_wav(samples: bytes, rate: int) -> bytes:
    """Puts a header before samples of 16 bits."""
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(samples)
    return written.getvalue()


if __name__ == "__main__":
    library, data, voice = sys.argv[1:]
    sys.stdout.buffer.write(speak(library, data, voice, sys.stdin.buffer.read()))
