"""Throughput by loss cycles: one, two or three losses at the end of a saw-tooth.

## Source
CR02 section 4, equations 5-19 ("model 3").

## What it does
Each cycle ends with one loss (probability `p1`: one halving), two (`p2`: two halvings and one round trip of
repair) or three (`p3`: repair, time-out and slow start). The throughput is the packets of the mean cycle
over its duration.

## Differences from the source
* The loss window `wf` is the root mean square sqrt(sum W_i^2 / N); the print has N outside the root.
* Equation 16 prints n_ss = W03/T, which is a rate. A slow start from one packet to W03 sends about W03
  packets: `SlowStart.FLUID` (default) counts that, `SlowStart.LITERAL` what is printed.
* A slow start to a window of one packet or less takes no time.

## Validation
All nine rows of CR02 Table 2 within 0.8 % (fluid) and 1.2 % (literal).
"""

from dataclasses import dataclass
from enum import Enum
from math import floor, log2, nan
from typing import TYPE_CHECKING, Annotated

from ackclock.models import allowed, answer
from ackclock.models.answer import Answer
from ackclock.models.saw_tooth import Epoch, growth_above_pipe, growth_below_pipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("25 0.44 10 21.5 1.5 0.9 0.07",)


class SlowStart(Enum):
    """How many packets a slow start to the window W03 counts for (equation 16)."""

    FLUID = "fluid"
    LITERAL = "literal"


@dataclass(frozen=True)
class LossCycle:
    """What follows a loss: the repair (`idle` seconds without a new packet) and the growth back to the pipe."""

    idle: float
    growth: Epoch

    @property
    def rate(self) -> float:
        """Packets per second of this part of the cycle; NaN where it takes no time."""
        duration = self.idle + self.growth.duration
        return self.growth.packets / duration if duration > 0 else nan


@dataclass(frozen=True)
class Path:
    """The link and what was observed on it.

    Attributes:
        mu: Mean service rate, packets per second.
        T: Minimum round trip time, seconds.
        B: Buffer, packets.
        wf: Root mean square of the windows at which losses began, packets.
        t0: Mean time-out, seconds.

    Raises:
        ValueError: if `B` is below 0 or another is not above 0.
    """

    mu: float
    T: float
    B: float
    wf: float
    t0: float

    def __post_init__(self) -> None:
        allowed.above_zero({"mu": self.mu, "T (minimum RTT)": self.T, "wf": self.wf, "t0": self.t0})
        allowed.zero_or_more({"B (buffer)": self.B})


def loss_cycles(path: Path, slow_start: SlowStart = SlowStart.FLUID) -> tuple[LossCycle, LossCycle, LossCycle]:
    """The parts below the pipe's size of a cycle with one, two and three losses (equations 5-7, 10-18)."""
    w1 = floor(path.wf / 2)  # Eq. 5
    w2 = floor(w1 / 2)  # Eq. 10
    w3 = floor(w2 / 2)  # Eq. 14
    repair = path.T + path.B / path.mu  # Eq. 11
    single = LossCycle(0.0, growth_below_pipe(w1, path.mu, path.T))
    double = LossCycle(repair, growth_below_pipe(w2, path.mu, path.T))
    start = _slow_start(w3, path.T, slow_start)
    growth = growth_below_pipe(w3, path.mu, path.T)
    triple = LossCycle(
        repair + path.t0,
        Epoch(start.duration + growth.duration, start.packets + growth.packets),
    )
    return single, double, triple


def throughput(path: Path, p1: float, p2: float, slow_start: SlowStart = SlowStart.FLUID) -> float:
    """Throughput in packets per second (equation 19); cycles of three losses have probability 1 - p1 - p2.

    Raises:
        ValueError: if `p1`, `p2` or their sum is not from 0 to 1.
    """
    allowed.share({"p1": p1, "p2": p2, "p1 + p2": p1 + p2})
    above = growth_above_pipe(path.wf, path.mu, path.T)  # Eqs. 8, 9: the same in every cycle
    packets, duration = above.packets, above.duration
    for p, cycle in zip((p1, p2, 1 - p1 - p2), loss_cycles(path, slow_start), strict=True):
        packets += p * cycle.growth.packets
        duration += p * (cycle.idle + cycle.growth.duration)
    return packets / duration


def model(
    mu: Annotated[float, "Mean service rate, packets per second."],
    rtt: Annotated[float, "Minimum round trip time, seconds."],
    buffer: Annotated[float, "Buffer, packets."],
    wf: Annotated[float, "Root mean square of the windows at which losses began, packets."],
    t0: Annotated[float, "Mean time-out, seconds."],
    p1: Annotated[float, "Share of cycles with one loss."],
    p2: Annotated[float, "Share of cycles with two losses; the others have three."],
) -> Answer:
    """The answer of `ackclock model cycles`."""
    path = Path(mu=mu, T=rtt, B=buffer, wf=wf, t0=t0)

    def draw() -> "Figure":
        shares = [i / 100 for i in range(101)]
        # The other cycles keep their ratio of two losses to three.
        two = p2 / (1 - p1) if p1 < 1 else 1.0
        return answer.curve(
            shares,
            lambda one: throughput(path, one, (1 - one) * two),
            p1,
            "share of cycles with one loss",
            "throughput (packets/s)",
        )

    return answer.throughput(throughput(path, p1, p2), draw)


def _slow_start(w3: int, T: float, count: SlowStart) -> Epoch:
    duration = T * log2(w3) if w3 > 1 else 0.0  # Eq. 15
    return Epoch(duration, w3 if count is SlowStart.FLUID else w3 / T)
