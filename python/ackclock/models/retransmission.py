"""Retransmission as feedback: frames are repeated g slots after they were damaged; finds the best g.

## Source
M05 section 5.2, equation 5.1.

## What it does
In slots k, with x(k) frames that have come, e(k) errors and y(k) frames that have left in order, cumulative:
s(k) = k - e(k-g), f(k) = min over l <= k of x(l) + s(k) - s(l); slot k carries frame t(k) = f(k) where
e(k-g) = e(k-g-1), else t(k-g) again; y(k) is the largest n so that all frames up to n have been sent without error;
d(k) = min{u >= 0: y(k+u) >= x(k)}. `by_formula` computes that; `by_event` plays a queue and a line of frames that are
to be repeated. Both need the same slots.

The best g is where a quality Q is largest: the mean delay with its sign turned, or P_TO with its sign turned, the
probability that the delay exceeds mean + 4 standard deviations. `--optimise g` runs every g over the same slots.

## Differences from the source
A slot in which nothing is due and nothing waits is idle: t(k) = 0 and no error. Frames count from 1, x and e are 0 up
to slot 0, and l runs from 0. The source leaves x, e and Q open. Here x is a packet of `frames` frames every `period`
slots, and d is the delay of the last frame of each packet in order. The source expects the best g where errors g slots
apart are no longer correlated. Judged by P_TO that holds where errors come in bursts; the power control makes errors
repel each other, so that the soonest repetition is best; judged by the mean the soonest is best with every process.

## Validation
The two computations agree frame by frame on drawn inputs; a single error stalls the output for g slots; a saturated
channel carries 1 - p (tests).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from ackclock.models import allowed
from ackclock.models.answer import Answer
from ackclock.models.delay_law import DEVIATIONS
from ackclock.models.error_process import Errors, Rayleigh, drawn, named
from ackclock.models.packet_delay import Frames

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = (
    "2 --slots 20000",
    "2 --optimise g --errors rayleigh --doppler 0.02 --most 12 --slots 20000",
)
Counts = NDArray[np.int64]


class Parameter(StrEnum):
    """Parameter to optimise."""

    NONE = "none"
    G = "g"


class Quality(StrEnum):
    """Quantity to minimise."""

    MEAN = "mean"
    P_TIMEOUT = "p-timeout"


@dataclass(frozen=True)
class Course:
    """Events slot by slot, from slot 1.

    Attributes:
        sent: t(k): the frame sent in a slot, 0 if it is idle.
        errors: e(k): errors so far.
        output: y(k): frames that have left in order.
    """

    sent: Counts
    errors: Counts
    output: Counts


def by_formula(arrived: Sequence[int], damages: Sequence[bool], g: int) -> Course:
    """The course by the formulas of the source.

    Args:
        arrived: x(k): frames that have arrived up to each slot.
        damages: Whether a slot damages its frame.
        g: Slots from a damaged frame to its repetition.

    Raises:
        ValueError: if `g` is below 1, or the lengths differ.
    """
    _check(arrived, damages, g)
    n = len(damages)
    x, e, t, f = [0, *map(int, arrived)], [0] * (n + 1), [0] * (n + 1), [0] * (n + 1)
    y, unused = [0] * (n + 1), [0] * (n + 1)
    received: set[int] = set()

    def errors(k: int) -> int:
        return e[k] if k > 0 else 0

    least = x[0] - 0
    for k in range(1, n + 1):
        unused[k] = k - errors(k - g)
        least = min(least, x[k] - unused[k])
        f[k] = least + unused[k]
        if errors(k - g) > errors(k - g - 1):
            t[k] = t[k - g]
        elif f[k] > f[k - 1]:
            t[k] = f[k]
        e[k] = e[k - 1] + (t[k] > 0 and bool(damages[k - 1]))
        if t[k] > 0 and e[k] == e[k - 1]:
            received.add(t[k])
        y[k] = y[k - 1]
        while y[k] + 1 in received:
            y[k] += 1
            received.discard(y[k])
    return Course(*(np.array(one[1:], dtype=np.int64) for one in (t, e, y)))


def by_event(arrived: Sequence[int], damages: Sequence[bool], g: int) -> Course:
    """The course, simulated with a queue of new frames and a queue of repetitions; arguments and errors as above."""
    _check(arrived, damages, g)
    again: deque[int] = deque([0] * g)
    held: set[int] = set()
    first, out, errors = 0, 0, 0
    sent: list[int] = []
    counted: list[tuple[int, int]] = []
    for x, damage in zip(map(int, arrived), damages, strict=True):
        frame = again.popleft()
        if frame == 0 and first < x:
            first += 1
            frame = first
        lost = frame > 0 and bool(damage)
        again.append(frame if lost else 0)
        errors += lost
        if frame > 0 and not lost:
            held.add(frame)
            while out + 1 in held:
                out += 1
                held.remove(out)
        sent.append(frame)
        counted.append((errors, out))
    e, y = zip(*counted, strict=True) if counted else ((), ())
    return Course(*(np.array(one, dtype=np.int64) for one in (sent, e, y)))


def delays(arrived: Counts, output: Counts) -> Counts:
    """d(k) of the slots in which frames arrived, as far as known."""
    slots = np.flatnonzero(np.diff(arrived, prepend=0) > 0)
    leaves = np.searchsorted(output, arrived[slots])
    known = leaves < len(output)
    return np.asarray(leaves[known] - slots[known])


def packets(slots: int, frames: int, period: float) -> Counts:
    """x(k) for a packet of `frames` frames every `period` slots (on average, if not a whole number)."""
    return np.asarray(frames * (1 + np.floor(np.arange(slots) / period)), dtype=np.int64)


@dataclass(frozen=True)
class Judged:
    """The delay of packets with one g.

    Attributes:
        g: Slots from a damaged frame to its repetition.
        mean: Mean delay, slots.
        sd: Its standard deviation, slots.
        p_timeout: Share of packets above mean + 4 sd.
    """

    g: int
    mean: float
    sd: float
    p_timeout: float

    def bad(self, quality: Quality) -> float:
        """-Q."""
        return self.mean if quality is Quality.MEAN else self.p_timeout


def judged(arrived: Counts, damages: NDArray[np.bool_], g: int) -> Judged:
    """Packet delays with a given g."""
    d = delays(arrived, by_event(arrived.tolist(), damages.tolist(), g).output)
    if d.size == 0:
        raise ValueError("slots: no packet arrives in so few")
    mean, sd = float(d.mean()), float(d.std())
    return Judged(g, mean, sd, float((d > (mean + DEVIATIONS * sd) * (1 + 1e-9)).mean()))


def model(
    frames: Frames,
    errors: Annotated[Errors, "Process of the errors."] = Errors.POWER_CONTROLLED,
    g: Annotated[int, "Slots from a damaged frame to its repetition."] = 3,
    optimise: Annotated[Parameter, "What to optimise."] = Parameter.NONE,
    quality: Annotated[Quality, "What is to be small."] = Quality.P_TIMEOUT,
    most: Annotated[int, "Largest g that is tried."] = 20,
    period: Annotated[float, "Slots from one packet to the next."] = 8.0,
    p: Annotated[float, "Share of damaged frames; the power control has its own."] = 0.1,
    step: Annotated[float, "Step of the power control, dB."] = 0.06,
    doppler: Annotated[float, "Doppler frequency of the Rayleigh fading times the length of a slot."] = 0.01,
    slots: Annotated[int, "Slots that are run."] = 200_000,
    seed: Annotated[int, "Seed of the errors."] = 1,
) -> Answer:
    """The answer of `ackclock model retransmission`."""
    allowed.at_most({"g": g}, 1000)
    allowed.at_most({"most": most}, 1000)
    allowed.at_most({"slots": slots}, 1e8)
    allowed.at_most({"frames": frames}, 1000)
    allowed.zero_or_more({"seed": seed})
    allowed.above_zero({"period": period})
    process = named(errors, p, step, doppler)
    damages = drawn(process, slots, seed)
    share = float(damages.mean())
    if frames / period + share >= 1:
        least = frames / (1 - share)
        raise ValueError(f"period: {period:g} is not above {least:.3g}, what packets of {frames} frames need")
    arrived = packets(slots, frames, period)
    tried = range(1, most + 1) if optimise is Parameter.G else [g]
    rows = [judged(arrived, damages, one) for one in tried]
    values = {
        "error_rate": share,
        "mean_burst": process.burst if isinstance(process, Rayleigh) else None,
        "best_g": min(rows, key=lambda row: row.bad(quality)).g if optimise is Parameter.G else None,
        "by_g": [{"g": row.g, "mean_slots": row.mean, "sd_slots": row.sd, "p_timeout": row.p_timeout} for row in rows],
    }
    return Answer(values, draw=lambda: picture({errors.value: rows}))


def picture(curves: dict[str, list[Judged]]) -> "Figure":
    """P_TO and the mean delay over g."""
    import matplotlib as mpl

    from ackclock import plot
    from ackclock.plot.style import Picture

    with mpl.rc_context(plot.STYLE):
        figure = Picture(figsize=(6.4, 5.6), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        for (name, rows), colour, marker in zip(curves.items(), plot.COLOURS, plot.MARKERS, strict=False):
            g = [row.g for row in rows]
            above.plot(g, [100 * row.p_timeout for row in rows], color=colour, marker=marker, label=name)
            below.plot(g, [row.mean for row in rows], color=colour, marker=marker)
        above.set(ylabel="P_TO (%)", ylim=(0, None))
        below.set(ylabel="mean delay (slots)", xlabel="slots g to the repetition", ylim=(0, None))
        above.legend(fontsize=9)
    return figure


def _check(arrived: Sequence[int], damages: Sequence[bool], g: int) -> None:
    if g < 1:
        raise ValueError(f"g: {g} is not 1 or above")
    if len(arrived) != len(damages):
        raise ValueError(f"arrived: {len(arrived)} slots, and {len(damages)} of errors")
