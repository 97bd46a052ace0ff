"""TCP friendliness of a delay distribution: how often it exceeds the mean by four standard deviations.

## Source
M05 sections 5.3 and 5.4, equation 5.2.

## What it does
RTO(X) = mean + 4 standard deviations and P_TO(X) = P(X > RTO(X)) of any distribution: given, of the power-controlled
channel, or empirical, from samples. For comparison: P_TO of distributions that TCP tolerates, and of the worst
possible: uniform 0, since mean + 4 sd is (2/sqrt(3) - 1/2) of the width beyond its end; normal 0.00317 %; and 1/16 by
Chebyshev.

## Differences from the source
Samples are treated as independent, as in the source. If they are correlated, as in a recording
with outages, a real timer follows them and expires less often, or more.

## Validation
The uniform and normal laws from 10^5 quantiles, table 5.1, and round trip times of a simulated run as its capture and
its results tell them (tests).
"""

from typing import TYPE_CHECKING, Annotated

from scipy.special import ndtr

from ackclock.models.answer import Answer
from ackclock.models.delay_law import DEVIATIONS, DelayLaw
from ackclock.models.law_source import Column, FramesOption, Law, StepOption, law_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("channel --step 0.06 --frames 2", "0:0.9,60:0.0935,120:0.0065")
NORMAL = float(ndtr(-DEVIATIONS))
CHEBYSHEV = 1 / DEVIATIONS**2
UNIFORM = 0.0


def uniform_reach(low: float, high: float) -> float:
    """How far mean + 4 standard deviations of the uniform law on [low, high] lies beyond `high`."""
    return float((2 / 3**0.5 - 0.5) * (high - low))


def model(
    law: Law,
    step: StepOption = 0.06,
    frames: FramesOption = 2,
    column: Column = "",
    bin: Annotated[float, "Grid to whose next multiple delays are raised, ms; 0 leaves them."] = 0.0,  # noqa: A002
) -> Answer:
    """The answer of `ackclock model friendliness`."""
    found = law_of(law, step, frames, column, bin)
    values = {
        "mean_ms": found.mean,
        "sd_ms": found.sd,
        "rto_ms": found.rto,
        "p_timeout": found.p_timeout,
        "delays": len(found.delays),
        "beside": [
            {"law": "uniform", "p_timeout": UNIFORM},
            {"law": "normal", "p_timeout": NORMAL},
            {"law": "at worst (Chebyshev)", "p_timeout": CHEBYSHEV},
        ],
    }
    return Answer(values, draw=lambda: picture(found))


def picture(law: DelayLaw) -> "Figure":
    """P(delay > x) with mean + 4 standard deviations."""
    import numpy as np

    from ackclock import plot

    above = 1 - np.cumsum(law.probabilities)
    with plot.panel("delay x (ms)", "P(delay > x)") as (figure, axes):
        axes.step([0, *law.delays], [1, *np.maximum(above, 0)], where="post", color=plot.COLOURS[0])
        axes.axvline(law.rto, color=plot.COLOURS[1], linestyle="--", label=f"mean + 4 sd, {law.rto:.1f} ms")
        positive = above[above > 1e-12]
        axes.set(yscale="log", ylim=((positive.min() if positive.size else 1e-3) / 3, 1.5))
        axes.plot([], [], " ", label=f"P_TO {law.p_timeout:.3%}")
        axes.legend()
    return figure
