import lhotse
import torch

import lengthwise as lw


class Frames(torch.utils.data.Dataset):
    def __getitem__(self, cuts):
        assert len(cuts) * max(cut.duration for cut in cuts) <= 600
        return cuts


dataset, seconds = Frames(), lw.example_lengths("speech", count=1_000) / 100
cuts = (lhotse.MonoCut(id=str(number), start=0, duration=end, channel=0) for number, end in enumerate(seconds.tolist()))
