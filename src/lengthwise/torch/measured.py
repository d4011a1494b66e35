"""What the functions of a user say of the samples of a stream: lengths and weights, and which sample is meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from lengthwise import checks
from lengthwise.lengths import as_lengths
from lengthwise.planning.loss import check_weights
from lengthwise.torch.shards import Start


def name_sample(place: int, shards: Sequence[int], starts: Mapping[int, Start] | Sequence[Start]) -> str:
    """Which sample of which shard stands at a place of a window, where samples stand shard by shard.

    >>> begin = {"read": 0, "source": None, "ended": False}
    >>> name_sample(3, [0, 0, 2, 2], {0: begin, 2: {**begin, "read": 40}})
    'sequence 41 of shard 2'
    """
    shard = int(shards[place])
    return f"sequence {starts[shard]['read'] + place - list(shards).index(shard)} of shard {shard}"


def ask(name: str, function: Callable[[Any], Any], samples: Sequence[Any], named: Callable[[int], str]) -> list[Any]:
    """What `function` says of each sample; what it raises is told of which sample it was raised."""
    answers = []
    for place, sample in enumerate(samples):
        try:
            answers.append(function(sample))
        except Exception as error:
            where = f"`{name}` raised this at {named(place)}, {checks.show_value(sample)}."
            if isinstance(error, StopIteration):  # a loop over the stream would take it for its end
                raise RuntimeError(f"StopIteration: {where}") from error
            # A note: the class and the words stay those of the user's function.
            error.add_note(where)
            raise
    return answers


def tell(error: Exception) -> str:
    """An error in the words that other ranks raise, with its notes."""
    return "; ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])


def check_length(length: Callable[[Any], Any], samples: Sequence[Any]) -> None:
    """Refuses `len` of samples whose number of fields it would give."""
    if length is not len or not samples:
        return
    first, kind, example = samples[0], "", ""
    if isinstance(first, Mapping):
        kind, example = "dict", "len(sample['input_ids'])"
    # Of (frames, label) it is 2, whatever the frames are; but a sequence may be a tuple of words.
    elif isinstance(first, tuple) and any(isinstance(part, Tensor | np.ndarray) for part in first):
        kind, example = "tuple", "len(sample[0])"
    if kind:
        rule = f"the length of a sequence, not the number of a {kind}'s fields"
        raise checks.type_error("length", rule, length, f"Give lambda sample: {example}, for example.")


def check_measured(measured: list[Any], shards: Sequence[int], starts: Mapping[int, Start]) -> list[Any]:
    """The lengths of a window's samples; an error names the shard, because nobody knows places in a window."""
    try:
        return as_lengths(measured).tolist() if measured else []
    except (ValueError, TypeError):
        for place in range(len(measured)):
            # Beside the first one, which may have another number of lengths.
            looked_at = measured[:1] if place == 0 else [measured[0], measured[place]]
            try:
                as_lengths(looked_at)
            except (ValueError, TypeError) as error:
                here = f"sequence {len(looked_at) - 1}"
                raise type(error)(str(error).replace(here, name_sample(place, shards, starts))) from None
        raise


def check_weighed(weighed: list[Any], named: Callable[[int], str]) -> list[float]:
    """The weights of a window's samples; an error names the shard."""
    weights = [_as_weight(value, named, place) for place, value in enumerate(weighed)]
    check_weights(weights, len(weights), "Give one number for a sample.", name=named)
    return weights


def _as_weight(value: Any, named: Callable[[int], str], place: int) -> float:
    try:
        if not isinstance(value, str | bytes):  # of which Python would read the digits
            return float(value)
    except (TypeError, ValueError, RuntimeError):  # None, or a tensor of several numbers
        pass
    remedy = "Give what counts in its loss, such as its tokens."
    raise TypeError(checks.sentence("weight", "one number for each sequence", value, remedy, at=named(place)))
