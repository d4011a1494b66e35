import torch
from speechbrain.dataio.dataset import DynamicItemDataset

import lengthwise as lw

items = {
    str(number): {"frames": int(frames)} for number, frames in enumerate(lw.example_lengths("speech", count=1_000))
}
data = DynamicItemDataset(items)
data.add_dynamic_item(lambda frames: torch.randn(frames, 3), takes="frames", provides="features")
data.set_output_keys(["features"])
