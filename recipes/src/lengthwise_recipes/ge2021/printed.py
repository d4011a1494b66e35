"""The numbers that Ge et al. 2021 print: tables 2 to 4 and section 4. Those of table 1 are those of table 2.

Only RAND's minutes in table 2 and the savings of table 3 are certain, so the other minutes are left out. Minutes and
percentages of table 3 agree except in the last digit.
"""

from __future__ import annotations

from typing import NamedTuple

RANDOM_MINUTES = 32.82  # an epoch of RAND


class Printed(NamedTuple):
    """A row of table 2: ZPR in percent, ABL in frames; VL_1, VL_2, VL_3 and VL_avg."""

    zpr: float
    abl: float
    losses: tuple[float, float, float, float]


TABLE_2 = {
    "RAND": Printed(32.02, 773.82, (0.340, 0.323, 0.312, 0.325)),
    "SB-BR": Printed(0.16, 526.43, (0.342, 0.327, 0.325, 0.329)),
    "SSB-BR": Printed(6.22, 556.22, (0.356, 0.329, 0.318, 0.332)),
    "BKT-BR": Printed(6.10, 553.40, (0.348, 0.327, 0.322, 0.331)),
    "ATS-BR": Printed(6.08, 552.48, (0.355, 0.328, 0.316, 0.331)),
    "SB": Printed(0.16, 526.43, (0.401, 0.391, 0.385, 0.388)),
    "SSB": Printed(6.22, 556.22, (0.394, 0.373, 0.359, 0.378)),
    "SB-DBS": Printed(0.47, 527.15, (0.367, 0.341, 0.330, 0.347)),
    "SSB-DBS": Printed(6.62, 557.68, (0.346, 0.329, 0.326, 0.330)),
    "SSB-DBS-BR": Printed(6.62, 557.68, (0.339, 0.320, 0.309, 0.322)),
}
SAVED = {"SSB-BR": 29.98, "SB-BR": 36.57, "SSB-DBS-BR": 41.25}  # percent of RAND's epoch, table 3
SAVED_MINUTES = {"SSB-BR": 9.84, "SB-BR": 12.00, "SSB-DBS-BR": 13.54}  # the same in minutes
COUNTS = {"RAND": 606, "SSB": 449, "SB": 419}  # batches of dynamic size, section 4
FIXED_COUNT = 655  # batches of fixed size
ALIKE = ("SSB-BR", "BKT-BR", "ATS-BR")  # their knobs are chosen for the same ZPR


class Part(NamedTuple):
    """A part of table 4: pairs of strategies, those with the least randomness first."""

    title: str
    pairs: tuple[tuple[str, str], ...]


TABLE_4 = (
    Part("SB vs. SSB", (("SB", "SSB"), ("SB-BR", "SSB-BR"), ("SB-DBS", "SSB-DBS"))),
    Part("with or without BR", (("SB", "SB-BR"), ("SSB", "SSB-BR"), ("SSB-DBS", "SSB-DBS-BR"))),
    Part("with or without DBS", (("SB", "SB-DBS"), ("SSB", "SSB-DBS"), ("SSB-BR", "SSB-DBS-BR"))),
)


def printed_reduction(base: str, changed: str) -> float:
    """Returns how many percent VL_3 of table 2 falls from one strategy to another.

    >>> round(printed_reduction("SB", "SSB"), 2)
    6.75
    """
    return 100 * (1.0 - TABLE_2[changed].losses[2] / TABLE_2[base].losses[2])
