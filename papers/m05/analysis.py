"""Numbers of chapters 3 to 5 computed from formulas, each once."""

from dataclasses import dataclass
from functools import cache
from math import e

import numpy as np

from ackclock.models.degradation import Path, after_fast_retransmit, after_timeout, deficit, degradation
from ackclock.models.delay_law import DelayLaw
from ackclock.models.error_process import Independent, Rayleigh
from ackclock.models.optimal_delays import Optimum, optimal_delays
from ackclock.models.packet_delay import ErrorProcess, PacketDelay, Scheme, packet_delay, spurious_fast_retransmit
from ackclock.models.power_control import Chain

STEPS = (0.2, 0.06, 0.02)  # dB
SIZES = tuple(range(1, 11))  # frames of a packet
TTI = 20.0  # ms
EPSILON, RHO = 0.001, 10.0  # section 5.4; ms
REST = 0.2  # s, the round trip beside the link
LONGEST = 180.0  # ms, of table 5.1
RATIOS = (1.0, 1.25, 1.5, 2.0, 2.5, e, 3.0, 4.0, 5.0, 8.0, 10.0)  # tau*/tau
KIB = 1024
AVAILABLE = 384_000 * 0.9 / 8 / KIB  # KiB/s: one frame in ten is damaged


@dataclass(frozen=True)
class Packets:
    """The packets of the example of section 4.5."""

    size: int
    frames: int
    window: int

    @property
    def path(self) -> Path:
        """The path with their window."""
        return Path(self.window, self.size, REST)

    def missing(self, event: str) -> int:
        """d: packets fewer after a fast retransmit (`FR`) or a timeout (`TO`)."""
        sent = after_fast_retransmit(self.window) if event == "FR" else after_timeout(self.window)
        return deficit(sent, self.window)

    def degradation(self, event: str, step: float) -> float:
        """Table 4.3, percent."""
        p = fast_retransmit(step, self.frames) if event == "FR" else delay(step, self.frames).law.p_timeout
        return 100 * degradation(self.missing(event), p)


EXAMPLES = (Packets(960, 1, 8), Packets(1500, 2, 5))


@cache
def chain(step: float) -> Chain:
    """The outer loop with a step."""
    return Chain(step)


def swing(delay: int) -> list[float]:
    """Levels over the reference in one period of the inner loop over a still channel, steps of 1 dB.

    Each sample moves the level by a step against its sign `delay` - 1 samples earlier.
    """
    levels = [0.3] * delay  # anywhere between two steps
    states: list[tuple[float, ...]] = []
    while (state := tuple(round(level, 6) for level in levels[-delay:])) not in states:
        states.append(state)
        levels.append(levels[-1] - (1.0 if levels[-delay] > 0 else -1.0))
    return [past[-1] for past in states[states.index(state) :]]


@cache
def delay(step: float, frames: int) -> PacketDelay:
    """The delay of packets, TTI."""
    return packet_delay(chain(step), frames)


@cache
def fast_retransmit(step: float, frames: int) -> float:
    """P_FR."""
    return spurious_fast_retransmit(chain(step), frames)


def law() -> DelayLaw:
    """The law of table 5.1, ms."""
    return delay(0.06, 2).law.scaled(TTI)


@cache
def optimum() -> Optimum:
    """The optimal delays of section 5.4, ms."""
    return optimal_delays(law(), EPSILON, RHO)


def throughput() -> dict[str, float]:
    """Table 5.2, KiB/s."""
    path, found = EXAMPLES[1].path, optimum()
    before, after = found.law.mean / 1e3, found.after.mean / 1e3
    return {
        "available": AVAILABLE,
        "ideal": path.ideal(before),
        "wireless": path.after_timeouts(before, found.law.p_timeout),
        "optimised": path.after_timeouts(after, found.after.p_timeout),
    }


PROCESSES: dict[str, ErrorProcess] = {
    "power control, step 0.06 dB": Chain(0.06),
    "power control, step 0.2 dB": Chain(0.2),
    "independent": Independent(0.1),
    "Rayleigh, f_D T 0.01": Rayleigh(0.1, 0.01),
    "Rayleigh, f_D T 0.1": Rayleigh(0.1, 0.1),
}
MOST_G = 120
NEAR = 1.05  # of the least P_TO, within which a g is as good as the best
UNLIMITED = 60  # repetitions of a frame


@cache
def p_timeout_by_g(process: str) -> list[float]:
    """P_TO of packets of one frame that are retransmitted after 1, 2, .. slots."""
    of = PROCESSES[process]
    return [packet_delay(of, 1, Scheme(g, UNLIMITED)).law.p_timeout for g in range(1, MOST_G + 1)]


def best_g(process: str) -> int:
    """The smallest g whose P_TO is within 5 % of the least."""
    found = p_timeout_by_g(process)
    return 1 + next(i for i, p in enumerate(found) if p <= NEAR * min(found))


def damaged_again(process: str, g: int) -> float:
    """Probability that a frame is damaged g slots after a damaged one."""
    of = PROCESSES[process]
    law = of.split(of.start)[1]
    law = law / law.sum()
    for _ in range(g - 1):
        law = np.sum(of.split(law), axis=0)
    return float(of.split(law)[1].sum())
