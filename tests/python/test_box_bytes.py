"""What a box changes on real packets: both sides of it, packet by packet."""

import json
import sys
from pathlib import Path

import pytest

from test_box import inside, needs  # noqa: F401 the fixture skips where no BPF program can be loaded

WORLD = Path(__file__).with_name("box_bridge_world.py")


def of(counts: dict[str, int], *subscribers: str) -> int:
    return sum(number for who, number in counts.items() if who.rsplit(":", 1)[0] in subscribers)


@pytest.mark.parametrize(("side", "offloads"), [("mobile", "none"), ("network", "offloads")])
def test_only_windows_of_those_acted_on_change(side, offloads):
    ended = inside(f"{sys.executable} {WORLD} {side} {offloads}")
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    acted_on, held_back = ["10.80.0.2", "fd80:0:0:2::1"], ["10.80.0.3", "fd80:0:0:3::1"]
    phases = [seen["measured"], seen["acted"], {"up": seen["bypassed"]["until"]}, {"up": seen["bypassed"]["later"]}]
    # Nothing is lost, and every change is a lower window with its checksum.
    for one in [direction for phase in phases for direction in phase.values()]:
        assert one["frames"][0] == one["frames"][1], one
        assert one["faults"] == []
        assert one["bytes"] > 1000
    # A box that measures changes no byte, though it would lower windows; and never one of a server.
    assert seen["lower"] > 100
    assert [seen["measured"]["up"]["changed"], seen["measured"]["down"]["changed"]] == [{}, {}]
    assert seen["acted"]["down"]["changed"] == {}
    # One that acts changes ACKs of those whom it acts on, but not of a connection that is older than the box.
    acks, changed = seen["acted"]["up"]["acks"], seen["acted"]["up"]["changed"]
    assert min(of(changed, one) for one in acted_on) > 20, changed
    assert of(changed, *acted_on) == sum(changed.values())
    assert min(of(acks, one) for one in held_back) > 20, acks
    assert acks[seen["older"]] > 20
    assert seen["older"] not in changed
    # After `bypass` has returned no ACK is changed any more.
    assert of(seen["bypassed"]["until"]["changed"], acted_on[0]) > 10
    assert seen["bypassed"]["later"]["changed"] == {}
    assert of(seen["bypassed"]["later"]["acks"], acted_on[0]) >= 100
    assert seen["refused"] == 0
    print(f"`bypass on` took {seen['bypassed']['ms']:.0f} ms")
