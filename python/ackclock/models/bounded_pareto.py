"""A bounded Pareto law by its mean.

## Source
CR04 table I: sizes of web objects by mean, shape and largest size.

## What it does
The law has density proportional to x^(-a-1) on [k, H] and mean a k^a (k^(1-a) - H^(1-a)) / ((a - 1) (1 - (k/H)^a)). The
minimum k is what gives the mean that is stated.

## Differences from the source
The source states no minimum.

## Validation
The stated mean is integrated again from the density (tests).
"""

from scipy.optimize import brentq


def mean(minimum: float, shape: float, largest: float) -> float:
    """Mean of the law; `shape` is not 1."""
    a, k, H = shape, minimum, largest
    return float(a * k**a * (k ** (1 - a) - H ** (1 - a)) / ((a - 1) * (1 - (k / H) ** a)))


def minimum(wanted: float, shape: float, largest: float) -> float:
    """The least value of the law whose mean is `wanted`, in the unit of the arguments."""
    # The mean rises with the minimum, and lies between it and the largest value.
    return float(brentq(lambda k: mean(k, shape, largest) - wanted, wanted * 1e-9, wanted))
