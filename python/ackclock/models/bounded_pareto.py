"""A bounded Pareto distribution with a given mean.

## Source
CR04 table I: sizes of web objects by mean, shape and largest size.

## What it does
The law has density proportional to x^(-a-1) on [k, H] and mean a k^a (k^(1-a) - H^(1-a)) / ((a - 1) (1 - (k/H)^a)), at
a = 1 its limit. The minimum k is chosen to give the stated mean.

## Differences from the source
The source states no minimum.

## Validation
The stated mean is integrated again from the density (tests).
"""

from math import exp, expm1, log
from typing import TYPE_CHECKING, Annotated

from scipy.optimize import brentq

from ackclock.models import allowed
from ackclock.models.answer import Answer, around, curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("10000 1.1 2000000",)


def mean(minimum: float, shape: float, largest: float) -> float:
    """Mean of the distribution, in the unit of `minimum` and `largest`.

    Raises:
        ValueError: if an argument is not above 0, or `minimum` not below `largest`.
    """
    allowed.above_zero({"minimum": minimum, "shape": shape, "largest": largest})
    _below({"minimum": minimum}, largest)
    return _mean(minimum, shape, largest)


def minimum(wanted: float, shape: float, largest: float) -> float:
    """The minimum value for which the mean is `wanted`, in the unit of the arguments.

    Raises:
        ValueError: if an argument is not above 0, `wanted` not below `largest`, or so small that the
            least value would be below 1e-15.
    """
    allowed.above_zero({"wanted": wanted, "shape": shape, "largest": largest})
    _below({"wanted": wanted}, largest)
    # The mean rises with the minimum, and lies between it and the largest value.
    if _mean(wanted, shape, largest) <= wanted:
        return wanted  # there is no number in between
    floor = _mean(allowed.LEAST, shape, largest)
    if wanted < floor:
        raise ValueError(f"wanted: {wanted} is not above {floor:g}, the mean with a minimum of {allowed.LEAST:g}")
    found = brentq(lambda x: _mean(exp(x), shape, largest) - wanted, log(allowed.LEAST), log(wanted))
    return exp(float(found))


def model(
    wanted: Annotated[float, "Mean of the law, in any unit."],
    shape: Annotated[float, "Its shape a; the density falls as x^(-a-1)."],
    largest: Annotated[float, "Its largest value, in the same unit."],
) -> Answer:
    """The answer of `ackclock model bounded-pareto`."""

    def draw() -> "Figure":
        means = [one for one in around(wanted, 10) if one < largest]
        return curve(means, lambda one: minimum(one, shape, largest), wanted, "mean", "least value", log=True)

    return Answer({"minimum": minimum(wanted, shape, largest)}, draw=draw)


def _mean(minimum: float, shape: float, largest: float) -> float:
    a, k = shape, minimum
    reach = log(k / largest)
    # Powers such as k^(a-1) use ratios to the largest value, to avoid overflow and cancellation.
    rest = expm1((a - 1) * reach) / (a - 1) if a != 1 else reach
    return a * k * rest / expm1(a * reach)


def _below(arguments: dict[str, float], largest: float) -> None:
    for name, value in arguments.items():
        if not value < largest:
            raise ValueError(f"{name}: {value} is not below {largest}, the largest value")
