"""A plain PyTorch loop, once in random batches and once in planned ones: padding, time and accuracy.

    python examples/pytorch.py

A recurrent network learns which of four tones it hears, in noise. The recordings differ in length.
"""

import time

import torch

import lengthwise as lw

TRAIN, EPOCHS = 1_000, 4
collate = lw.torch.PadCollate()
lengths = 8 + lw.example_lengths("long-tailed", count=TRAIN + 200) // 32
torch.set_num_threads(1)  # with more threads, times would depend on the other programs of the machine
torch.manual_seed(0)
tones = torch.randint(4, (len(lengths),))
waves = [torch.sin(torch.arange(int(length)) * (0.3 + 0.2 * tone)) for length, tone in zip(lengths, tones, strict=True)]
recordings = [((wave + 0.4 * torch.randn(len(wave)))[:, None], tone) for wave, tone in zip(waves, tones, strict=True)]


class Listener(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = torch.nn.GRU(1, 32, batch_first=True), torch.nn.Linear(32, 4)

    def forward(self, wave: lw.torch.PaddedSequences) -> torch.Tensor:
        states, _ = self.layer(wave.values)
        return self.head((states * wave.mask[..., None]).sum(1) / wave.lengths[:, None])  # padding takes no part


def train(batching: lw.Batching) -> tuple[Listener, float]:
    """Trains a network; returns it, and the seconds that the training took."""
    torch.manual_seed(0)
    model = Listener()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sampler = lw.torch.BatchSampler(lengths[:TRAIN], batching, seed=0)
    loader = lw.torch.DataLoader(recordings[:TRAIN], sampler, quiet=True)
    start = time.perf_counter()
    for epoch in range(EPOCHS):
        loader.set_epoch(epoch)
        for (wave, tone), scale in zip(loader, sampler.loss_scales(), strict=True):
            (torch.nn.functional.cross_entropy(model(wave), tone) * scale).backward()
            optimizer.step()
            optimizer.zero_grad()
    return model, time.perf_counter() - start


print("batches      padding  seconds  right")
for name, order in {"random": lw.Shuffled(), "max-entropy": lw.MaxEntropy(padding=0.1)}.items():
    batching = lw.Batching(cut=lw.FixedSize(16), order=order)
    padding = lw.measure(lw.make_plan(lengths[:TRAIN], batching), lengths[:TRAIN]).padding_share
    model, seconds = train(batching)
    wave, tone = collate(recordings[TRAIN:])
    right = (model(wave).argmax(1) == tone).float().mean()
    print(f"{name:12} {padding:6.0%} {seconds:8.1f} {right:7.0%}")
