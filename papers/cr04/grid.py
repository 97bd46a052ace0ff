"""The points that are simulated: figures 7 to 10, 14 and 15 at every Doppler frequency, 7 to 10 over other cells.

A curve is a mapping from the number on its x axis to the scenario text of the point.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ackclock.paper import point

SCENARIOS = Path(__file__).parent / "scenarios"

Curve = Mapping[float, str]
Family = Mapping[str, Curve]

DOPPLERS = (5, 10, 11, 30, 60, 120)  # Hz; 11 Hz is 6 km/h at 1.9 GHz
DOPPLER = 11  # at which rows are judged

REGULATORS = {"DT": "none", "AR": "ack-regulator", "WRS": "wrs", "WRD": "wrd", "WRB": "wrb"}
# Whose packet is lost matters only where flows share a buffer: without a favour, of one drop-tail queue a user.
FIFO = {"edge.down.order": "fifo", "edge.down.overflow": "arriving"}
SFP = {"edge.down.order": "sfp", "edge.down.overflow": "longest"}
SCHEMES = {
    "PF/FIFO": {"edge.down.scheduler": "pf", **FIFO},
    "PF/SFP": {"edge.down.scheduler": "pf", **SFP},
    "PF-SP/SFP": {"edge.down.scheduler": "pf-sp", **SFP},
    "PF-RP/SFP": {"edge.down.scheduler": "pf-rp", **SFP},
}

AS_JUDGED = "as judged"
SLOTS_SHARED = "the rest of a slot is used"
NOT_AHEAD = "no place beyond the buffer"
FILES_OF_THREE = {"flow.2.count": 1}
TOGETHER = {"flow.start": "0s", "flow.stagger": "0s"}
# Other readings of the traffic of figures 14 and 15, as keys beside those of the scenario.
READINGS: Mapping[str, Mapping[str, Any]] = {
    AS_JUDGED: {},
    "files of three users": FILES_OF_THREE,
    "files begin together": TOGETHER,
    "bytes count as they come": {"edge.down.short_flow.counts": "enqueued"},
    "first timeout 3 s": {"flow.sender.rto.initial": "3s"},
    SLOTS_SHARED: {"edge.down.remainder": "next"},
    NOT_AHEAD: {"edge.buffer": "15p"},
    "a user's flows share 20 packets": {
        **FILES_OF_THREE,
        **TOGETHER,
        "edge.buffer": "21p",
        "edge.down.buffer_per": "user",
        "edge.down.short_flow.counts": "enqueued",
        "flow.initial_window": "1p",
        "flow.sender": "sack1",
    },
}

SNR = -0.7  # dB of every user: the mean rates that CR02 section 6.5 plans with, 4 x 200 and 8 x 120 kbit/s

BUFFERS = (5, 10, 15, 20, 30, 40)  # packets
SHARED_BUFFERS = (3, 5, 10, 20)
BUFFER = 20
ONE_WAY = (1, 20, 35, 50, 70, 100, 200, 250, 400, 500)  # ms of wire; twice as much is figure 9's axis
LONGEST = 400  # ms of wire one way, the longest of the evaluation; 500 is there for "above 400 ms", read one way
LOSSES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
WIRE_SEEDS = 40  # of figure 9, where five do not tell: on long wires AR is ahead of DT by a percent
BASE_SNRS = {"different": (4.0, -4.0), "same": (-4.0, -4.0)}  # dB of users 1 and 2, and of users 3 and 4


@dataclass(frozen=True)
class Channel:
    """The cell of figures 7 to 10 with the channel of every user, and how the traffic of figures 14 and 15 is read."""

    doppler: float = DOPPLER  # Hz
    snr: float = SNR  # mean, dB
    remainder: str = "waste"  # of a slot in which a packet ends
    ahead: int = 1  # packets of a flow beyond its buffer, in the base station
    reading: str = AS_JUDGED

    def by_buffer(self, sender: str = "sack1") -> Family:
        """Figure 7."""
        return {name: {b: self._long(name, {"flow.sender": sender}, buffer=b) for b in BUFFERS} for name in REGULATORS}

    def shared(self, users: int) -> Family:
        """Figure 8."""
        return {name: {b: self._long(name, {}, users, b) for b in SHARED_BUFFERS} for name in REGULATORS}

    def by_delay(self) -> Family:
        """Figure 9, over the delay of the wire one way."""
        seeds = {"runs": WIRE_SEEDS}
        return {name: {d: self._long(name, {"path.delay": f"{d}ms", **seeds}) for d in ONE_WAY} for name in REGULATORS}

    def by_loss(self, where: str) -> Family:
        """Figure 10: losses of the wire (`path.loss`) or of the radio (`edge.down.loss`)."""
        return {name: {p: self._long(name, {where: p}) for p in (0.0, *LOSSES)} for name in REGULATORS}

    def by_scheme(self, users: str) -> Mapping[str, str]:
        """Figures 14 and 15: a point for each scheme; their mean SNRs are their own."""
        tables = [{"count": 2, "mean_snr": snr, "doppler": self.doppler} for snr in BASE_SNRS[users]]
        keys = {"edge.user": tables, **READINGS[self.reading]}
        return {name: point(SCENARIOS / "short-flows.toml", keys | of) for name, of in SCHEMES.items()}

    def points(self) -> Iterator[str]:
        """Every point of figures 7 to 10."""
        families = [self.by_buffer(), self.by_buffer("reno"), self.shared(4), self.shared(8)]
        families += [self.by_delay(), self.by_loss(WIRE), self.by_loss(RADIO)]
        for family in families:
            for curve in family.values():
                yield from curve.values()

    def _long(self, regulator: str, keys: Mapping[str, Any], users: int = 1, buffer: int = BUFFER) -> str:
        everywhere = {
            "edge.buffer": f"{buffer + self.ahead}p",
            "edge.down.remainder": self.remainder,
            "edge.regulator": REGULATORS[regulator],
            "edge.user.count": users,
            "edge.user.mean_snr": self.snr,
            "edge.user.doppler": self.doppler,
            "flow.count": users,
        }
        return point(SCENARIOS / "long-flows.toml", {**everywhere, **keys})


JUDGED = Channel()
FASTER = tuple(Channel(doppler) for doppler in DOPPLERS)
# One thing changed at a time; 2.3 dB is table 4 of CR02.
OTHER_CELLS = {
    AS_JUDGED: JUDGED,
    "0 dB": Channel(snr=0.0),
    "2.3 dB": Channel(snr=2.3),
    SLOTS_SHARED: Channel(remainder="next"),
    NOT_AHEAD: Channel(ahead=0),
}
READ = tuple(Channel(reading=reading) for reading in READINGS)

WIRE, RADIO = "path.loss", "edge.down.loss"


def points() -> Iterator[str]:
    """Every point; some stand in several curves."""
    for channel in dict.fromkeys((JUDGED, *FASTER, *OTHER_CELLS.values())):
        yield from channel.points()
    for channel in dict.fromkeys((JUDGED, *FASTER, *READ)):
        for users in BASE_SNRS:
            yield from channel.by_scheme(users).values()
