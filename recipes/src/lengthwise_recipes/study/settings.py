"""What every run of a study shares, checked."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from lengthwise.checks import check_choice, check_flag, check_number, check_whole, type_error, value_error

LEARNING_RATES = {"adam": 0.01, "adadelta": 1.0}
AVERAGINGS = ("parameter", "gradient")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What every run of a study shares.

    Attributes:
        epochs: Epochs of each run.
        seeds: Runs of each strategy: seeds 0, 1, ...
        optimizer: adam, or adadelta as in Khomenko et al. 2016.
        learning_rate: Of the optimiser, on however many processes; by default 0.01 for adam and 1.0 for adadelta.
        weight_decay: Of the optimiser: this share of each weight is added to its gradient.
        clipped_norm: The gradient of a step is scaled down to this norm where it is larger.
        threads: Threads of a CPU operation, in each process.
        device: cpu or cuda, one GPU for each process.
        processes: On how many processes each strategy is trained, one run for each number.
        averaging: How several processes share what they learn, one run for each way: "parameter" after each epoch, as
            in Khomenko et al. 2016, "gradient" in each step. One process has nothing to share.
        alpha, beta: Of parameter averaging, see `lengthwise.torch.ParameterAveraging`.
        memory: Measure the bytes that a step of each setup takes at most, see `memory.peaks`.
        length_share: After which epochs to measure how much of the gradient's noise goes with length, see
            `lengthwise_recipes.length_share`; a row of such an epoch has more metrics.
    """

    epochs: int = 8
    seeds: int = 1
    optimizer: str = "adam"
    learning_rate: float | None = None
    weight_decay: float = 0.0
    clipped_norm: float = 1.0
    threads: int = 1
    device: str = "cpu"
    processes: tuple[int, ...] = (1,)
    averaging: tuple[str, ...] = AVERAGINGS
    alpha: float = 1.0
    beta: float = 1e-6
    memory: bool = False
    length_share: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("epochs", "seeds", "threads"):
            check_whole(name, getattr(self, name), minimum=1, remedy="Give how many.")
        check_choice("optimizer", self.optimizer, tuple(LEARNING_RATES))
        check_choice("device", self.device, ("cpu", "cuda"))
        if self.learning_rate is not None:
            check_number("learning_rate", self.learning_rate, above=True, remedy="Give a rate such as 0.01.")
        check_number("weight_decay", self.weight_decay, remedy="Give a small share such as 1e-6, or 0.")
        check_number("clipped_norm", self.clipped_norm, above=True, remedy="Give a norm such as 1.0.")
        check_flag("memory", self.memory)
        if self.length_share:
            _check_several("length_share", self.length_share, (1, self.epochs))
        for epoch in self.length_share:
            remedy = "Name epochs after which to measure it."
            check_whole("length_share", epoch, minimum=1, maximum=self.epochs, remedy=remedy)
        self._check_processes()
        self._check_averaging()
        self._check_device()

    @property
    def rate(self) -> float:
        return LEARNING_RATES[self.optimizer] if self.learning_rate is None else self.learning_rate

    def _check_processes(self) -> None:
        _check_several("processes", self.processes, (1, 2))
        for count in self.processes:
            check_whole("processes", count, minimum=1, remedy="Give how many.")

    def _check_averaging(self) -> None:
        _check_several("averaging", self.averaging, AVERAGINGS)
        for way in self.averaging:
            check_choice("averaging", way, AVERAGINGS)
        check_number("alpha", self.alpha, above=True, remedy="Give 1 for the mean itself.")
        check_number("beta", self.beta, maximum=1.0, remedy="Give a small share such as 1e-6, or 0.")
        several = max(self.processes) > 1
        if not several and self.averaging != AVERAGINGS:
            raise value_error(
                "averaging", "of several processes", self.averaging, "Give processes too: 1,2, for example."
            )
        if not (several and "parameter" in self.averaging) and (self.alpha, self.beta) != (1.0, 1e-6):
            given = (self.alpha, self.beta)
            remedy = "Average parameters, of several processes."
            raise value_error("alpha, beta", "left out without parameter averaging", given, remedy)

    def check_gpus(self, processes: int) -> None:
        """Refuses more processes than there are GPUs, where these are to be used."""
        if self.device == "cuda" and processes > torch.cuda.device_count():
            rule = f"at most {torch.cuda.device_count()}, one for each GPU"
            raise value_error("processes", rule, processes, "Give fewer, or device cpu.")

    def _check_device(self) -> None:
        if self.device == "cuda" and not torch.cuda.is_available():
            raise value_error("device", "there", self.device, "Give cpu, or install a torch that sees the GPU.")
        self.check_gpus(max(self.processes))


def _check_several(name: str, values: object, example: tuple[object, ...]) -> None:
    if not isinstance(values, tuple):
        raise type_error(name, "a tuple", values, f"Give {name}={example}, for example.")
    if not values or len(set(values)) < len(values):
        raise value_error(
            name, "different from each other, and at least one", values, f"Give {name}={example}, for example."
        )
