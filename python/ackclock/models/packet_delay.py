"""Delay of IP packets over a channel that retransmits damaged frames.

## Source
M05 sections 4.3 and 4.4, tables 4.1 and 4.2, figures 4.7 and 4.9; table 5.1.

## What it does
A packet is n frames, the first of them in slot 1. A frame that is damaged in slot t is repeated in slot t + g
(`guard`), up to five times (`rounds`), before new frames. The packet is complete when all its frames are; its
retransmission delay is that slot less n, in TTI. P_TO is the probability of a delay above mean + 4 standard
deviations, P_FR that the first of four successive packets is complete last, which TCP takes for a loss. Every course
of errors is followed: courses that leave the same frames to send are one state with a distribution over states of the
error process, so that no length limits them and nothing is drawn.

## Differences from the source
The source sums over sequences of 20 frames. Slots that the packet does not need carry other frames, whose errors move
the power control too; were they idle, P_TO of n = 1 at a step of 0.2 dB would be 0.12 % instead of 0.26 %, and table
4.1 would not come out. What came before slot 1 repeats nothing into it. A packet of which a frame is damaged six
times is lost and has no delay.

## Validation
All 60 numbers of table 4.1 within half a unit of their last digit, table 4.2 but for one entry; sums over all sequences
of 20 frames (tests).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ackclock.models import allowed
from ackclock.models.answer import Answer
from ackclock.models.delay_law import DelayLaw
from ackclock.models.frame_errors import Bits, Coding, Gain, SirSd
from ackclock.models.power_control import Chain, Step, Up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = ("2", "1 --step 0.2 --guard 1 --json")
MOST_FRAMES, MOST_GUARD = 40, 120
Law = NDArray[np.float64]

Frames = Annotated[int, "Frames of a packet."]
Guard = Annotated[int, "Slots from a damaged frame to its repetition."]
Rounds = Annotated[int, "How often a frame is repeated."]
Tti = Annotated[float, "Length of a slot, ms."]


class ErrorProcess(Protocol):
    """Errors of successive frames, as a chain of hidden states."""

    @property
    def start(self) -> Law:
        """The stationary law over the states."""

    def split(self, law: Law) -> tuple[Law, Law]:
        """Splits a distribution into the parts after a good and after a damaged frame."""


@dataclass(frozen=True)
class Scheme:
    """Retransmission of damaged frames.

    Attributes:
        guard: Slots from a damaged frame to its repetition.
        rounds: Maximum number of repetitions of a frame.

    Raises:
        ValueError: if `guard` is not from 1 to 120, or `rounds` not from 1 to 100.
    """

    guard: int = 3
    rounds: int = 5

    def __post_init__(self) -> None:
        allowed.at_most({"guard": self.guard}, MOST_GUARD)
        allowed.at_most({"rounds": self.rounds}, 100)


@dataclass(frozen=True)
class PacketDelay:
    """The delay of packets of `frames` frames.

    Attributes:
        frames: Frames of a packet.
        law: Distribution of the retransmission delay of packets that arrive, TTI.
        lost: Probability that a packet does not arrive.
    """

    frames: int
    law: DelayLaw
    lost: float


def packet_delay(process: ErrorProcess, frames: int, scheme: Scheme = Scheme()) -> PacketDelay:
    """The distribution of the delay of packets.

    Raises:
        ValueError: if `frames` is not from 1 to 40, or `guard` times `frames` above 120.
    """
    allowed.at_most({"frames": frames}, MOST_FRAMES)
    _check_size(frames, scheme)
    ends, lost = _play(process, [frames], scheme, lambda missing: missing[0] == 0)
    complete = {slot - frames: p for (slot, _), p in sorted(ends.items()) if p > 0}
    arrived = sum(complete.values())
    return PacketDelay(frames, DelayLaw(list(complete), [p / arrived for p in complete.values()]), lost)


def spurious_fast_retransmit(process: ErrorProcess, frames: int, scheme: Scheme = Scheme()) -> float:
    """P_FR: probability that the first of four packets of `frames` frames in a row is complete last.

    Raises:
        ValueError: if `frames` is not from 1 to 10, or four times `guard` times `frames` above 120.
    """
    allowed.at_most({"frames": frames}, MOST_FRAMES // 4)
    _check_size(4 * frames, scheme)
    ends, _ = _play(process, [frames, 3 * frames], scheme, lambda missing: 0 in missing)
    return sum(p for (_, missing), p in ends.items() if missing[1] == 0)


def _check_size(frames: int, scheme: Scheme) -> None:
    """The number of courses grows with both; larger values would take minutes."""
    if frames * scheme.guard > MOST_GUARD:
        raise ValueError(f"guard: {scheme.guard} is above {MOST_GUARD // frames}, the most for {frames} frames")


class _Due(NamedTuple):
    """A scheduled repetition: the frame's group, and its number of repetitions so far."""

    group: int
    round: int


