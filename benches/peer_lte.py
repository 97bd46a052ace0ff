"""Downloads over ns-3's LTE and over the preset `lte` with the same cell, both simulated (`make peer-lte`).

The cell's rates are the transport blocks that ns-3 schedules for one user. Goodput should agree within 3 %, the
p95 of the bearer's delay within 10 %.
"""

import argparse
import json
import random
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from worlds import NS3_LIBRARIES, SCENARIOS, build_peer

PEER = Path("out/ns3-lte-downloads")
SENDERS = ["cubic", "sack", "bbr"]
BUFFERS = [30_000, 100_000, 300_000, 600_000]  # bytes
# Our time of a packet after its queue: `delay` of the cell, and 1 ms of transmission.
AFTER_QUEUE_MS = 4
# ns-3's STATUS takes a whole block, so they are kept rare.
STATUS = "--ns3::LteRlcAm::StatusProhibitTimer=100ms"
START = 1.0  # of the first download; ns-3 connects its terminals before, s
GOODPUT, DELAY = 3.0, 10.0  # percent
LINE = "{:9} {:>5} {:>7} {:6} {:>9} {:>9} {:>7} {:>8} {:>8} {:>7}"


@dataclass(frozen=True)
class Channel:
    """Distances of the terminals in turn, m, and the time at each, s."""

    name: str
    distances: tuple[int, ...]
    hold: float

    def words(self, seconds: float) -> list[str]:
        """Arguments of the peer."""
        listed = ",".join(map(str, self.distances))
        return [f"--distances={listed}", f"--hold={self.hold:g}", f"--seconds={seconds:g}"]


def faded() -> Channel:
    """A channel that wanders: a new distance each 200 ms, drawn once."""
    draw = random.Random(7)
    return Channel("faded", tuple(draw.choice([2000, 4000, 4500, 5000, 5500, 6000]) for _ in range(300)), 0.2)


CHANNELS = [Channel("constant", (100,), 1000), Channel("stepped", (100, 4500, 6000), 3), faded()]


@dataclass(frozen=True)
class Case:
    """Users with a download each over a channel."""

    channel: Channel
    users: int
    buffer: int
    sender: str


@dataclass(frozen=True)
class Outcome:
    """Goodput of all users, and p95 of the bearer's delay."""

    goodput_bps: float
    delay_ms: float


def run(words: list[str]) -> dict[str, Any]:
    """The JSON that a program prints."""
    told: dict[str, Any] = json.loads(subprocess.run(words, capture_output=True, check=True, text=True).stdout)
    return told


@cache
def blocks(channel: Channel, seconds: float) -> dict[float, int]:
    """Transport block of each distance for one user, bytes."""
    told = run([str(PEER), *channel.words(seconds), "--buffer=600000", STATUS])["blocks"]
    return {float(distance): block for distance, block in told.items()}


def theirs(case: Case, seconds: float) -> Outcome:
    """The downloads in ns-3."""
    words = [f"--users={case.users}", f"--buffer={case.buffer}", f"--sender={case.sender}", f"--from={START:g}", STATUS]
    told = run([str(PEER), *case.channel.words(seconds), *words])
    return Outcome(told["goodput_bps"], told["delay_p95_ms"])


def ours(case: Case, seconds: float) -> Outcome:
    """The downloads in ackclock."""
    sizes = blocks(case.channel, seconds)
    rows = sorted(set(sizes.values()))
    rates = ", ".join(f'{{ rate = "{8000 * size}bit/s", snr = {row}.0 }}' for row, size in enumerate(rows))
    snr = [rows.index(sizes[distance]) + 0.5 for distance in case.channel.distances if distance in sizes]
    steps = [(at * case.channel.hold, snr[at % len(snr)]) for at in range(1, int(seconds / case.channel.hold) + 1)]
    text = (SCENARIOS / "peer-lte.toml").read_text()
    text += "".join(
        f'[[edge.at]]\ntime = "{time:g}s"\nset = {{ "user.0.mean_snr" = {value} }}\n'
        for (time, value), (_, before) in zip(steps, [(0, snr[0]), *steps], strict=False)
        if value != before
    )
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        sets = [
            f"duration={seconds:g}s",
            f"flow.start={START:g}s",
            f"edge.buffer={case.buffer}B",
            f"edge.bearer.air.down.rates=[{rates}]",
            f'edge.user=[{{ count = {case.users}, mean_snr = {snr[0]}, fading = "none" }}]',
            f"flow.count={case.users}",
            f"flow.sender={case.sender}",
        ]
        told = run(["ackclock", "run", file.name, "--json", *(word for pair in sets for word in ("--set", pair))])
    octets = sum(flow["delivered_bytes"] for flow in told["flows"])
    return Outcome(8 * octets / (seconds - START), told["bottleneck"]["queue_ms"]["p95"] + AFTER_QUEUE_MS)


def cases() -> list[Case]:
    """All buffers for one and eight users of a cell of constant rate; fewer for the other channels and numbers."""
    constant, *others = CHANNELS
    chosen = [Case(constant, *rest) for rest in product([1, 8], BUFFERS, SENDERS)]
    chosen += [Case(constant, users, 300_000, sender) for users, sender in product([2, 4], SENDERS)]
    return chosen + [Case(*case) for case in product(others, [1, 4], [100_000, 300_000], SENDERS)]


def main() -> int:
    """Print both worlds for each case, and how many agree."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=40)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--channels", nargs="+", default=[one.name for one in CHANNELS])
    options.add_argument("--users", type=int, nargs="+", default=[1, 2, 4, 8])
    options.add_argument("--buffers", type=int, nargs="+", default=BUFFERS)
    given = options.parse_args()
    if not build_peer("lte_downloads.cc", PEER, ["lte", "mobility", *NS3_LIBRARIES]):
        print("skipped: ns-3 is not installed (Debian: apt install libns3-dev)")
        return 0
    chosen = [
        case
        for case in cases()
        if case.channel.name in given.channels and case.users in given.users and case.buffer in given.buffers
    ]
    for case in chosen:
        blocks(case.channel, given.seconds)
    print(LINE.format("channel", "users", "buffer", "sender", "Mbit/s", "ns-3", "%", "p95 ms", "ns-3", "%"))

    def both(case: Case) -> tuple[Outcome, Outcome]:
        return ours(case, given.seconds), theirs(case, given.seconds)

    agree = [0, 0]
    with ThreadPoolExecutor(given.jobs) as pool:
        for case, (own, other) in zip(chosen, pool.map(both, chosen), strict=True):
            apart = [100 * (own.goodput_bps / other.goodput_bps - 1), 100 * (own.delay_ms / other.delay_ms - 1)]
            agree[0] += abs(apart[0]) <= GOODPUT
            agree[1] += abs(apart[1]) <= DELAY
            rates = [f"{one.goodput_bps / 1e6:.2f}" for one in (own, other)]
            delays = [f"{one.delay_ms:.1f}" for one in (own, other)]
            told = [*rates, f"{apart[0]:+.1f}", *delays, f"{apart[1]:+.1f}"]
            print(LINE.format(case.channel.name, case.users, case.buffer, case.sender, *told), flush=True)
    print(
        f"{agree[0]} of {len(chosen)} agree in goodput ({GOODPUT:g} %), "
        f"{agree[1]} in the p95 of the delay ({DELAY:g} %)"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
