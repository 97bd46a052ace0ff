"""The cells of `make agree`: traffic, sender, link and queue, as scenario files for both worlds."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from links import CONSTANT, EV_DO, LTE, METRO, TRAM, UMTS, VARIABLE_DELAY, VARIABLE_RATE, Link, plays


@dataclass(frozen=True)
class Sender:
    """One of the kernel's senders: its name here, its congestion control there, and whether it uses SACK."""

    ours: str
    control: str
    sack: int


SACK, NEWRENO, CUBIC, BBR = SENDERS = (
    Sender("sack", "reno", 1),
    Sender("newreno", "reno", 0),
    Sender("cubic", "cubic", 1),
    Sender("bbr", "bbr", 1),
)


@dataclass(frozen=True)
class Files:
    """Files of `bytes` over one connection, each some time after the start or the end of the previous one."""

    kind: str
    size: int
    interval_ms: int
    since: str

    @property
    def words(self) -> str:
        """How a table says it."""
        if self.since == "start":
            return f"{self.size * 8 / self.interval_ms:.0f} kbit/s by {self.size / 1000:g} kB"
        return f"{self.size / 1000:g} kB, {self.interval_ms} ms"

    def toml(self) -> str:
        """As a scenario writes it."""
        return (
            f'{{ kind = "ftp", size = "{self.size}B", interval = "{self.interval_ms}ms", '
            f'interval_from = "{self.since}", connection_per = "client" }}'
        )


def web(kilobytes: int, thinks_ms: int) -> Files:
    """Web objects over one connection, each requested some time after the previous one has arrived."""
    return Files("web", kilobytes * 1000, thinks_ms, "end")


def files(kilobytes: int, thinks_ms: int) -> Files:
    """Larger files over one connection."""
    return Files("files", kilobytes * 1000, thinks_ms, "end")


def paced(kbps: float, every_ms: int) -> Files:
    """A program that writes at this rate in kbit/s, in pieces."""
    return Files("paced", round(kbps * every_ms / 8), every_ms, "start")


@dataclass(frozen=True)
class Cell:
    """A link, its queue, a regulator, a sender and its traffic."""

    kind: str
    link: Link
    buffer: str
    sender: Sender
    # A regulator, or a queue discipline that drops or, with ECN, marks.
    edge: str = "none"
    # Traffic; default: an endless download.
    files: Files | None = None
    # One-way delay of the wired path; default: the preset's.
    wire_ms: int | None = None
    seconds: float = 30

    def words(self) -> list[str]:
        """How a table says it."""
        wire = f", wire {self.wire_ms} ms" if self.wire_ms else ""
        work = self.files.words if self.files else "bulk"
        return [self.kind, self.link.name + wire, self.buffer, self.edge, work, self.sender.ours]

    @property
    def ecn(self) -> str:
        """Whether both ends use explicit congestion notification."""
        return "on" if self.edge.endswith("ecn") else "off"

    def scenario(self, folder: Path) -> str:
        """The scenario file, without the sender's options; `folder` takes recordings that begin later."""
        regulator = self.edge if self.edge in REGULATORS else "none"
        wire = f'[path]\ndelay = "{self.wire_ms}ms"\n\n' if self.wire_ms else ""
        work = f"workload = {self.files.toml()}\n" if self.files else ""
        queue = QUEUES.get(self.edge, '"drop-tail"')
        return (
            f'version = 1\npreset = "linux"\nduration = "{self.seconds:g}s"\n\n{wire}'
            f'[edge]\nbuffer = "{self.buffer}"\nregulator = "{regulator}"\nqueue = {queue}\n\n'
            f"{self.link.tables(folder)}\n"
            f'[[flow]]\nsender = {{ kind = "{self.sender.ours}", ecn = "{self.ecn}" }}\n{work}'
        )

    def name(self, folder: Path) -> str:
        """A unique file name for the scenario."""
        digest = hashlib.sha256(self.scenario(folder).encode()).hexdigest()[:8]
        return re.sub(r"[^a-z0-9.]+", "-", f"{' '.join(self.words())} {digest}".lower())


