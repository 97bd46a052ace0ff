"""Finished runs as tables and arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ackclock.files import naming, read_text

if TYPE_CHECKING:
    import pandas as pd

Run = Mapping[str, Any]
Series = Mapping[str, NDArray[np.float64]]


class Results:
    """The runs of one call: JSON objects, with the time series where they were asked for.

    Attributes:
        objects: One JSON object a run, as `ackclock run --json` prints it.
        series: One mapping a run from `time`, `queue`, `cwnd/0`, ... to the engine's own arrays, not copies.
        series_of: Names of the runs of `series`, where they have some.
        confidence: Probability with which the confidence intervals of tables and plots hold the mean; set it at will.
    """

    def __init__(self, objects: Iterable[Run], series: Sequence[Series] = ()) -> None:
        self.objects: list[Run] = list(objects)
        self.series: list[Series] = list(series)
        self.series_of: list[str] = []
        self.confidence = 0.95

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
        # Strings of JSON may hold what `splitlines` takes for further ends of lines.
        for number, line in enumerate(read_text(Path(path)).split("\n"), start=1):
            if not line.strip():
                continue
            try:
                run = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}:{number}: not JSON: {error}") from None
            if not isinstance(run, dict) or not isinstance(run.get("flows"), list):
                raise ValueError(f"{path}:{number}: not the object of a run (no list `flows`)")
            objects.append(run)
        return cls(objects)

    def __len__(self) -> int:
        return len(self.objects)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row a run: its point of a sweep, seed, what was measured at both links, and how fair shares were."""
        return _table(
            [
                {**_identity(run), **{k: v for part in _OF_RUN for k, v in _flat(part, run.get(part) or {}).items()}}
                for run in self.objects
            ]
        )

    @cached_property
    def flows(self) -> pd.DataFrame:
        """One row a flow and run; nested fields get dotted names such as `rtt_ms.p95`."""
        return self._rows("flows")

    @cached_property
    def users(self) -> pd.DataFrame:
        """One row a user and run: what all flows of the user got together."""
        return self._rows("users")

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """One row a class of size and run, of workloads whose flows come and go.

        The column `user` is missing (NaN) in the rows of all users together; those of single users stand beside them
        where there are several.
        """
        return self._rows("transfers")

    def flows_with(self, *columns: str) -> pd.DataFrame:
        """The table `flows`, which has these columns.

        Raises:
            ValueError: naming what is missing, if there are no rows or a column is none of the table's.
        """
        if self.flows.empty:
            raise ValueError("these runs have no rows of flows; flows that come and go are in `users` and `transfers`")
        missing = [column for column in columns if column not in self.flows]
        if missing:
            raise ValueError(f"{', '.join(missing)}: no column of flows; there are {', '.join(map(str, self.flows))}")
        return self.flows

    def _rows(self, name: str) -> pd.DataFrame:
        """The objects of a list as rows; nested fields get dotted names."""
        return _table(
            [
                {**_identity(run), **{k: v for field in one for k, v in _flat(field, one[field]).items()}}
                for run in self.objects
                for one in run.get(name) or []
            ]
        )

    @property
    def swept(self) -> list[str]:
        """The keys that a sweep varied, in its order."""
        return list(dict.fromkeys(key for run in self.objects for key in run.get("point") or {}))

    @property
    def varied(self) -> list[str]:
        """The swept keys with more than one value; all swept keys where none has."""
        values = {key: {str((run.get("point") or {}).get(key)) for run in self.objects} for key in self.swept}
        return [key for key in self.swept if len(values[key]) > 1] or self.swept

    def per_run(self, columns: Sequence[str], by: Sequence[str]) -> pd.DataFrame:
        """One row a run and combination of `by`: what its flows have together.

        Rates, bytes and counts are summed over the flows, all else is their mean, as in the tables of the command; a
        missing value is left out.

        Args:
            columns: Columns of `flows` with numbers.
            by: Columns of `flows` that tell apart what is not put together; with `id` among them that is every flow.

        Raises:
            ValueError: if there are no rows of flows, or a column is none of theirs.
        """
        import pandas as pd

        flows = self.flows_with(*columns, *by)
        runs = np.repeat(np.arange(len(self.objects)), [len(run.get("flows") or []) for run in self.objects])
        groups = flows.astype(dict.fromkeys(columns, float)).groupby([runs, *by], sort=False)
        reduced = {name: groups[name].sum(min_count=1) if name in _SUMMED else groups[name].mean() for name in columns}
        return pd.DataFrame(reduced).reset_index(list(range(1, 1 + len(by)))) if by else pd.DataFrame(reduced)

    def summary(self, column: str = "goodput_bps", by: Sequence[str] | None = None) -> pd.DataFrame:
        """Mean, standard deviation and confidence interval, over runs, of what a run's flows have together.

        Args:
            column: A column of `flows`.
            by: The columns that name a point; the swept keys unless given, or the senders where nothing was swept.
                With `id` among them each flow is for itself.

        Returns:
            One row a point: `mean`, `sd`, `low` and `high` (the interval's ends), `n` (runs that have the number).

        Raises:
            ValueError: if there are no rows of flows, or a column is none of theirs.
        """
        import pandas as pd

        keys = list(by) if by is not None else self.swept or ["sender"]
        values = self.per_run([column], keys).groupby(keys, sort=False)[column]
        mean, half = values.mean(), values.agg(lambda of: mean_and_interval(of, self.confidence)[1])
        columns = {"mean": mean, "sd": values.std(), "low": mean - half, "high": mean + half, "n": values.count()}
        return pd.DataFrame(columns)


