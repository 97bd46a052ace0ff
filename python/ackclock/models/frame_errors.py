"""Frame error rate of a power-controlled channel as a function of its SIR reference.

## Source
M05 section 4.2, figure 4.3.

## What it does
With binary phase shift keying a frame of L bits is damaged with probability
f(r) = 1 - (1 - Q(sqrt(2 a exp(beta r + beta^2 sigma^2 / 2))))^L, where r is the reference of the signal to interference
ratio in dB, a the coding gain, sigma the standard deviation of the ratio in dB, beta = ln(10)/10, and
Q(x) = 1/sqrt(2 pi) * integral from x to infinity of exp(-t^2/2). The operating point is where f(r) is the frame error
rate that the power control aims at.

## Differences from the source
The source prints exp(-x^2) in Q. With that f(0) is 0.045 and the operating point -0.44 dB, which its figures exclude;
read as the tail of the normal law it is 2.759 dB, where figure 4.3 has its star. L is called N in its list of values.

## Validation
f against the formula with the normal tail of `scipy.stats`, and the operating point 2.759 dB (tests).
"""

from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtr

from ackclock.models import allowed
from ackclock.models.answer import Answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("", "--target 0.01 --bits 7680")
BETA = log(10) / 10
LOWEST, HIGHEST = -50.0, 50.0  # dB, between which an operating point is looked for

Gain = Annotated[float, "Coding gain a, a ratio."]
SirSd = Annotated[float, "Standard deviation of the received SIR, dB."]
Bits = Annotated[int, "Bits in a frame."]


@dataclass(frozen=True)
class Coding:
    """Parameters besides the SIR that determine whether a frame is damaged.

    Attributes:
        gain: Coding gain a, a ratio.
        sir_sd: Standard deviation sigma of the received SIR, dB.
        bits: Bits L in a frame.

    Raises:
        ValueError: if `gain` is not above 0, `sir_sd` is below 0 or above 30, or `bits` below 1.
    """

    gain: float = 4.0
    sir_sd: float = 1.0
    bits: int = 2560

    def __post_init__(self) -> None:
        allowed.above_zero({"gain": self.gain})
        if not 0 <= self.sir_sd <= 30:
            raise ValueError(f"sir_sd: {self.sir_sd} is not from 0 to 30 dB")
        allowed.one_or_more({"bits": self.bits})

    def damaged(self, sir: ArrayLike) -> NDArray[np.float64]:
        """f(r): probability that a frame is damaged at the SIR reference `sir` dB."""
        return np.asarray(-np.expm1(self.log_good(sir)))

    def log_good(self, sir: ArrayLike) -> NDArray[np.float64]:
        """Logarithm of 1 - f(r), precise even if f(r) is nearly 1."""
        ratio = self.gain * exp((BETA * self.sir_sd) ** 2 / 2) * np.exp(BETA * np.asarray(sir, dtype=float))
        return np.asarray(self.bits * np.log1p(-ndtr(-np.sqrt(2 * ratio))))

    def operating_point(self, target: float) -> float:
        """The SIR reference in dB at which a frame is damaged with probability `target`.

        Raises:
            ValueError: if `target` is not between 0 and 1, or no reference from -50 to 50 dB has it.
        """
        allowed.proper_share({"target": target})
        if not self.damaged(HIGHEST) < target < self.damaged(LOWEST):
            raise ValueError(f"target: no SIR from {LOWEST:g} to {HIGHEST:g} dB gives a frame error rate of {target}")
        return float(brentq(lambda sir: float(self.damaged(sir)) - target, LOWEST, HIGHEST, xtol=1e-12))


def model(
    target: Annotated[float, "Frame error rate that the power control aims at."] = 0.1,
    gain: Gain = 4.0,
    sir_sd: SirSd = 1.0,
    bits: Bits = 2560,
) -> Answer:
    """The answer of `ackclock model frame-errors`."""
    coding = Coding(gain, sir_sd, bits)
    at = coding.operating_point(target)
    curve = np.arange(np.floor(at) - 3, np.ceil(at) + 4)
    rows = [{"sir_db": float(sir), "frame_error_rate": float(coding.damaged(sir))} for sir in curve]
    return Answer({"operating_point_db": at, "curve": rows}, draw=lambda: picture(coding, target))


def picture(coding: Coding, target: float) -> "Figure":
    """Figure 4.3: f over the SIR reference, with the operating point."""
    from ackclock import plot

    at = coding.operating_point(target)
    sir = np.linspace(at - 4, at + 4, 400)
    with plot.panel("SIR reference (dB)", "frame error rate") as (figure, axes):
        axes.plot(sir, coding.damaged(sir), color=plot.COLOURS[0])
        axes.plot([at], [target], marker="*", markersize=12, color=plot.COLOURS[1], linestyle="none")
        axes.annotate(f"{at:.2f} dB, {target:g}", (at, target), xytext=(8, 8), textcoords="offset points")
    return figure
