import torch
from composer import ComposerModel


class Model(ComposerModel):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, batch):
        return self.layer(batch[0])

    def loss(self, outputs, batch):
        return outputs[batch[1]].square().mean()


composer_model = Model()
settings = {"max_duration": "2ep", "device": "cpu", "progress_bar": False}
