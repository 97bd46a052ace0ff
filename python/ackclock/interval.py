"""Means and their confidence intervals."""

from functools import cache

import numpy as np
from numpy.typing import ArrayLike


def mean_and_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Mean and half the width of its confidence interval; missing values (NaN) are ignored."""
    array = np.atleast_1d(np.asarray(values, dtype=float))
    known = array[~np.isnan(array)]
    return (float(known.mean()) if known.size else np.nan), half_interval(known, confidence)


def half_interval(values: ArrayLike, confidence: float = 0.95) -> float:
    """Half the width of the mean's confidence interval (Student's t); 0 for a single value."""
    array = np.asarray(values, dtype=float)
    # For equal values the deviation would only be rounding error.
    if array.size < 2 or np.ptp(array) == 0:
        return 0.0
    return float(_quantile(confidence, array.size - 1) * array.std(ddof=1) / np.sqrt(array.size))


@cache
def _quantile(confidence: float, freedom: int) -> float:
    """Quantile of Student's t for a two-sided interval; cached, because tables need it thousands of times."""
    from scipy.stats import t

    return float(t.ppf((1 + confidence) / 2, freedom))
