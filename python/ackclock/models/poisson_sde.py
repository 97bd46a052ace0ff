"""Throughput under Poisson losses, by a stochastic differential equation of the window.

## Source
Misra, Gong and Towsley, as used by CR02 section 4 ("model 2").

## What it does
dW = dt/RTT - (W/2) dN_TD + (1 - W) dN_TO with independent Poisson processes of fast retransmits (TD) and
time-outs (TO). In the mean: E[W] = (1/RTT + l_TO)/(l_TD/2 + l_TO), and the throughput is E[W]/RTT.

## Differences from the source
The column that CR02 prints is obtained with the two rates interchanged. `Rates.PRINTED` does that, to
reproduce the table and for nothing else; `Rates.CORRECT` is the formula. It lies far above the link rate
because it assumes a round-trip time independent of the window.

## Validation
All nine rows of CR02 Table 2, model 2, within 0.1 kbit/s with the interchange; the correct formula against
the values recomputed for the same rows.
"""

from enum import Enum
from typing import TYPE_CHECKING, Annotated

from ackclock.models import allowed, answer
from ackclock.models.answer import Answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("0.1 0.01 0.5",)


class Rates(Enum):
    """Which event rate halves the window, and which sets it to one."""

    CORRECT = "correct"
    PRINTED = "printed"


def mean_window(td_rate: float, to_rate: float, rtt: float, rates: Rates = Rates.CORRECT) -> float:
    """Mean window in packets.

    Args:
        td_rate: Fast retransmits per second.
        to_rate: Timeouts per second.
        rtt: Round trip time, seconds.
        rates: `Rates.PRINTED` interchanges the two rates, as CR02 did.

    Raises:
        ValueError: if a rate is below 0, both are 0 (nothing ends the growth), or `rtt` is not above 0.
    """
    allowed.zero_or_more({"td_rate": td_rate, "to_rate": to_rate})
    allowed.above_zero({"td_rate + to_rate": td_rate + to_rate, "rtt": rtt})
    if rates is Rates.PRINTED:
        td_rate, to_rate = to_rate, td_rate
    return (1 / rtt + to_rate) / (td_rate / 2 + to_rate)


def throughput(td_rate: float, to_rate: float, rtt: float, rates: Rates = Rates.CORRECT) -> float:
    """Throughput in packets per second, E[W]/RTT; arguments and errors as for `mean_window`."""
    return mean_window(td_rate, to_rate, rtt, rates) / rtt


def model(
    td_rate: Annotated[float, "Fast retransmits per second."],
    to_rate: Annotated[float, "Time-outs per second."],
    rtt: Annotated[float, "Mean round trip time, seconds."],
) -> Answer:
    """The answer of `ackclock model poisson-sde`."""

    def draw() -> "Figure":
        return answer.curve(
            answer.around(rtt, 10),
            lambda one: throughput(td_rate, to_rate, one),
            rtt,
            "round trip time (s)",
            "throughput (packets/s)",
            log=True,
        )

    return answer.throughput(throughput(td_rate, to_rate, rtt), draw)
