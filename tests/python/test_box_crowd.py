"""Thousands of connections and datagrams through everything that happens to a box: nothing breaks, nothing is lost."""

import json
import sys
from pathlib import Path

import pytest

from test_box import inside, needs  # noqa: F401 the fixture skips where no BPF program can be loaded

WORLD = Path(__file__).with_name("box_crowd_world.py")


@pytest.mark.parametrize(("connections", "rate", "stopped"), [(1000, 20_000, 6), (10_000, 2000, 0)])
def test_no_connection_breaks_and_no_datagram_is_lost(connections, rate, stopped):
    """A box that is killed, started again, stopped longer than its allowances are used, continued and ended."""
    ended = inside(f"{sys.executable} {WORLD} {connections} {rate} {stopped}")
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    print(seen)
    assert (seen["broken"], seen["missing"], seen["incomplete"]) == (0, 0, 0)
    assert seen["files"] > 0
    assert seen["echoes"] > 100
    # What the kernel says it had no room for, or does without a box too, is not the box's affair.
    alone, with_box = seen["alone"], seen["datagrams"]
    assert with_box["sent"] - with_box["received"] <= with_box["dropped"], seen
    assert with_box["behind"] <= alone["behind"], seen
    assert seen["datagrams"]["sent"] > 1000
    assert (seen["left"], seen["not_captured"]) == (0, 0)
    assert seen["acks"] > connections
    # It acted all the time, and ended without a trace.
    names = ["clipped", "clipped_after_restart"]
    names += ["stale", "clipped_after_stop"] if stopped else []
    assert all(seen[name] > 0 for name in names), seen
    # An allowance is used for five seconds without a process.
    if seen["restart"]["seconds"] < 4:
        assert (seen["clipped_without_a_process"] > 0, seen["restart"]["stale"]) == (True, 0), seen
    assert (seen["refused"], seen["ended"], seen["left_behind"]) == (0, 0, [])
