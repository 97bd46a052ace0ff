"""How each row is computed."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ackclock import run
from ackclock.paper import Claim, Runs, edited, point
from ackclock.paper.expected import Expected
from ackclock.paper.measure import Run, drops
from ackclock.paper.runs import PerSeed, Replaced

Keys = Mapping[str, Any]

SCENARIOS = Path(__file__).parent / "scenarios"
USERS = (1, 2, 4, 8)
FEW_OR_MANY = (1, 4)
BUFFERS = (10, 20, 40)  # packets
WINDOWS = ("wrs", "wrd", "wrb")
PDU_BITS = 40 * 8 * 1448 / 1502  # payload of TCP in a PDU: a packet of 1500 bytes has 1448, and a length field of 2
SAMPLE = 0.05  # s between two samples of the queue at the base station
SETTLED = 5.0  # s, from which on the queue is measured
LARGE: Keys = {"edge.buffer": "3000p"}  # no buffer drops packets, so that the flow control alone makes the difference
UNACKNOWLEDGED: Keys = {
    "edge.bearer.rlc.mode": "unacknowledged",
    # The usual values, because nothing would obey others.
    "edge.bearer.rlc.poll.timer": "200ms",
    "edge.bearer.rlc.status.prohibit": "100ms",
    "edge.bearer.iub.flow_control": "none",
    "edge.buffer": "20p",
    "flow": [{"sender": "newreno", "max_window": "128kB"}],
}
REPORT: Keys = {"every": "1s", "delay": "50ms"}
RNF: Keys = {
    "relay": {"core": {"delay": "10ms"}, "steering": {"kind": "rnf", "q_ref": "12p"}},
    "edge.report": REPORT,
}
SPLIT: Keys = {"relay": {"core": {"delay": "10ms"}}}
STEERED: Keys = {"relay": {"core": {"delay": "5ms"}, "steering": "rnf"}, "edge.report": REPORT}
UPLOADS = ("none", "ack-regulator", "wrs", "wrd", "wrb", "forecast", "ack-rate-control")

CONDITIONS = (
    "Nothing here is printed elsewhere: the values are what was expected before the chain was built. The rows are the "
    "preset hsdpa with one CUBIC download for each user, windows of up to 512 kB, 60 s. In row 6 the link has "
    "200 kbit/s; in row 7 the users have dedicated channels. The wait at the base station is the number of PDUs that "
    "are queued there over the rate at which they leave."
)
TRIED: dict[str, str] = {
    "CHAIN-3": (
        "The drops are of retransmissions: a user whose channel fades waits longer than the RTO, and the sender "
        "repeats what the RLC still holds. Runs without a timeout have no drops."
    )
}


def points() -> Iterable[str]:
    """The scenario texts to run."""
    yield from (unacknowledged(regulator) for regulator in ("none", "wrd", "ack-regulator"))
    yield from (windowed(*each) for each in product(FEW_OR_MANY, BUFFERS, WINDOWS))
    yield from (proxied(users, keys) for users in USERS for keys in (RNF, SPLIT))
    yield from (allocated(keys) for keys in (STEERED, {}))
    yield from (way(regulator) for regulator in UPLOADS for way in (download, upload))
    yield from (windowed(*each, "none") for each in product(FEW_OR_MANY, BUFFERS))


def controlled(users: int, flow_control: object) -> str:
    """A point with a flow control, and a controller whose buffer never drops."""
    return _of(users, {**LARGE, "edge.bearer.iub.flow_control": flow_control})


def unacknowledged(regulator: str) -> str:
    """A point whose queue is at the base station alone."""
    return _of(1, {**UNACKNOWLEDGED, "edge.regulator": regulator})


def windowed(users: int, buffer: int, regulator: str) -> str:
    """A point with a Window Regulator and a buffer of this many packets."""
    return _of(users, {"edge.buffer": f"{buffer}p", "edge.regulator": regulator})


def proxied(users: int, keys: Keys) -> str:
    """A point with a proxy between servers and controller."""
    return _of(users, keys)


def allocated(keys: Keys) -> str:
    """A point whose users get lower rates as more of them are active."""
    return point(SCENARIOS / "allocation.toml", keys)


def download(regulator: str) -> str:
    """A regulated download over a slow link."""
    return _mirror("down", "up", {"edge.buffer": "10p", "edge.up_buffer": "100p", "edge.regulator": regulator})


def upload(regulator: str) -> str:
    """The upload that is the mirror image of the download."""
    keys = {"edge.up_buffer": "10p", "edge.buffer": "100p", "edge.up_regulator": regulator}
    return _mirror("up", "down", {**keys, "flow": [{"sender": "reno", "towards": "server"}]})


def _of(users: int, keys: Keys) -> str:
    many = {"edge.user": [{"count": users}], "flow": [{"count": users, "sender": "cubic", "max_window": "512kB"}]}
    return point(SCENARIOS / "hsdpa.toml", {**many, **keys})


def _mirror(data: str, acks: str, keys: Keys) -> str:
    link = {"kind": "constant", "delay": "200ms"}
    links = {f"edge.{data}": {**link, "rate": "200kbit/s"}, f"edge.{acks}": {**link, "rate": "64kbit/s"}}
    return point(SCENARIOS / "mirror.toml", {**links, **keys})


def claims(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """Our value of every row."""
    parts = (without_a_queue, overflow, feedback, mirrored, allocation)
    rows = (flow_control(), *(part(runs) for part in parts))
    return dict(claim for part in rows for claim in part)


def null_model(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """The rows without flow control, regulators and reports."""
    without = Replaced(runs, _without)
    parts = (without_a_queue(without), overflow(without), feedback(without), mirrored(without), allocation(without))
    # No flow control compared with itself.
    return {"CHAIN-1": Claim([1.0, 1.0]), **dict(claim for part in parts for claim in part)}


def _without(at: str) -> str:
    pairs = [(proxied(users, RNF), proxied(users, SPLIT)) for users in USERS]
    if at in (of_reports := {**dict(pairs), allocated(STEERED): allocated({})}):
        return of_reports[at]
    edge = tomllib.loads(at)["edge"]
    return edited(at, {f"edge.{key}": "none" for key in ("regulator", "up_regulator") if key in edge})


def flow_control() -> Iterator[tuple[str, Claim]]:
    """Credits against no flow control."""
    pairs = {users: [measured(controlled(users, name)) for name in ("credit", "none")] for users in USERS}
    waits = {users: credit.wait.mean() / none.wait.mean() for users, (credit, none) in pairs.items()}
    goodputs = {users: credit.goodput.mean() / none.goodput.mean() for users, (credit, none) in pairs.items()}
    shown = ", ".join(f"{waits[users]:.3f} and {goodputs[users]:.3f} ({users})" for users in USERS)
    yield "CHAIN-1", Claim([max(waits.values()), min(goodputs.values())], note=f"by users: {shown}")


def without_a_queue(runs: Runs) -> Iterator[tuple[str, Claim]]:
    """Regulators above a controller that queues nothing."""
    ratios = [
        _mean(runs, unacknowledged(regulator), of) / _mean(runs, unacknowledged("none"), of)
        for regulator in ("wrd", "ack-regulator")
        for of in (goodput, round_trip)
    ]
    yield "CHAIN-2", Claim(ratios, note="goodput and RTT with WRD, then with the Ack Regulator")


def overflow(runs: Runs, buffers: Sequence[int] = BUFFERS) -> Iterator[tuple[str, Claim]]:
    """Drops of the Window Regulators."""
    cases = {each: runs(windowed(*each), drops) for each in product(FEW_OR_MANY, buffers, WINDOWS)}
    some = [f"{users} users, {buffer}p, {name}" for (users, buffer, name), found in cases.items() if found.any()]
    note = f"{len(cases) - len(some)} of {len(cases)} cases without drops"
    yield "CHAIN-3", Claim([max(found.max() for found in cases.values())], note="; ".join([note, *some]))


def feedback(runs: Runs) -> Iterator[tuple[str, Claim]]:
    """The proxy with reports against the proxy without them."""
    ratios = [
        _mean(runs, proxied(users, RNF), goodput) / _mean(runs, proxied(users, SPLIT), goodput) for users in USERS
    ]
    yield "CHAIN-4", Claim(ratios, note="1, 2, 4 and 8 users")


def mirrored(runs: Runs) -> Iterator[tuple[str, Claim]]:
    """Uploads against the downloads that mirror them."""

    def lost(one: Run) -> float:
        return float(one["flows"][0]["retransmits"])

    counts, shares = [], []
    for regulator in UPLOADS:
        down, up = download(regulator), upload(regulator)
        counts.append(abs(_mean(runs, down, drops) - _mean(runs, up, uplink_drops)))
        counts.append(abs(_mean(runs, down, lost) - _mean(runs, up, lost)))
        shares.append(abs(1 - _mean(runs, up, goodput) / _mean(runs, down, goodput)) * 100)
    yield "CHAIN-6", Claim([max(counts), max(shares)], note=", ".join(UPLOADS))


def allocation(runs: Runs) -> Iterator[tuple[str, Claim]]:
    """The proxy with reports against no proxy, where rates follow the number of users."""
    steered, plain = allocated(STEERED), allocated({})
    shown = [f"{_mean(runs, at, of):.0f}" for of in (queued_p95, goodput) for at in (steered, plain)]
    note = f"{shown[0]} and {shown[1]} ms; goodput {shown[2]} and {shown[3]} kbit/s"
    yield "CHAIN-7", Claim([_mean(runs, steered, queued_p95) / _mean(runs, plain, queued_p95)], note=note)


def goodput(one: Run) -> float:
    """Payload in order of all flows over the span of the run, kbit/s: of downloads, or of uploads."""
    downloads = one["bottleneck"]["goodput_bps"]
    return float(one["uplink"]["goodput_bps"] if downloads is None else downloads) / 1e3


def round_trip(one: Run) -> float:
    """Mean RTT of the first flow, ms."""
    return float(one["flows"][0]["rtt_ms"]["mean"])


def queued_p95(one: Run) -> float:
    """95th percentile of the queueing delay of the downlink, ms."""
    return float(one["bottleneck"]["queue_ms"]["p95"])


def uplink_drops(one: Run) -> float:
    """Packets lost in the queue of the uplink."""
    return float(one["uplink"]["drops"])


@dataclass(frozen=True)
class Measured:
    """Goodput of all users, kbit/s, and median wait at the base station, ms: a number for each seed."""

    goodput: PerSeed
    wait: PerSeed


@cache
def measured(at: str) -> Measured:
    """Runs a point and measures its queue at the base station."""
    traced = run(at, series_interval=SAMPLE)
    rates = [goodput(one) for one in traced.objects]
    queued = [np.median(one["down.base_station_pdus"][one["time"] >= SETTLED]) for one in traced.series]
    return Measured(np.array(rates), np.array(queued) * PDU_BITS / np.array(rates))


def _mean(runs: Runs, at: str, of: Any) -> float:
    return float(runs(at, of).mean())
