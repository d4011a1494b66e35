"""The warnings of a sampler, each given once: of loops that do not fit the epoch that is set."""

from __future__ import annotations

from lengthwise import checks


class Notices:
    """The warnings of one sampler; a copy of the sampler has its own."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def is_first(self, name: str) -> bool:
        """Notes that something is said; returns whether it was not said before."""
        is_first = name not in self._said
        self._said.add(name)
        return is_first

    def warn_second_pass(self, epoch: int) -> None:
        """Warns that an epoch is taken a second time."""
        remedy = "Call set_epoch with a new number before each epoch."
        self._warn("epoch", "another for every epoch", epoch, remedy, at="the second pass")

    def warn_early_end(self, delivered: int, batches: int, epoch: int) -> None:
        """Warns that an epoch is left before its end."""
        remedy = (
            "Raise the trainer's limit (sampler.steps are those of an epoch), or let it ask for every epoch's"
            " length: Lightning's Trainer by reload_dataloaders_every_n_epochs=1."
        )
        rule = f"{batches} before the next epoch, or sequences are lost"
        self._warn("batches delivered", rule, delivered, remedy, at=f"epoch {epoch}")

    def warn_early_end_of_stream(self, epoch: int) -> None:
        """Warns that an epoch of a stream, which cannot tell its length, is left before its end."""
        remedy = "Let the loop end by itself; if your epochs are shorter than the stream, keep one iterator for all."
        rule = "read to its end before the next epoch, or sequences are lost"
        self._warn("stream", rule, "left early", remedy, at=f"epoch {epoch}")

    def warn_no_weight(self, epoch: int) -> None:
        """Warns that no sequence of the first window of a stream counts for anything."""
        remedy = "Look at what `weight` gives: these batches are scaled by 0, and nothing is learned of them."
        self._warn("weight", "above 0 for some sequence of the first window", 0.0, remedy, at=f"epoch {epoch}")

    def warn_no_sequence(self, epoch: int) -> None:
        """Warns that the shards of a stream give nothing in an epoch."""
        remedy = "Look at what they give when they are read again: `__iter__` must begin anew each time."
        self._warn("shards", "ones that give a sequence in every epoch", "empty", remedy, at=f"epoch {epoch}")

    def warn_no_step(self, buffer: int, window: int, epoch: int) -> None:
        """Warns that the choices drop every batch of a window of a stream."""
        remedy = "The sequences of the window are left out. Give a larger buffer."
        where = f"window {window} of epoch {epoch}"
        self._warn("buffer", "large enough for one step in every window", buffer, remedy, at=where)

    def warn_left_position(self, loaded: int, epoch: int) -> None:
        """Warns that another epoch is set than that of a position that was loaded, and of which something is left."""
        remedy = f"Begin there, or its position is lost: `for epoch in range({loaded}, epochs)`."
        self._warn("first epoch", f"{loaded}, that of the loaded state", epoch, remedy)

    def _warn(self, name: str, rule: str, value: object, remedy: str, *, at: str = "") -> None:
        # Once for each kind, not for each epoch: a run of 100 epochs has the same cause 100 times.
        if self.is_first(name):
            checks.warn(checks.sentence(name, rule, value, remedy, at=at))
