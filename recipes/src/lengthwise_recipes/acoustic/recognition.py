"""Recognises words batch by batch, so that only one batch of scores is in memory.

scores  [F, S] per utterance   log likelihoods by mixtures, or log (posteriors / priors) by a network
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import lengthwise as lw
from lengthwise_recipes.acoustic.bigram import Bigram
from lengthwise_recipes.acoustic.decoder import Search, decode, hybrid_scores
from lengthwise_recipes.acoustic.frames import Utterances
from lengthwise_recipes.acoustic.graph import Scores
from lengthwise_recipes.acoustic.hmm import WordStates
from lengthwise_recipes.acoustic.network import rectangle

FRAMES_OF_A_BATCH = 20_000  # padding included; bounds the memory of a batch


def recognise(
    lengths: Sequence[int] | NDArray[np.int64],
    scores_of: Callable[[NDArray[np.int64]], list[Scores]],
    states: WordStates,
    stay: Scores,
    bigram: Bigram,
    *,
    search: Search,
) -> list[tuple[str, ...]]:
    """Decodes utterances, those of like length together.

    Args:
        lengths: Frames of each utterance.
        scores_of: Takes numbers of utterances, [B], and returns the scores of each.
        states, stay, bigram, search: See `decoder.decode`.

    Returns:
        The words of each utterance, in the order of `lengths`.
    """
    batches = list(lw.evaluation_plan(lengths, lw.Budget(FRAMES_OF_A_BATCH, oversize="alone")).batches())
    scores = (rows for batch in batches for rows in scores_of(batch))
    found = decode(scores, states, stay, bigram, search=search)
    words = {int(number): hypothesis.words for number, hypothesis in zip(np.concatenate(batches), found, strict=True)}
    return [words[number] for number in range(len(lengths))]


@torch.no_grad()
def network_scores(
    model: nn.Module, utterances: Utterances, batch: NDArray[np.int64], *, stack: int, priors: Scores
) -> list[Scores]:
    """Scores every frame by a network: log posteriors minus log priors.

    All `stack` frames of a network frame get its scores. So durations of states and the weight of the language model
    do not depend on `stack`.

    Args:
        model: Frames and counts to log-odds, see `network.StateTeller`.
        utterances: Scaled like the training data.
        batch: Numbers of utterances, [B].
        stack: Frames in a network frame.
        priors: [S].

    References:
        Doetsch et al. 2017, section 5.
    """
    device = next(model.parameters()).device
    frames, _, counts = rectangle(utterances, utterances.spans(batch), stack=stack)
    posteriors = model(frames.to(device), counts.to(device)).log_softmax(dim=2).cpu().numpy()
    lengths = utterances.lengths[batch]
    return [
        hybrid_scores(np.repeat(rows, stack, axis=0)[:length], priors)
        for rows, length in zip(posteriors, lengths, strict=True)
    ]
