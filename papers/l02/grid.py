"""The simulated points: tables 3 to 15, figures 13 to 20, other interpretations, and open questions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from ackclock.paper import edited, point

SCENARIO = Path(__file__).parent / "scenarios" / "download.toml"
HEADER = 40  # bytes; the source counts them as data
SMALL_RUNS = 20
LARGE, SMALL = 16_000_000, (20_000, 50_000, 100_000, 200_000)  # bytes with headers


@dataclass(frozen=True)
class Cell:
    """A speed with a packet and the window that fills it."""

    kbps: int
    packet: int
    window: int

    @property
    def name(self) -> str:
        """Name in the tables."""
        return f"{self.kbps}/{self.packet}"

    @property
    def pdus(self) -> int:
        """Blocks of 40 bytes in a TTI of 20 ms."""
        return self.kbps * 20 // 8 // 40


CELLS = (
    Cell(384, 576, 25),
    Cell(384, 1500, 14),
    Cell(128, 576, 11),
    Cell(128, 1500, 7),
    Cell(64, 576, 9),
    Cell(64, 1500, 6),
)
WORST = CELLS[0]
HARD = CELLS[:3]  # where the source sees a problem
FASTER = CELLS[:4]

OUT, IN = "out-of-sequence", "in-sequence"
SPLIT = {"path.delay": "0ms", "edge.down.delay": "30ms", "edge.up.delay": "30ms"}  # the source's simplification
RELAY = {
    "path.delay": "105ms",
    "relay.core.delay": "0ms",
    "edge.down.delay": "30ms",
    "edge.up.delay": "30ms",
    "relay.buffer": "1MB",
}


def hand_over(lasts: str) -> Mapping[str, Any]:
    """An outage of this length in both directions, twice a minute."""
    outages = [{"at": "10s", "for": lasts, "every": "30s"}]
    up = {"kind": "variable", "rate": "10Mbit/s", "delay": "60ms", "outages": outages}
    return {"edge.down.outages": outages, "edge.up": up}


def up_radio(error: float) -> Mapping[str, Any]:
    """The uplink also loses and retransmits blocks: one of 160 bytes per TTI of 20 ms."""
    return {"edge.up": {"kind": "umts-rlc", "rate": "64kbit/s", "bler": error, "delay": "60ms"}}


@dataclass(frozen=True)
class Download:
    """A download.

    Attributes:
        cell: Speed, packet and window.
        size: Bytes with headers.
        error: Share of lost blocks.
        order: Order in which the radio delivers packets.
        small_pdus: Whether a TTI has blocks of 40 bytes instead of one block.
        sender: Row of the sender table.
        initial: Initial window, packets.
        keys: Replacements for further keys.
    """

    cell: Cell = WORST
    size: int = LARGE
    error: float = 0.1
    order: str = OUT
    small_pdus: bool = False
    sender: str = "reno"
    initial: int = 1
    keys: Mapping[str, Any] = field(default_factory=dict)

    def point(self) -> str:
        """The text of its scenario."""
        packet = self.cell.packet
        keys = {
            "edge.down.rate": f"{self.cell.kbps}kbit/s",
            "edge.down.bler": self.error,
            "edge.down.order": self.order,
            "edge.down.pdus": self.cell.pdus if self.small_pdus else 1,
            "flow.sender": {"kind": self.sender, "handshake": "on" if self.size < LARGE else "off"},
            "flow.packet": f"{packet}B",
            "flow.max_window": f"{self.cell.window}p",
            "flow.initial_window": f"{self.initial}p",
            "flow.workload": {"kind": "file", "size": f"{round(self.size * (packet - HEADER) / packet)}B"},
        }
        if self.size < LARGE:
            keys["runs"] = SMALL_RUNS
        return point(SCENARIO, {**keys, **self.keys})

    @property
    def request_s(self) -> float:
        """Transit time of the mobile's SYN, if there is a handshake: in the source the server opens."""
        if self.size == LARGE:
            return 0.0
        return 0.030 if "edge.up.delay" in self.keys else 0.135

    def without_errors(self) -> "Download":
        """Baseline of increases: Reno without errors, not split."""
        return replace(self, error=0.0, sender="reno", keys={}, small_pdus=False, order=OUT)


