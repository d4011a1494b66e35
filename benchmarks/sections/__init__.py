"""The sections of docs/results.md, in groups. Each is written from one result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sections import batches, peers, planning, shapes, steps, trained

Section = Callable[[dict[str, Any]], tuple[str, ...]]  # the answer, then tables and notes

GROUPS: dict[str, dict[str, tuple[str, Section]]] = {
    "What users ask first": {
        "peers": ("Compared with other systems", peers.peers),
        "training": ("Training, beside strategies of the Trainer", trained.training),
        "steps": ("Random steps, by the batches in a step", steps.steps),
        "gradients": ("Exact gradients", trained.gradients),
        "planning": ("Time and memory of planning", planning.planning),
    },
    "More": {
        "first-plan": ("The first plan of a process", planning.first_plan),
        "windows": ("A thousand million lengths, in windows", planning.windows),
        "step-cost": ("Seconds of an epoch, predicted from a measured step", trained.step_cost),
        "mixing": ("Mixing at equal padding", batches.mixing),
        "streams": ("Streams, by the size of their buffer", batches.streams),
        "shapes": ("Few shapes and multiples", shapes.shapes),
    },
}
