"""Means and their confidence intervals."""

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Accuracy of the percentiles of a histogram, as a share of their value.
_OF_PERCENTILES = 0.016


def resolution_of(column: str) -> float:
    """Resolution of a column's values as a share of them: that of percentiles, otherwise 0."""
    return _OF_PERCENTILES if column.endswith((".p50", ".p95", ".p99")) else 0.0


def mean_and_interval(values: ArrayLike, confidence: float = 0.95, resolution: float = 0.0) -> tuple[float, float]:
    """Mean and half the width of its confidence interval; missing values (NaN) are ignored.

    The interval of several values is widened by their `resolution`, a share of the mean.
    """
    array = np.atleast_1d(np.asarray(values, dtype=float))
    known = array[~np.isnan(array)]
    mean = float(known.mean()) if known.size else np.nan
    return mean, half_interval(known, confidence) + (resolution * abs(mean) if known.size > 1 else 0.0)


def half_interval(values: ArrayLike, confidence: float = 0.95) -> float:
    """Half the width of the mean's confidence interval (Student's t); 0 (none) for one value and equal values."""
    array = np.asarray(values, dtype=float)
    # For equal values the deviation would only be rounding error.
    if array.size < 2 or np.ptp(array) == 0:
        return 0.0
    return float(_quantile(confidence, array.size - 1) * array.std(ddof=1) / np.sqrt(array.size))


def possible(mean: ArrayLike, half: ArrayLike, least: float = 0.0) -> NDArray[np.float64]:
    """Lengths of intervals below and above their means: no interval of values from `least` on goes below `least`."""
    means, halves = np.asarray(mean, dtype=float), np.asarray(half, dtype=float)
    below = np.where(means >= least, np.minimum(halves, means - least), halves)
    return np.array([below, halves])


@cache
def _quantile(confidence: float, freedom: int) -> float:
    """Quantile of Student's t for a two-sided interval; cached, because tables need it thousands of times."""
    from scipy.stats import t

    return float(t.ppf((1 + confidence) / 2, freedom))
