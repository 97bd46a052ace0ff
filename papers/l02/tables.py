"""Causes of the rows that do not hold, and questions that the source leaves open."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ackclock.paper import Runs, Table
from ackclock.paper.expected import Expected
from ackclock.paper.runs import PerSeed
from ackclock.papers.l02 import grid
from ackclock.papers.l02.grid import Download
from ackclock.papers.l02.measures import fast_retransmits, increase, timeouts


def tables(runs: Runs, expected: Expected) -> Iterator[Table]:
    """All tables."""
    yield readings(runs, expected, "TCP", grid.READINGS)
    yield readings(runs, expected, "the radio", grid.RADIOS)
    yield open_ends(runs)


def readings(runs: Runs, expected: Expected, of_what: str, of: Mapping[str, Mapping[str, Any]]) -> Table:
    """The deviating increases, with every combination of unstated parameters of TCP or of the radio."""
    rows = [["printed", *(f"{expected[row].value} %" for row in grid.HUNTED)]]
    for name, keys in of.items():
        points = (replace(one, keys={**one.keys, **keys}) for one in grid.HUNTED.values())
        rows.append([name, *(_with_counts(runs, point) for point in points)])
    title = f"Increase in %, and fast retransmits and time-outs of a download, with other readings of {of_what}"
    return Table(title, [of_what, *grid.HUNTED], rows)


def open_ends(runs: Runs) -> Table:
    """Open questions of the source, at 384 kbit/s with packets of 576 bytes."""
    rows = []
    for name, download in grid.open_ends().items():
        counts = [f"{_mean(runs(download.point(), of)):.1f}" for of in (fast_retransmits, timeouts)]
        values = increase(runs, download)
        rows.append([name, f"{_mean(values):.1f} ± {np.std(values, ddof=1) if values.size > 1 else 0:.1f}", *counts])
    columns = ["download", "increase, %", "fast retransmits", "time-outs"]
    return Table("Open ends of the source, 384 kbit/s and packets of 576 bytes", columns, rows)


def _with_counts(runs: Runs, download: Download) -> str:
    counts = "/".join(f"{_mean(runs(download.point(), of)):.0f}" for of in (fast_retransmits, timeouts))
    return f"{_mean(increase(runs, download)):.0f} ({counts})"


def _mean(values: PerSeed) -> float:
    return float(np.mean(values))
