"""The simulated points: table 1, and the curves of figures 11-15 and section 6.6.

A curve is a mapping from the number on its x axis to the scenario text of the point.
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ackclock.paper import edited, point, radio, rlc

SCENARIOS = Path(__file__).parent / "scenarios"

Curve = Mapping[int, str]
Family = Mapping[str, Curve]

VARIANTS: dict[str, dict[str, Any]] = {
    "Reno": {"flow.sender": "reno", "edge.regulator": "none"},
    "Reno+AR": {"flow.sender": "reno", "edge.regulator": "ack-regulator"},
    "Sack": {"flow.sender": "sack1", "edge.regulator": "none"},
    "Sack+AR": {"flow.sender": "sack1", "edge.regulator": "ack-regulator"},
}

MEAN_RATE = 200  # kbit/s
SNR = 2.3  # dB of the one user of section 6.4: its table 4
SHARED_SNR = -0.7  # dB of several users: the mean rates of section 6.5, 4 x 200 and 8 x 120 kbit/s
AHEAD = 1  # packets of a flow of the cell beyond its buffer, in the base station
DOPPLERS = (5, 10, 11, 30, 60, 120)  # Hz
DOPPLER = 11  # at which rows are judged
DELAY = 400  # ms, forward and reverse together
BUFFER = 10  # packets


def variable_delay(variant: str, x: int, buffer: int = BUFFER) -> str:
    """Section 6.1: forward delay e(x ms), reverse delay 400 - x."""
    keys = {"edge.down.delay": f"e({x}ms)", "edge.up.delay": f"{DELAY - x}ms", "edge.buffer": f"{buffer}p"}
    return point(SCENARIOS / "variable-delay.toml", VARIANTS[variant] | keys)


def other_delay(variant: str, law: str, back: int) -> str:
    """Section 6.1: another distribution of the forward delay; with `back` ms in reverse the means sum to 400."""
    keys = {"edge.down.delay": law, "edge.up.delay": f"{back}ms", "edge.buffer": f"{BUFFER}p"}
    return point(SCENARIOS / "variable-delay.toml", VARIANTS[variant] | keys)


def variable_rate(variant: str, sd: int, buffer: int = BUFFER, law: str = "u") -> str:
    """Section 6.2: rate u(200, sd) kbit/s, or another distribution of this mean and standard deviation."""
    keys = {"edge.down.rate": f"{law}({MEAN_RATE}kbit/s, {sd}kbit/s)", "edge.buffer": f"{buffer}p"}
    return point(SCENARIOS / "variable-rate.toml", VARIANTS[variant] | keys)


def variable_both(variant: str, sd: int, x: int, buffer: int = BUFFER) -> str:
    """Section 6.3: rate u(200, sd) kbit/s, forward delay e(x ms), reverse delay 400 - x."""
    keys = {
        "edge.down.rate": f"u({MEAN_RATE}kbit/s, {sd}kbit/s)",
        "edge.down.delay": f"e({x}ms)",
        "edge.up.delay": f"{DELAY - x}ms",
        "edge.buffer": f"{buffer}p",
    }
    return point(SCENARIOS / "variable-both.toml", VARIANTS[variant] | keys)


def cell(variant: str, users: int, buffer: int, doppler: float, snr: float | None = None) -> str:
    """Sections 6.4 and 6.5: users of a cell, each with a download and a separate buffer.

    One user has the SNR of section 6.4 and several that of section 6.5, unless `snr` gives another.
    """
    keys = {
        "edge.user.count": users,
        "edge.user.mean_snr": snr if snr is not None else SNR if users == 1 else SHARED_SNR,
        "edge.user.doppler": doppler,
        "flow.count": users,
        "edge.buffer": f"{buffer + AHEAD}p",
    }
    return point(SCENARIOS / "hdr.toml", VARIANTS[variant] | keys)


def channel(users: int) -> str:
    """Channels of this number of users in the judged scenario."""
    return radio.channel(cell("Reno", users, BUFFER, DOPPLER))


def places() -> str:
    """Unstated parameters of the cell other than the channels."""
    return radio.places(cell("Reno", 1, BUFFER, DOPPLER), AHEAD)


CONDITIONS = (
    f"Figures 14 and 15 are simulated over a cell that the source does not state in full: {channel(1)} with one user, "
    f"{channel(4)} with several; {places()}."
)


def _alpha(alpha: int, buffer: int) -> str:
    return point(SCENARIOS / "alpha.toml", {"edge.regulator.alpha": alpha, "edge.buffer": f"{buffer}p"})


def _wired(variant: str, delay: int) -> str:
    return point(SCENARIOS / "wired-latency.toml", VARIANTS[variant] | {"path.delay": f"{delay}ms"})


def _swept(scenario: str, key: str) -> list[Any]:
    """The values that a scenario file's own `[sweep]` gives a key."""
    values: list[Any] = tomllib.loads((SCENARIOS / scenario).read_text(encoding="utf-8"))["sweep"][key]
    return values


def _buffers(scenario: str) -> list[int]:
    return [int(buffer.removesuffix("p")) for buffer in _swept(scenario, "edge.buffer")]


# Distributions of the nine items: (standard deviation of the rate, mean of the exponential delay); 0 = constant.
ITEMS: dict[int, tuple[int, int]] = {
    1: (0, 0),
    2: (0, 20),
    3: (0, 50),
    4: (0, 100),
    5: (20, 0),
    6: (50, 0),
    7: (75, 0),
    8: (50, 50),
    9: (75, 100),
}


