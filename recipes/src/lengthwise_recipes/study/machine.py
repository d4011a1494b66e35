"""The machine and the hour of a study, for the record."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path

import torch

from lengthwise_recipes.study.settings import Settings


def describe_machine(settings: Settings) -> dict[str, object]:
    """System, processor, versions, and what of them is used; `device_name` is empty on a CPU."""
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cpu": processor_name(),
        "torch": torch.__version__,
        "threads": settings.threads,
        "device": settings.device,
        "device_name": torch.cuda.get_device_name() if settings.device == "cuda" else "",
    }


def processor_name(table: Path = Path("/proc/cpuinfo")) -> str:
    """The model name of the first processor; what `platform` says where the system keeps no such table."""
    if table.exists():
        for line in table.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
