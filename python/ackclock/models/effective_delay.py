"""Mean delay of a link with random delay whose packets must not overtake each other.

## Source
The no-overtaking rule of CR02 section 6.1.

## What it does
Packet i leaves the transmitter at t_i, draws a delay D_i and arrives at a_i = max(a_{i-1}, t_i + D_i). A
packet is thus delayed by a slow predecessor, and the mean of a_i - t_i exceeds E[D]. On a saturated link
that sends a packet every `gap` seconds, a_i - t_i = max over k of (D_{i-k} - k*gap), whose law is the product
of F(x + k*gap) over k >= 0; the mean is the integral of one minus that product.

## Differences from the source
The source measures this delay in simulation; here it is computed.

## Validation
CR02 Table 1: minimum round trip times of 442, 461 and 517 ms (e(20), e(50), e(100), gap 40 ms) within 0.5 %.
"""

from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ackclock.models import allowed
from ackclock.models.answer import Answer, around, curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("0.1 0.04",)


def exponential(mean: float, gap: ArrayLike) -> float:
    """Mean effective delay of the exponential distribution e(mean), in seconds.

    Args:
        mean: Mean of the drawn delay, seconds.
        gap: Seconds between two packets, or equally likely values of it (if the rate is drawn for every packet).

    Raises:
        ValueError: if `mean` is not above 0, or `gap` is empty or not at least a 200th of `mean`.
    """
    gaps = np.asarray(gap, dtype=float).ravel()
    allowed.above_zero({"mean": mean})
    if gaps.size == 0:
        raise ValueError("gap: there is none")
    for one in gaps.tolist():
        allowed.above_zero({"gap": one})
        # Steps of the law as it is computed are no finer, and more packets than 10 000 would wait for each other.
        if one < mean / 200:
            raise ValueError(f"gap: {one} is not at least {mean / 200:g}, a 200th of the mean delay")
    # The law of the effective delay solves G(x) = F(x) * mean of G(x + gap); far out, G is 1.
    step, reach = mean / 200, 40 * mean
    x = np.arange(0.0, reach, step)
    drawn = -np.expm1(-x / mean)
    law: NDArray[np.float64] = drawn
    for _ in range(10_000):
        later = np.mean([np.interp(x + g, x, law, right=1.0) for g in gaps], axis=0)
        following = drawn * later
        if np.max(np.abs(following - law)) < 1e-12:
            break
        law = following
    return float(np.trapezoid(1 - law, x))


def model(
    mean: Annotated[float, "Mean of the exponential law from which every packet draws its delay, seconds."],
    gap: Annotated[float, "Seconds between two packets of the saturated link."],
) -> Answer:
    """The answer of `ackclock model effective-delay`."""
    delay = exponential(mean, gap)

    def draw() -> "Figure":
        gaps = around(gap, 5, 30)
        return curve(
            [one for one in gaps if one >= mean / 100],
            lambda one: exponential(mean, one),
            gap,
            "time between packets (s)",
            "mean effective delay (s)",
        )

    return Answer({"effective_delay_s": delay, "added_s": delay - mean}, draw=draw)
