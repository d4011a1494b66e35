"""Measures the costs and savings of fixed shapes if a compiler makes a model for each shape.

    python benchmarks/compilation.py [--frameworks jax,torch] [--count 2400] [--epochs 2]

The same words are padded to the longest of all, to the edges of a few optimal buckets, or to the longest of each batch.
Compilations are counted, and timed separately from the epochs. An order without edges has a shape for every distinct
longest length of its batches. Compiling for these shapes takes most of the half hour that the benchmark takes.

Seconds are those of one processor core, including the child processes of the compilers. Data are real pen strokes if
they are there, else generated lines. Every case starts with empty caches.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import jax
import numpy as np
import torch
from record import DATA, parser, write
from torch._inductor.utils import fresh_cache

import lengthwise as lw
from lengthwise_recipes.compiled.data import Words, training_words
from lengthwise_recipes.compiled.jax_lstm import JaxLearner
from lengthwise_recipes.compiled.learning import Learner, find_shapes, run_epochs
from lengthwise_recipes.compiled.torch_encoder import TorchLearner
from lengthwise_recipes.handwriting.data import Corpus, read_corpus

PEN = DATA / "omniglot_strokes" / "omniglot_small1_small2.npz"
LAYERS = 1
TOTAL_EPOCHS = 20
CUT = lw.FixedSize(16)
FIXED = {
    f"optimal:{buckets}": lw.Batching(order=lw.Bucketed(buckets=buckets, pad_to_edge=True), cut=CUT)
    for buckets in (1, 2, 4, 8)
}
UNPADDED = {"sorted": lw.Batching(order=lw.Sorted(), cut=CUT), "random": lw.Batching(order=lw.Shuffled(), cut=CUT)}

Case = tuple[str, str, Learner]


def main() -> None:
    """Measures every case and writes the result."""
    options = parser(__doc__)
    options.add_argument("--frameworks", default="jax,torch")
    options.add_argument("--count", type=int, default=2400, help="words, for training and validation together")
    options.add_argument("--epochs", type=int, default=2, help="epochs of each case; the fastest counts")
    arguments = options.parse_args()
    on_one_core()
    corpus = pen_words(arguments.count)
    words = training_words(corpus)
    rows = []
    for framework in arguments.frameworks.split(","):
        for compiler, strategy, learner in CASES[framework](words):
            batching = (FIXED | UNPADDED)[strategy]
            with fresh_cache():
                row = measured(learner, words, batching, arguments.epochs)
            rows.append({"framework": framework, "compiler": compiler, "strategy": strategy, **row})
            print(rows[-1], flush=True)
    print(write("compilation", {**facts(corpus, words, arguments), "rows": rows}))


def on_one_core() -> None:
    """Limits both frameworks and the compiler of PyTorch to one core; JAX counts cores on first use."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    torch._inductor.config.compile_threads = 1


def pen_words(count: int) -> Corpus:
    if PEN.exists():
        return read_corpus(PEN, count=count, scripts=("Latin", "Greek"))
    return read_corpus(None, count=count)


def facts(corpus: Corpus, words: Words, arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "data": {"name": corpus.name, "samples": len(words), "distinct_lengths": len(np.unique(words.lengths))},
        "fingerprint": lw.fingerprint(words.lengths),
        "settings": {"batch_size": CUT.batch_size, "layers": LAYERS, **vars(arguments)},
        "total_epochs": TOTAL_EPOCHS,
        "frameworks": {name: version(name) for name in ("jax", "optax", "torch")},
    }


def jax_cases(words: Words) -> Iterator[Case]:
    for strategy in (*FIXED, "sorted"):
        jax.clear_caches()
        yield "jit", strategy, JaxLearner(words, layers=LAYERS)


def torch_cases(words: Words) -> Iterator[Case]:
    eager = {"backend": None}
    cases = [("none", strategy, eager) for strategy in ("random", "optimal:1", "optimal:8", "sorted")]
    cases += [("inductor", strategy, {}) for strategy in ("optimal:1", "optimal:2", "optimal:8", "sorted")]
    cases += [("inductor, dynamic", "random", {"dynamic": True})]
    for compiler, strategy, options in cases:
        torch._dynamo.reset()
        yield compiler, strategy, TorchLearner(words, layers=LAYERS, **options)


CASES = {"jax": jax_cases, "torch": torch_cases}


def measured(learner: Learner, words: Words, batching: lw.Batching, epochs: int) -> dict[str, Any]:
    """Returns the number of compilations and their seconds, seconds of the fastest epoch, and the padding share."""
    plan = lw.make_plan(words.lengths, batching)
    shapes = find_shapes(words.lengths, batching, plan)
    rows = list(run_epochs(learner, words.lengths, batching, epochs=epochs, clock=core_seconds))
    compilations = rows[-1].compilations
    compile_seconds = sum(row.compile_seconds for row in rows) if compilations else 0.0
    seconds = min(row.seconds for row in rows)
    return {
        "shapes": len(shapes),
        "compilations": compilations,
        "compile_seconds": compile_seconds,
        "seconds_per_epoch": seconds,
        "total_seconds": compile_seconds + TOTAL_EPOCHS * seconds,
        "padding_share": rows[0].padding_share,
    }


def core_seconds() -> float:
    """Returns the core seconds of this process and its finished children."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()
