"""Throughput from loss probability and round-trip time: the PFTK formulas.

## Source
Padhye, Firoiu, Towsley and Kurose, as used by CR02 section 4 ("model 1").

## What it does
Losses are equally spaced with probability `p` per packet; each ends a cycle by a fast retransmit or, with
probability Q, by a timeout. `full` is the complete formula, `simplified` its well-known approximation.

## Differences from the source
None; CR02 uses b = 1 (every packet acknowledged) and p = (TD + TO)/packets.

## Validation
All nine rows of CR02 Table 2, model 1, within 0.15 kbit/s.
"""

from dataclasses import dataclass
from math import expm1, hypot, inf, log1p, sqrt
from typing import TYPE_CHECKING, Annotated

from ackclock.models import allowed, answer
from ackclock.models.answer import Answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("0.01 0.2 1", "0.01 0.2 1 --w-max 20 --simplified")


@dataclass(frozen=True)
class Losses:
    """Measurements of a sender.

    Attributes:
        p: Probability that a packet begins a loss event, above 0 and below 1.
        rtt: Mean round trip time, seconds.
        t0: Mean first timeout, seconds.
        b: Packets that one ACK acknowledges.

    Raises:
        ValueError: if `p` is not above 0 and below 1, `rtt` or `t0` not above 0, or `b` below 1.
    """

    p: float
    rtt: float
    t0: float
    b: int = 1

    def __post_init__(self) -> None:
        allowed.proper_share({"p": self.p})
        allowed.above_zero({"rtt": self.rtt, "t0": self.t0})
        allowed.one_or_more({"b": self.b})


def full(losses: Losses, w_max: float = inf) -> float:
    """Throughput in packets per second; `w_max` is the maximum window in packets.

    Raises:
        ValueError: if `w_max` is below 1.
    """
    allowed.one_or_more_or_none({"w_max": w_max})
    p, b = losses.p, losses.b
    w = min(_mean_window(p, b), w_max)
    timeout = _timeout_share(w, p)
    # Packets and rounds of a cycle are multiplied by p, so that they stay finite for the smallest p.
    packets = 1 - p + p * w + p * timeout / (1 - p)
    # Without a window limit a cycle lasts b/2 * W round trips; with one it also has a flat part.
    rounds = p * (b / 2 * w + 1) if w < w_max else p * (b / 8 * w + 2) + (1 - p) / w
    return packets / (losses.rtt * rounds + p * timeout * losses.t0 * _backoff(p) / (1 - p))


def simplified(losses: Losses, w_max: float = inf) -> float:
    """Throughput in packets per second by the approximation for small `p`; errors as for `full`."""
    allowed.one_or_more_or_none({"w_max": w_max})
    p, b = losses.p, losses.b
    recovery = losses.rtt * sqrt(2 * b * p / 3)
    timeout = losses.t0 * min(1.0, 3 * sqrt(3 * b * p / 8)) * p * (1 + 32 * p**2)
    return min(w_max / losses.rtt, 1 / (recovery + timeout))


_FORMULA = {False: full, True: simplified}


def model(
    p: Annotated[float, "Probability that a packet begins a loss event."],
    rtt: Annotated[float, "Mean round trip time, seconds."],
    t0: Annotated[float, "Mean first time-out, seconds."],
    b: Annotated[int, "Packets that one ACK acknowledges."] = 1,
    w_max: Annotated[float, "Largest window, packets."] = inf,
    simplified: Annotated[bool, "The approximation for small P."] = False,
) -> Answer:
    """The answer of `ackclock model pftk`."""

    def of(share: float) -> float:
        return _FORMULA[simplified](Losses(p=share, rtt=rtt, t0=t0, b=b), w_max)

    def draw() -> "Figure":
        shares = [share for share in answer.around(p, 100) if share < 1]
        return answer.curve(shares, of, p, "probability of a loss event", "throughput (packets/s)", log=True)

    return answer.throughput(of(p), draw)


def _mean_window(p: float, b: int) -> float:
    """Mean window at the end of a cycle without window limit, packets."""
    c = (2 + b) / (3 * b)
    return c + hypot(sqrt(8 * (1 - p) / (3 * b)) / sqrt(p), c)


def _timeout_share(w: float, p: float) -> float:
    """Q(w): probability that a loss in a window of `w` packets ends in a timeout."""
    if w <= 3:
        return 1.0  # three duplicates need three packets behind the lost one
    return min(1.0, _lost(3, p) * (1 + (1 - p) ** 3 * _lost(w - 3, p)) / _lost(w, p))


def _lost(packets: float, p: float) -> float:
    """1 - (1 - p)^packets: probability that one of `packets` is lost, exact for the smallest `p`."""
    return -expm1(packets * log1p(-p))


def _backoff(p: float) -> float:
    """f(p): mean length of a series of timeouts in units of the first, doubling up to 64."""
    return 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
