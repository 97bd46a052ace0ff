"""Finished runs as tables and arrays."""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ackclock import paired as pairs
from ackclock import points
from ackclock.files import naming, read_text, write_bytes
from ackclock.identity import once
from ackclock.interval import half_interval as half_interval
from ackclock.interval import mean_and_interval as mean_and_interval
from ackclock.interval import resolution_of
from ackclock.names import listed, near

if TYPE_CHECKING:
    import pandas as pd

Run = Mapping[str, Any]
Series = Mapping[str, NDArray[np.float64]]


class Results:
    """The runs of one call: JSON objects, with time series if requested.

    Attributes:
        objects: One JSON object per run, as printed by `ackclock run --json`.
        series: One mapping per run from `time`, `queue`, `cwnd/0`, ... to the engine's arrays, not copies.
        series_of: Names of the runs of `series`, if any.
        confidence: Confidence level of the intervals in tables and plots; may be changed.

    Example:
        >>> run = {"flows": [{"id": 0, "goodput_bps": 1000.0}], "run": 0}
        >>> results = Results([{**run, "point": {"edge.buffer": buffer}} for buffer in ("4p", "8p")])
        >>> len(results), results[{"edge.buffer": "8p"}]
        (2, <Results: 1 run over edge.buffer (1)>)
        >>> results[:1] + results[1:]
        <Results: 2 runs over edge.buffer (2)>

    A run is identified by its scenario and settings, point, seed, number and build. Equal runs count once, with a
    warning.

    Raises:
        ValueError: if runs of the same identity have different results.
    """

    def __init__(self, objects: Iterable[Run], series: Sequence[Series] = ()) -> None:
        self.objects: list[Run] = list(objects)
        self.series: list[Series] = list(series)
        kept = once(self.objects)
        if len(kept) < len(self.objects):
            again = len(self.objects) - len(kept)
            are = "1 run is" if again == 1 else f"{again} runs are"
            warnings.warn(f"{are} there more than once; equal runs count once", stacklevel=2)
            if len(self.series) == len(self.objects):
                self.series = [self.series[number] for number in kept]
            self.objects = [self.objects[number] for number in kept]
        self.series_of: list[str] = []
        self.confidence = 0.95

    @classmethod
    def from_lines(cls, lines: Iterable[str]) -> Results:
        """Results from JSON lines; empty lines are ignored."""
        return cls(json.loads(line) for line in lines if line.strip())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Results:
        """Results from a file of JSON lines, as written by `--json`.

        Raises:
            ValueError: naming file and line, if a line is not the object of a run, or the file and a run of which there
                are two with different results.
        """
        objects = []
        # JSON strings may contain characters that `splitlines` takes for line ends.
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
        try:
            return cls(objects)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None

    def __len__(self) -> int:
        return len(self.objects)

    def __repr__(self) -> str:
        runs = f"{len(self)} run{'' if len(self) == 1 else 's'}"
        counts = [f"{key} ({self.runs[key].astype(str).nunique()})" for key in self.varied] if self.objects else []
        return f"<Results: {runs}{' over ' if counts else ''}{', '.join(counts)}>"

    def _repr_html_(self) -> str:
        return points.html(self)

    def __iter__(self) -> Iterator[Results]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, which: int | slice | Mapping[str, Any]) -> Results:
        """Some of the runs: one by number, a slice, or the runs of a point such as `{"edge.buffer": "4p"}`.

        Raises:
            IndexError: if there is no run of this number.
            ValueError: naming existing ones, if a key was not varied or never has the value.
        """
        numbers = range(len(self))
        match which:
            case Mapping():
                return self._kept([number for number in numbers if number in self._where(which)])
            case slice():
                return self._kept(numbers[which])
            case _:
                if which not in range(-len(self), len(self)):
                    raise IndexError(f"run {which}: there are {len(self)} runs, counted from 0")
                return self._kept([numbers[which]])

    @property
    def named_series(self) -> dict[str, Series]:
        """The time series by the names of their runs, for `plot.over_time`."""
        names = self.series_of or [f"run {number}" for number in range(len(self.series))]
        return dict(zip(names, self.series, strict=True))

    def _where(self, values: Mapping[str, Any]) -> set[int]:
        """Numbers of the runs that have these values."""
        known = [*self.swept, "scenario", "seed", "run"]
        kept = set(range(len(self)))
        for key, value in values.items():
            if key not in known or key not in self.runs:
                raise ValueError(f"{key}: was not varied; there are {listed(known)}{near(key, known)}")
            texts = self.runs[key].astype(str).tolist()
            wanted = str(label(value))
            if wanted not in texts:
                there = list(dict.fromkeys(texts))
                raise ValueError(f"{key}: is never {wanted}; there are {listed(there)}{near(wanted, there)}")
            kept &= {number for number, text in enumerate(texts) if text == wanted}
        return kept

    def _kept(self, numbers: Sequence[int]) -> Results:
        one_each = len(self.series) == len(self.objects)
        kept = Results(
            [self.objects[number] for number in numbers],
            [self.series[number] for number in numbers] if one_each else (),
        )
        if one_each and self.series_of:
            kept.series_of = [self.series_of[number] for number in numbers]
        kept.confidence = self.confidence
        return kept

    def __add__(self, other: Results) -> Results:
        """The runs of both; each keeps its own provenance.

        Raises:
            ValueError: naming the columns, if one has columns of `runs` or `flows` that the other has not, or time
                series that the other has not.
        """
        if not isinstance(other, Results):
            return NotImplemented
        for mine, theirs in ((self.runs, other.runs), (self.flows, other.flows)):
            only = sorted(set(map(str, mine)) ^ set(map(str, theirs)))
            if only:
                raise ValueError(f"only one of both has the columns {listed(only)}")
        if bool(self.series) != bool(other.series):
            raise ValueError("only one of both has time series")
        both = Results([*self.objects, *other.objects], [*self.series, *other.series])
        both.confidence = self.confidence
        return both

    def to_parquet(self, path: str | os.PathLike[str], table: str = "flows") -> None:
        """Write a table as a Parquet file.

        Args:
            path: The file.
            table: `flows`, `runs`, `users` or `transfers`.

        Raises:
            ImportError: with the remedy, if pyarrow is not installed.
            OSError: if the file cannot be written.
            ValueError: if the table is none of these.
        """
        if table not in _TABLES:
            raise ValueError(f"table: {table} is none of {listed(_TABLES)}{near(table, _TABLES)}")
        content = io.BytesIO()
        try:
            getattr(self, table).to_parquet(content, engine="pyarrow")
        except ImportError as error:
            raise ImportError("Parquet needs pyarrow; get it with: pip install 'ackclock[parquet]'") from error
        write_bytes(Path(path), content.getvalue())

    def to_markdown(self) -> str:
        """One row per point as a Markdown table: means of goodput, RTT, retransmits, timeouts and queueing delay."""
        return points.markdown(self)

    def to_latex(self, **options: Any) -> str:
        """The rows of `to_markdown` in LaTeX (package booktabs); options are those of `pandas.DataFrame.to_latex`."""
        return points.latex(self, **options)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run: its point of a sweep, seed, results of both links, and fairness."""
        return _table(
            [
                {**_identity(run), **{k: v for part in _OF_RUN for k, v in _flat(part, run.get(part) or {}).items()}}
                for run in self.objects
            ]
        )

    @cached_property
    def flows(self) -> pd.DataFrame:
        """One row per flow and run; nested fields have dotted names such as `rtt_ms.p95`."""
        return self._rows("flows")

    @cached_property
    def users(self) -> pd.DataFrame:
        """One row per user and run: the user's flows combined."""
        return self._rows("users")

    @cached_property
    def transfers(self) -> pd.DataFrame:
        """One row per size class and run, for workloads whose flows come and go.

        Rows of all users together have no `user` (NaN). Rows of single users are added if there are several.
        where there are several.
        """
        return self._rows("transfers")

    def flows_with(self, *columns: str) -> pd.DataFrame:
        """The table `flows`, after checking that it has these columns.

        Raises:
            ValueError: if there are no rows, or naming a missing column.
        """
        if self.flows.empty:
            raise ValueError("these runs have no rows of flows; flows that come and go are in `users` and `transfers`")
        missing = [column for column in columns if column not in self.flows]
        if missing:
            there = list(map(str, self.flows))
            raise ValueError(
                f"{', '.join(missing)}: no column of flows; there are {', '.join(there)}{near(missing[0], there)}"
            )
        return self.flows

    def _rows(self, name: str) -> pd.DataFrame:
        """The objects of a list as rows; nested fields have dotted names."""
        return _table(
            [
                {**_identity(run), **{k: v for field in one for k, v in _flat(field, one[field]).items()}}
                for run in self.objects
                for one in run.get(name) or []
            ]
        )

    @property
    def are_live(self) -> bool:
        """Whether the results are of `ackclock link`: of real packets."""
        return any(map(is_live, self.objects))

    @property
    def connections(self) -> pd.DataFrame:
        """The flows of a link that have addresses, with the address `peer` of the end outside the link."""
        if "from" not in self.flows:
            return self.flows.iloc[:0]
        flows = self.flows[self.flows["from"].notna()]
        uploads = flows.get("towards", flows["from"]) == "server"
        return flows.assign(peer=flows["to"].where(uploads, flows["from"]))

    @property
    def swept(self) -> list[str]:
        """Keys varied by a sweep, in order."""
        return list(dict.fromkeys(key for run in self.objects for key in run.get("point") or {}))

    @property
    def varied(self) -> list[str]:
        """Swept keys with more than one value; all swept keys if none has."""
        values = {key: {str((run.get("point") or {}).get(key)) for run in self.objects} for key in self.swept}
        return [key for key in self.swept if len(values[key]) > 1] or self.swept

    @property
    def coloured(self) -> str | None:
        """Key whose values have a colour each, the same in every figure: the regulator, or the first varied key."""
        return "edge.regulator" if "edge.regulator" in self.varied else next(iter(self.varied), None)

    @property
    def queueing_delay(self) -> str:
        """Column of `runs` with the p95 queueing delay of the direction of the data."""
        uploads = "towards" in self.flows and bool((self.flows["towards"] == "server").all())
        return "uplink.queue_ms.p95" if uploads else "bottleneck.queue_ms.p95"

    @property
    def has_both_directions(self) -> bool:
        """Whether there are downloads and uploads."""
        return "towards" in self.flows and self.flows["towards"].nunique(dropna=False) > 1

    def per_run(self, columns: Sequence[str], by: Sequence[str]) -> pd.DataFrame:
        """One row per run and combination of `by`: its flows combined.

        Bytes and counts are summed over the flows. A rate of several flows is their delivered bytes over the span of
        the run (`active_s` of the link), which is never above the capacity; a separate flow's rate covers its own
        life. Other columns are averaged. Missing values are ignored.

        Args:
            columns: Columns of `flows` or `runs` with numbers.
            by: Columns of `flows` by which flows are grouped; with `id` among them, every flow is separate.

        Raises:
            ValueError: if there are no rows of flows, or a column does not exist.
        """
        import pandas as pd

        of_runs = [name for name in columns if name in self.runs and name not in self.flows]
        flows = self.flows_with(*(name for name in columns if name not in of_runs), *by)
        counts = [len(run.get("flows") or []) for run in self.objects]
        flows = flows.assign(**{name: np.repeat(self.runs[name].to_numpy(dtype=float), counts) for name in of_runs})
        if "id" not in by:
            flows = flows.assign(**{name: flows[name] * self._lives() for name in columns if name in _RATES})
        runs = np.repeat(np.arange(len(self.objects)), counts)
        groups = flows.astype(dict.fromkeys(columns, float)).groupby([runs, *by], sort=False)
        reduced = {name: groups[name].sum(min_count=1) if name in _SUMMED else groups[name].mean() for name in columns}
        return pd.DataFrame(reduced).reset_index(list(range(1, 1 + len(by)))) if by else pd.DataFrame(reduced)

    def _lives(self) -> NDArray[np.float64]:
        """Life of each flow as a share of its run's span; 1 if unknown."""
        spans = [
            ((run.get("uplink" if flow.get("towards") == "server" else "bottleneck") or {}).get("active_s"))
            or run.get("duration_s")
            for run in self.objects
            for flow in run.get("flows") or []
        ]
        if "delivered_bytes" not in self.flows:
            return np.ones(len(spans))
        lives = (
            8 * self.flows["delivered_bytes"].to_numpy(dtype=float) / self.flows["goodput_bps"].to_numpy(dtype=float)
        )
        shares = lives / np.array(spans, dtype=float)
        # A flow that lasts for the entire span keeps its rate to the last bit.
        return np.where(np.isfinite(shares) & ~np.isclose(shares, 1.0, rtol=1e-12), shares, 1.0)

    def measured(self, column: str, by: Sequence[str]) -> pd.DataFrame:
        """The columns `by` and one number: a column of `runs`, or of `flows` combined as in `per_run`.

        Raises:
            ValueError: as for `per_run`, also for columns of `runs`.
        """
        if column in self.runs and column not in self.flows and set(by) <= set(self.runs):
            return self.runs[[*by, column]].astype({column: float})
        if column not in self.flows and not self.flows.empty:
            there = [*map(str, self.flows), *(name for name in map(str, self.runs) if name not in self.flows)]
            raise ValueError(f"{column}: no column of flows or runs; there are {', '.join(there)}{near(column, there)}")
        return self.per_run([column], by)

    def spread(self, column: str, by: Sequence[str]) -> tuple[pd.DataFrame, str]:
        """Numbers whose distribution a column has, one per row beside the columns `by`, and the name of their column.

        These are the quantiles `COLUMN.cdf` of a flow's packets where the scenario measured them
        (`measure = ["rtt_ms"]`), each flow and run with the same weight; otherwise one number per run.

        Raises:
            ValueError: as `measured`.
        """
        packets, mean = f"{column}.cdf", f"{column}.mean"
        if packets in self.flows:
            rows = self.flows_with(packets, *by)[[*by, packets]].explode(packets)
            return rows.astype({packets: float}), packets
        name = mean if column not in self.flows and mean in self.flows else column
        return self.measured(name, by), name

    def quantiles(self, column: str = "rtt_ms", q: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> pd.DataFrame:
        """Quantiles of each point: over packets where they were measured, otherwise over its runs (`spread`).

        Args:
            column: A column of `flows` or `runs`, or the name of a distribution such as `rtt_ms`.
            q: Probabilities from 0 to 1; each is a column of the answer.

        Raises:
            ValueError: as `measured`, or if a probability is out of range.
        """
        if not all(0 <= one <= 1 for one in q):
            raise ValueError(f"q: {list(q)} are not all from 0 to 1")
        keys = self.varied or ["scenario"]
        rows, name = self.spread(column, keys)
        return rows.groupby(keys, sort=False)[name].quantile(np.asarray(q)).unstack()

    def paired(self, column: str = "goodput_bps", *, by: str, baseline: Any) -> pd.DataFrame:
        """Differences of each value of a key from a baseline, run by run.

        Runs of the same seed and number draw the same random numbers. Their differences are therefore known more
        precisely than differences of means. All other swept keys are equal in a pair.

        Args:
            column: A column of `flows` (combined as in `per_run`) or of `runs`.
            by: The key whose values are compared, such as `"edge.regulator"`.
            baseline: The value that the others are compared with, such as `"none"`.

        Returns:
            One row per value and combination of the other swept keys: `mean_difference`, `low` and `high` (the ends of
            Student's interval of the differences; NaN for fewer than three runs and for equal differences), `n`
            (pairs), `baseline` (its mean), `relative` (the mean difference as a share of that mean).

        Raises:
            ValueError: if the key was not varied, never has the baseline, or no seeds are shared.

        Example:
            >>> goodput = {("none", 0): 100.0, ("none", 1): 300.0, ("wrd", 0): 101.0, ("wrd", 1): 303.0}
            >>> runs = [
            ...     {"seed": 1, "run": run, "flows": [{"goodput_bps": bps}], "point": {"edge.regulator": name}}
            ...     for (name, run), bps in goodput.items()
            ... ]
            >>> table = Results(runs).paired(by="edge.regulator", baseline="none")
            >>> table[["mean_difference", "n", "relative"]].loc["wrd"].tolist()
            [2.0, 2.0, 0.01]
        """
        return pairs.paired(self, column, by, str(label(baseline)))

    def summary(self, column: str = "goodput_bps", by: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Mean, standard deviation and confidence interval over runs, with each run's flows combined.

        Args:
            column: A column of `flows` or `runs`.
            by: Column or columns that identify a point; default: the swept keys, or the senders if nothing was swept.
                With `id` among them every flow is separate.

        Returns:
            One row per point: `mean`, `sd`, `low` and `high` (the interval's ends; NaN for one value and for equal
            values), `n` (runs that have the number).

        Raises:
            ValueError: if there are no rows of flows, or a column does not exist.
        """
        import pandas as pd

        keys = [by] if isinstance(by, str) else list(by) if by is not None else self.swept or ["sender"]
        values = self.measured(column, keys).groupby(keys, sort=False)[column]
        mean, half = (
            values.mean(),
            values.agg(lambda of: mean_and_interval(of, self.confidence, resolution_of(column))[1]),
        )
        half = half.where(half > 0)  # equal values show no variance, so that no interval is known
        low = (mean - half).where(
            values.min() < 0, (mean - half).clip(lower=0)
        )  # what is never negative has no such mean
        columns = {"mean": mean, "sd": values.std(), "low": low, "high": mean + half, "n": values.count()}
        return pd.DataFrame(columns)


# Columns of the command's series: name here, and factor to the unit here.
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
    "queue_ms": ("queue_ms", 1.0),
    "up.delivered_bytes": ("up.rate", 8.0),
    "up.rate_bps": ("up.link_rate", 1.0),
}


def is_live(run: Run) -> bool:
    """Whether a run is of `ackclock link`: of real packets."""
    return "sent" in (run.get("bottleneck") or {})


def read_series(path: str | os.PathLike[str]) -> Series:
    """The time series of a run (`ackclock run --series`) or of a link, with names and units of `Results.series`.

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
            # Of a link layer, or of the uplink: direction and quantity.
            stem, factor = _COLUMNS.get(column, (column if "." in column else "", 1.0))
            number = place.lstrip("abcdefghijklmnopqrstuvwxyz")
            values = factor * table[name].to_numpy(dtype=float)
            if column in ("cwnd_bytes", "ssthresh_bytes", "advertised_bytes", "relay_cwnd_bytes"):
                values = values / table[f"{place}.mss_bytes"].to_numpy(dtype=float)
            elif column in ("delivered_bytes", "up.delivered_bytes"):
                values = np.diff(values, prepend=np.nan) / np.diff(series["time"], prepend=np.nan)
            if stem:
                series[f"{stem}/{number}" if number else stem] = values
    except (KeyError, ValueError) as error:
        raise ValueError(f"{os.fspath(path)}: not a time series of `ackclock run --series`: {error}") from None
    return series


# Rates of flows, whose sum counts each flow's bytes over the span of the run.
_RATES = ("goodput_bps", "wire_goodput_bps")

# Columns that are summed over the flows of a run.
_SUMMED = {
    "goodput_bps", "wire_goodput_bps", "delivered_bytes", "segments_sent", "retransmits", "fast_retransmits",
    "timeouts", "spurious_timeouts", "loss_cycles.cycles",
}  # fmt: skip

# The tables of results.
_TABLES = ("flows", "runs", "users", "transfers")

# Fields of a run's object that concern the complete run.
_OF_RUN = ("bottleneck", "uplink", "fairness")


def _identity(run: Run) -> dict[str, Any]:
    known = {key: run.get(key) for key in ("scenario", "seed", "run", "duration_s")}
    return known | {key: label(value) for key, value in (run.get("point") or {}).items()}


def label(value: Any) -> Any:
    """A swept value as a cell: tables such as `{ kind = "ack-regulator", alpha = 3 }` become text."""
    if not isinstance(value, Mapping):
        return value
    others = [f"{key} {label(inner)}" for key, inner in value.items() if key != "kind"]
    return " ".join([*([str(value["kind"])] if "kind" in value else []), *others])


def _flat(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {name: value}
    return {f"{name}.{key}": inner for below in value for key, inner in _flat(below, value[below]).items()}


def _table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a table; missing values are NaN."""
    import pandas as pd

    table = pd.DataFrame(rows)
    empty = [name for name in table if table[name].isna().all()]
    return table.astype(dict.fromkeys(empty, float))