REGULATORS = ("none", "ack-regulator", "wrd", "wrb", "forecast", "ack-rate-control", "snoop")
QUEUES = {"codel": '"codel"', "codel, ecn": '{ kind = "codel", ecn = true }'}


def each(kind: str, link: Link, buffer: str, senders: Sequence[Sender], **more: object) -> Iterator[Cell]:
    """The cell with each of several senders."""
    return (Cell(kind, link, buffer, sender, **more) for sender in senders)  # type: ignore[arg-type]


BULK_PLACES = [
    (CONSTANT, "0.5bdp", "none"),
    (CONSTANT, "1bdp", "ack-regulator"),
    (CONSTANT, "4bdp", "none"),
    (VARIABLE_DELAY, "1bdp", "none"),
    (VARIABLE_DELAY, "2bdp", "ack-regulator"),
    (VARIABLE_RATE, "1bdp", "none"),
    (VARIABLE_RATE, "2bdp", "none"),
    (VARIABLE_RATE, "2bdp", "ack-regulator"),
    (plays(EV_DO), "2bdp", "none"),
    (plays(EV_DO), "4bdp", "ack-regulator"),
    (plays(LTE), "1bdp", "none"),
    (plays(LTE), "2bdp", "ack-regulator"),
]
CELLS: list[Cell] = [
    *(Cell("bulk", link, buffer, one, edge, seconds=60) for link, buffer, edge in BULK_PLACES for one in SENDERS),
    *each("web", CONSTANT, "1bdp", SENDERS, files=web(60, 300)),
    *each("web", VARIABLE_RATE, "1bdp", (CUBIC, BBR), files=web(30, 100)),
    *each("web", plays(LTE), "2bdp", (CUBIC, SACK), files=web(40, 200)),
    *each("files", CONSTANT, "1bdp", (CUBIC, BBR), files=files(1000, 1500)),
    *each("files", VARIABLE_DELAY, "1bdp", (CUBIC, SACK), files=files(500, 1000)),
    *each("files", plays(LTE), "2bdp", (CUBIC, NEWRENO), files=files(700, 1000)),
    *each("paced", CONSTANT, "0.5bdp", (CUBIC, BBR), files=paced(2000, 40)),
    *each("paced", VARIABLE_RATE, "1bdp", SENDERS, files=paced(3000, 40)),
    *each("paced", plays(LTE), "2bdp", (CUBIC, SACK), files=paced(1500, 100)),
    *each("ecn", CONSTANT, "4bdp", SENDERS, edge="codel, ecn"),
    *each("ecn", VARIABLE_RATE, "2bdp", (CUBIC, SACK), edge="codel, ecn"),
    *each("ecn", plays(LTE), "2bdp", (CUBIC, BBR), edge="codel, ecn"),
    *each("small", plays(EV_DO), "20p", SENDERS, wire_ms=80, seconds=60),
    *each("small", plays(METRO), "20p", SENDERS, wire_ms=80, seconds=60),
    *each("small", plays(TRAM), "10p", (CUBIC, SACK), wire_ms=80, seconds=60),
    *each("umts", UMTS, "50p", SENDERS, wire_ms=50, seconds=60),
    *each("umts", UMTS, "50p", SENDERS, edge="ack-rate-control", wire_ms=50, seconds=60),
    *each("umts", UMTS, "50p", SENDERS, edge="snoop", wire_ms=50, seconds=60),
]
KINDS = tuple(dict.fromkeys(cell.kind for cell in CELLS))
# Cells of the scoreboard for the kernel's senders: `make scoreboard-kernel`, not part of `make agree`.
BOARD_KIND = "scoreboard"
BOARD_EDGES = (("200p", "none"), ("1000p", "codel"), ("50p", "wrd"), ("2000p", "forecast"))
BOARD: list[Cell] = [
    one
    for link in (plays(EV_DO), plays(LTE), plays(METRO))
    for buffer, edge in BOARD_EDGES
    for one in each(BOARD_KIND, link, buffer, (SACK, CUBIC, BBR), edge=edge, wire_ms=20, seconds=60)
]
