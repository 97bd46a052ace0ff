"""Artificial delays that prevent spurious timeouts at the least mean delay.

## Source
M05 sections 5.3 to 5.5, table 5.2, figure 5.2.

## What it does
A packet that a link delays by d_i, with probability p_i, is held for another delta_i >= 0. The goal is the least mean
delay with P_TO <= epsilon, where the timer is mean + 4 standard deviations. As in the source, k is the smallest number
with p_(k+2) + p_(k+3) + .. <= epsilon; packets beyond d_(k+1) are left alone and time out, the others are held to
d_(k+1) at most, and the timer is to be c = d_(k+1) + rho with a margin rho:
minimise sum p_i delta_i subject to 16 Var = (c - mean)^2 and 0 <= delta_i <= d_(k+1) - d_i.

That problem is not convex, but its optimum has at most one delta_i strictly between its bounds. Let two be inside.
Moving them apart by e/p_i and -e/p_j keeps the mean and adds e^2 (1/p_i + 1/p_j), times 16, to 16 Var: the timer
exceeds c. Shrinking all delta in proportion takes the timer continuously down to less than c at delta = 0, so that it
is c somewhere on the way, with a smaller mean; the first was no optimum. So all 2^(k-1) choices of bounds for the
others are tried for each i, and the level of the one inside solves the quadratic
(16 p - 17 p^2) x^2 + 2 p (c - 17 A) x + 16 B - 17 A^2 + 2 c A - c^2 = 0, with A and B the other delays' sums of p d and
p d^2. The least mean of k 2^(k-1) candidates is the global optimum.

## Differences from the source
It enumerates 3^k sets of bounds with any number inside, and finds the form (0, .., 0, delta_j, m_(j+1), .., m_k)
typical; that at most one is inside is shown above. The rest of the form need not hold: of 0, 25, 50, 75, 150 ms with
0.92, 0.06, 0.015, 0.004, 0.001, epsilon 0.002 and rho 10 ms it is 25 ms that is held to the end, and 50 ms that is
inside. For delays V of the rest of the path it gives
P_TO <= P(V > rho) + epsilon; the sum over p_i P(V > c' - d_i - delta_i), with c' the timer over the whole path, is
P_TO itself and smaller. `least_margin` finds the rho that a given V needs.

## Validation
Against a solver from many starting points (SLSQP), against the enumeration of 3^k sets, and the example of section 5.4
(tests).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ackclock.models import allowed
from ackclock.models.answer import Answer
from ackclock.models.delay_law import DEVIATIONS, DelayLaw
from ackclock.models.law_source import Column, FramesOption, Law, StepOption, law_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("channel --rho 10", "0:0.807,40:0.088,60:0.093,100:0.006,120:0.006 --epsilon 0.005 --rest-sd 5")
MOST_HELD = 20  # 16 take a second, 20 a quarter of a minute
CHUNK = 1 << 16
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Optimum:
    """The optimal artificial delays.

    Attributes:
        law: The distribution before.
        added: delta_i of each delay, in the same unit.
        held: k: delays up to the k-th are held; 0 if none.
        timer: c: the resulting timer.
    """

    law: DelayLaw
    added: Sequence[float]
    held: int
    timer: float

    @property
    def after(self) -> DelayLaw:
        """The distribution after, with equal delays merged."""
        return merged([d + a for d, a in zip(self.law.delays, self.added, strict=True)], self.law.probabilities)

    @property
    def mean_added(self) -> float:
        """Mean of the added delay."""
        return float(np.dot(self.law.probabilities, self.added))

    def p_timeout_with(self, above: Callable[[float], float], sd: float) -> float:
        """P_TO over a path whose other delays V are independent, have mean 0, and exceed v with probability above(v).

        Args:
            above: P(V > v).
            sd: Standard deviation of V.
        """
        after = self.after
        timer = after.mean + DEVIATIONS * float(np.hypot(after.sd, sd))
        return sum(p * above(timer - d) for d, p in zip(after.delays, after.probabilities, strict=True))


def merged(delays: Sequence[float], probabilities: Sequence[float]) -> DelayLaw:
    """A law from delays in any order, of which some may be equal but for rounding."""
    pairs: list[tuple[float, float]] = []
    for delay, p in sorted(zip(delays, probabilities, strict=True)):
        if pairs and delay - pairs[-1][0] <= 1e-9 * max(1.0, delay):
            pairs[-1] = (pairs[-1][0], pairs[-1][1] + p)
        else:
            pairs.append((delay, p))
    return DelayLaw([d for d, _ in pairs], [min(1.0, p) for _, p in pairs])


def optimal_delays(law: DelayLaw, epsilon: float, rho: float) -> Optimum:
    """The delays with the least mean that reduce P_TO to `epsilon` or below.

    Args:
        law: Law of the delays.
        epsilon: Maximum P_TO.
        rho: Margin between the largest delay that does not time out and the timer, in the unit of the delays.

    Raises:
        ValueError: if `epsilon` is not between 0 and 1, `rho` below 0 or so large that the timer reaches the next
            delay or no delays give it, or more than 20 delays would have to be held.
    """
    allowed.proper_share({"epsilon": epsilon})
    allowed.zero_or_more({"rho": rho})
    if law.p_timeout <= epsilon:
        return Optimum(law, [0.0] * len(law.delays), 0, law.rto)
    k = _held(law.probabilities, epsilon)
    if k > MOST_HELD:
        raise ValueError(f"law: {k} delays would be held, more than {MOST_HELD}: round them to a coarser grid (--bin)")
    top = law.delays[k]
    if k + 1 < len(law.delays) and not top + rho < law.delays[k + 1]:
        raise ValueError(f"rho: {rho:g} is not below {law.delays[k + 1] - top:g}, the way to the next delay")
    found = _least(np.asarray(law.delays), np.asarray(law.probabilities), k, top + rho)
    if found is None:
        raise ValueError(f"rho: no delays make the timer {top + rho:g}; take less than {rho:g}")
    added = [*(found - np.asarray(law.delays[:k])).tolist(), *[0.0] * (len(law.delays) - k)]
    return Optimum(law, added, k, top + rho)


def _held(probabilities: Sequence[float], epsilon: float) -> int:
    """k: the smallest number for which all but k + 1 delays have `epsilon` together at most."""
    tail, k = 0.0, len(probabilities) - 1
    while k > 0 and tail + probabilities[k] <= epsilon:
        tail += probabilities[k]
        k -= 1
    return k


def _least(d: Vector, p: Vector, k: int, c: float) -> Vector | None:
    """The levels of the first k delays that give the timer c with the least mean."""
    top = d[k]
    best: tuple[float, Vector] | None = None
    rest = (float(p[k:] @ d[k:]), float(p[k:] @ d[k:] ** 2))
    for free in range(k):
        if p[free] <= 0:
            continue
        others = [i for i in range(k) if i != free]
        for first in range(0, 1 << (k - 1), CHUNK):
            choice = np.arange(first, min(first + CHUNK, 1 << (k - 1)))[:, None]
            at_top = (choice >> np.arange(k - 1)) & 1
            levels = np.where(at_top == 1, top, d[others])
            a = levels @ p[others] + rest[0]
            b = levels**2 @ p[others] + rest[1]
            level, mean = _inside(p[free], a, b, c, d[free], top)
            one = int(np.argmin(mean))
            if np.isfinite(mean[one]) and (best is None or mean[one] < best[0]):
                found = np.empty(k)
                found[others], found[free] = levels[one], level[one]
                best = (float(mean[one]), found)
    return None if best is None else best[1]


def _inside(p: float, a: Vector, b: Vector, c: float, low: float, high: float) -> tuple[Vector, Vector]:
    """For each choice of the others the level of the free delay that gives the timer c, and the mean; infinite if none.

    `a` and `b` are the sums of p d and p d^2 over the others.
    """
    square, linear = 16 * p - 17 * p * p, 2 * p * (c - 17 * a)
    constant = 16 * b - 17 * a * a + 2 * c * a - c * c
    slack = 1e-9 * max(1.0, high)
    level, least = np.full_like(a, np.nan), np.full_like(a, np.inf)
    for root in _roots(square, linear, constant):
        inside = (root >= low - slack) & (root <= high + slack)
        x = np.clip(root, low, high)
        mean = a + p * x
        # The square of the constraint holds for a timer below the mean too.
        better = inside & (mean <= c + slack) & (mean < least)
        level, least = np.where(better, x, level), np.where(better, mean, least)
    return level, least


def _roots(square: float, linear: Vector, constant: Vector) -> list[Vector]:
    """The real roots of each quadratic, NaN where there is none; without cancellation."""
    with np.errstate(invalid="ignore", divide="ignore"):
        q = -0.5 * (linear + np.copysign(np.sqrt(linear**2 - 4 * square * constant), linear))
        roots = [constant / q]
        return [*roots, q / square] if square != 0 else roots


def gaussian(sd: float) -> Callable[[float], float]:
    """P(V > v) of the normal law with mean 0 and standard deviation `sd`."""
    return lambda v: float(ndtr(-v / sd)) if sd > 0 else float(v < -1e-6)


def least_margin(law: DelayLaw, epsilon: float, target: float, rest_sd: float) -> Optimum:
    """The optimum with the least margin that keeps P_TO at `target` over a path with normal delays beside the link.

    The margin is searched in hundredths of the distance to the next delay, which limits it.

    Raises:
        ValueError: as for `optimal_delays`, or if no margin is large enough.
    """
    allowed.proper_share({"target": target})
    allowed.zero_or_more({"rest_sd": rest_sd})
    plain = optimal_delays(law, epsilon, 0.0)
    k = plain.held
    top = law.delays[k]
    reach = law.delays[k + 1] - top if k + 1 < len(law.delays) else max(top, 1.0)
    least = float("inf")
    for hundredth in range(100):
        try:
            found = optimal_delays(law, epsilon, reach * hundredth / 100)
        except ValueError:
            break
        least = min(least, p := found.p_timeout_with(gaussian(rest_sd), rest_sd))
        if p <= target:
            return found
    raise ValueError(f"target: {target} is below {least:.3g}, the least P_TO that a margin gives beside {rest_sd:g}")


def model(
    law: Law,
    epsilon: Annotated[float, "Largest probability of a spurious time-out."] = 0.001,
    rho: Annotated[float, "Margin between the largest delay that does not time out and the timer, ms."] = 10.0,
    rest_sd: Annotated[float, "Standard deviation of normal delays on the rest of the path, ms."] = 0.0,
    target: Annotated[
        float, "Where above 0, rho is the least that keeps P_TO below it with the delays of the rest of the path."
    ] = 0.0,
    step: StepOption = 0.06,
    frames: FramesOption = 2,
    column: Column = "",
    bin: Annotated[float, "Grid to whose next multiple delays are raised, ms; 0 leaves them."] = 0.0,  # noqa: A002
) -> Answer:
    """The answer of `ackclock model optimal-delays`."""
    given = law_of(law, step, frames, column, bin)
    allowed.zero_or_more({"rest_sd": rest_sd, "target": target})
    found = least_margin(given, epsilon, target, rest_sd) if target > 0 else optimal_delays(given, epsilon, rho)
    after = found.after
    margin = found.timer - given.delays[found.held] if found.held else None
    above = gaussian(rest_sd)
    values = {
        "held": found.held,
        "rho_ms": margin,
        "mean_added_ms": found.mean_added,
        "before": [_summary(given)],
        "after": [_summary(after)],
        "p_timeout_with_rest": found.p_timeout_with(above, rest_sd),
        "bound_with_rest": None if margin is None else min(1.0, above(margin) + epsilon),
        "delays": [
            {"delay_ms": d, "probability": p, "added_ms": a, "delay_after_ms": d + a}
            for d, p, a in zip(given.delays, given.probabilities, found.added, strict=True)
        ],
    }
    return Answer(values, draw=lambda: picture(found))


def _summary(law: DelayLaw) -> dict[str, float]:
    return {"mean_ms": law.mean, "sd_ms": law.sd, "rto_ms": law.rto, "p_timeout": law.p_timeout}


def picture(found: Optimum) -> "Figure":
    """Figure 5.2: the law before and after."""
    import matplotlib as mpl

    from ackclock import plot
    from ackclock.plot.style import Picture

    with mpl.rc_context(plot.STYLE):
        figure = Picture(figsize=(6.4, 5.0), layout="constrained")
        panels = figure.subplots(2, 1, sharex=True, sharey=True)
        for axes, name, law in zip(panels, ("before", "after"), (found.law, found.after), strict=True):
            axes.vlines(law.delays, 1e-5, law.probabilities, color=plot.COLOURS[0], linewidth=5)
            axes.axvline(law.rto, color=plot.COLOURS[1], linestyle="--", label=f"mean + 4 sd, {law.rto:.1f} ms")
            axes.axvline(law.mean, color="#777777", linestyle=":", label=f"mean, {law.mean:.1f} ms")
            axes.set(yscale="log", ylim=(1e-5, 2))
            axes.set_title(f"{name}: P_TO {law.p_timeout:.2%}", fontsize=10)
            axes.legend(loc="upper right", fontsize=9)
        figure.supylabel("probability", fontsize=11)
        panels[-1].set_xlabel("delay (ms)")
    return figure
