"""Metrics of documents: functions of the object of `ackclock run --json`.

Metrics of a flow are those of the first one, unless the name says otherwise.
"""

from collections.abc import Callable, Mapping
from math import inf
from statistics import fmean
from typing import Any

Run = Mapping[str, Any]
Measure = Callable[[Run], float | None]

BITS_PER_PACKET = 8000  # packets of 1000 bytes with headers, as in the sources


def goodput(run: Run) -> float | None:
    """Goodput as in the sources: in-order packets with headers, kbit/s."""
    return _scaled(_flow(run)["wire_goodput_bps"], 1e-3)


def aggregate(run: Run) -> float | None:
    """Goodput of all flows together over the span of the run, with headers, kbit/s."""
    known = [flow for flow in run["flows"] if flow["goodput_bps"]]
    # A flow's payload over its goodput is its life; bytes with headers are bits of its rate in that time.
    bits = [8 * flow["delivered_bytes"] * flow["wire_goodput_bps"] / flow["goodput_bps"] for flow in known]
    return _scaled(sum(bits) / run["bottleneck"]["active_s"], 1e-3) if bits else None


def drops(run: Run) -> float | None:
    """Packets lost in the queue or on the radio."""
    return _number(run["bottleneck"]["drops"])


def fairness(run: Run) -> float | None:
    """Jain's index of the users' goodputs."""
    return _number(run["fairness"]["jain_users"])


def mean_rtt(run: Run) -> float | None:
    """Mean over the flows of `timed_rtt`, ms."""
    known = [flow["timed_rtt_ms"] for flow in run["flows"] if flow["timed_rtt_ms"] is not None]
    return fmean(known) if known else None


def latency(first: int, last: int) -> Measure:
    """Mean latency of transfers of `first` to `last` bytes (bounds of size classes), all users together, ms."""

    def of(run: Run) -> float | None:
        rows = [row for row in run["transfers"] if row["user"] is None]
        rows = [row for row in rows if first <= row["from_bytes"] and (row["to_bytes"] or inf) <= last and row["count"]]
        count = sum(row["count"] for row in rows)
        return sum(row["count"] * row["latency_ms"]["mean"] for row in rows) / count if count else None

    return of


def file_rate(first: int) -> Measure:
    """Mean rate, size by latency, of the transfers of `first` bytes and more, all users together, kbit/s."""

    def of(run: Run) -> float | None:
        rows = [row for row in run["transfers"] if row["user"] is None and row["from_bytes"] >= first and row["count"]]
        count = sum(row["count"] for row in rows)
        return sum(row["count"] * row["goodput_bps"] for row in rows) / count / 1e3 if count else None

    return of


def payload_rate(run: Run) -> float | None:
    """Payload of the file by the time of its transfer, kbit/s."""
    return _scaled(_flow(run)["goodput_bps"], 1e-3)


def highest_rtt(run: Run) -> float | None:
    """99th percentile of the round-trip times, a lower bound of their maximum, seconds."""
    return _scaled(_flow(run)["rtt_ms"]["p99"], 1e-3)


def ack_gaps_below(ms: float) -> Measure:
    """Share of the gaps between ACKs, as they arrive at the server, that are shorter than `ms`."""

    def of(run: Run) -> float | None:
        gaps = _flow(run).get("ack_gap_ms")
        return fmean(gap < ms for gap in gaps["server"]["cdf"]) if gaps else None

    return of


def packets(run: Run) -> float | None:
    """Packets delivered in order."""
    return _scaled(_flow(run)["wire_goodput_bps"], run["duration_s"] / BITS_PER_PACKET)


def fast_retransmits(run: Run) -> float | None:
    """Loss events found by three duplicate ACKs ("TD")."""
    return _number(_flow(run)["fast_retransmits"])


def timeouts(run: Run) -> float | None:
    """Loss events found by the timer ("TO")."""
    return _number(_flow(run)["timeouts"])


def all_timeouts(run: Run) -> float | None:
    """Loss events of all flows found by the timer."""
    return _number(sum(flow["timeouts"] for flow in run["flows"]))


def timed_rtt(run: Run) -> float | None:
    """Mean round-trip time, with one timed segment at a time, ms."""
    return _number(_flow(run)["timed_rtt_ms"])


def mean_rto(run: Run) -> float | None:
    """Mean retransmission timeout when timed segments are acknowledged, seconds."""
    return _scaled(_flow(run).get("rto_ms_mean"), 1e-3)


def p1(run: Run) -> float | None:
    """Share of loss cycles with one loss."""
    return _number(_cycles(run).get("p1"))


def p2(run: Run) -> float | None:
    """Share of loss cycles with two losses."""
    return _number(_cycles(run).get("p2"))


def p3(run: Run) -> float | None:
    """Share of loss cycles with three losses and a timeout."""
    return _number(_cycles(run).get("p3"))


def loss_window(run: Run) -> float | None:
    """Root mean square of the windows at the ends of loss cycles, packets."""
    return _number(_cycles(run).get("wf"))


def _flow(run: Run) -> Mapping[str, Any]:
    flow: Mapping[str, Any] = run["flows"][0]
    return flow


def _cycles(run: Run) -> Mapping[str, Any]:
    return _flow(run).get("loss_cycles") or {}


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else value * by
