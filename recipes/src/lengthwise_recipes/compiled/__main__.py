"""Trains on handwriting with one compiled model per bucket, and prints the time of compiling and training.

    python -m lengthwise_recipes.compiled jax --buckets 4 --epochs 3
    python -m lengthwise_recipes.compiled torch --buckets 4 --epochs 3 --data strokes.npz

Without --data it trains on generated lines of handwriting.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

import lengthwise as lw
from lengthwise_recipes.compiled.data import Words, training_words
from lengthwise_recipes.compiled.learning import Learner, run_epochs
from lengthwise_recipes.handwriting.data import read_corpus


def main() -> None:
    """Trains and prints one line per epoch."""
    options = _parser().parse_args()
    words = training_words(read_corpus(options.data, count=options.count))
    order = lw.Bucketed(buckets=options.buckets, pad_to_edge=True)
    batching = lw.Batching(order=order, cut=lw.FixedSize(options.batch_size))
    shapes = lw.batch_shapes(words.lengths, batching).tolist()
    print(f"{len(words)} samples; rows and padded length of the batches: {shapes}")
    for row in run_epochs(_learner(options.framework, words), words.lengths, batching, epochs=options.epochs):
        print(", ".join(f"{name} {value:.4g}" for name, value in asdict(row).items()))


def _learner(framework: str, words: Words) -> Learner:
    if framework == "jax":
        from lengthwise_recipes.compiled.jax_lstm import JaxLearner

        return JaxLearner(words)
    from lengthwise_recipes.compiled.torch_encoder import TorchLearner

    return TorchLearner(words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("framework", choices=("jax", "torch"))
    parser.add_argument("--data", help="an .npz of characters or a folder of InkML")
    parser.add_argument("--count", type=int, default=400, help="samples (400)")
    parser.add_argument("--buckets", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=3)
    return parser


if __name__ == "__main__":
    main()
