"""A window corrected by feedback of the radio's queue: margins, critical gain, and how it settles.

## Source
M05 section 3.4, equations 3.4 and 3.5, proposition 2, figure 3.4; section 3.5.

## What it does
dw/dt = -c' (q(t - tau_b) - q_ref) moves the window of the feedforward loop; both stay at 0 or above. With the window as
the queue meets it there is one delay, tau: dq/dt = (w - b tau - q(t - tau)) / (tau + q(t - tau)/b),
dw/dt = -c' (q(t - tau) - q_ref), in equilibrium q* = q_ref, w* = b tau + q_ref, tau* = tau + q_ref/b.

* Without the delay, V = u^2 (q + (q_ref + 3 b tau)/2) + (3 b / 2c') v^2 with u = q - q*, v = w - w* falls along every
  trajectory, dV/ds = -3 u^2 (q + b tau), where a step ds counts round trips, dt = (tau* + u/b) ds: stable everywhere.
* With it, tau* s^2 + (s + c') exp(-tau s) = 0. On the imaginary axis a x sin x = 1 with a = tau*/tau, and the critical
  gain is c' tau = a x^2 cos x for the smallest such x.
* Margins of (s + c') exp(-tau s) / (tau* s^2) by Nyquist, and the rightmost pole by Chebyshev collocation of the delay.
* Sampled every T >> RTT: q_(k+1) = max(0, w_k - b tau), w <- max(0, w + c (q_ref - q)); with c = 1 the queue is at its
  reference two samples after a disturbance.

## Differences from the source
The source omits the delay in this loop; results with the delay are computed here.

## Validation
The derivative of V by the chain rule in exact fractions; the critical gain against the rightmost pole, which crosses
zero there, and against the simulated equation, which grows above and dies away below it (tests).
"""

from fractions import Fraction
from math import atan2, cos, pi, sin, sqrt
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from ackclock.models import allowed, delay_equation
from ackclock.models.answer import Answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("1 0.17 6", "2 0.17 6 --bandwidth 50 --json")
SAFE = 0.3  # c' tau with sufficient margins for every tau*/tau


def critical_gain(ratio: float) -> float:
    """The gain c' tau above which the loop with its delay is unstable; `ratio` is tau*/tau.

    Raises:
        ValueError: if `ratio` is below 1.
    """
    allowed.one_or_more({"ratio": ratio})
    x = _crossing(ratio)
    return ratio * x * x * cos(x)


def _crossing(ratio: float) -> float:
    """The smallest x with a x sin x = 1; below pi/2, where the left side is at least pi/2."""
    return float(brentq(lambda x: ratio * x * sin(x) - 1, 0.0, pi / 2, xtol=1e-14))


def margins(ratio: float, gain: float) -> dict[str, float]:
    """Margins with c' tau = `gain`: of the phase (degrees), of the gain (factor), of the delay (in units of tau).

    Raises:
        ValueError: if `ratio` is below 1, or `gain` not above 0.
    """
    allowed.one_or_more({"ratio": ratio})
    allowed.above_zero({"gain": gain})
    # |L| = 1, in units of tau: a^2 w^4 = w^2 + c'^2.
    w = sqrt((1 + sqrt(1 + 4 * ratio**2 * gain**2)) / 2) / ratio
    phase = atan2(w, gain) - w
    found = {"phase_margin_degrees": float(np.degrees(phase)), "delay_margin": phase / w}
    # The phase is -180 degrees where atan(w/c') = w.
    if gain >= 1:
        return {**found, "gain_margin": 0.0}
    turn = float(brentq(lambda x: atan2(x, gain) - x, 1e-9, pi / 2))
    return {**found, "gain_margin": ratio * turn**2 / sqrt(turn**2 + gain**2)}


def exponent(ratio: float, gain: float, nodes: int = 24) -> float:
    """The exponent tau lambda of the linear loop, from its rightmost pole; below 0 the loop is unstable.

    The generator of the delay equation is collocated at Chebyshev nodes of the last delay.
    """
    allowed.one_or_more({"ratio": ratio})
    allowed.zero_or_more({"gain": gain})
    now = np.array([[0.0, 1 / ratio], [0.0, 0.0]])
    late = np.array([[-1 / ratio, 0.0], [-gain, 0.0]])
    generator = np.kron(_derivative(nodes), np.eye(2))
    generator[:2] = 0.0
    generator[:2, :2], generator[:2, -2:] = now, late
    return float(-np.linalg.eigvals(generator).real.max())


def _derivative(nodes: int) -> NDArray[np.float64]:
    """Chebyshev's matrix of the derivative over the last delay, from now back."""
    k = np.arange(nodes + 1)
    x = np.cos(pi * k / nodes)
    weight = np.where((k == 0) | (k == nodes), 2.0, 1.0) * (-1.0) ** k
    gap = x[:, None] - x[None, :] + np.eye(nodes + 1)
    matrix = np.outer(weight, 1 / weight) / gap
    return np.asarray(2 * (matrix - np.diag(matrix.sum(axis=1))))


