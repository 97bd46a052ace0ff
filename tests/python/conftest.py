"""Runs as the engine prints them, made by hand, for what comes after the engine."""

from typing import Any

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("many", max_examples=2000, deadline=None)


def run_object(goodput: float = 150e3, *, seed: int = 1, point: dict[str, Any] | None = None) -> dict[str, Any]:
    """The object of a run of one flow; `goodput` in bit/s counts headers."""
    flow = {
        "id": 0,
        "user": 0,
        "sender": (point or {}).get("flow.sender", "reno"),
        "goodput_bps": 0.96 * goodput,
        "wire_goodput_bps": goodput,
        "delivered_bytes": round(0.96 * goodput * 3600 / 8),
        "segments_sent": 68_000,
        "retransmits": 600,
        "fast_retransmits": 400,
        "timeouts": 3,
        "spurious_timeouts": None,
        "rtt_ms": {"mean": 600.0, "p50": 590.0, "p95": 800.0, "p99": 900.0},
        "timed_rtt_ms": 610.0,
        "rto_ms_mean": 1500.0,
        "edge_rtt_ms": None,
        "completion_s": None,
        "regulator": None,
        "loss_cycles": {"cycles": 390, "p1": 0.9, "p2": 0.07, "p3": 0.03, "wf": 21.5},
    }
    run = {
        "scenario": "made-by-hand.toml",
        "seed": seed,
        "run": seed - 1,
        "duration_s": 3600.0,
        "flows": [flow],
        "fairness": {"jain_users": None, "jain_flows": None},
        "bottleneck": {
            "capacity_bps": 200e3,
            "utilisation": 0.75,
            "goodput_bps": 0.96 * goodput,
            "active_s": 3600.0,
            "drops": 500,
            "queue_ms": {"mean": 90.0, "p95": 200.0},
        },
        "uplink": {
            "capacity_bps": None,
            "utilisation": None,
            "drops": 3,
            "queue_ms": {"mean": None, "p95": None},
        },
        "provenance": {"version": "0", "commit": "0", "scenario_sha256": "0"},
    }
    return run if point is None else {**run, "point": point}


def web_object(*, seed: int = 1, point: dict[str, Any] | None = None) -> dict[str, Any]:
    """The object of a run of two users whose flows come and go; larger transfers take longer."""
    classes = ((1, 5_000, 100.0), (5_001, 15_000, 200.0), (1_000_001, None, 9e3))
    run = run_object(seed=seed, point=point)
    run["flows"] = []
    run["users"] = [
        {"id": user, "flows": 40, "goodput_bps": 1e4 * (user + 1), "retransmits": 3, "timeouts": 1} for user in (0, 1)
    ]
    run["transfers"] = [
        {
            "user": user,
            "from_bytes": first,
            "to_bytes": last,
            "count": 10,
            "unfinished": 1,
            "latency_ms": dict.fromkeys(("mean", "p50", "p95", "p99"), latency + seed),
            "goodput_bps": 5e4,
        }
        for user in (None, 0, 1)
        for first, last, latency in classes
    ]
    run["fairness"] = {"jain_users": 0.9, "jain_flows": None}
    return run


def link_object(connections: int = 3) -> dict[str, Any]:
    """The object of a live link: downloads over TCP, QUIC and UDP, a second apart, each twice as large as the last."""
    run = run_object()
    counts = {"sent": 100, "delivered": 95, "lost_by_machine": 0, "waiting": 0, "delivered_bytes": 2_000_000}
    flow = {**run["flows"][0], "sender": "real", "rtt_ms": dict.fromkeys(("mean", "p50", "p95", "p99"))}
    run["flows"] = [
        {
            **flow, "id": number, "protocol": ("tcp", "quic", "udp")[number % 3],
            "from": f"192.0.2.{number % 250}:443", "to": f"100.64.0.2:{40_000 + number}",
            "start_s": float(number), "end_s": number + 1.5, "edge_rtt_ms": 80.0,
            "down_bytes": 1000 * 2 ** (number % 20), "up_bytes": 500,
        }
        for number in range(connections)
    ]  # fmt: skip
    run["bottleneck"] |= counts
    run["uplink"] |= counts
    return run


def swept_objects() -> list[dict[str, Any]]:
    """Two senders x three buffers x two runs, as `sweep` gives them."""
    return [
        run_object(
            base + 1000 * buffer + 100 * seed, seed=seed, point={"flow.sender": sender, "edge.buffer": f"{buffer}p"}
        )
        for sender, base in (("reno", 140e3), ("sack", 150e3))
        for buffer in (4, 10, 20)
        for seed in (1, 2)
    ]


@pytest.fixture
def link_series() -> dict[str, np.ndarray]:
    """Time series of a live link that is idle for its first second."""
    time = np.arange(0.05, 10, 0.05)
    delay = np.where(time < 1, np.nan, 40 + 20 * np.sin(time))
    down = {"link_rate": np.full_like(time, 8e6), "rate": np.full_like(time, 6e6), "queue_ms": delay}
    down["drops"] = (time % 1 < 0.05) * 1.0
    return {"time": time, **down, **{f"up.{name}": values / 8 for name, values in down.items()}}


@pytest.fixture
def series() -> dict[str, np.ndarray]:
    """Time series of a saw-tooth between 11 and 22 packets."""
    time = np.arange(0, 60, 0.1)
    window = 11 + (time % 11)
    return {
        "time": time,
        "cwnd/0": window,
        "ssthresh/0": np.full_like(time, 11),
        "queue": window - 11,
        "rate/0": np.full_like(time, 200e3),
        "rtt/0": 0.44 + 0.04 * (window - 11),
    }
