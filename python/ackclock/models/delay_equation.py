"""Differential equations with one constant delay, solved step by step."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ackclock.models import allowed

State = NDArray[np.float64]
# x'(t) of x(t) and x(t - delay).
Slope = Callable[[State, State], State]
MOST_STEPS = 2_000_000


def solve(
    slope: Slope, start: Sequence[float], delay: float, end: float, steps: int = 200, least: float | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Times and states of x'(t) = slope(x(t), x(t - delay)), with x = `start` up to t = 0.

    The method of steps with Heun's rule: a step is the delay over a whole number, so that the delayed state is known at
    both its ends and the error falls with the square of the step.

    Args:
        slope: Right hand side.
        start: The state up to t = 0.
        delay: The delay; with 0 a step is the 1/`steps` part of a time unit.
        end: Last time.
        steps: Steps a delay.
        least: No component falls below it, as a queue does not below 0.

    Raises:
        ValueError: if `delay` is below 0, `end` not above 0, or more than two million steps would be needed.
    """
    allowed.zero_or_more({"delay": delay})
    allowed.above_zero({"end": end})
    allowed.one_or_more({"steps": steps})
    step = delay / steps if delay > 0 else 1 / steps
    count = int(np.ceil(end / step))
    if count > MOST_STEPS:
        raise ValueError(f"end: {end:g} takes {count} steps, more than {MOST_STEPS}")
    back = steps if delay > 0 else 0
    found = np.empty((count + 1, len(start)))
    found[0] = start
    for k in range(count):
        now = found[k]
        late, late_then = (found[max(0, k - back)], found[max(0, k + 1 - back)]) if back else (now, now)
        first = slope(now, late)
        trial = now + step * first
        second = slope(trial, late_then if back else trial)
        found[k + 1] = now + step / 2 * (first + second)
        if least is not None:
            found[k + 1] = np.maximum(found[k + 1], least)
    return np.asarray(step * np.arange(count + 1, dtype=np.float64)), found
