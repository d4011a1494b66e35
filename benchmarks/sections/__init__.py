"""The sections of docs/results.md, in groups. Each is written from one result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sections import batches, ge2021, planning, shapes, steps, trained

Section = Callable[[dict[str, Any]], tuple[str, ...]]  # the answer, then tables and notes

GROUPS: dict[str, dict[str, tuple[str, Section]]] = {
    "Trained networks": {
        "study-handwriting-latin-greek": ("Online handwriting, 50 Latin and Greek letters", trained.handwriting),
        "study-handwriting-parallel": ("Online handwriting on several processes", trained.parallel),
        "gradients": ("Exact gradients", trained.gradients),
        "step-cost": ("Seconds of an epoch, predicted from a measured step", trained.step_cost),
        "compilation": ("One compiled model per bucket", trained.compilation),
    },
    "Padding and mixing of batches": {
        "mixing": ("Mixing at equal padding", batches.mixing),
        "streams": ("Streams, by the size of their buffer", batches.streams),
    },
    "Whole steps": {
        "steps": ("Whole steps: padding and waiting", steps.steps),
        "prices": ("Prices: what the default computes, and how long ranks wait", steps.prices),
    },
    "Packed rows and few shapes": {
        "packing": ("Packed rows, compared with other packers", shapes.packing),
        "shapes": ("Few shapes and multiples", shapes.shapes),
        "edges": ("Optimal bucket edges", shapes.edges),
    },
    "Speed": {
        "first-plan": ("The first plan of a process", planning.first_plan),
        "planning": ("Planning ten million lengths", planning.planning),
        "windows": ("A thousand million lengths, in windows", planning.windows),
        "collating": ("Collating a batch", planning.collating),
    },
    "A table of a paper": {"ge2021-table1": ("Ge et al. 2021: padding and batch counts", ge2021.ge2021_table1)},
}
