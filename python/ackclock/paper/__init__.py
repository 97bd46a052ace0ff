"""Reproduces a source document: repeats its simulations and formulas and compares them with the printed results.

A document is a folder `papers/<key>/` with `expected.csv` (printed values and tolerances), `scenarios/`, the
code that computes each row and plots each figure, and a claim table, `claims.md`, written by this package.
"""

from ackclock.paper.document import (
    Claim,
    Counts,
    Figure,
    JudgedRow,
    NullModel,
    Outcome,
    Paper,
    Table,
    Verdict,
    judge_row,
    keys,
    load,
)
from ackclock.paper.runs import Runs, edited, point, simulate
from ackclock.paper.unchecked import InDocument, Missing

__all__ = [
    "Claim",
    "Counts",
    "Figure",
    "InDocument",
    "JudgedRow",
    "Missing",
    "NullModel",
    "Outcome",
    "Paper",
    "Runs",
    "Table",
    "Verdict",
    "edited",
    "judge_row",
    "keys",
    "load",
    "point",
    "simulate",
]
