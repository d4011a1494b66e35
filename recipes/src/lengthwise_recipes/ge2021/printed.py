"""The numbers that Ge et al. 2021 print: tables 2 to 4 and section 4. Those of table 1 are those of table 2.

Minutes are left out: most of those in our copy of table 2 are not certain.
"""

from __future__ import annotations

from typing import NamedTuple


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
COUNTS = {"RAND": 606, "SSB": 449, "SB": 419}  # batches of dynamic size, section 4
FIXED_COUNT = 655  # batches of fixed size
ALIKE = ("SSB-BR", "BKT-BR", "ATS-BR")  # their knobs are chosen for the same ZPR


# Pairs from table 4: from SB to SSB, without and with BR, without and with DBS; those with the least randomness first.
TABLE_4 = (
    (("SB", "SSB"), ("SB-BR", "SSB-BR"), ("SB-DBS", "SSB-DBS")),
    (("SB", "SB-BR"), ("SSB", "SSB-BR"), ("SSB-DBS", "SSB-DBS-BR")),
    (("SB", "SB-DBS"), ("SSB", "SSB-DBS"), ("SSB-BR", "SSB-DBS-BR")),
)


def printed_reduction(base: str, changed: str) -> float:
    """Returns how many percent VL_3 of table 2 falls from one strategy to another.

    >>> round(printed_reduction("SB", "SSB"), 2)
    6.75
    """
    return 100 * (1.0 - TABLE_2[changed].losses[2] / TABLE_2[base].losses[2])
