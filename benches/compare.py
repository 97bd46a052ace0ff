"""Speed and memory of ackclock compared with ns-2 and ns-3, measured in one run (`make bench`).

CPU seconds are user and system time of the process, minus start-up (reading, building the graph) on both
sides. Missing peers are skipped and marked in the table.
"""

import argparse
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import worlds
from measure import cost, in_turns, usage
from rich.console import Console
from rich.table import Table
from worlds import ITEMS, ackclock

GIB = 2**30


@dataclass(frozen=True)
class Row:
    """A measured value and its target."""

    what: str
    value: float | None
    unit: str
    target: float | None
    better: str
    note: str

    @property
    def verdict(self) -> str:
        """Whether the target is met."""
        if self.value is None:
            return "not measured"
        if self.target is None:
            return ""
        met = self.value >= self.target if self.better == "more" else self.value <= self.target
        return "met" if met else "missed"


def main() -> None:
    """Measure, print the table, write the JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=Path("out/bench.json"))
    options.add_argument("--bottlenecks", type=int, default=1000, help="independent bottlenecks beside the peers")
    options.add_argument("--best-of", type=int, default=5)
    given = options.parse_args()

    given.out.parent.mkdir(parents=True, exist_ok=True)
    peers = Peers(given.out.parent / "peers", given.best_of)
    rows: list[Row] = []
    for part in parts(peers, given.bottlenecks, given.best_of):
        rows += part
        # All measurements take long, so results are printed at once.
        for row in part:
            print(f"{row.what}: {row.value} {row.unit} {row.verdict}", flush=True)
    show(rows)
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "rows": [asdict(row) for row in rows]}
    given.out.write_text(json.dumps(machine, indent=1) + "\n")
    print(given.out)


def parts(peers: "Peers", bottlenecks: int, best_of: int) -> Iterator[list[Row]]:
    """All measurements, one after the other."""
    yield peers.one_hour(1, ns2_hours=10, ns2_target=8, ns3_target=120)
    yield peers.one_hour(4, ns2_hours=1, ns2_target=80, ns3_target=80)
    yield peers.bottlenecks(bottlenecks, 100)
    for channel in ("dedicated", "shared"):
        yield scaling(channel, best_of)
        yield memory(channel)
    yield cells(best_of)
    yield umts(best_of)
    yield relay(best_of)
    yield forecast(best_of)


class Peers:
    """Ratios of CPU seconds: the peer's over ours."""

    def __init__(self, folder: Path, best_of: int) -> None:
        self.ns2 = worlds.has_ns2()
        self.ns3 = worlds.build_ns3(folder)
        self.best_of = best_of

    def one_hour(self, item: int, ns2_hours: int, ns2_target: float, ns3_target: float) -> list[Row]:
        """An hour of one flow over an item of table 1."""
        hop, hour = ITEMS[item], 3600.0
        # About a second each: shorter runs may hit a fast moment of the processor.
        hours = {"": 50, "ns-2": ns2_hours, "ns-3": 1}
        runs = {"": (lambda s: ackclock("one-flow.toml", s, hop.sets()), hours[""] * hour)}
        if self.ns2:
            runs["ns-2"] = (lambda s: worlds.ns2_one_flow(hop, s), ns2_hours * hour)
        if binary := self.ns3:
            runs["ns-3"] = (lambda s: worlds.ns3(binary, hop, s), hour)
        costs = {name: one.cpu_s / hours[name] for name, one in in_turns(runs, self.best_of * 3).items()}
        peers = {"ns-2": (costs.get("ns-2"), ns2_target), "ns-3": (costs.get("ns-3"), ns3_target)}
        return ratios(f"an hour of item {item}", costs[""], peers)

    def bottlenecks(self, flows: int, seconds: float) -> list[Row]:
        """Independent bottlenecks with a flow each."""
        sets = {"flow.count": flows}
        ours = cost(lambda s: ackclock("bottlenecks.toml", s, sets), seconds, self.best_of).cpu_s
        what = f"{flows} bottlenecks for {seconds:g} s"
        # The peers take long enough to be measured once.
        ns2 = cost(lambda s: worlds.ns2_many_flows(flows, s), seconds, 1).cpu_s if self.ns2 else None
        binary = self.ns3
        ns3 = cost(lambda s: worlds.ns3(binary, ITEMS[1], s, flows), seconds, 1).cpu_s if binary else None
        return ratios(what, ours, {"ns-2": (ns2, 20), "ns-3": (ns3, 150)})


def ratios(what: str, ours: float, peers: dict[str, tuple[float | None, float]]) -> list[Row]:
    """Our CPU seconds, and each peer's relative to them."""
    rows = [Row(f"{what}: ackclock", ours, "CPU s", None, "less", "")]
    for name, (theirs, target) in peers.items():
        if theirs:
            note = f"{theirs:.3g} against {ours:.3g} CPU s"
            rows.append(Row(f"{what}: {name} / ackclock", theirs / ours, "x", target, "more", note))
        else:
            rows.append(Row(f"{what}: {name} / ackclock", None, "x", target, "more", f"{name} is not installed"))
    return rows


def scaling(channel: str, best_of: int) -> list[Row]:
    """Data packets delivered per CPU second with 1 to 10 000 flows, and the increase of cost per packet."""
    # 25 packets a second and flow: as many seconds as give some millions of packets, and at least a hundred.
    seconds = {flows: max(100.0, 2.5e6 / (25 * flows)) for flows in (1, 10, 100, 1000, 10_000)}
    runs = {str(flows): (partial(many_flows, channel, flows), long) for flows, long in seconds.items()}
    costs = in_turns(runs, best_of)
    rates = {flows: one.whole.result()["engine"]["packets"] / one.cpu_s for flows, one in costs.items()}
    rows = [Row(f"{flows} flows, {channel}", rate, "packets/s", None, "more", "") for flows, rate in rates.items()]
    dearer = rates["1"] / rates["10000"]
    return [*rows, Row(f"cost of a packet, 10 000 flows / 1 flow, {channel}", dearer, "x", 2, "less", "")]


