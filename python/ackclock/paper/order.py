"""Tests over the seeds whether one quantity exceeds another.

Runs of equal number draw the same fades and pages, whatever their regulator or scheduler. So the test uses
the mean of the paired differences (Student's paired t-test).
"""

from collections.abc import Iterable

import numpy as np

from ackclock.paper.runs import PerSeed

LEVEL = 0.05  # of a one-sided test


def gain(ours: PerSeed, base: PerSeed) -> PerSeed:
    """Excess of `ours` over `base` in percent, seed by seed."""
    return 100 * (ours / base - 1)


def above(ours: PerSeed, base: PerSeed) -> bool:
    """Whether `ours` is significantly more than `base`; for a single run, by the sign alone."""
    from scipy.stats import t

    differences = np.asarray(ours - base, dtype=float)
    if not np.isfinite(differences).all():
        return False
    mean, n = float(differences.mean()), differences.size
    if n < 2 or np.ptp(differences) == 0:
        return mean > 0
    statistic = mean / (differences.std(ddof=1) / np.sqrt(n))
    return bool(t.sf(statistic, n - 1) < LEVEL)


def below(ours: PerSeed, base: PerSeed) -> bool:
    """Whether `ours` is significantly less than `base`."""
    return above(base, ours)


def alike(ours: PerSeed, base: PerSeed, percent: float) -> bool:
    """Whether the means differ by at most this many percent."""
    return bool(abs(np.mean(ours) / np.mean(base) - 1) <= percent / 100)


def leads(ours: PerSeed, others: Iterable[PerSeed], percent: float = 1.0) -> bool:
    """Whether `ours` exceeds each of the others or equals it within `percent` (both may reach the capacity)."""
    return all(above(ours, other) or alike(ours, other, percent) for other in others)
