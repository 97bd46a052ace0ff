"""Capacity of a link with a varying rate.

## Source
CR02 section 6.2.

## What it does
If every packet draws its own rate R, the mean time of a packet is E[size/R], so a saturated link
delivers 1/E[1/R]: the harmonic mean. If the rate is redrawn in time, it delivers the arithmetic mean E[R].

## Differences from the source
CR02 prints 1/(ln b - ln a) for the uniform law on [a, b]; the factor (b - a) is missing there.

## Validation
u(200, 20), u(200, 50), u(200, 75) kbit/s against the printed mean service rates, within 0.2 %.
"""

from collections.abc import Callable
from math import atanh, sqrt
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, get_args

from scipy.integrate import quad

from ackclock.models import allowed
from ackclock.models.answer import Answer, curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("200 50",)


class RateLaw(Protocol):
    """A distribution of a positive rate, such as a frozen one of `scipy.stats`."""

    def pdf(self, x: float) -> float:
        """Density at `x`."""

    def support(self) -> tuple[float, float]:
        """Smallest and largest rate."""


Redraw = Literal["packet", "time"]


def uniform_bounds(mean: float, sd: float) -> tuple[float, float]:
    """Ends of the uniform distribution u(mean, sd); `sd` is the standard deviation.

    Raises:
        ValueError: if `mean` is not above 0, `sd` is below 0, or the distribution includes a rate of zero.
    """
    allowed.above_zero({"mean": mean})
    allowed.zero_or_more({"sd": sd})
    low, high = mean - sd * sqrt(3), mean + sd * sqrt(3)
    if low <= 0:
        raise ValueError(f"u({mean}, {sd}) reaches down to {low:g}; a rate must be above 0")
    return low, high


def uniform(mean: float, sd: float) -> float:
    """Harmonic mean of u(mean, sd), in the unit of the arguments; errors as for `uniform_bounds`."""
    uniform_bounds(mean, sd)
    # (high - low) / log(high / low), without cancellation if the ends are close together.
    reach = sd * sqrt(3) / mean
    return mean * reach / atanh(reach) if reach > 0 else mean


def harmonic(law: RateLaw) -> float:
    """Harmonic mean 1/E[1/R] of any distribution: the capacity if every packet draws its rate.

    Raises:
        ValueError: if the distribution includes rates below 0, or has no such mean.
    """
    return 1 / _mean(law, lambda r: 1 / r, "1/R")


def arithmetic(law: RateLaw) -> float:
    """Mean E[R] of any distribution: the capacity if the rate is redrawn in time; errors as for `harmonic`."""
    return _mean(law, lambda r: r, "R")


def of(law: RateLaw, redraw: Redraw) -> float:
    """Capacity of a link whose rate follows `law`, redrawn for every packet or in time.

    Raises:
        ValueError: if `redraw` is unknown, or as for `harmonic`.
    """
    if redraw not in get_args(Redraw):
        raise ValueError(f"redraw: {redraw} is none of {', '.join(get_args(Redraw))}")
    return harmonic(law) if redraw == "packet" else arithmetic(law)


def model(
    mean: Annotated[float, "Mean of the uniform law u(MEAN, SD) from which every packet draws its rate, in any unit."],
    sd: Annotated[float, "Its standard deviation, in the same unit."],
) -> Answer:
    """The answer of `ackclock model capacity`."""
    least, most = uniform_bounds(mean, sd)
    most_carried = uniform(mean, sd)

    def draw() -> "Figure":
        deviations = [mean * i / 175 for i in range(100)]
        return curve(deviations, lambda one: uniform(mean, one), sd, "standard deviation of the rate", "capacity")

    return Answer({"capacity": most_carried, "least_rate": least, "most_rate": most}, f"{most_carried:.4g}", draw)


def _mean(law: RateLaw, f: Callable[[float], float], what: str) -> float:
    low, high = law.support()
    if not 0 <= low < high:
        raise ValueError(f"law: its rates are from {low:g} to {high:g}; a rate must be above 0")
    # If the integral is not found, the result contains a message.
    value, _error, _known, *trouble = quad(lambda r: f(r) * law.pdf(r), low, high, limit=200, full_output=True)
    if trouble:
        raise ValueError(f"law: the mean of {what} is not finite or cannot be computed")
    allowed.above_zero({f"law: the mean of {what}": float(value)})
    return float(value)
