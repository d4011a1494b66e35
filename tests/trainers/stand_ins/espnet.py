import lengthwise as lw

shapes = {f"u{number}": int(frames) for number, frames in enumerate(lw.example_lengths("speech", count=1_000))}
dataset = {name: (name, frames) for name, frames in shapes.items()}


def collate(samples):
    assert len(samples) * max(frames for _, frames in samples) <= 60_000
    return samples
