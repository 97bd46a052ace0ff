"""What the rows read of a run."""

from typing import Any

import numpy as np

from ackclock.paper import Runs
from ackclock.paper.measure import Run
from ackclock.paper.runs import PerSeed
from ackclock.papers.l02.grid import Download


def seconds(one: Run) -> float | None:
    """From the beginning of the download to its last byte."""
    done: float | None = one["flows"][0]["completion_s"]
    return done


def fast_retransmits(one: Run) -> float:
    """Windows that were halved."""
    return float(one["flows"][0]["fast_retransmits"])


def timeouts(one: Run) -> float:
    """Timers that expired."""
    return float(one["flows"][0]["timeouts"])


def repeated(one: Run) -> float:
    """Segments that were sent again, in percent of those that had to be: where none is lost they arrive twice."""
    flow: dict[str, Any] = one["flows"][0]
    return float(100 * flow["retransmits"] / (flow["segments_sent"] - flow["retransmits"]))


def increase(runs: Runs, download: Download) -> PerSeed:
    """How much longer a download takes than Reno's without errors, percent."""
    clean = runs(download.without_errors().point(), seconds).mean()
    return np.asarray(100 * (runs(download.point(), seconds) / clean - 1))


def speed(runs: Runs, download: Download) -> PerSeed:
    """Bytes with headers over the time that they took, kbit/s."""
    return np.asarray(download.size * 8 / runs(download.point(), seconds) / 1e3)


def decrease(runs: Runs, larger: Download, smaller: Download) -> PerSeed:
    """How much less time one download takes than another, percent of the mean of the other."""
    return np.asarray(100 * (1 - runs(larger.point(), seconds) / runs(smaller.point(), seconds).mean()))
