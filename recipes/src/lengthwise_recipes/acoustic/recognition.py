"""From scores to words, a batch of utterances at a time: whatever the corpus, one batch of scores is in memory.

scores  [F, S] of each utterance   of mixtures, or posteriors / priors of a network
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lengthwise_recipes.acoustic.alignment import Scores, batches_of_like_length
from lengthwise_recipes.acoustic.bigram import Bigram
from lengthwise_recipes.acoustic.decoder import Search, decode, hybrid_scores
from lengthwise_recipes.acoustic.frames import Utterances
from lengthwise_recipes.acoustic.hmm import WordStates
from lengthwise_recipes.acoustic.network import rectangle


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
        lengths: Frames of each.
        scores_of: Takes the numbers of some utterances, [B], and gives the scores of each.
        states, stay, bigram, search: As for `decoder.decode`.

    Returns:
        The words of each, in the order of `lengths`.
    """
    found: dict[int, tuple[str, ...]] = {}
    for batch in batches_of_like_length(list(lengths)):
        decoded = decode(scores_of(batch), states, stay, bigram, search=search)
        found.update((int(number), each.words) for number, each in zip(batch, decoded, strict=True))
    return [found[number] for number in range(len(lengths))]


@torch.no_grad()
def network_scores(
    model: nn.Module, utterances: Utterances, batch: NDArray[np.int64], *, stack: int, priors: Scores
) -> list[Scores]:
    """What a network says of every frame: its log posteriors less the logarithm of the priors.

    A network frame stands for `stack` frames, each of which gets its scores: so states last as long, and the language
    model weighs as much, as where there is one network frame for each.

    Args:
        model: Frames and counts to log-odds, see `network.StateTeller`.
        utterances: Scaled as those that it was trained on.
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
    each = [np.repeat(rows, stack, axis=0)[:length] for rows, length in zip(posteriors, lengths, strict=True)]
    return [hybrid_scores(rows, priors) for rows in each]