def many_flows(channel: str, flows: int, seconds: float) -> list[str]:
    """Flows with separate channels, or over one channel that is proportionally faster."""
    # All of them begin within the first second.
    sets = {"flow.count": flows, "flow.stagger": f"{1_000_000_000 // flows}ns"}
    if channel == "dedicated":
        return ackclock("bottlenecks.toml", seconds, sets)
    scaled = {"edge.down.rate": f"{200 * flows}kbit/s", "edge.up.rate": f"{64 * flows}kbit/s"}
    return ackclock("shared.toml", seconds, {**sets, "edge.buffer": f"{10 * flows}p", **scaled})


def memory(channel: str) -> list[Row]:
    """Bytes a flow, and whether a hundred thousand flows fit."""
    few, many = 25_000, 100_000
    peak = {flows: usage(many_flows(channel, flows, 5)).peak_bytes for flows in (few, many)}
    each = (peak[many] - peak[few]) / (many - few)
    note = f"peak at {many} less peak at {few} flows, 5 s"
    return [
        Row(f"memory a flow, {channel}", each / 1024, "KiB", 4, "less", note),
        Row(f"memory of {many} flows, {channel}", peak[many] / GIB, "GiB", 1, "less", "peak of the process, 5 s"),
    ]


def cells(best_of: int) -> list[Row]:
    """Cost of users of a fading cell: eight for a long time, a thousand in one cell, and a hundred cells."""

    def cpu(users: int, seconds: float, channel: str) -> float:
        sets = {"edge.user.count": users, "flow.count": users, "edge.channel": channel}
        return cost(lambda s: ackclock("cell.toml", s, sets), seconds, best_of).cpu_s

    slots = 600
    eight, thousand, hundred = cpu(8, 1000, "shared"), cpu(1000, 20, "shared"), cpu(100, 100, "dedicated")
    return [
        Row("8 users of a cell for 1000 s", eight, "CPU s", 1, "less", ""),
        Row("a user and slot, 8 users", eight / (8 * 1000 * slots) * 1e9, "ns", None, "less", ""),
        Row(
            "a user and slot, 1000 users",
            thousand / (1000 * 20 * slots) * 1e9,
            "ns",
            None,
            "less",
            "linear where equal",
        ),
        Row("100 cells for 100 s", hundred, "CPU s", None, "less", "a user each"),
    ]


def umts(best_of: int) -> list[Row]:
    """A file of 16 MB over the simple and the complete UMTS model, and a table of twenty runs per cell."""

    def file(scenario: str) -> float:
        return cost(lambda s: ackclock(scenario, s), 20_000, best_of).cpu_s

    table = ["ackclock", "sweep", str(worlds.SCENARIOS / "ack-rate-control.toml"), "--json"]
    sweep = min(usage(table).cpu_s for _ in range(best_of))
    return [
        Row("16 MB over UMTS, simple, blocks of 40 bytes", file("umts.toml"), "CPU s", 1.5, "less", ""),
        Row("16 MB over UMTS, whole, PDUs of 40 bytes", file("umts-am.toml"), "CPU s", 1.5, "less", ""),
        Row("table 2 of AC06, 20 runs each", sweep, "CPU s", 60, "less", "200 runs of 60 s"),
    ]


def relay(best_of: int) -> list[Row]:
    """Cost of a relay relative to the same download without one, run by `Line` or by the engine."""
    variants: dict[str, list[str]] = {
        "line": [],
        # The gaps between ACKs are measured by the engine alone.
        "engine": ['measure=["ack-gaps"]'],
        "relay": ["relay={}"],
    }
    hop = ITEMS[1].sets()
    runs = {name: (partial(ackclock, "one-flow.toml", sets=[*hop, *keys]), 36_000.0) for name, keys in variants.items()}
    taken = {name: one.cpu_s for name, one in in_turns(runs, best_of * 3).items()}
    return [
        Row("a relay / the engine without", taken["relay"] / taken["engine"], "x", 2.5, "less", "ten hours of item 1"),
        Row("a relay / the line without", taken["relay"] / taken["line"], "x", None, "less", "the same"),
    ]


def forecast(best_of: int) -> list[Row]:
    """Cost per packet under `forecast`, relative to the dynamic Window Regulator."""
    keys = [*ITEMS[1].sets(), "edge.buffer=20p"]
    names = ("wrd", "forecast")
    runs = {
        name: (partial(ackclock, "one-flow.toml", sets=[*keys, f"edge.regulator={name}"]), 36_000.0) for name in names
    }
    costs = in_turns(runs, best_of * 3)
    each = {name: one.cpu_s / one.whole.result()["engine"]["packets"] for name, one in costs.items()}
    note = "whole runs, ten hours of item 1, 20 packets"
    return [Row("a packet under forecast / under wrd", each["forecast"] / each["wrd"], "x", 2, "less", note)]


def show(rows: list[Row]) -> None:
    """Print the table."""
    table = Table("what", "value", "unit", "target", "", "note")
    for row in rows:
        value = "" if row.value is None else f"{row.value:,.4g}" if row.value < 1e4 else f"{row.value:,.0f}"
        sign = {"more": "at least", "less": "at most"}[row.better]
        target = "" if row.target is None else f"{sign} {row.target:g}"
        table.add_row(row.what, value, row.unit, target, row.verdict, row.note)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
