"""Metrics of runs and their series."""

from functools import cache

import numpy as np

from ackclock import run
from ackclock.paper.measure import Run, drops
from ackclock.paper.runs import PerSeed
from ackclock.results import Results

TTI = 0.01  # s
SETTLED = 20.0  # s, from which on the oscillation of the occupancy is measured
BUFFERED = "down.buffer_packets"


def goodput(one: Run) -> float | None:
    """Payload in order of all flows over the span of the run, kbit/s."""
    total = one["bottleneck"]["goodput_bps"]
    return None if total is None else float(total) / 1e3


def delay(one: Run) -> float | None:
    """Mean time of a packet from its source to its receiver, over all flows, weighted by their packets, s."""
    known = [flow for flow in one["flows"] if flow["goodput_bps"] and flow["transit_ms"]["mean"] is not None]
    carried = sum(flow["goodput_bps"] for flow in known)
    return sum(flow["goodput_bps"] * flow["transit_ms"]["mean"] for flow in known) / carried / 1e3 if known else None


def ack_gap(one: Run) -> float | None:
    """Mean time between ACKs of the first flow as they leave the edge, ms."""
    mean = one["flows"][0]["ack_gap_ms"]["edge"]["mean"]
    return None if mean is None else float(mean)


def overflows(one: Run) -> float | None:
    """1 if several packets were dropped and a timer has expired, else 0."""
    lost = drops(one) or 0
    return float(lost > 1 and sum(flow["timeouts"] for flow in one["flows"]) > 0)


@cache
def occupancy(at: str, seeds: int) -> tuple[PerSeed, PerSeed]:
    """Mean and standard deviation of the packets in the buffer of the radio, TTI by TTI, after settling."""
    traced: Results = run(at, set={"runs": seeds}, series_interval=TTI)
    held = [series[BUFFERED][series["time"] >= SETTLED] for series in traced.series]
    return np.array([np.mean(one) for one in held]), np.array([np.std(one) for one in held])
