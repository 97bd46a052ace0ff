"""The simulated points: table 2, figures 1, 7, 8, 10 and 11, and interpretations of unstated parameters."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ackclock.paper import edited, point
from ackclock.scenario import toml

DOWNLOAD = Path(__file__).parent / "scenarios" / "download.toml"

AS_JUDGED = "as judged"
FLOWS = (1, 4)
BUFFER = 50  # packets, and the largest threshold
SPREAD = {"flow.spread": "1s"}  # within which several flows begin; the source does not say


@dataclass(frozen=True)
class Control:
    """A setting of the ACK rate controller.

    Attributes:
        alpha: How the delay grows with the occupancy.
        threshold: Occupancy below which ACKs are not delayed, packets (`minth`).
        longest: Delay between two ACKs if the buffer is full, ms (`maxd`).
        shortest: Delay at the threshold, ms (`mind`).
    """

    alpha: float
    threshold: int
    longest: int
    shortest: int = 0

    @property
    def name(self) -> str:
        """Name in legends."""
        return f"alpha {self.alpha:g}, minth {self.threshold}, maxd {self.longest} ms"

    def keys(self) -> dict[str, Any]:
        """Scenario keys."""
        return {
            "edge.regulator": {
                "kind": "ack-rate-control",
                "alpha": self.alpha,
                "min_threshold": self.threshold,
                "max_threshold": BUFFER,
                "min_delay": f"{self.shortest}ms",
                "max_delay": f"{self.longest}ms",
                "step": "single",
                "tti": "10ms",
            }
        }

    def delay(self, occupancy: int) -> float:
        """The delay between two ACKs at an occupancy, ms: formula 1."""
        if occupancy < self.threshold:
            return 0.0
        share = (occupancy - self.threshold) / (BUFFER - self.threshold)
        return float(self.shortest + (self.longest - self.shortest) * share**self.alpha)


CONFIGURATIONS = (Control(0, 20, 500), Control(0.2, 10, 500), Control(0.5, 10, 700), Control(1, 0, 1000))  # of table 2

ALPHAS = (0, 0.2, 0.5, 0.8, 1, 2, 5, 10, 20, 40)
THRESHOLDS = (0, 10, 20, 30, 40)
LONGEST = (50, 100, 200, 500, 700, 1000, 1500, 2000)  # ms
SHOWN_ALPHAS = (0.5, 1, 5)  # of figures 7 and 8
ALPHA_LONGEST = (500, 700)  # ms, of figure 10, which does not print it
ALPHA_RUNS = 400  # of figure 10, where a hundred do not tell
BUFFERS = (10, 20, 30, 40, 50, 60, 80, 100)  # of figure 1, which does not print them
BUFFER_FLOWS = (1, 2, 3, 4)
AT_FIRST = "10s"


@dataclass(frozen=True)
class Reading:
    """An alternative interpretation of one unstated parameter.

    Attributes:
        keys: Replacements for keys of the preset.
        control: Replacements for keys of the controller.
    """

    keys: Mapping[str, Any] = field(default_factory=dict)
    control: Mapping[str, Any] = field(default_factory=dict)


def both(key: str, value: Any) -> dict[str, Any]:
    """A key of both directions' air interfaces."""
    return {f"edge.bearer.air.{direction}.{key}": value for direction in ("down", "up")}


READINGS: Mapping[str, Reading] = {
    AS_JUDGED: Reading(),
    "50 ms beside the TTIs": Reading(both("delay", "25ms")),
    "every PDU polls beyond half of the window": Reading({"edge.bearer.rlc.poll.window_polls": "every-pdu"}),
    "occupancy counts what is not acknowledged": Reading(control={"edge.regulator.counts": "unacknowledged"}),
    "all ACKs leave that need not wait": Reading(control={"edge.regulator.step": "repeated"}),
    "ACKs left behind wait for others": Reading(control={"edge.regulator.tti": "0s"}),
    "occupancy is looked at again while an ACK waits": Reading(control={"edge.regulator.retime": True}),
    "64 KiB of window": Reading({"flow.max_window": "65536B"}),
    "each PDU is lost by itself": Reading(both("errors_by", "pdu")),
    "flows begin together": Reading({"flow.spread": "0s"}),
    "flows begin 250 ms apart": Reading({"flow.spread": "0s", "flow.stagger": "250ms"}),
    "every packet is acknowledged": Reading({"flow.acks": "every"}),
    "every fourth packet is acknowledged": Reading({"flow.acks": {"kind": "delayed", "count": 4, "timeout": "200ms"}}),
}
# An alternative that the source mentions without numbers: RED instead of drop-tail.
RED = {"edge.queue": {"kind": "red"}}


