"""The sizes of a Tacotron 2."""

from __future__ import annotations

from dataclasses import dataclass

from lengthwise.checks import check_number, check_whole

SPOKEN_TEXTS = 64  # held-out texts that the network speaks in a test, at most


def _scaled(size: int) -> property:
    """Returns a property: an even number near width * size, because two directions share the cells of the encoder."""
    return property(lambda network: 2 * max(1, round(network.width * size / 2)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """Sizes of a Tacotron 2; by default those of the paper.

    Attributes:
        width: Channels and cells of every layer, relative to the paper.
        bands: Mel bands of a frame.
        reduction: Frames of a decoder step. More frames mean fewer steps and less time, but coarser attention.
        dropout: Share dropped in the convolutions, in training.
        prenet_dropout: Share dropped before the decoder, also in validation and synthesis.

    References:
        Shen et al. 2018, section 2.2: all sizes. The reduction is from Wang et al. 2017, section 3.3. The sizes of
        attention and location layer are those of NVIDIA's Tacotron 2, which Ge et al. 2021 trained.
    """

    width: float = 1.0
    bands: int = 80
    reduction: int = 1
    dropout: float = 0.5
    prenet_dropout: float = 0.5

    def __post_init__(self) -> None:
        check_number("width", self.width, above=True, remedy="Give 1 for the paper's, 0.125 for an eighth.")
        check_whole("bands", self.bands, minimum=1, remedy="Give the number of mel bands.")
        check_whole("reduction", self.reduction, minimum=1, remedy="Give the frames of a decoder step: 1, for example.")
        for name in ("dropout", "prenet_dropout"):
            check_number(name, getattr(self, name), maximum=0.9, remedy="Give a share such as 0.5.")

    encoder = _scaled(512)  # channels of embedding and convolutions, and cells of both directions together
    prenet = _scaled(256)
    decoder = _scaled(1024)  # cells of each of the two LSTMs
    attention = _scaled(128)
    location = _scaled(32)  # filters over the weights of earlier steps
    postnet = _scaled(512)
