"""Points compared run by run: runs of equal seed and number draw the same random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ackclock.interval import half_interval
from ackclock.names import listed, near

if TYPE_CHECKING:
    import pandas as pd

    from ackclock.results import Results

# Minimum number of differences for an interval.
LEAST_RUNS = 3


def paired(results: Results, column: str, by: str, baseline: str) -> pd.DataFrame:
    """The table of `Results.paired`."""
    import pandas as pd

    if by not in results.swept:
        raise ValueError(f"by: {by} was not varied; there are {listed(results.swept)}{near(by, results.swept)}")
    others = [*(key for key in results.swept if key != by), *(_if_several(results, "scenario"))]
    rows = _each_once(results.measured(column, [by, *others, "seed", "run"]), [by, *others, "seed", "run"])
    is_base = rows[by].astype(str) == baseline
    if not is_base.any():
        there = list(dict.fromkeys(rows[by].astype(str)))
        raise ValueError(f"baseline: {by} is never {baseline}; there are {listed(there)}{near(baseline, there)}")
    pairs = rows[~is_base].merge(
        rows[is_base].drop(columns=by), on=[*others, "seed", "run"], how="left", suffixes=("", " of baseline")
    )
    base = pairs[f"{column} of baseline"]
    pairs = pairs.assign(difference=pairs[column] - base)
    table = {}
    for point, group in pairs.groupby([by, *others], sort=False):
        if group["difference"].notna().sum() == 0:
            raise ValueError(f"{by} {point[0]}: no run shares its seed and number with one of {baseline}")
        table[point] = _row(group["difference"], group[f"{column} of baseline"], results.confidence)
    index = pd.MultiIndex.from_tuples(list(table), names=[by, *others])
    return pd.DataFrame(list(table.values()), index=index if others else index.get_level_values(0))


def _row(differences: pd.Series[float], base: pd.Series[float], confidence: float) -> dict[str, float]:
    known = differences.dropna()
    mean = float(known.mean())
    # Equal runs are effectively one run.
    shown = len(known) >= LEAST_RUNS and np.ptp(known) > 0
    half = half_interval(known, confidence) if shown else np.nan
    of_base = float(base[differences.notna()].mean())
    return {
        "mean_difference": mean,
        # Of what is never negative, nothing can be less by more than all of it.
        "low": max(mean - half, -of_base) if mean >= -of_base else mean - half,
        "high": mean + half,
        "n": len(known),
        "baseline": of_base,
        "relative": mean / of_base if of_base else np.nan,
    }


def _each_once(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    again = rows[rows.duplicated(list(keys))]
    if not again.empty:
        point = ", ".join(f"{key} {again.iloc[0][key]}" for key in keys)
        raise ValueError(f"{point}: there are two such runs, so that differences run by run are not defined")
    return rows


def _if_several(results: Results, column: str) -> list[str]:
    return [column] if results.runs[column].nunique() > 1 else []
