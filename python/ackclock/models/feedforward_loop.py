"""A window set by feedforward alone: how fast the queue of the radio settles.

## Source
M05 section 3.4, equation 3.3, proposition 1, lemma 1, figure 3.3.

## What it does
The window is constant, w = b tau + q*; the rate into the queue is w over the round trip that the last ACK met, so that
dq/dt = -(q(t - tau) - q*) / (tau + q(t - tau)/b), with tau the propagation of the loop and tau* = tau + q*/b the round
trip in equilibrium. Linear: s + exp(-tau s)/tau* = 0. With a = tau*/tau:

* exact exponent: tau lambda = -Re W0(-1/a), the rightmost pole, by Lambert's W; at a = e it is 1, a double pole;
* conservative bound: the smaller of 1/(a - 1) and the smallest positive x with a x = cos(exp(x)/a);
* margins of the loop gain exp(-tau s)/(tau* s) by Nyquist, with the delay as it is: crossover at 1/tau*, phase margin
  pi/2 - 1/a, gain margin a pi/2, delay margin tau* pi/2 - tau. Since 1/a < 1 < pi/2 it is always stable.

## Differences from the source
Two of its displays have q(t - tau_f) where q(t - tau) is meant, and proposition 1 lacks a hat: the deviation from the
reference is b^ tau^ - b tau. Its exact curve comes from a Pade approximation of order seven.

## Validation
The exponent against the decay of the simulated equation and against roots of the characteristic equation; the bound
below it everywhere; the least bound on 1 < a < e is 0.2647 > 1/4, which is proposition 1 (tests).
"""

from collections.abc import Sequence
from math import cos, exp, isnan, pi
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import lambertw

from ackclock.models import allowed, delay_equation
from ackclock.models.answer import Answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("0.17 10 --bandwidth 100",)
GRID = (1.0, 1.25, 1.5, 2.0, 2.5, exp(1), 3.0, 4.0, 5.0, 8.0, 10.0)  # ratios of figure 3.3


def exponent(ratio: float) -> float:
    """The exponent tau lambda of the linear loop, from its rightmost pole; `ratio` is tau*/tau.

    Raises:
        ValueError: if `ratio` is below 1.
    """
    allowed.one_or_more({"ratio": ratio})
    # At the double pole, a branch point, SciPy has no number.
    found = float(-lambertw(-1 / ratio, 0).real)
    return 1.0 if isnan(found) else found


def bound(ratio: float) -> float:
    """The source's proven lower bound of tau lambda; errors as for `exponent`."""
    allowed.one_or_more({"ratio": ratio})

    def f(x: float) -> float:
        return ratio * x - cos(exp(x) / ratio)

    # f rises up to where exp(x)/ratio is pi, and has passed 0 by there.
    complex_poles = float(brentq(f, 0.0, np.log(ratio * pi)))
    return min(1 / (ratio - 1), complex_poles) if ratio > 1 else complex_poles


def simulated(
    ratio: float, start: float, end: float, target: float = 1.0, steps: int = 200
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times in units of tau, and the queue in units of q*, from `start` on.

    Args:
        ratio: tau*/tau, above 1.
        start: The queue up to t = 0, in units of q*.
        end: Last time, in units of tau.
        target: q*, the unit of the queue.
        steps: Steps a delay.
    """
    if not 1 < ratio <= allowed.MOST:
        raise ValueError(f"ratio: {ratio} is not above 1")

    def slope(_: NDArray[np.float64], late: NDArray[np.float64]) -> NDArray[np.float64]:
        # tau* = 1 + q*/b in units of tau, so that q/b is (ratio - 1) q/q*.
        return -(late - target) / (1 + (ratio - 1) * late / target)

    time, queue = delay_equation.solve(slope, [start], 1.0, end, steps, least=0.0)
    return time, queue[:, 0]


def model(
    tau: Annotated[float, "Propagation delay of the loop, seconds."],
    queue: Annotated[float, "Queue in equilibrium, packets: the reference and what is wrong with b tau."],
    bandwidth: Annotated[float, "Rate of the radio, packets per second."] = 100.0,
) -> Answer:
    """The answer of `ackclock model feedforward-loop`."""
    allowed.above_zero({"tau": tau, "bandwidth": bandwidth})
    allowed.zero_or_more({"queue": queue})
    trip = tau + queue / bandwidth
    ratio = trip / tau
    values = {
        "round_trip_s": trip,
        "ratio": ratio,
        "exponent_per_s": exponent(ratio) / tau,
        "bound_per_s": bound(ratio) / tau,
        "time_constant_s": tau / exponent(ratio),
        "phase_margin_degrees": np.degrees(pi / 2 - 1 / ratio),
        "gain_margin": ratio * pi / 2,
        "delay_margin_s": trip * pi / 2 - tau,
    }
    return Answer(values, draw=lambda: picture([ratio]))


def picture(marked: Sequence[float] = ()) -> "Figure":
    """Figure 3.3: the exact exponent and the bound over tau*/tau."""
    from ackclock import plot

    ratios = np.linspace(1, max(10, 1.2 * max(marked, default=1)), 600)
    with plot.panel("round trip in equilibrium over propagation, tau*/tau", "exponent, tau lambda") as (figure, axes):
        axes.plot(ratios, [exponent(a) for a in ratios], color=plot.COLOURS[0], label="exact, Lambert's W")
        axes.plot(ratios, [bound(a) for a in ratios], color=plot.COLOURS[1], label="bound of the source")
        axes.plot([exp(1)], [1], "o", color="#000000", label="double pole, tau* = e tau")
        for ratio in marked:
            axes.axvline(ratio, color="#777777", linestyle=":", label=f"tau*/tau = {ratio:.3g}")
        axes.set_ylim(0, 1.1)
        axes.legend()
    return figure