def _item(sd: int, x: int) -> str:
    if sd and x:
        return variable_both("Reno", sd, x)
    if sd:
        return variable_rate("Reno", sd)
    if x:
        return variable_delay("Reno", x)
    return point(SCENARIOS / "constant.toml", {})


TABLE1: Curve = {item: _item(*law) for item, law in ITEMS.items()}
TABLE3: Mapping[str, str] = {variant: variable_delay(variant, 100) for variant in VARIANTS}

FIG11A = {v: {x: variable_delay(v, x) for x in (20, 40, 50, 60, 80, 100)} for v in VARIANTS}
# Distributions with mean and deviation of e(100 ms), forward, and the rest of the 400 ms in the reverse direction;
# uniform and normal distributions with this deviation need a larger mean to stay above zero.
LAWS = {"u": ("u(200ms, 100ms)", 200), "n": ("n(300ms, 100ms)", 100), "ln": ("ln(100ms, 100ms)", 300)}
# p counts whole milliseconds: with a mean of 100 its deviation is 10, as that of 90 + e(10) ms.
POISSON = {"p": ("p(100ms)", 300), "e(10)": ("90ms + e(10ms)", 300)}
FIG11_LAWS = {name: {v: other_delay(v, *law) for v in VARIANTS} for name, law in (LAWS | POISSON).items()}
FIG11B = {v: {b: variable_delay(v, 50, b) for b in _buffers("variable-delay.toml")} for v in VARIANTS}
FIG12A = {v: {sd: variable_rate(v, sd) for sd in (20, 35, 50, 65, 75)} for v in VARIANTS}
FIG12_LOGNORMAL = {v: {sd: variable_rate(v, sd, law="ln") for sd in (150, 200)} for v in VARIANTS}
FIG12B = {v: {b: variable_rate(v, 50, b) for b in _buffers("variable-rate.toml")} for v in VARIANTS}
FIG13 = {v: {b: variable_both(v, 50, 50, b) for b in _buffers("variable-both.toml")} for v in VARIANTS}
BDP = {1: 15, 4: 5, 8: 3}  # packets of each of as many users, as sections 6.4 and 6.5 plan
BUFFERS_OF_FIG15 = {4: (3, 5, 7, 10, 15, 20, 30), 8: (2, 3, 4, 6, 9, 12, 18)}  # of as many users
ALPHA = {
    alpha: {b: _alpha(alpha, b) for b in _buffers("alpha.toml")}
    for alpha in _swept("alpha.toml", "edge.regulator.alpha")
}
WIRED = {
    v: {
        int(d.removesuffix("ms")): _wired(v, int(d.removesuffix("ms")))
        for d in _swept("wired-latency.toml", "path.delay")
    }
    for v in ("Reno", "Reno+AR")
}


def fig14(doppler: float = DOPPLER) -> Family:
    """One user of a cell."""
    buffers = [places - AHEAD for places in _buffers("hdr.toml")]
    return {v: {b: cell(v, 1, b, doppler) for b in buffers} for v in VARIANTS}


def fig15(users: int, doppler: float = DOPPLER) -> Family:
    """Four or eight users of a cell."""
    return {v: {b: cell(v, users, b, doppler) for b in BUFFERS_OF_FIG15[users]} for v in VARIANTS}


def at_one_snr(users: int) -> Mapping[str, str]:
    """Section 6.5: the largest buffer drawn, with the SNR of several users for one too."""
    most = max(BUFFERS_OF_FIG15[users]) if users > 1 else 40
    return {v: cell(v, users, most, DOPPLER, SHARED_SNR) for v in VARIANTS}


MEASURED = point(SCENARIOS / "cdma-1x.toml", {})  # section 3: a file over the measured link


def upload(regulator: str) -> str:
    """Section 6.7: an upload over an uplink of rate u(200, 50) kbit/s, regulated at the mobile."""
    return point(SCENARIOS / "upload.toml", {"edge.up_regulator": regulator})


def null_model(at: str) -> str:
    """A point with the null model: no regulator, and a sender whose window never changes.

    The window is the buffer and the packet in transmission, so that nothing overflows and no loss asks for a reaction.
    """
    table = tomllib.loads(at)
    way = "up_" if "up_regulator" in table["edge"] else ""
    window = f"{int(table['edge'][f'{way}buffer'].removesuffix('p')) + 1}p"
    sender = {"flow.sender": "reno", "flow.max_window": window, "flow.initial_window": window}
    return edited(at, {f"edge.{way}regulator": "none", **sender})


def judged() -> Iterator[str]:
    """The points of the judged rows but the measured link; they are also run with the null model."""
    yield from at_one_snr(1).values()
    yield from map(upload, ("none", "ack-regulator"))
    for above_rlc in rlc.by_buffer("none", "ack-regulator").values():
        yield from above_rlc
    yield from TABLE1.values()
    yield from TABLE3.values()
    for of in FIG11_LAWS.values():
        yield from of.values()
    families = (FIG11A, FIG11B, FIG12A, FIG12_LOGNORMAL, FIG12B, FIG13, fig14(), fig15(4), fig15(8), ALPHA, WIRED)
    for family in families:
        for curve in family.values():
            yield from curve.values()


def points() -> Iterator[str]:
    """Every point; some belong to several curves."""
    yield MEASURED
    yield from judged()
    for family in (family(at) for at in DOPPLERS for family in (fig14, partial(fig15, 4), partial(fig15, 8))):
        for curve in family.values():
            yield from curve.values()
    yield from map(null_model, judged())
