"""Metrics of runs."""

from typing import Any

import numpy as np

from ackclock.paper import Runs
from ackclock.paper.measure import Measure, Run
from ackclock.paper.runs import PerSeed
from ackclock.papers.l02.grid import Download


def seconds(download: Download) -> Measure:
    """Time from opening the connection to the last byte; with several flows, to the last flow's last byte."""

    def of(one: Run) -> float | None:
        done = [flow["completion_s"] for flow in one["flows"]]
        return None if None in done else max(done) / len(done) - download.request_s

    return of


def fast_retransmits(one: Run) -> float:
    """Number of halvings of the window."""
    return float(one["flows"][0]["fast_retransmits"])


def timeouts(one: Run) -> float:
    """Number of expired timers."""
    return float(one["flows"][0]["timeouts"])


def repeated(one: Run) -> float:
    """Retransmitted segments, in percent of the necessary segments; without loss they arrive twice."""
    flow: dict[str, Any] = one["flows"][0]
    return float(100 * flow["retransmits"] / (flow["segments_sent"] - flow["retransmits"]))


def increase(runs: Runs, download: Download) -> PerSeed:
    """Increase of a download's time over Reno without errors, percent."""
    clean = _seconds(runs, download.without_errors()).mean()
    return np.asarray(100 * (_seconds(runs, download) / clean - 1))


def speed(runs: Runs, download: Download) -> PerSeed:
    """Bytes with headers divided by their time, kbit/s."""
    return np.asarray(download.size * 8 / _seconds(runs, download) / 1e3)


def decrease(runs: Runs, larger: Download, smaller: Download) -> PerSeed:
    """Time saved by one download relative to another, percent of the other's mean."""
    return np.asarray(100 * (1 - _seconds(runs, larger) / _seconds(runs, smaller).mean()))


def _seconds(runs: Runs, download: Download) -> PerSeed:
    return runs(download.point(), seconds(download))
