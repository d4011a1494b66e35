"""The checked settings that all runs of a study share."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from lengthwise.checks import check_choice, check_flag, check_number, check_whole, type_error, value_error

LEARNING_RATES = {"adam": 0.01, "adadelta": 1.0}
AVERAGINGS = ("parameter", "gradient")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Settings of all runs of a study.

    Attributes:
        epochs: Epochs of each run.
        seeds: Runs of each strategy: seeds 0, 1, ...
        optimizer: adam, or adadelta as in Khomenko et al. 2016.
        learning_rate: Rate of the optimiser, for any number of processes; by default 0.01 for adam, 1.0 for adadelta.
        weight_decay: Share of each weight that is added to its gradient.
        clipped_norm: The largest norm of the gradient of a step; a larger gradient is scaled down.
        threads: Threads of a CPU operation, in each process.
        device: cpu or cuda, one GPU for each process.
        processes: Numbers of processes, one run of each strategy for each number.
        averaging: What several processes average, one run for each: "parameter" after each epoch, as in Khomenko et
            al. 2016, or "gradient" in each step.
        alpha, beta: Parameters of `lengthwise.torch.ParameterAveraging`.
        memory: Measure the peak bytes of a step of each setup, see `memory.peaks`.
        timed: Repeats of an epoch of each setup, timed after all training: nothing else then slows it.
        length_share: Epochs after which to measure the length share, see `lengthwise_recipes.length_share`. The
            rows of these epochs have more metrics.
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
    timed: int = 0
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
        _check_several("processes", self.processes, (1, 2))
        for count in self.processes:
            check_whole("processes", count, minimum=1, remedy="Give how many.")
        self._check_averaging()
        if self.device == "cuda" and not torch.cuda.is_available():
            raise value_error("device", "available", self.device, "Give cpu, or install a torch that sees the GPU.")
        self.check_gpus(max(self.processes))

    @property
    def rate(self) -> float:
        return LEARNING_RATES[self.optimizer] if self.learning_rate is None else self.learning_rate

    def _check_averaging(self) -> None:
        _check_several("averaging", self.averaging, AVERAGINGS)
        for way in self.averaging:
            check_choice("averaging", way, AVERAGINGS)
        check_number("alpha", self.alpha, above=True, remedy="Give 1 for the mean itself.")
        check_number("beta", self.beta, maximum=1.0, remedy="Give a small share such as 1e-6, or 0.")
        several = max(self.processes) > 1
        if not several and self.averaging != AVERAGINGS:
            remedy = "Give processes too: 1,2, for example."
            raise value_error("averaging", "left out with one process", self.averaging, remedy)
        if not (several and "parameter" in self.averaging) and (self.alpha, self.beta) != (1.0, 1e-6):
            values = (self.alpha, self.beta)
            remedy = "Average parameters, of several processes."
            raise value_error("alpha, beta", "left out without parameter averaging", values, remedy)

    def check_gpus(self, processes: int) -> None:
        """Raises ValueError for more processes than GPUs, if these are used."""
        if self.device == "cuda" and processes > torch.cuda.device_count():
            rule = f"at most {torch.cuda.device_count()}, one for each GPU"
            raise value_error("processes", rule, processes, "Give fewer, or device cpu.")


def _check_several(name: str, values: object, example: tuple[object, ...]) -> None:
    remedy = f"Give {name}={example}, for example."
    if not isinstance(values, tuple):
        raise type_error(name, "a tuple", values, remedy)
    if not values or len(set(values)) < len(values):
        raise value_error(name, "different from each other, and at least one", values, remedy)
