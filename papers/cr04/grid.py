"""The points that are simulated: figures 7 to 10, 14 and 15, each at every Doppler frequency.

A curve is a mapping from the number on its x axis to the scenario text of the point.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ackclock.paper import point

SCENARIOS = Path(__file__).parent / "scenarios"

Curve = Mapping[float, str]
Family = Mapping[str, Curve]

DOPPLERS = (5, 10, 30, 60, 120)  # Hz; 5 Hz is a walk of 3 km/h at 1.9 GHz
DOPPLER = 5  # at which rows are judged

REGULATORS = {"DT": "none", "AR": "ack-regulator", "WRS": "wrs", "WRD": "wrd", "WRB": "wrb"}
SCHEMES = {
    "PF/FIFO": {"edge.down.scheduler": "pf", "edge.down.order": "fifo"},
    "PF/SFP": {"edge.down.scheduler": "pf", "edge.down.order": "sfp"},
    "PF-SP/SFP": {"edge.down.scheduler": "pf-sp", "edge.down.order": "sfp"},
    "PF-RP/SFP": {"edge.down.scheduler": "pf-rp", "edge.down.order": "sfp"},
}

SNR = 2.3  # dB of one user: table 4 of CR02
SHARED_SNR = -1.3  # dB of several: the mean rates that CR02 section 6.5 plans with, 4 x 200 and 8 x 120 kbit/s

BUFFERS = (5, 10, 15, 20, 30, 40)  # packets
SHARED_BUFFERS = (3, 5, 10, 20)
BUFFER = 20
ONE_WAY = (1, 20, 35, 50, 70, 100, 200, 250, 400, 500)  # ms of wire; twice as much is figure 9's axis
LOSSES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
SNRS = {"different": (4.0, 4.0, -4.0, -4.0), "same": (-4.0, -4.0, -4.0, -4.0)}  # dB of users 1 to 4


def _long(regulator: str, doppler: float, keys: Mapping[str, Any], users: int = 1) -> str:
    everywhere = {
        "edge.regulator": REGULATORS[regulator],
        "edge.user.count": users,
        "edge.user.mean_snr": SNR if users == 1 else SHARED_SNR,
        "edge.user.doppler": doppler,
        "flow.count": users,
    }
    return point(SCENARIOS / "long-flows.toml", {**everywhere, **keys})


def by_buffer(doppler: float, sender: str = "sack1") -> Family:
    """Figure 7."""
    return {
        name: {b: _long(name, doppler, {"flow.sender": sender, "edge.buffer": f"{b}p"}) for b in BUFFERS}
        for name in REGULATORS
    }


def shared(doppler: float, users: int) -> Family:
    """Figure 8."""
    return {
        name: {b: _long(name, doppler, {"edge.buffer": f"{b}p"}, users) for b in SHARED_BUFFERS} for name in REGULATORS
    }


def by_delay(doppler: float) -> Family:
    """Figure 9, over the delay of the wire one way."""
    return {name: {d: _long(name, doppler, {"path.delay": f"{d}ms"}) for d in ONE_WAY} for name in REGULATORS}


def by_loss(doppler: float, where: str) -> Family:
    """Figure 10: losses of the wire (`path.loss`) or of the radio (`edge.down.loss`)."""
    return {name: {p: _long(name, doppler, {where: p}) for p in (0.0, *LOSSES)} for name in REGULATORS}


def by_scheme(doppler: float, users: str) -> Mapping[str, str]:
    """Figures 14 and 15: a point for each scheme."""
    tables = [{"mean_snr": snr, "doppler": doppler} for snr in SNRS[users]]
    return {name: point(SCENARIOS / "short-flows.toml", {"edge.user": tables} | keys) for name, keys in SCHEMES.items()}


WIRE, RADIO = "path.loss", "edge.down.loss"


def points() -> Iterator[str]:
    """Every point; some stand in several curves."""
    for doppler in DOPPLERS:
        yield from at(doppler)


def at(doppler: float) -> Iterator[str]:
    """Every point of one Doppler frequency."""
    families = [by_buffer(doppler), by_buffer(doppler, "reno"), shared(doppler, 4), shared(doppler, 8)]
    families += [by_delay(doppler), by_loss(doppler, WIRE), by_loss(doppler, RADIO)]
    for family in families:
        for curve in family.values():
            yield from curve.values()
    for users in SNRS:
        yield from by_scheme(doppler, users).values()
