"""The machine and the date of a study, for the record."""

from __future__ import annotations

import platform
from datetime import UTC, datetime

import torch

from lengthwise_recipes.record import processor_name
from lengthwise_recipes.study.settings import Settings


def describe_machine(settings: Settings) -> dict[str, object]:
    """Returns system, processor, versions and device; `device_name` is empty on a CPU."""
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu": processor_name(),
        "torch": torch.__version__,
        "threads": settings.threads,
        "device": settings.device,
        "device_name": torch.cuda.get_device_name() if settings.device == "cuda" else "",
    }


def now() -> str:
    """Returns the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
