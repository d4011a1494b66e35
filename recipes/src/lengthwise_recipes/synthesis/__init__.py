"""Text to speech: recordings of sentences, log-mel spectrograms, and Tacotron 2.

    speech = read_speech("LJSpeech-1.1")
    task = SynthesisTask.of(speech, network=Network())

Without recordings, `read_speech(None, folder=...)` lets eSpeak NG speak generated sentences.
"""