def download(flows: int, control: Control | None = None, reading: str = AS_JUDGED, **keys: Any) -> str:
    """A point with `flows` downloads, with or without the controller. `keys` use `__` for dots."""
    read = READINGS[reading]
    controlled = {**control.keys(), **read.control} if control else {}
    plain = {key.replace("__", "."): value for key, value in keys.items()}
    begin = SPREAD if flows > 1 else {}
    return point(DOWNLOAD, {"flow.count": flows, **begin, **read.keys, **controlled, **plain})


def table_2(reading: str = AS_JUDGED) -> Iterator[tuple[int, Control | None, str]]:
    """Flows, controller and point of each row of table 2."""
    for flows in FLOWS:
        for control in (None, *CONFIGURATIONS):
            yield flows, control, download(flows, control, reading)


def by_buffer(flows: int) -> Mapping[float, str]:
    """A curve of figure 1."""
    return {buffer: download(flows, edge__buffer=f"{buffer}p") for buffer in BUFFERS}


def by_longest(flows: int, alpha: float, threshold: int) -> Mapping[float, str]:
    """A curve of figures 7 and 8."""
    return {longest: download(flows, Control(alpha, threshold, longest)) for longest in LONGEST}


def of_figure(flows: int) -> Iterator[str]:
    """Every setting of figure 7 or 8."""
    for alpha in SHOWN_ALPHAS:
        for threshold in THRESHOLDS:
            yield from by_longest(flows, alpha, threshold).values()


def by_alpha(longest: int) -> Mapping[float, str]:
    """A curve of figure 10."""
    return {alpha: download(1, Control(alpha, 10, longest), runs=ALPHA_RUNS) for alpha in ALPHAS}


def by_aggressiveness() -> Iterator[tuple[str, Mapping[float, str]]]:
    """Settings from the least to the most aggressive, one parameter at a time, with the times between ACKs."""

    def measured(control: Control) -> str:
        return download(1, control, measure=["transit", "ack-gaps"])

    yield "alpha", {-alpha: measured(Control(alpha, 10, 700)) for alpha in SHOWN_ALPHAS[::-1]}
    yield "minth", {-least: measured(Control(0.5, least, 1000)) for least in (40, 20, 0)}
    yield "maxd", {ms: measured(Control(0.5, 0, ms)) for ms in (200, 700, 2000)}


def at_first() -> Mapping[Control | None, str]:
    """The first seconds of one download."""
    return {control: download(1, control, duration=AT_FIRST) for control in (None, *CONFIGURATIONS)}


def with_least_delay() -> Iterator[tuple[str, str]]:
    """The configurations of table 2, and the same with the largest minimum delay that the source mentions."""
    for control in CONFIGURATIONS:
        for flows in FLOWS:
            longer = Control(control.alpha, control.threshold, control.longest, 100)
            yield download(flows, control), download(flows, longer)


def with_red(flows: int) -> str:
    """Random early detection and no controller."""
    return download(flows, None, AS_JUDGED, **{key.replace(".", "__"): value for key, value in RED.items()})


def null_model(at: str) -> str:
    """A point without the controller."""
    table = tomllib.loads(at)
    edge = {key: value for key, value in table.pop("edge", {}).items() if key != "regulator"}
    return edited(toml({**table, **({"edge": edge} if edge else {})}), {})


def points() -> Iterator[str]:
    """Every point; some belong to several curves."""
    for reading in READINGS:
        yield from (at for _, _, at in table_2(reading))
    for flows in BUFFER_FLOWS:
        yield from by_buffer(flows).values()
    for flows in FLOWS:
        yield with_red(flows)
        yield from of_figure(flows)
    for longest in ALPHA_LONGEST:
        yield from by_alpha(longest).values()
    yield download(1, runs=ALPHA_RUNS)
    yield from at_first().values()
    for _, curve in by_aggressiveness():
        yield from curve.values()
    for plain, longer in with_least_delay():
        yield from (plain, longer)


CONDITIONS = (
    "Not stated is what was chosen here: the round trip of 50 ms contains the TTIs, and the first PDU beyond half "
    "of the "
    "window polls; the controller's step is the printed one, done in each TTI too while ACKs wait. Its occupancy "
    "counts "
    "packets not sent yet, which is our reading: section 2 of the source counts them until they are acknowledged."
)
