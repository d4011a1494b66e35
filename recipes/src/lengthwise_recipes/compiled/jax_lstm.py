"""A bidirectional LSTM with CTC in JAX: the network of the handwriting study, compiled once per shape.

weights   a pytree: {"layers": [{"forwards": cell, "backwards": cell}, ...], "output": linear}
linear    {"kernel": [inputs, outputs], "bias": [outputs]}
cell      a linear of [inputs + H, 4 H], the input, forget, cell and output gates side by side

By hand, since JAX itself has no layers, and its LSTM (`jax.experimental.rnn`) runs on GPUs only. The CTC loss and the
optimiser are optax's. Another package, for one layer of thirty lines, would hide what is compiled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

import lengthwise as lw
from lengthwise_recipes.compiled.data import Words

CLIPPED_NORM = 1.0
LEARNING_RATE = 0.01

Weights = dict[str, Any]


def keep_executables(folder: Path) -> None:
    """Keeps what is compiled from now on in a folder, from which a later process loads it."""
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


class JaxLearner:
    """Adam on the mean CTC loss of each batch.

    Each shape has its own executable, compiled ahead of time, that takes the weights as an argument. Training on a
    shape without one raises KeyError, so no compilation is hidden in a step.

    Args:
        words: Training samples.
        hidden: LSTM cells of each direction.
        layers: Number of bidirectional layers.
        seed: Seed of the first weights.
    """

    def __init__(self, words: Words, *, hidden: int = 64, layers: int = 2, seed: int = 0) -> None:
        self.words = words
        key = jax.random.key(seed)
        self.weights = first_weights(key, inputs=words.inputs, classes=words.classes, hidden=hidden, layers=layers)
        self.optimizer = optax.chain(optax.clip_by_global_norm(CLIPPED_NORM), optax.adam(LEARNING_RATE))
        self.state = self.optimizer.init(self.weights)
        self._executables: dict[tuple[int, ...], Any] = {}

    @property
    def compilations(self) -> int:
        return len(self._executables)

    def compile(self, shapes: NDArray[np.int64]) -> None:
        collate = self._collate(shapes)
        for length in shapes[:, 1].tolist():
            batch = collate([self.words.zeros(length)])
            if batch[0].mask.shape not in self._executables:
                lowered = jax.jit(self._step).lower(self.weights, self.state, batch)
                self._executables[batch[0].mask.shape] = lowered.compile()

    def train(self, plan: lw.Plan, shapes: NDArray[np.int64]) -> float:
        totals = []
        for batch in lw.jax.batches(self.words, plan, self._collate(shapes)):
            step = self._executables[batch[0].mask.shape]
            self.weights, self.state, total = step(self.weights, self.state, batch)
            totals.append(total)
        return float(np.sum(jax.device_get(totals))) / len(plan.sequences)

    def _collate(self, shapes: NDArray[np.int64]) -> lw.jax.PadCollate:
        return lw.jax.PadCollate(shapes, pad_to={"1": self.words.longest_label})

    def _step(self, weights: Weights, state: Any, batch: Any) -> tuple[Any, Any, jax.Array]:
        """Takes one step on a batch; returns weights and state after it, and the sum of the losses before it."""
        frames, labels = batch
        count = (frames.lengths > 0).sum()

        def mean_loss(weights: Weights) -> jax.Array:
            return ctc_losses(logits(weights, frames), frames, labels).sum() / count

        loss, gradient = jax.value_and_grad(mean_loss)(weights)
        updates, state = self.optimizer.update(gradient, state)
        return optax.apply_updates(weights, updates), state, loss * count


def first_weights(key: jax.Array, *, inputs: int, classes: int, hidden: int, layers: int) -> Weights:
    """Draws uniform weights between -1 / sqrt(hidden) and 1 / sqrt(hidden), as PyTorch's LSTM does."""
    bound = hidden**-0.5

    def linear(key: jax.Array, rows: int, columns: int) -> Weights:
        kernel, bias = jax.random.split(key)
        return {
            "kernel": jax.random.uniform(kernel, (rows, columns), minval=-bound, maxval=bound),
            "bias": jax.random.uniform(bias, (columns,), minval=-bound, maxval=bound),
        }

    keys = jax.random.split(key, (layers + 1, 2))
    widths = [inputs] + [2 * hidden] * (layers - 1)
    return {
        "layers": [
            {
                "forwards": linear(ahead, width + hidden, 4 * hidden),
                "backwards": linear(behind, width + hidden, 4 * hidden),
            }
            for width, (ahead, behind) in zip(widths, keys[1:], strict=True)
        ],
        "output": linear(keys[0, 0], 2 * hidden, classes),
    }


def logits(weights: Weights, frames: lw.jax.PaddedSequences) -> jax.Array:
    """Returns scores of the classes, [B, F, C]. Scores of padding are meaningless; the others do not depend on it."""
    values = jnp.asarray(frames.values)
    order = reversal(frames.lengths, values.shape[1])[:, :, None]
    for layer in weights["layers"]:
        ahead = lstm(layer["forwards"], values)
        behind = lstm(layer["backwards"], jnp.take_along_axis(values, order, axis=1))
        values = jnp.concatenate([ahead, jnp.take_along_axis(behind, order, axis=1)], axis=2)
    return values @ weights["output"]["kernel"] + weights["output"]["bias"]


def lstm(cell: Weights, values: jax.Array) -> jax.Array:
    """Runs one direction from a state of zeros: [B, F, inputs] to [B, F, H]."""
    hidden = cell["kernel"].shape[1] // 4
    to_gates, recurrent = cell["kernel"][:-hidden], cell["kernel"][-hidden:]

    def advance(state: tuple[jax.Array, jax.Array], driven: jax.Array) -> tuple[Any, jax.Array]:
        output, memory = state
        gates = driven + output @ recurrent
        let_in, forget, candidate, let_out = jnp.split(gates, 4, axis=1)
        memory = jax.nn.sigmoid(forget) * memory + jax.nn.sigmoid(let_in) * jnp.tanh(candidate)
        output = jax.nn.sigmoid(let_out) * jnp.tanh(memory)
        return (output, memory), output

    driven = jnp.swapaxes(values @ to_gates + cell["bias"], 0, 1)  # all frames at once, then frame by frame
    zeros = jnp.zeros((len(values), hidden), driven.dtype)
    _, outputs = jax.lax.scan(advance, (zeros, zeros), driven)
    return jnp.swapaxes(outputs, 0, 1)


def reversal(lengths: Any, width: int) -> jax.Array:
    """Returns the places [B, width] that reverse each sequence and leave its padding in place.

    >>> reversal(jnp.array([3, 0]), 4).tolist()
    [[2, 1, 0, 3], [0, 1, 2, 3]]
    """
    places = jnp.arange(width)[None, :]
    last = jnp.asarray(lengths)[:, None] - 1
    return jnp.where(places <= last, last - places, places)


def ctc_losses(scores: jax.Array, frames: lw.jax.PaddedSequences, labels: lw.jax.PaddedSequences) -> jax.Array:
    """Returns the CTC loss of each row in nats per symbol, [B]; 0 for empty rows.

    References:
        Graves, Fernández, Gomez and Schmidhuber 2006, Connectionist temporal classification, ICML.
    """
    losses = optax.ctc_loss(scores, 1.0 - frames.mask, jnp.asarray(labels.values), 1.0 - labels.mask)
    return jnp.where(frames.lengths > 0, losses / jnp.maximum(labels.lengths, 1), 0.0)