# Downloads of each table by row name.
LARGE_FILES: Mapping[str, Download] = {
    **{f"L02-T3-{n}": Download(cell) for n, cell in enumerate(CELLS, 1)},
    **{f"L02-T5-{n}": Download(cell, sender="eifel") for n, cell in enumerate(HARD, 1)},
    **{f"L02-T6-{n}": Download(cell, sender="westwood") for n, cell in enumerate(HARD, 1)},
    **{f"L02-T7-{n}": Download(cell, keys=SPLIT) for n, cell in enumerate(HARD, 1)},
    **{f"L02-T8-{n}": Download(cell, order=IN) for n, cell in enumerate(HARD, 1)},
    **{f"L02-T14-{n}": Download(cell, small_pdus=True) for n, cell in enumerate(CELLS, 1)},
    **{f"L02-T15-{n}": Download(cell, order=IN, small_pdus=True) for n, cell in enumerate(CELLS, 1)},
    "L02-F20-1": Download(order=IN, small_pdus=True, sender="westwood"),
    "L02-F20-2": Download(order=IN, small_pdus=True, sender="eifel"),
    "L02-F20-3": Download(order=IN, small_pdus=True, keys=SPLIT),
}
FILES: Mapping[str, Download] = {
    f"L02-T10-{n}-{round(100 * error)}": Download(cell, 100_000, error)
    for (n, cell), error in product(enumerate(CELLS, 1), (0.0, 0.1))
}


def windows() -> Iterator[tuple[str, Download, Download]]:
    """Tables 11 to 13: row, download with the larger initial window and with one packet."""
    for start, initial in ((1, 3), (5, 4)):
        for n, cell in enumerate(FASTER, start):
            yield f"L02-T11-{n}", Download(cell, 100_000, initial=initial), Download(cell, 100_000)
    for table, size in ((12, 50_000), (13, 200_000)):
        for n, cell in enumerate(FASTER, 1):
            yield f"L02-T{table}-{n}", Download(cell, size, initial=3), Download(cell, size)


def clean_windows() -> Mapping[int, Mapping[int, Download]]:
    """Figure 18: size and initial window, without errors."""
    return {size: {initial: Download(size=size, error=0.0, initial=initial) for initial in (1, 3, 4)} for size in SMALL}


# Unstated parameters of TCP, varied together. The first is the default of the source's simulator in 2002.
READINGS: Mapping[str, Mapping[str, Any]] = {
    f"minimum {least or 'none'}, tick {tick}, limited transmit {limited}, guard {guard}": {
        "flow.sender.rto.min": least or "1ms",
        "flow.sender.rto.tick": tick,
        "flow.sender.limited_transmit": limited,
        "flow.sender.recover_guard": guard,
    }
    for least, tick, limited, guard in product(("1s", ""), ("10ms", "100ms"), ("on", "off"), ("off", "on"))
}
# Unstated parameters of the radio, varied together: treatment of packets that arrive between two TTIs.
RADIOS: Mapping[str, Mapping[str, Any]] = {
    **{
        f"delivery {delivery}, status {status}, repetition {repetition}": {
            "edge.down.delivery": delivery,
            "edge.down.status": status,
            "edge.down.repetition": repetition,
        }
        for delivery, status, repetition in product(("by-block", "by-tti"), repeat=3)
    },
    # Longer than stated, as the tables of small blocks would require.
    **{f"repetition after {ms} ms": {"edge.down.repetition_delay": f"{ms}ms"} for ms in (80, 100, 120, 140)},
}
HUNTED: Mapping[str, Download] = {
    f"L02-{name}": LARGE_FILES[f"L02-{name}"]
    for name in ("T3-1", "T3-2", "T7-1", "T8-1", "T14-1", "T14-2", "T14-3", "T15-1", "F20-1", "F20-2")
}


def judged() -> Iterator[str]:
    """The points of the tables and the text, which are also run with a sender that does not react to loss."""
    downloads = [*LARGE_FILES.values(), *FILES.values()]
    for _, larger, smaller in windows():
        downloads += [larger, smaller]
    for of in clean_windows().values():
        downloads += of.values()
    for one in downloads:
        yield one.point()
        yield one.without_errors().point()


def without_reaction(at: str) -> str:
    """A point with a sender that does not react to loss: no duplicate and no timer makes it reduce its window.

    The radio of the source loses no packet, so nothing has to be repaired.
    """
    return edited(at, {"flow.sender.dup_thresh": 1000, "flow.sender.rto": {"min": "3600s", "max": "3600s"}})


