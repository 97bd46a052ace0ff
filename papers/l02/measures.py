"""What the rows read of a run."""

from typing import Any

import numpy as np

from ackclock.paper import Runs
from ackclock.paper.measure import Measure, Run
from ackclock.paper.runs import PerSeed
from ackclock.papers.l02.grid import Download


def seconds(download: Download) -> Measure:
    """From when the server opens, or is asked to, to the last byte; of several flows to that of the last, for each."""

    def of(one: Run) -> float | None:
        done = [flow["completion_s"] for flow in one["flows"]]
        return None if None in done else max(done) / len(done) - download.request_s

    return of


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
    clean = _seconds(runs, download.without_errors()).mean()
    return np.asarray(100 * (_seconds(runs, download) / clean - 1))


def speed(runs: Runs, download: Download) -> PerSeed:
    """Bytes with headers over the time that they took, kbit/s."""
    return np.asarray(download.size * 8 / _seconds(runs, download) / 1e3)


def decrease(runs: Runs, larger: Download, smaller: Download) -> PerSeed:
    """How much less time one download takes than another, percent of the mean of the other."""
    return np.asarray(100 * (1 - _seconds(runs, larger) / _seconds(runs, smaller).mean()))


def _seconds(runs: Runs, download: Download) -> PerSeed:
    return runs(download.point(), seconds(download))
