"""Finished runs as tables and arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pandas as pd

Run = Mapping[str, Any]
Series = Mapping[str, NDArray[np.float64]]


class Results:
    """The runs of one call: JSON objects, with the time series where they were asked for.

    Attributes:
        objects: One JSON object a run, as `ackclock run --json` prints it.
        series: One mapping a run from `time`, `queue`, `cwnd/0`, ... to the engine's own arrays, not copies.
    """

    def __init__(self, objects: Iterable[Run], series: Sequence[Series] = ()) -> None:
        self.objects: list[Run] = list(objects)
        self.series: list[Series] = list(series)

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> Results:
        """Results of JSON lines; empty lines are passed over."""
        return cls(json.loads(line) for line in lines if line.strip())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Results:
        """Results of a file of JSON lines, as `--json` writes it.

        Raises:
            ValueError: naming file and line, if a line is not the object of a run.
        """
        objects = []
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
            if not line.strip():
                continue
            try:
                run = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}:{number}: not JSON: {error}") from None
            if not isinstance(run, dict) or "flows" not in run:
                raise ValueError(f"{path}:{number}: not the object of a run (no `flows`)")
            objects.append(run)
        return cls(objects)

    def __len__(self) -> int:
        return len(self.objects)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row a run: its point of a sweep, seed and what was measured at the bottleneck."""
        return _table([{**_identity(run), **_flat("bottleneck", run.get("bottleneck") or {})} for run in self.objects])

    @cached_property
    def flows(self) -> pd.DataFrame:
        """One row a flow and run; nested fields get dotted names such as `rtt_ms.p95`."""
        return _table(
            [
                {**_identity(run), **{k: v for field in flow for k, v in _flat(field, flow[field]).items()}}
                for run in self.objects
                for flow in run["flows"]
            ]
        )

    @property
    def swept(self) -> list[str]:
        """The keys that a sweep varied, in its order."""
        return list(dict.fromkeys(key for run in self.objects for key in run.get("point") or {}))

    def summary(self, column: str = "goodput_bps", by: Sequence[str] | None = None) -> pd.DataFrame:
        """Mean, standard deviation and 95 % confidence interval of a flow's column over runs.

        Args:
            column: A column of `flows`.
            by: The columns that name a point; the swept keys unless given, or the senders where nothing was swept.

        Returns:
            One row a point: `mean`, `sd`, `low` and `high` (the interval's ends), `n`.
        """
        import pandas as pd

        keys = list(by) if by is not None else self.swept or ["sender"]
        values = self.flows.groupby(keys, sort=False)[column]
        mean, half = values.mean(), values.agg(half_interval)
        columns = {"mean": mean, "sd": values.std(), "low": mean - half, "high": mean + half, "n": values.count()}
        return pd.DataFrame(columns)


def half_interval(values: ArrayLike) -> float:
    """Half the width of the mean's 95 % confidence interval by Student's law; 0 for one value, which shows none."""
    from scipy.stats import t

    array = np.asarray(values, dtype=float)
    # The deviation of equal values would be what rounding leaves of their mean.
    if array.size < 2 or np.ptp(array) == 0:
        return 0.0
    return float(t.ppf(0.975, array.size - 1) * array.std(ddof=1) / np.sqrt(array.size))


def _identity(run: Run) -> dict[str, Any]:
    known = {key: run.get(key) for key in ("scenario", "seed", "run", "duration_s")}
    return known | {key: _label(value) for key, value in (run.get("point") or {}).items()}


def _label(value: Any) -> Any:
    """A swept value as a cell: a table such as `{ kind = "ack-regulator", alpha = 3 }` becomes text."""
    if not isinstance(value, Mapping):
        return value
    others = [f"{key} {_label(inner)}" for key, inner in value.items() if key != "kind"]
    return " ".join([*([str(value["kind"])] if "kind" in value else []), *others])


def _flat(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {name: value}
    return {f"{name}.{key}": inner for below in value for key, inner in _flat(below, value[below]).items()}


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows)
