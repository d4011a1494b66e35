"""A hybrid acoustic model: the recipe of Doetsch, Golik and Ney 2017.

    sound -> MFCC -> GMM-HMM -> a state for each frame -> network -> posteriors / priors -> Viterbi -> words

Shape legend of this folder:
    N samples of a sound, F feature frames, K network frames (each joins one or more feature frames), D features,
    S states of all words, M densities of a mixture,
    B utterances of a batch, V words of the vocabulary without silence.
"""