def split_by_delay() -> Mapping[int, Download]:
    """Section 6.2: Split TCP by increasing one-way delay of the radio, ms."""
    delays = (10, 20, 30, 60, 100)
    return {ms: Download(keys={**SPLIT, "edge.down.delay": f"{ms}ms", "edge.up.delay": f"{ms}ms"}) for ms in delays}


def over_hsdpa(error: float) -> str:
    """Section 3.1.6: the large file over RLC and a shared cell, with this share of failed first transmissions."""
    cell = CELLS[1]
    return point(
        SCENARIO.parent / "hsdpa.toml",
        {
            "edge.bearer.air.down.harq.error": error,
            "flow.workload": {"kind": "file", "size": f"{round(LARGE * (cell.packet - HEADER) / cell.packet)}B"},
        },
    )


def slow_uplinks() -> tuple[Download, ...]:
    """Section 2.2: the uplink as in table 3, and with a third and a sixth of the rate of the downlink."""
    up = {"kind": "variable", "delay": "60ms"}
    rates = (WORST.kbps // 3, WORST.kbps // 6)
    slow = (Download(keys={"edge.up": {**up, "rate": f"{kbps}kbit/s"}}) for kbps in rates)
    return (Download(), *slow)


def points() -> Iterator[str]:
    """Every point; some belong to several tables."""
    yield from judged()
    for one in HUNTED.values():
        for keys in (*READINGS.values(), *RADIOS.values()):
            yield replace(one, keys={**one.keys, **keys}).point()
    for one in (*split_by_delay().values(), *slow_uplinks()):
        yield from (one.point(), one.without_errors().point())
    yield from map(over_hsdpa, (0.0, 0.1))
    yield from (one.point() for one in open_ends().values())
    yield from map(without_reaction, judged())


def open_ends() -> Mapping[str, Download]:
    """Open questions of the source, by name."""
    small = {order: Download(size=100_000, order=order) for order in (OUT, IN)}
    return {
        "one flow, as in table 3": Download(),
        "in sequence": Download(order=IN),
        "Split TCP, simplified: 30 ms": Download(keys=SPLIT),
        "Split TCP, a relay 105 ms from the server": Download(keys=RELAY),
        "Snoop": Download(keys={"edge.regulator": "snoop"}),
        "Snoop that waits for reordering": Download(keys={"edge.regulator": {"kind": "snoop", "reordering": True}}),
        "BLER 1 %": Download(error=0.01),
        "1 % of ACKs lost": Download(keys={"edge.up.loss": 0.01}),
        "10 % of ACKs lost": Download(keys={"edge.up.loss": 0.1}),
        "ACKs over a radio of 64 kbit/s": Download(keys=up_radio(0.0)),
        "ACKs over a radio of 64 kbit/s that loses and repeats 10 %": Download(keys=up_radio(0.1)),
        "the same, in sequence in both directions": Download(order=IN, keys=up_radio(0.1)),
        **{
            f"{order}, hand-overs of {lasts} each 30 s": Download(order=order, keys=hand_over(lasts))
            for order, lasts in product((OUT, IN), ("100ms", "500ms", "1s", "2s"))
        },
        "a loss is 15 duplicates": Download(keys={"flow.sender.dup_thresh": 15}),
        "delayed ACKs": Download(keys={"flow.acks": "delayed"}),
        "four flows, for each": Download(keys={"flow.count": 4}),
        "eight flows, for each": Download(keys={"flow.count": 8}),
        "SACK": Download(sender="sack"),
        "Westwood+": Download(sender="westwood-plus"),
        "100 kB, as in table 10": small[OUT],
        "100 kB, in sequence": small[IN],
        "100 kB, Split TCP, simplified": replace(small[OUT], keys=SPLIT),
        "100 kB, Split TCP, a relay": replace(small[OUT], keys=RELAY),
        "100 kB, Snoop": replace(small[OUT], keys={"edge.regulator": "snoop"}),
    }


CONDITIONS = (
    "Not stated is more of TCP than its name: here it is as the simulator of the source had it in 2002. A "
    "block takes its part of a TTI and is lost by itself; a packet that is complete is handed on at once."
)