class _State(NamedTuple):
    """Frames still to send: repetitions by slot from the next one on, and new frames of each group."""

    due: tuple[_Due | None, ...]
    new: tuple[int, ...]

    def missing(self) -> tuple[int, ...]:
        """Number of missing frames of each group."""
        return tuple(
            new + sum(due is not None and due.group == group for due in self.due) for group, new in enumerate(self.new)
        )


_Ends = dict[tuple[int, tuple[int, ...]], float]


def _play(
    process: ErrorProcess, groups: Sequence[int], scheme: Scheme, ended: Callable[[tuple[int, ...]], bool]
) -> tuple[_Ends, float]:
    """Send groups of frames slot by slot until `ended` holds for the missing frames.

    Returns:
        Probability of each end, by slot and missing frames, and probability that a frame was given up.
    """
    states = {_State((None,) * scheme.guard, tuple(groups)): process.start}
    ends: _Ends = {}
    lost, slot = 0.0, 0
    while states:
        slot += 1
        following: dict[_State, Law] = {}
        for state, law in states.items():
            for after, part in _sent(process, state, law, scheme.rounds):
                if after is None:
                    lost += float(part.sum())
                elif ended(missing := after.missing()):
                    ends[slot, missing] = ends.get((slot, missing), 0.0) + float(part.sum())
                else:
                    following[after] = following[after] + part if after in following else part
        states = following
    return ends, lost


def _sent(process: ErrorProcess, state: _State, law: Law, rounds: int) -> list[tuple[_State | None, Law]]:
    """The states after the next slot, each with its part of the distribution; None if a frame is given up."""
    good, damaged = process.split(law)
    due, new = state.due[0], list(state.new)
    if due is None:
        group = next((group for group, left in enumerate(new) if left), None)
        if group is None:
            # The slot is used by another packet's frame.
            return [(_State((*state.due[1:], None), state.new), good + damaged)]
        new[group] -= 1
        due = _Due(group, 0)
    arrived = _State((*state.due[1:], None), tuple(new))
    if due.round == rounds:
        return [(arrived, good), (None, damaged)]
    again = _Due(due.group, due.round + 1)
    return [(arrived, good), (_State((*state.due[1:], again), tuple(new)), damaged)]


def model(
    frames: Frames,
    step: Step = 0.06,
    up: Up = 9,
    gain: Gain = 4.0,
    sir_sd: SirSd = 1.0,
    bits: Bits = 2560,
    guard: Guard = 3,
    rounds: Rounds = 5,
    tti: Tti = 20.0,
) -> Answer:
    """The answer of `ackclock model packet-delay`."""
    allowed.above_zero({"tti": tti})
    chain, scheme = Chain(step, Coding(gain, sir_sd, bits), up), Scheme(guard, rounds)
    found = packet_delay(chain, frames, scheme)
    few = 4 * frames * guard <= MOST_GUARD
    values = {
        "mean_tti": found.law.mean,
        "sd_tti": found.law.sd,
        "rto_tti": found.law.rto,
        "p_timeout": found.law.p_timeout,
        "p_fast_retransmit": spurious_fast_retransmit(chain, frames, scheme) if few else None,
        "lost": found.lost,
        "law": [
            {"delay_tti": delay, "delay_ms": tti * delay, "probability": p}
            for delay, p in zip(found.law.delays, found.law.probabilities, strict=True)
        ],
    }
    return Answer(values, draw=lambda: picture([found], tti))


def picture(laws: Sequence[PacketDelay], tti: float) -> "Figure":
    """Figure 4.7: the delay distribution of packets of each size, with mean + 4 standard deviations."""
    import matplotlib as mpl

    from ackclock import plot
    from ackclock.plot.style import Picture

    longest = tti * max(
        d for one in laws for d, p in zip(one.law.delays, one.law.probabilities, strict=True) if p > 1e-4
    )
    with mpl.rc_context(plot.STYLE):
        figure = Picture(figsize=(6.4, 1.4 + 1.5 * len(laws)), layout="constrained")
        panels = figure.subplots(len(laws), 1, sharex=True, squeeze=False)[:, 0]
        for axes, one in zip(panels, laws, strict=True):
            law = one.law.scaled(tti)
            axes.bar(law.delays, law.probabilities, width=0.5 * tti, color=plot.COLOURS[0])
            axes.axvline(law.rto, color=plot.COLOURS[1], linestyle="--", label=f"mean + 4 sd, {law.rto:.0f} ms")
            axes.set(yscale="log", ylim=(1e-5, 1.5), xlim=(-0.6 * tti, longest + 1.6 * tti))
            axes.set_title(
                f"{one.frames} frame{'s' * (one.frames > 1)} a packet, P_TO {law.p_timeout:.2%}", fontsize=10
            )
            axes.legend(loc="upper right", fontsize=9)
        figure.supylabel("probability", fontsize=11)
        panels[-1].set_xlabel("retransmission delay (ms)")
    return figure
