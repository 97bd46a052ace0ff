"""Whether one thing is more than another, tested over the seeds.

Runs of one number share their chance whatever regulator or scheduler they have: the same fades, the same pages. What is
tested is therefore the mean of the differences, run by run (Student's paired test).
"""

from collections.abc import Iterable

import numpy as np

from ackclock.paper.runs import PerSeed

LEVEL = 0.05  # of a one-sided test


def gain(ours: PerSeed, base: PerSeed) -> PerSeed:
    """How much `ours` exceeds `base`, percent, seed by seed."""
    return 100 * (ours / base - 1)


def above(ours: PerSeed, base: PerSeed) -> bool:
    """Whether `ours` is more than `base`; of a single run the sign alone says so."""
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
    """Whether `ours` is less than `base`."""
    return above(base, ours)


def alike(ours: PerSeed, base: PerSeed, percent: float) -> bool:
    """Whether the means differ by so many percent at most."""
    return bool(abs(np.mean(ours) / np.mean(base) - 1) <= percent / 100)


def leads(ours: PerSeed, others: Iterable[PerSeed], percent: float = 1.0) -> bool:
    """Whether `ours` is more than each of the others, or as much within `percent`, as where both reach the capacity."""
    return all(above(ours, other) or alike(ours, other, percent) for other in others)
