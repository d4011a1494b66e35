"""Calls the samplers of other systems, each as its own trainer does. `peers.py` runs this file for a peer.

    python benchmarks/peer_calls.py PEER INPUT.npz OUT.npz

A call returns the batches of each rank in an epoch. The cap is of padded frames; a peer that counts sequences takes as
many as 0.95 of the cap holds on average. Each function imports its peer, so one environment needs one peer.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import MagicMock

import numpy as np
import peer_ours

Batches: TypeAlias = list[list[int]]


class Run:
    """Lengths, their cap and their ranks; the input of a peer is made once, before its time is taken."""

    def __init__(self, lengths: Any, cap: int, ranks: int, micro_batches: int, buckets: int = 0) -> None:
        self.sides, self.cap, self.ranks, self.micro_batches = lengths, cap, ranks, micro_batches
        self.lengths = lengths.reshape(len(lengths), -1).sum(axis=1)  # peers get the sum of two lengths
        self.buckets = buckets  # 0: as many as the peer is usually given
        self.size = max(1, int(0.95 * cap / self.lengths.mean()))

    @cached_property
    def numbers(self) -> list[int]:
        return self.lengths.tolist()

    @cached_property
    def cuts(self) -> Any:
        from lhotse import CutSet, MonoCut

        return CutSet.from_cuts(
            MonoCut(id=str(place), start=0, duration=float(length), channel=0)
            for place, length in enumerate(self.numbers)
        )

    @cached_property
    def edges(self) -> list[float]:
        from lhotse.dataset.sampling.dynamic_bucketing import estimate_duration_buckets

        edges = estimate_duration_buckets(self.cuts, num_buckets=self.buckets or 30)
        return [*edges, float(self.lengths.max())]

    @cached_property
    def quantiles(self) -> Any:
        """The edges of buckets of equal counts."""
        shares = np.linspace(0, 1, 1 + (self.buckets or 30))[1:]
        return np.unique(np.quantile(self.lengths, shares, method="higher"))

    @cached_property
    def messages(self) -> Any:
        from datasets import Dataset

        texts = [f"{place} {length}" for place, length in enumerate(self.numbers)]
        pairs = [[{"role": role, "content": text} for role in ("user", "assistant")] for text in texts]
        return Dataset.from_dict({"messages": pairs})

    @cached_property
    def tokens(self) -> Any:
        from datasets import Dataset

        return Dataset.from_dict({"input_ids": [[place] * length for place, length in enumerate(self.numbers)]})


def in_batches(order: Sequence[int], size: int) -> Batches:
    """Returns the order in batches of a size; the last may be smaller."""
    return [list(order[start : start + size]) for start in range(0, len(order), size)]


def cut_in_order(order: Sequence[int], run: Run, *, multiple: int = 1) -> Batches:
    """Returns an order in batches as full as the cap allows, of a multiple of sequences, or of fewer than that."""
    batches: Batches = []
    batch: list[int] = []
    longest = 0
    for place in order:
        longest = max(longest, run.numbers[place])
        if batch and longest * (len(batch) + 1) > run.cap:
            size = max(len(batch) // multiple * multiple, len(batch) % multiple)
            batches.append(batch[:size])
            batch = batch[size:]
            longest = max(run.numbers[each] for each in [*batch, place])
        batch.append(place)
    return [*batches, batch]


def random(run: Run, epoch: int) -> list[Batches]:
    """Random batches of equal counts, each rank's from its part of a random order."""
    order = np.random.default_rng(epoch).permutation(len(run.numbers))
    return [in_batches(order[rank :: run.ranks].tolist(), run.size) for rank in range(run.ranks)]


def group_by_length(run: Run, epoch: int) -> list[Batches]:
    """The Trainer's `group_by_length`, shared out by Accelerate."""
    import torch
    from accelerate.data_loader import BatchSamplerShard
    from transformers.trainer_pt_utils import LengthGroupedSampler

    batches = []
    for rank in range(run.ranks):
        seed = torch.Generator().manual_seed(epoch)
        order = LengthGroupedSampler(run.size * run.micro_batches, lengths=run.numbers, generator=seed)
        whole = torch.utils.data.BatchSampler(order, run.size, drop_last=False)
        batches.append(list(BatchSamplerShard(whole, run.ranks, rank) if run.ranks > 1 else whole))
    return batches


