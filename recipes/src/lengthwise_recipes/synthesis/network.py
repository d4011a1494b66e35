"""The sizes of a Tacotron 2."""

from __future__ import annotations

from dataclasses import dataclass

from lengthwise.checks import check_number, check_whole


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

    @property
    def encoder(self) -> int:
        """Channels of embedding and convolutions, and cells of both directions together."""
        return self._scale(512)

    @property
    def prenet(self) -> int:
        return self._scale(256)

    @property
    def decoder(self) -> int:
        """Cells of each of the two LSTMs."""
        return self._scale(1024)

    @property
    def attention(self) -> int:
        return self._scale(128)

    @property
    def location(self) -> int:
        """Filters over the weights of earlier steps."""
        return self._scale(32)

    @property
    def postnet(self) -> int:
        return self._scale(512)

    def _scale(self, size: int) -> int:
        """Returns an even number near width * size, because two directions share the cells of the encoder."""
        return 2 * max(1, round(self.width * size / 2))
