"""The simulated points: figures 7 to 10, 14 and 15 at every Doppler frequency, over other cells and traffic.

A curve is a mapping from the number on its x axis to the scenario text of the point.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ackclock.files import read_text
from ackclock.paper import edited, point, radio, rlc
from ackclock.scenario import tables

SCENARIOS = Path(__file__).parent / "scenarios"

Curve = Mapping[float, str]
Family = Mapping[str, Curve]

DOPPLERS = (5, 10, 11, 30, 60, 120)  # Hz; 11 Hz is 6 km/h at 1.9 GHz
DOPPLER = 11  # at which rows are judged

REGULATORS = {"DT": "none", "AR": "ack-regulator", "WRS": "wrs", "WRD": "wrd", "WRB": "wrb"}
FIFO = {"edge.down.order": "fifo"}
SFP = {"edge.down.order": "sfp"}
# Which flow loses a packet matters only if flows share a buffer: one drop-tail queue per user favours none.
ONE_QUEUE = {"edge.down.overflow": "arriving"}
SCHEMES: Mapping[str, Mapping[str, Any]] = {
    "PF/FIFO": {"edge.down.scheduler": "pf", **FIFO},
    "PF/SFP": {"edge.down.scheduler": "pf", **SFP},
    "PF-SP/SFP": {"edge.down.scheduler": "pf-sp", **SFP},
    "PF-RP/SFP": {"edge.down.scheduler": "pf-rp", **SFP},
    "RR/SFP": {"edge.down.scheduler": "round-robin", **SFP},
    "RR-SP/SFP": {"edge.down.scheduler": {"kind": "round-robin", "priority": "short-flows"}, **SFP},
}
JUDGED_SCHEMES = ("PF/FIFO", "PF/SFP", "PF-SP/SFP", "PF-RP/SFP")  # of figures 14 and 15

AS_JUDGED = "as judged"
FOUND = "found by searching"
SLOTS_SHARED = "the rest of a slot is used"
NOT_AHEAD = "no place beyond the buffer"
PAGES, FILES = tables(read_text(SCENARIOS / "short-flows.toml"), "short-flows.toml")["flow"][:2]


def _flows(count: int, user: int, of: Mapping[str, Any], **keys: Any) -> dict[str, Any]:
    return {**of, "count": count, "user": user, **keys}


@dataclass(frozen=True)
class Reading:
    """An interpretation of the traffic of figures 14 and 15.

    Attributes:
        keys: Replacements for keys of the scenario.
        groups: Numbers of users in the tables `[[edge.user]]`; the last table is the second half of the users.
        first: Which of the two SNRs of a figure user 1 has.
    """

    keys: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[int, ...] = (1, 1, 2)
    first: int = 0


def _found(files: int = 2, **late: str) -> list[dict[str, Any]]:
    """Pages of all users, and files of `files` of the first two and of the others."""
    return [
        *(_flows(2, user, PAGES) for user in (0, 1)),
        _flows(files, 0, FILES, workload="ftp", **late),
        _flows(2, 1, FILES, workload="ftp", **({"start": "100s", **late} if late else {})),
    ]


# Settings of figures 7 to 10, used for parameters not stated for figures 14 and 15.
SETUP = {"edge.buffer": "21p", "flow.initial_window": "1p", "flow.sender": "sack1"}
# Not judged: wider interpretations of the sentence about traffic, and other settings one at a time.
READINGS: Mapping[str, Reading] = {
    AS_JUDGED: Reading(),
    "pages of all users": Reading(
        {
            "flow": [
                _flows(1, 0, PAGES),
                _flows(1, 1, PAGES),
                _flows(2, 2, PAGES),
                _flows(1, 1, FILES),
                _flows(2, 2, FILES),
            ]
        }
    ),
    "user 1 has -4 dB": Reading(first=1),
    "senders and queues of figures 7 to 10": Reading(SETUP),
    "bytes count as they come": Reading({"edge.down.short_flow.counts": "enqueued"}),
    SLOTS_SHARED: Reading({"edge.down.remainder": "next"}),
    NOT_AHEAD: Reading({"edge.buffer": "15p"}),
    FOUND: Reading({"flow": _found(stagger="50s")}, (2, 2)),
    "the same, a user's flows share 20 packets": Reading(
        {
            "flow": _found(files=1),
            **SETUP,
            "edge.down.buffer_per": "user",
            "edge.down.short_flow.counts": "enqueued",
        },
        (2, 2),
    ),
}

MEDIUM, HEAVY = "medium", "heavy"  # loads of files, table I
INTERVALS = {MEDIUM: 200, HEAVY: 80}  # s between the files of a user, on average
SNR = -0.7  # dB of every user: the mean rates that CR02 section 6.5 plans with, 4 x 200 and 8 x 120 kbit/s

BUFFERS = (5, 10, 15, 20, 30, 40)  # packets
SHARED_BUFFERS = (3, 5, 10, 20)
BUFFER = 20
ONE_WAY = (1, 20, 35, 50, 70, 100, 200, 250, 400, 500)  # ms of wire; twice as much is figure 9's axis
LONGEST = 400  # ms of wire one way, the longest of the evaluation; 500 is there for "above 400 ms", read one way
FAR = tuple(d for d in ONE_WAY if 2 * d > 400)  # beyond 400 ms of figure 9's axis
LARGER_BUFFERS = (20, 40, 80)  # of each, packets
LOSSES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
WIRE_SEEDS = 40  # of figure 9, where five do not tell: on long wires AR is ahead of DT by a percent
BASE_SNRS = {"different": (4.0, -4.0), "same": (-4.0, -4.0)}  # dB of users 1 and 2, and of users 3 and 4


@dataclass(frozen=True)
class Channel:
    """The cell of figures 7 to 10 with each user's channel, and an interpretation of figures 14 and 15's traffic."""

    doppler: float = DOPPLER  # Hz
    snr: float = SNR  # mean, dB
    remainder: str = "waste"  # of a slot in which a packet ends
    ahead: int = 1  # packets of a flow beyond its buffer, in the base station
    reading: str = AS_JUDGED
    load: str = MEDIUM  # of files, table I

    def by_buffer(self, sender: str = "sack1") -> Family:
        """Figure 7."""
        return {name: {b: self._long(name, {"flow.sender": sender}, buffer=b) for b in BUFFERS} for name in REGULATORS}

    def shared(self, users: int) -> Family:
        """Figure 8."""
        return {name: {b: self._long(name, {}, users, b) for b in SHARED_BUFFERS} for name in REGULATORS}

    def by_delay(self) -> Family:
        """Figure 9, over the one-way delay of the wired path."""
        return {name: {d: self._far(name, d) for d in ONE_WAY} for name in REGULATORS}

    def by_loss(self, where: str) -> Family:
        """Figure 10: losses of the wired path (`path.loss`) or of the radio (`edge.down.loss`)."""
        return {name: {p: self._long(name, {where: p}) for p in (0.0, *LOSSES)} for name in REGULATORS}

    def by_scheme(self, users: str, schemes: Iterable[str] = JUDGED_SCHEMES, times: int = 1) -> Mapping[str, str]:
        """Figures 14 and 15, which state their mean SNRs: a point per scheme, `times` as many users of each kind."""
        reading = READINGS[self.reading]
        snrs = BASE_SNRS[users][:: -1 if reading.first else 1]
        groups = [(count, snrs[0]) for count in reading.groups[:-1]] + [(reading.groups[-1], snrs[1])]
        tables = [{"count": times * count, "mean_snr": snr, "doppler": self.doppler} for count, snr in groups]
        more = {f"flow.{i}.count": times * count for i, count in enumerate(reading.groups)} if times > 1 else {}
        keys = {"edge.user": tables, **reading.keys, **self._files(), **more}
        of = {name: {**keys, **SCHEMES[name]} for name in schemes}
        for scheme in of.values():
            if scheme.get("edge.down.buffer_per") == "user" and scheme["edge.down.order"] == "fifo":
                scheme |= ONE_QUEUE
        return {name: point(SCENARIOS / "short-flows.toml", scheme) for name, scheme in of.items()}

    def _files(self) -> Mapping[str, Any]:
        """Keys of the load of files, which begin within the first interval."""
        if self.load == MEDIUM:
            return {}
        half = INTERVALS[self.load] / 2
        workload = {
            "kind": "ftp",
            "interval": f"{INTERVALS[self.load]}s",
            "first": f"u({half:g}s, {half / 3**0.5:.3f}s)",
        }
        return {"flow.1.workload": workload, "flow.2.workload": workload}

    def by_users(self, users: str) -> Mapping[int, Mapping[str, str]]:
        """The traffic of figures 14 and 15 with more users, a quarter of whom load pages."""
        return {4 * times: self.by_scheme(users, ("PF/FIFO", "PF-RP/SFP"), times) for times in (1, 2, 4)}

    def by_delay_and_buffer(self) -> Mapping[int, Family]:
        """Figure 9 with its longest wired paths and larger buffers."""
        return {b: {name: {d: self._far(name, d, b) for d in FAR} for name in REGULATORS} for b in LARGER_BUFFERS}

    def saturated(self) -> Mapping[str, str]:
        """Four endless downloads to users of different SNR, one point per scheduler."""
        users = [{"count": 2, "mean_snr": snr, "doppler": self.doppler} for snr in BASE_SNRS["different"]]
        flows = [{"count": 2, "user": user, "sender": "sack1"} for user in (0, 1)]
        keys = {"edge.buffer": f"{BUFFER + self.ahead}p", "edge.user": users, "flow": flows}
        return {
            name: point(SCENARIOS / "long-flows.toml", keys | {"edge.down.scheduler": name})
            for name in ("max-rate", "pf", "round-robin")
        }

    def points(self) -> Iterator[str]:
        """Every point of figures 7 to 10."""
        families = [self.by_buffer(), self.by_buffer("reno"), self.shared(4), self.shared(8)]
        families += [self.by_delay(), self.by_loss(WIRE), self.by_loss(RADIO)]
        for family in families:
            for curve in family.values():
                yield from curve.values()

    def told(self) -> str:
        """Doppler frequency and mean SNR of figures 7 to 10."""
        return radio.channel(self._long("DT", {}))

    def _far(self, regulator: str, delay: float, buffer: int = BUFFER) -> str:
        return self._long(regulator, {"path.delay": f"{delay}ms", "runs": WIRE_SEEDS}, buffer=buffer)

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
LOADS = {MEDIUM: JUDGED, HEAVY: Channel(load=HEAVY)}  # of statements that name no load
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


def null_model(at: str) -> str:
    """A point with the null model: no regulator, and for short flows a scheduler that is round robin."""
    keys: dict[str, Any] = {"edge.regulator": "none"}
    if "web" in (flow.get("workload") for flow in tomllib.loads(at)["flow"]):
        keys |= {"edge.down.scheduler": "round-robin", **FIFO}
    return edited(at, keys)


def points() -> Iterator[str]:
    """Every point; some belong to several curves."""
    for of in rlc.by_buffer("wrs", "wrd", "wrb").values():
        yield from of
    for channel in dict.fromkeys((JUDGED, *FASTER, *OTHER_CELLS.values())):
        yield from channel.points()
    for channel in dict.fromkeys((JUDGED, *FASTER, *READ)):
        for users in BASE_SNRS:
            yield from channel.by_scheme(users).values()
    yield from _once()
    for channel in LOADS.values():
        for users in BASE_SNRS:
            yield from map(null_model, channel.by_scheme(users, SCHEMES).values())
            for schemes in channel.by_users(users).values():
                yield from map(null_model, schemes.values())


def _once() -> Iterator[str]:
    """Points simulated over the judged cell only."""
    for family in JUDGED.by_delay_and_buffer().values():
        for curve in family.values():
            yield from curve.values()
    for channel in LOADS.values():
        for users in BASE_SNRS:
            yield from channel.by_scheme(users, SCHEMES).values()
            for of in channel.by_users(users).values():
                yield from of.values()
    yield from JUDGED.saturated().values()


def places() -> str:
    """Unstated parameters of the cell other than its channels."""
    return radio.places(JUDGED.by_buffer()["DT"][BUFFER], JUDGED.ahead)


CONDITIONS = (
    f"Figures 7 to 10, 14 and 15 are simulated over a cell that the source does not state in full: {JUDGED.told()} in "
    f"figures 7 to 10, Doppler {JUDGED.doppler:g} Hz and the stated SNRs in figures 14 and 15; {places()}."
)