def batch_rebalance(run: Run, epoch: int) -> list[Batches]:
    """The Trainer's `batch_rebalance`, which keeps the last step unless told otherwise."""
    from transformers.trainer_pt_utils import BatchRebalanceSampler

    batches, step = [], run.size * run.ranks * run.micro_batches
    for rank in range(run.ranks):
        options: dict[str, Any] = {"rank": rank, "drop_last": False}
        sampler = BatchRebalanceSampler(run.numbers, step, run.ranks, run.micro_batches, **options)
        sampler.set_epoch(epoch)
        batches.append([list(batch) for batch in sampler])
    return batches


def _lhotse(run: Run, epoch: int, **options: Any) -> list[Batches]:
    from lhotse.dataset.sampling import DynamicBucketingSampler

    batches = []
    for rank in range(run.ranks):
        shared: dict[str, Any] = {"shuffle": True, "drop_last": False, "world_size": run.ranks, "rank": rank, "seed": 0}
        sampler = DynamicBucketingSampler(run.cuts, **shared, **options)
        sampler.set_epoch(epoch)
        batches.append([[int(cut.id.partition("_")[0]) for cut in batch] for batch in sampler])
    return batches


def lhotse(run: Run, epoch: int) -> list[Batches]:
    """lhotse's `DynamicBucketingSampler` of cuts in memory; a cut that it repeats has a suffix."""
    return _lhotse(run, epoch, max_duration=float(run.cap), num_buckets=run.buckets or 30)


def lhotse_concurrent(run: Run, epoch: int) -> list[Batches]:
    """The same with `concurrent=True`, NeMo's default."""
    return _lhotse(run, epoch, max_duration=float(run.cap), num_buckets=run.buckets or 30, concurrent=True)


