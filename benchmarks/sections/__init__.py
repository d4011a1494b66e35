"""The sections of docs/results.md, in groups. Each is written from one result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sections import batches, ge2021, planning, shapes, steps, trained

Section = Callable[[dict[str, Any]], tuple[str, ...]]  # the answer, then tables and notes

GROUPS: dict[str, dict[str, tuple[str, Section]]] = {
    "What users ask first": {
        "prices": ("Padding and waiting, compared with trainers", steps.prices),
        "steps": ("Random steps, by the batches in a step", steps.steps),
        "study-handwriting-latin-greek": ("A trained network: online handwriting", trained.handwriting),
        "gradients": ("Exact gradients", trained.gradients),
        "planning": ("Time and memory of planning", planning.planning),
    },
    "More": {
        "first-plan": ("The first plan of a process", planning.first_plan),
        "windows": ("A thousand million lengths, in windows", planning.windows),
        "collating": ("Collating a batch", planning.collating),
        "step-cost": ("Seconds of an epoch, predicted from a measured step", trained.step_cost),
        "mixing": ("Mixing at equal padding", batches.mixing),
        "streams": ("Streams, by the size of their buffer", batches.streams),
        "packing": ("Packed rows, compared with other packers", shapes.packing),
        "shapes": ("Few shapes and multiples", shapes.shapes),
        "edges": ("Optimal bucket edges", shapes.edges),
        "compilation": ("One compiled model per bucket", trained.compilation),
        "ge2021-table1": ("Ge et al. 2021: padding and batch counts", ge2021.ge2021_table1),
    },
}