# A column of the command's series, its name here and the factor to the unit of this one.
_COLUMNS = {
    "cwnd_bytes": ("cwnd", 1.0),
    "ssthresh_bytes": ("ssthresh", 1.0),
    "advertised_bytes": ("advertised", 1.0),
    "srtt_ms": ("srtt", 1e-3),
    "rto_ms": ("rto", 1e-3),
    "rtt_ms": ("rtt", 1e-3),
    "delivered_bytes": ("rate", 8.0),
    "queue_packets": ("queue", 1.0),
    "rate_bps": ("link_rate", 1.0),
    "held_acks": ("held_acks", 1.0),
    "relay_cwnd_bytes": ("relay_cwnd", 1.0),
    "relay_buffered_bytes": ("relay_buffer", 1.0),
    "drops": ("drops", 1.0),
}


def read_series(path: str | os.PathLike[str]) -> Series:
    """The time series of a run as `ackclock run --series` writes it, with the names and units of `Results.series`.

    Raises:
        OSError: naming the file, if it cannot be read.
        ValueError: naming the file, if it is not such a series.
    """
    import pandas as pd

    try:
        with naming(path):
            table = pd.read_csv(path)
        series = {"time": table.pop("t_s").to_numpy(dtype=float)}
        for name in table:
            place, column = str(name).split(".", 1)
            # Of a link layer, or of the link from the mobiles: which direction, and what.
            stem, factor = _COLUMNS.get(column, (column if "." in column else "", 1.0))
            number = place.lstrip("abcdefghijklmnopqrstuvwxyz")
            values = factor * table[name].to_numpy(dtype=float)
            if column in ("cwnd_bytes", "ssthresh_bytes", "advertised_bytes", "relay_cwnd_bytes"):
                values = values / table[f"{place}.mss_bytes"].to_numpy(dtype=float)
            elif column == "delivered_bytes":
                values = np.diff(values, prepend=np.nan) / np.diff(series["time"], prepend=np.nan)
            if stem:
                series[f"{stem}/{number}" if number else stem] = values
    except (KeyError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)}: not a time series of `ackclock run --series`: {error}") from None
    return series


def mean_and_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Mean, and half the width of its confidence interval; missing values (NaN) are left out."""
    array = np.atleast_1d(np.asarray(values, dtype=float))
    known = array[~np.isnan(array)]
    return (float(known.mean()) if known.size else np.nan), half_interval(known, confidence)


def half_interval(values: ArrayLike, confidence: float = 0.95) -> float:
    """Half the width of the mean's confidence interval by Student's law; 0 for one value, which shows none."""
    array = np.asarray(values, dtype=float)
    # The deviation of equal values would be what rounding leaves of their mean.
    if array.size < 2 or np.ptp(array) == 0:
        return 0.0
    return float(_quantile(confidence, array.size - 1) * array.std(ddof=1) / np.sqrt(array.size))


@cache
def _quantile(confidence: float, freedom: int) -> float:
    """Quantile of Student's law for a two-sided interval; a table asks for the same one thousands of times."""
    from scipy.stats import t

    return float(t.ppf((1 + confidence) / 2, freedom))


# What the flows of a run have together is the sum of theirs.
_SUMMED = {
    "goodput_bps", "wire_goodput_bps", "delivered_bytes", "segments_sent", "retransmits", "fast_retransmits",
    "timeouts", "spurious_timeouts", "loss_cycles.cycles",
}  # fmt: skip

# What the object of a run says of the run as a whole.
_OF_RUN = ("bottleneck", "uplink", "fairness")


def _identity(run: Run) -> dict[str, Any]:
    known = {key: run.get(key) for key in ("scenario", "seed", "run", "duration_s")}
    return known | {key: label(value) for key, value in (run.get("point") or {}).items()}


def label(value: Any) -> Any:
    """A swept value as a cell: a table such as `{ kind = "ack-regulator", alpha = 3 }` becomes text."""
    if not isinstance(value, Mapping):
        return value
    others = [f"{key} {label(inner)}" for key, inner in value.items() if key != "kind"]
    return " ".join([*([str(value["kind"])] if "kind" in value else []), *others])


def _flat(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {name: value}
    return {f"{name}.{key}": inner for below in value for key, inner in _flat(below, value[below]).items()}


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows)
