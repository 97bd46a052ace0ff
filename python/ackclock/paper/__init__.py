"""Rerun a source document: its simulations and formulas, judged against what it prints.

A document is a folder `papers/<key>/` with `expected.csv` (what is printed, and the tolerance), `scenarios/`, the
code that computes each row and draws each figure, and a claim table, `claims.md`, that this package writes.
"""

from ackclock.paper.document import (
    Claim,
    Counts,
    Figure,
    JudgedRow,
    Outcome,
    Paper,
    Table,
    Verdict,
    judge_row,
    keys,
    load,
)
from ackclock.paper.runs import Runs, edited, point, simulate

__all__ = [
    "Claim",
    "Counts",
    "Figure",
    "JudgedRow",
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
