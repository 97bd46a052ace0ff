"""The outer loop of a power control: a Markov chain of SIR references, and the frame errors it leaves.

## Source
M05 section 4.2, figures 4.4 and 4.5.

## What it does
A damaged frame raises the SIR reference by K steps, a good one lowers it by one, so that one frame in K + 1 is
damaged. The reference is a Markov chain over r_k = r_0 + k * step, k = 1..N, with f_1 = 1 and f_k = 0 for k > N - K;
else f_k is the frame error rate there. Its stationary law pi solves
pi_k = f_(k-K) pi_(k-K) + (1 - f_(k+1)) pi_(k+1) with sum 1. Frames e_1..e_l have probability
sum over i of pi_i * product over t of (f or 1 - f at state i + s_t), with s_t = 1 - t + (K+1) * (errors before t).

## Differences from the source
Its side conditions on r_0 and N do not hold for the numbers that it takes (r_0 = 0, N = 1 + 6/step); the chain is the
same without them. The references span `span` dB from `lowest`; the source takes 0 to 6 dB.

## Validation
The mean error rate is 1/(K + 1) exactly; the stationary law against powers of the matrix; sequences against all 2^l of
a length (tests).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ackclock.models import allowed
from ackclock.models.answer import Answer
from ackclock.models.frame_errors import Bits, Coding, Gain, SirSd

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("0.06", "0.2 --up 19 --sequence 1001")
MOST_STATES = 5000

Step = Annotated[float, "Step by which a good frame lowers the SIR reference, dB."]
Up = Annotated[int, "Steps by which a damaged frame raises it; one frame in UP + 1 is damaged."]


@dataclass(frozen=True)
class Chain:
    """The outer loop as a Markov chain; an error process of `ackclock.models.packet_delay`.

    Attributes:
        step: dB by which a good frame lowers the reference.
        coding: Parameters of the frame errors.
        up: Steps K by which a damaged frame raises the reference.
        lowest: r_0, dB.
        span: dB from r_0 to the highest reference, less one step.

    Raises:
        ValueError: if a number is outside what is allowed, or there are fewer than K + 2 states, or more than 5000.
    """

    step: float = 0.06
    coding: Coding = field(default_factory=Coding)
    up: int = 9
    lowest: float = 0.0
    span: float = 6.0

    def __post_init__(self) -> None:
        allowed.above_zero({"step": self.step, "span": self.span})
        allowed.one_or_more({"up": self.up})
        allowed.decibels({"lowest": self.lowest})
        if not self.up + 2 <= self.states <= MOST_STATES:
            least, most = self.span / (MOST_STATES - 1), self.span / (self.up + 1)
            raise ValueError(f"step: {self.step} is not from {least:g} to {most:g} dB, for a span of {self.span:g} dB")

    @property
    def states(self) -> int:
        """N: how many references there are."""
        return 1 + round(self.span / self.step)

    @cached_property
    def sir(self) -> NDArray[np.float64]:
        """The references r_1..r_N, dB."""
        return self.lowest + self.step * np.arange(1, self.states + 1, dtype=np.float64)

    @cached_property
    def damaged(self) -> NDArray[np.float64]:
        """f_1..f_N: the frame error rate at each reference."""
        f = np.array(self.coding.damaged(self.sir), dtype=np.float64)
        f[0], f[-self.up :] = 1.0, 0.0
        return f

    @cached_property
    def start(self) -> NDArray[np.float64]:
        """The stationary law pi_1..pi_N."""
        # The flow down through the cut below a state equals the jumps up across it. In logarithms, since probabilities
        # of states with hardly any errors and of those with nearly only errors differ by more than a float's range.
        f, good = self.damaged, self.coding.log_good(self.sir)
        good[-self.up :] = 0.0
        law = np.zeros(self.states)
        for k in range(1, self.states):
            jumping = slice(max(0, k - self.up), k)
            law[k] = logsumexp(law[jumping], b=f[jumping]) - good[k]
        law = np.exp(law - law.max())
        return np.asarray(law / law.sum())

    def split(self, law: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Splits a distribution over states into the parts after a good and after a damaged frame."""
        lower, higher = np.zeros_like(law), np.zeros_like(law)
        lower[:-1] = (law * (1 - self.damaged))[1:]
        higher[self.up :] = (law * self.damaged)[: -self.up]
        return lower, higher

    def probability(self, errors: Sequence[int]) -> float:
        """Probability that frames in a row are good (0) and damaged (1) as `errors` says."""
        law = self.start
        for error in errors:
            law = self.split(law)[error]
        return float(law.sum())

    @property
    def mean_sir(self) -> float:
        """Mean of the reference, dB."""
        return float(self.start @ self.sir)

    @property
    def sd_sir(self) -> float:
        """Standard deviation of the reference, dB."""
        return float(np.sqrt(self.start @ (self.sir - self.mean_sir) ** 2))

    @property
    def error_rate(self) -> float:
        """Share of the frames that are damaged."""
        return float(self.start @ self.damaged)

    def repeated(self, most: int) -> list[float]:
        """Probability that the frame 1, 2 .. `most` frames after a damaged one is damaged."""
        law = self.split(self.start)[1] / self.error_rate
        found = []
        for _ in range(most):
            found.append(float(law @ self.damaged))
            law = np.sum(self.split(law), axis=0)
        return found


def model(
    step: Step,
    up: Up = 9,
    gain: Gain = 4.0,
    sir_sd: SirSd = 1.0,
    bits: Bits = 2560,
    lags: Annotated[int, "How many frames after a damaged one to look at."] = 10,
    sequence: Annotated[str, "Frames in a row, 0 good and 1 damaged, whose probability is told."] = "",
) -> Answer:
    """The answer of `ackclock model power-control`."""
    allowed.at_most({"lags": lags}, 1000)
    if strangers := set(sequence) - {"0", "1"}:
        raise ValueError(f"sequence: {min(strangers)!r} is not 0 or 1, such as in 1001")
    chain = Chain(step, Coding(gain, sir_sd, bits), up)
    values = {
        "states": chain.states,
        "mean_sir_db": chain.mean_sir,
        "sd_sir_db": chain.sd_sir,
        "frame_error_rate": chain.error_rate,
        "sequence_probability": chain.probability([int(one) for one in sequence]) if sequence else None,
        "after_an_error": [
            {"frames_later": lag, "damaged_again": again} for lag, again in enumerate(chain.repeated(lags), start=1)
        ],
    }
    return Answer(values, draw=lambda: picture([chain]))


def picture(chains: Sequence[Chain]) -> "Figure":
    """Figure 4.5: the stationary law of each chain, with the frame error rate scaled to the largest probability."""
    from ackclock import plot

    with plot.panel("SIR reference (dB)", "stationary probability") as (figure, axes):
        highest = max(float(chain.start.max()) for chain in chains)
        for chain, colour in zip(chains, plot.COLOURS, strict=False):
            axes.plot(chain.sir, chain.start, ".", markersize=4, color=colour, label=f"step {chain.step:g} dB")
        chain = chains[0]
        sir = np.linspace(chain.lowest, chain.lowest + chain.span, 400)
        scaled = highest * chain.coding.damaged(sir)
        axes.plot(sir, scaled, ":", color="#777777", label="frame error rate, scaled")
        rate = 1 / (1 + chain.up)
        point = chain.coding.operating_point(rate)
        axes.plot([point], [highest * rate], "*", markersize=12, color="#000000", label="operating point")
        axes.set_xlim(chain.lowest - 0.2, chain.lowest + 1.6 * chain.span)
        axes.legend(loc="upper right")
    return figure