def lyapunov(q: Fraction, w: Fraction, b: Fraction, tau: Fraction, q_ref: Fraction, c: Fraction) -> Fraction:
    """V(q, w) of the loop without its delay."""
    u, v = q - q_ref, w - b * tau - q_ref
    return u**2 * (q + (q_ref + 3 * b * tau) / 2) + 3 * b / (2 * c) * v**2


def lyapunov_derivative(q: Fraction, w: Fraction, b: Fraction, tau: Fraction, q_ref: Fraction, c: Fraction) -> Fraction:
    """dV/ds along the trajectory through (q, w), by the chain rule."""
    u, v = q - q_ref, w - b * tau - q_ref
    in_equilibrium = tau + q_ref / b
    by_q = 2 * u * (q + (q_ref + 3 * b * tau) / 2) + u**2
    by_w = 3 * b / c * v
    return by_q * (v - u) + by_w * (-c * in_equilibrium * u - c / b * u**2)


def simulated(
    ratio: float, gain: float, start: tuple[float, float], end: float, steps: int = 200
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times in units of tau, and queue and window in units of b tau, from `start` on; `gain` is c' tau.

    Raises:
        ValueError: if `ratio` is not above 1, or another number is below 0.
    """
    if not 1 < ratio <= allowed.MOST:
        raise ValueError(f"ratio: {ratio} is not above 1")
    allowed.zero_or_more({"gain": gain, "queue": start[0], "window": start[1]})
    q_ref = ratio - 1

    def slope(now: NDArray[np.float64], late: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([(now[1] - 1 - late[0]) / (1 + late[0]), -gain * (late[0] - q_ref)])

    return delay_equation.solve(slope, start, 1.0, end, steps, least=0.0)


def sampled(c: float, q_ref: float, pipe: float, window: float, samples: int) -> list[tuple[float, float]]:
    """Queue and window after each sample, packets; `pipe` is b tau, `window` that before the first.

    Raises:
        ValueError: if a number is below 0, or `c` not above 0.
    """
    allowed.above_zero({"c": c})
    allowed.zero_or_more({"q_ref": q_ref, "pipe": pipe, "window": window, "samples": samples})
    found = []
    for _ in range(samples):
        queue = max(0.0, window - pipe)
        window = max(0.0, window + c * (q_ref - queue))
        found.append((queue, window))
    return found


def model(
    gain: Annotated[float, "c', windows a second for each packet that the queue is off its reference."],
    tau: Annotated[float, "Propagation delay of the loop, seconds."],
    reference: Annotated[float, "Reference of the queue, packets."],
    bandwidth: Annotated[float, "Rate of the radio, packets per second."] = 100.0,
) -> Answer:
    """The answer of `ackclock model feedback-loop`."""
    allowed.above_zero({"gain": gain, "tau": tau, "bandwidth": bandwidth})
    allowed.zero_or_more({"reference": reference})
    ratio = 1 + reference / bandwidth / tau
    found = margins(ratio, gain * tau)
    values = {
        "round_trip_s": ratio * tau,
        "stable": gain * tau < critical_gain(ratio),
        "critical_gain_per_s": critical_gain(ratio) / tau,
        "safe_gain_per_s": SAFE / tau,
        "exponent_per_s": exponent(ratio, gain * tau) / tau,
        "phase_margin_degrees": found["phase_margin_degrees"],
        "gain_margin": found["gain_margin"],
        "delay_margin_s": found["delay_margin"] * tau,
    }
    return Answer(values, draw=lambda: picture(ratio, gain * tau))


def picture(ratio: float, gain: float) -> "Figure":
    """Figure 3.4 with the delay: trajectories of queue and window."""
    from ackclock import plot

    ratio = max(ratio, 1.01)
    q_ref = ratio - 1
    with plot.panel("queue / (b tau)", "window / (b tau)") as (figure, axes):
        corners = [(0.0, 0.0), (3 * q_ref, 0.3 * ratio), (0.2 * q_ref, 1.8 * ratio), (3 * q_ref, 1.8 * ratio)]
        for start, colour in zip(corners, plot.COLOURS, strict=False):
            _, states = simulated(ratio, gain, start, 60.0, steps=100)
            axes.plot(states[:, 0], states[:, 1], color=colour, linewidth=1.2)
            axes.plot(*start, "o", color=colour, markersize=5)
        axes.plot([q_ref], [ratio], "*", color="#000000", markersize=12, label="equilibrium")
        axes.set_title(f"c' tau = {gain:.3g}, critical {critical_gain(ratio):.3g}", fontsize=11)
        axes.legend()
    return figure
