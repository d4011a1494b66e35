"""Text to speech: sentences and their sounds, log-mel spectrograms, and Tacotron 2, which learns one from the other.

    speech = read_speech("LJSpeech-1.1")
    task = SynthesisTask.of(speech, network=Network())

Where nobody has recorded anything, `read_speech(None, folder=...)` lets eSpeak NG speak sentences of the project's own.
"""
