import json

import soundfile
import torch
from omegaconf import OmegaConf

import lengthwise as lw

with open("train.json", "w") as manifest:
    for number, seconds in enumerate(lw.example_lengths("speech", count=20) / 100):
        soundfile.write(f"{number}.wav", torch.randn(int(16_000 * seconds)).numpy(), 16_000)
        print(json.dumps({"audio_filepath": f"{number}.wav", "duration": seconds, "text": "ab"}), file=manifest)
parts = "nemo.collections.asr.modules."
layer = {"filters": 16, "repeat": 1, "kernel": [3], "stride": [2], "dilation": [1], "dropout": 0.0, "residual": False}
encoder = {"_target_": f"{parts}ConvASREncoder", "activation": "relu", "jasper": [layer]}
config = {
    "preprocessor": {"_target_": f"{parts}AudioToMelSpectrogramPreprocessor", "features": 16},
    "encoder": {**encoder, "feat_in": 16},
    "decoder": {"_target_": f"{parts}ConvASRDecoder", "feat_in": 16, "num_classes": 2, "vocabulary": ["a", "b"]},
    "optim": {"name": "sgd", "lr": 0.001},
}
config = OmegaConf.create(config)
settings = {"max_epochs": 2, "accelerator": "cpu", "logger": False}
