"""Processes of frame errors in a row: independent, power-controlled, and under Rayleigh fading.

Each is a chain of hidden states (`packet_delay.ErrorProcess`): a law over the states is split into that after a good
and that after a damaged frame.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import j0
from scipy.stats import ncx2

from ackclock.models import allowed
from ackclock.models.packet_delay import ErrorProcess
from ackclock.models.power_control import Chain

Law = NDArray[np.float64]


class Errors(StrEnum):
    """Available processes."""

    INDEPENDENT = "independent"
    POWER_CONTROLLED = "power-controlled"
    RAYLEIGH = "rayleigh"


@dataclass(frozen=True)
class Independent:
    """Every frame is damaged with probability `p`, independently of the others.

    Raises:
        ValueError: if `p` is not between 0 and 1.
    """

    p: float = 0.1

    def __post_init__(self) -> None:
        allowed.proper_share({"p": self.p})

    @property
    def start(self) -> Law:
        """One state."""
        return np.ones(1)

    def split(self, law: Law) -> tuple[Law, Law]:
        """A good and a damaged frame."""
        return law * (1 - self.p), law * self.p


@dataclass(frozen=True)
class Rayleigh:
    """Frames are damaged while the power of a Rayleigh channel is below a threshold: a Markov chain of two states.

    The threshold F has 1 - exp(-F) = p. Two frames one slot apart have fading of correlation rho = J0(2 pi f_D T), and
    both are damaged as the bivariate Rayleigh law says (Zorzi, Rao and Milstein): a damaged frame is followed by a good
    one with probability (Q(theta, rho theta) - Q(rho theta, theta)) / (exp(F) - 1), with Marcum's Q of first order and
    theta = sqrt(2 F / (1 - rho^2)).

    Attributes:
        p: Share of damaged frames.
        doppler: f_D T, Doppler frequency times the length of a slot.

    Raises:
        ValueError: if `p` is not between 0 and 1, or `doppler` not above 0 and at most 0.3.
    """

    p: float = 0.1
    doppler: float = 0.01

    def __post_init__(self) -> None:
        allowed.proper_share({"p": self.p})
        if not 1e-4 <= self.doppler <= 0.3:
            raise ValueError(f"doppler: {self.doppler} is not from 0.0001 to 0.3, where the fades of slots follow")

    @cached_property
    def ends(self) -> float:
        """Probability that a damaged frame is followed by a good one."""
        fade = -log(1 - self.p)
        rho = float(j0(2 * np.pi * self.doppler))
        theta = sqrt(2 * fade / (1 - rho**2))
        return float((_marcum(theta, rho * theta) - _marcum(rho * theta, theta)) / np.expm1(fade))

    @property
    def burst(self) -> float:
        """Mean number of damaged frames in a row."""
        return 1 / self.ends

    @property
    def start(self) -> Law:
        """The state is whether the previous frame was damaged."""
        return np.array([1 - self.p, self.p])

    def split(self, law: Law) -> tuple[Law, Law]:
        """A good and a damaged frame."""
        begins = self.ends * self.p / (1 - self.p)
        damaged = law[0] * begins + law[1] * (1 - self.ends)
        return np.array([law.sum() - damaged, 0.0]), np.array([0.0, damaged])


def _marcum(a: float, b: float) -> float:
    """Marcum's Q of first order, as the tail of the noncentral chi-squared law."""
    return float(ncx2.sf(b * b, 2, a * a))


def named(errors: Errors, p: float, step: float, doppler: float) -> ErrorProcess:
    """Creates a process by name from its parameters; `step` is the power control's, dB."""
    if errors is Errors.INDEPENDENT:
        return Independent(p)
    if errors is Errors.RAYLEIGH:
        return Rayleigh(p, doppler)
    return Chain(step)


def drawn(process: ErrorProcess, slots: int, seed: int) -> NDArray[np.bool_]:
    """For each slot, whether it damages a frame; random, from a seed."""
    uniform = np.random.default_rng(seed).random(slots + 1)
    table = _table(process)
    state = int(np.searchsorted(np.cumsum(process.start), uniform[0] * process.start.sum()))
    found = np.empty(slots, dtype=np.bool_)
    for slot, u in enumerate(uniform[1:].tolist()):
        p, good, damaged = table[min(state, len(table) - 1)]
        found[slot] = u < p
        state = damaged if u < p else good
    return found


def _table(process: ErrorProcess) -> list[tuple[float, int, int]]:
    """For each state the probability of damage, and the state after a good and after a damaged frame."""
    found = []
    for state in range(len(process.start)):
        one = np.zeros(len(process.start))
        one[state] = 1.0
        good, damaged = process.split(one)
        found.append((float(damaged.sum()), int(np.argmax(good)), int(np.argmax(damaged))))
    return found
