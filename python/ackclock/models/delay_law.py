"""A discrete distribution of delays, and the timeouts of TCP's timer under it.

The timer is ideal: RTO(X) = mean + 4 standard deviations, P_TO(X) = P(X > RTO(X)) (M05 equation 5.2). Constant delays
change neither P_TO nor what follows from it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

DEVIATIONS = 4.0  # standard deviations from the mean to the timeout
# Tolerance for the sum of rounded probabilities.
ROUNDING = 1e-6
# Relative tolerance within which two delays are equal.
EQUAL = 1e-9


@dataclass(frozen=True)
class DelayLaw:
    """P(X = delays[i]) = probabilities[i]; delays in any unit.

    Raises:
        ValueError: naming the entry, if the delays do not increase from 0 or above, a probability is not from 0 to 1,
            or they do not sum to 1.
    """

    delays: Sequence[float]
    probabilities: Sequence[float]

    def __post_init__(self) -> None:
        if not self.delays or len(self.delays) != len(self.probabilities):
            raise ValueError(f"law: {len(self.delays)} delays with {len(self.probabilities)} probabilities")
        before = None
        for delay, p in zip(self.delays, self.probabilities, strict=True):
            if not 0 <= delay < float("inf"):
                raise ValueError(f"law: the delay {delay:g} is not 0 or above")
            if before is not None and delay <= before:
                raise ValueError(f"law: the delay {delay:g} is not above {before:g}, which stands before it")
            if not 0 <= p <= 1:
                raise ValueError(f"law: the probability {p:g} of the delay {delay:g} is not from 0 to 1")
            before = delay
        total = sum(self.probabilities)
        if abs(total - 1) > ROUNDING:
            raise ValueError(f"law: the probabilities sum to {total:g}, not to 1")

    @property
    def mean(self) -> float:
        """Mean delay."""
        return float(np.dot(self.probabilities, self.delays))

    @property
    def sd(self) -> float:
        """Standard deviation of the delay."""
        return sqrt(float(np.dot(self.probabilities, (np.asarray(self.delays) - self.mean) ** 2)))

    @property
    def rto(self) -> float:
        """The ideal timer: mean + 4 standard deviations."""
        return self.mean + DEVIATIONS * self.sd

    @property
    def p_timeout(self) -> float:
        """P_TO: probability that a packet takes longer than the ideal timer waits."""
        # A delay equal to the timer is in time, despite rounding.
        return self.above(self.rto * (1 + EQUAL))

    def above(self, delay: float) -> float:
        """P(X > delay)."""
        return float(sum(p for d, p in zip(self.delays, self.probabilities, strict=True) if d > delay))

    def scaled(self, unit: float) -> "DelayLaw":
        """The distribution of `unit` times the delay."""
        return DelayLaw([unit * delay for delay in self.delays], self.probabilities)
