"""Shares of time at each rate under Rayleigh fading.

## Source
CR02 section 6.4 and table 4: a rate is available while the SNR is at least its requirement.

## What it does
The power of a Rayleigh channel is exponentially distributed, so with a mean SNR S the SNR exceeds g with probability
exp(-g/S), as ratios of powers.

## Differences from the source
The source counts slots of one fading path, which has few slots with the highest rates.

## Validation
CR02 table 4 within 0.01 at a mean SNR of 2.3 dB.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import exp
from typing import TYPE_CHECKING, Annotated

from ackclock.models import allowed
from ackclock.models.answer import Answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("2.3 --needed=-12.5,-9.5,-8.5,-6.5,-5.7,-4,-1,1.3,3,7.2,9.5",)


def shares(needed: Sequence[float], mean_snr: float) -> list[float]:
    """Share of time of each rate; in the remaining time there is no rate.

    Args:
        needed: SNR that each rate needs, dB, none below the one before.
        mean_snr: Mean SNR, dB.

    Raises:
        ValueError: if a number is not from -150 to 150 dB, or `needed` falls.
    """
    allowed.decibels({"mean_snr": mean_snr})
    for snr in needed:
        allowed.decibels({"needed": snr})
    for lower, upper in pairwise(needed):
        if upper < lower:
            raise ValueError(f"needed: {upper} is below {lower}, which stands before it")
    above = [exp(-(10 ** ((snr - mean_snr) / 10))) for snr in needed]
    return [lower - upper for lower, upper in pairwise([*above, 0.0])]


def model(
    mean_snr: Annotated[float, "Mean SNR, dB."],
    needed: Annotated[str, "SNR that each rate needs, dB, with commas between, none below the one before."] = "0,3,6",
) -> Answer:
    """The answer of `ackclock model rayleigh`."""
    snrs = allowed.numbers("needed", needed)
    rows = [{"needed_db": snr, "share": share} for snr, share in zip(snrs, shares(snrs, mean_snr), strict=True)]

    def draw() -> "Figure":
        from ackclock import plot

        with plot.panel("SNR that the rate needs (dB)", "share of time") as (figure, axes):
            axes.bar([f"{snr:g}" for snr in snrs], [row["share"] for row in rows], color=plot.COLOURS[0])
        return figure

    return Answer({"shares": rows, "no_rate": 1 - sum(row["share"] for row in rows)}, draw=draw)