def nemo(run: Run, epoch: int) -> list[Batches]:
    """NeMo's rule by lhotse: buckets of equal duration, each with the batch size that its longest allows."""
    from lhotse.dataset.sampling.dynamic_bucketing import FixedBucketBatchSizeConstraint

    sizes = [max(1, int(run.cap // edge)) for edge in run.edges]
    constraint = FixedBucketBatchSizeConstraint(max_seq_len_buckets=run.edges, batch_sizes=sizes)
    return _lhotse(run, epoch, constraint=constraint, duration_bins=run.edges[:-1])


def _leave_out(*names: str) -> None:
    """Stands in for modules that a peer imports, and does not need here."""
    sys.modules |= {name: MagicMock(__version__="2.11.0", __spec__=ModuleSpec(name, None)) for name in names}


def speechbrain(run: Run, epoch: int) -> list[Batches]:
    """SpeechBrain's `DynamicBatchSampler`, in the wrapper of its `Brain`."""
    _leave_out("torchaudio", "torchaudio.transforms", "torchaudio.functional")
    from speechbrain.dataio.sampler import DistributedSamplerWrapper, DynamicBatchSampler

    batches = []
    for rank in range(run.ranks):
        options: dict[str, Any] = {
            "max_batch_length": run.cap,
            "num_buckets": run.buckets or 100,
            "lengths_list": run.numbers,
        }
        sampler = DynamicBatchSampler(range(len(run.numbers)), **options)
        if run.ranks > 1:
            sampler = DistributedSamplerWrapper(sampler, num_replicas=run.ranks, rank=rank)
        sampler.set_epoch(epoch + 1)
        batches.append([list(batch) for batch in sampler])
    return batches


def espnet(run: Run, epoch: int) -> list[Batches]:
    """ESPnet's `LengthBatchSampler`; ranks share out each batch, so its cap is that of all ranks."""
    from espnet2.samplers.length_batch_sampler import LengthBatchSampler

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shape"
        path.write_text("".join(f"u{place:09d} {length}\n" for place, length in enumerate(run.numbers)))
        sampler = LengthBatchSampler(batch_bins=run.cap * run.ranks, shape_files=[str(path)], min_batch_size=run.ranks)
    batches = [[int(name[1:]) for name in batch] for batch in sampler]
    np.random.RandomState(epoch).shuffle(batches)
    return [[batch[rank :: run.ranks] for batch in batches] for rank in range(run.ranks)]


def returnn(run: Run, epoch: int) -> list[Batches]:
    """RETURNN's order `laplace:.1000`, cut in order. Ranks have shards; by default each would pass all data."""
    from returnn.datasets.basic import Dataset

    batches = []
    for rank in range(run.ranks):
        dataset = Dataset(seq_ordering="laplace:.1000", _num_shards=run.ranks, _shard_index=rank)
        options: dict[str, Any] = {"num_seqs": len(run.numbers), "get_seq_len": run.numbers.__getitem__}
        batches.append(
            cut_in_order([int(place) for place in dataset.get_seq_order_for_epoch(epoch + 1, **options)], run)
        )
    return batches


def fairseq(run: Run, epoch: int) -> list[Batches]:
    """fairseq's rule, written here: sorted batches of multiples of 8 (or of `buckets`), made once and shuffled."""
    order = np.random.default_rng(1).permutation(len(run.numbers))
    batches = cut_in_order(
        order[np.argsort(run.lengths[order], kind="stable")].tolist(), run, multiple=run.buckets or 8
    )
    batches = batches[:-1] if len(batches[-1]) % (run.buckets or 8) else batches
    np.random.default_rng(epoch).shuffle(batches)
    return [batches[rank :: run.ranks] for rank in range(run.ranks)]


def tf_data(run: Run, epoch: int) -> list[Batches]:
    """tf.data's `bucket_by_sequence_length` with buckets of equal counts, on a shard of the data for each rank."""
    import tensorflow as tf

    edges = run.quantiles
    sizes = [max(1, run.cap // int(edge)) for edge in edges]
    lengths = tf.constant(run.lengths)
    batches = []
    for rank in range(run.ranks):
        places = tf.data.Dataset.range(len(run.numbers)).shuffle(len(run.numbers), seed=epoch).shard(run.ranks, rank)
        bucketed = places.bucket_by_sequence_length(
            lambda place: tf.cast(tf.gather(lengths, place), tf.int32),
            bucket_boundaries=[int(edge) + 1 for edge in edges[:-1]],
            bucket_batch_sizes=sizes,
            padded_shapes=[],
        )
        batches.append([batch.tolist() for batch in bucketed.as_numpy_iterator()])
    return batches


def fastai(run: Run, epoch: int) -> list[Batches]:
    """fastai's `SortedDL`, shuffled; as in `DistributedDL`, each rank has a part of the order, which is then cut."""
    from fastai.text.data import SortedDL

    np.random.seed(epoch)
    places = range(len(run.numbers))
    loader = SortedDL(places, bs=run.size, shuffle=True, res=run.numbers, sort_func=None)
    order = [int(place) for place in loader.get_idxs()]
    part = -(-len(order) // run.ranks)
    order += order[: part * run.ranks - len(order)]
    return [in_batches(order[rank * part : (rank + 1) * part], run.size) for rank in range(run.ranks)]


def _dealt(rows: Batches, run: Run, epoch: int) -> list[Batches]:
    """Returns rows in a random order, one a batch, dealt out in turn."""
    np.random.default_rng(epoch).shuffle(rows)
    return [rows[rank :: run.ranks] for rank in range(run.ranks)]


def trl(run: Run, epoch: int) -> Callable[[], list[Batches]]:
    """TRL's `packing=True`, best fit decreasing; it packs once, before training."""
    from trl import pack_dataset

    packed = pack_dataset(run.tokens, run.cap, "bfd")
    return lambda: _dealt([list(dict.fromkeys(row)) for row in packed["input_ids"]], run, epoch)


def axolotl(run: Run, epoch: int) -> list[Batches]:
    """axolotl's `MultipackBatchSampler` of shuffled data, one row a batch."""
    from axolotl.utils.samplers.multipack import MultipackBatchSampler

    order = np.random.default_rng(epoch).permutation(len(run.numbers)).tolist()
    sampler = MultipackBatchSampler(order, 1, run.cap, run.lengths, bin_size=200, num_processes=1)
    return _dealt([list(row) for batch in sampler for row in batch], run, epoch)


def grain(run: Run, epoch: int) -> Callable[[], list[Batches]]:
    """grain's `BestFitPackIterDataset` with 256 open rows; its time includes the copies of tokens."""
    import grain

    data = grain.MapDataset.range(len(run.numbers)).shuffle(seed=epoch)
    data = data.map(lambda place: {"x": np.full(run.numbers[place], place)}).to_iter_dataset()
    packed = grain.experimental.BestFitPackIterDataset(data, length_struct={"x": run.cap}, num_packing_bins=256)
    rows = [row["x"][row["x_segment_ids"] > 0] for row in packed]
    return lambda: _dealt([list(dict.fromkeys(row.tolist())) for row in rows], run, epoch)


def torchtitan(run: Run, epoch: int) -> Callable[[], list[Batches]]:
    """torchtitan's `ChatDataset`, one row a batch, whose end is filled up with tokens that end a sequence."""
    from torchtitan.hf_datasets.text_datasets import ChatDataset

    tokenizer = MagicMock(eos_id=-1, apply_chat_template=lambda messages, **_: messages[0]["content"])
    tokenizer.encode = lambda text, **_: [int(text.split()[0])] * int(text.split()[1])
    rows = []
    for rank in range(run.ranks):
        options: dict[str, Any] = {"seq_len": run.cap, "dp_rank": rank, "dp_world_size": run.ranks}
        data = ChatDataset(run.messages, tokenizer, lambda sample: sample["messages"], **options)
        for _ in range(epoch):
            data.reloop()
        rows.append([inputs["input"].numpy() for inputs, _ in data])
    return lambda: [[np.unique(row[row >= 0]).tolist() for row in of_rank] for of_rank in rows]


def verl(run: Run, epoch: int) -> list[Batches]:
    """verl's partitions of random steps, by rank into equal counts, then into a number of micro-batches."""
    _leave_out("verl", "verl.protocol", "verl.utils", "verl.utils.device")
    module = Path(np.__file__).parents[1] / "verl" / "utils" / "seqlen_balancing.py"
    partition = runpy.run_path(str(module))["get_seqlen_balanced_partitions"]
    order = np.random.default_rng(epoch).permutation(len(run.numbers))
    batches: list[Batches] = [[] for _ in range(run.ranks)]
    size = run.size * run.ranks * run.micro_batches
    for step in np.split(order[: len(order) // size * size], len(order) // size):
        for rank, part in enumerate(partition(run.lengths[step].tolist(), run.ranks, True)):
            ours = step[part]
            parts = partition(run.lengths[ours].tolist(), run.micro_batches, False)
            batches[rank] += [ours[micro_batch].tolist() for micro_batch in parts]
    return batches


CALLS: dict[str, Callable[[Run, int], Any]] = peer_ours.CALLS | {
    call.__name__: call
    for call in (
        *(random, group_by_length, batch_rebalance, lhotse, lhotse_concurrent, nemo, speechbrain, espnet, returnn),
        *(fairseq, tf_data, fastai, verl, trl, axolotl, grain, torchtitan),
    )
}
INPUTS = {"lhotse": ("cuts",), "lhotse_concurrent": ("cuts",), "nemo": ("cuts", "edges"), "trl": ("tokens",)}
INPUTS["torchtitan"] = ("messages",)
ALL_AT_ONCE = ("random", "espnet", "fairseq", "fastai", "verl", "trl", "axolotl", "grain", *peer_ours.CALLS)  # ranks


def flatten(ranks: Iterable[Batches]) -> dict[str, Any]:
    """Returns the batches of all ranks as arrays: places, the size of each batch, and the batches of each rank."""
    every = [np.asarray(batch, np.int64) for batches in ranks for batch in batches]
    return {
        "places": np.concatenate(every),
        "sizes": np.array(list(map(len, every))),
        "counts": np.array(list(map(len, ranks))),
    }


def peak_bytes() -> int:
    """Returns the most memory of the process until now; `getrusage` counts that of the parent, too."""
    return 1024 * int(re.findall(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[0])


def main() -> None:
    """Times each epoch, and writes its batches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("peer", "input", "out"):
        parser.add_argument(name)
    arguments = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    peer, _, buckets = arguments.peer.partition(":")
    given = dict(np.load(arguments.input))
    world = {name: int(given[name]) for name in ("cap", "ranks", "micro_batches")}
    run = Run(given["lengths"], **world, buckets=int(buckets or 0))
    first = max(1_000, 2 * run.size * run.ranks * run.micro_batches)  # compiles and imports before time is taken
    CALLS[peer](Run(run.sides[:first], **world, buckets=run.buckets), 0)
    for name in ("numbers", *INPUTS.get(peer, ())):
        getattr(run, name)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is that of now
    arrays, before = {}, peak_bytes()
    for epoch in range(int(given["epochs"])):
        started = time.process_time()
        batches = CALLS[peer](run, epoch)
        arrays[f"seconds{epoch}"] = (time.process_time() - started) / (1 if peer in ALL_AT_ONCE else run.ranks)
        if epoch == 0:
            arrays["peak"] = peak_bytes() - before
        batches = batches() if callable(batches) else batches
        arrays |= {f"{name}{epoch}": array for name, array in flatten(batches).items()}
    np.savez(arguments.out, **arrays)


if __name__ == "__main__":
    main()
