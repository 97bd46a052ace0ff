"""Reports: one HTML file that carries its pictures and style with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jinja2

from ackclock import __version__, plot
from ackclock.paper import Figure, JudgedRow, Outcome, Verdict
from ackclock.paper.readme import ours, printed
from ackclock.results import Results, half_interval

if TYPE_CHECKING:
    import pandas as pd

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("ackclock"), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
)

# Columns of a table of runs: name in the results, heading with unit, factor.
FLOW_COLUMNS = (
    ("goodput_bps", "goodput (kbit/s)", 1e-3),
    ("rtt_ms.mean", "RTT mean (ms)", 1.0),
    ("rtt_ms.p95", "RTT p95 (ms)", 1.0),
    ("retransmits", "retransmits", 1.0),
    ("fast_retransmits", "fast retransmits", 1.0),
    ("timeouts", "time-outs", 1.0),
    ("spurious_timeouts", "spurious time-outs", 1.0),
)
BOTTLENECK_COLUMNS = (
    ("bottleneck.capacity_bps", "capacity (kbit/s)", 1e-3),
    ("bottleneck.utilisation", "utilisation (%)", 100.0),
    ("bottleneck.drops", "drops", 1.0),
    ("bottleneck.queue_ms.mean", "queue mean (ms)", 1.0),
    ("bottleneck.queue_ms.p95", "queue p95 (ms)", 1.0),
)


@dataclass(frozen=True)
class Table:
    """A table of a report; its first `keys` columns name the row."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: int


def of_paper(outcome: Outcome, figures: Iterable[Figure]) -> str:
    """The report of a source document: verdicts, misses, figures and every row."""
    rows = [_claim(row) for row in outcome.rows]
    return _TEMPLATES.get_template("paper.html.j2").render(
        title=outcome.paper.title,
        version=__version__,
        counts={verdict.value: outcome.count(verdict) for verdict in Verdict},
        share=outcome.share,
        misses=[row for row in rows if row["verdict"] == Verdict.NOT_REPRODUCED.value],
        rows=rows,
        figures=_inline(figures),
    )


def of_runs(results: Results, title: str = "ackclock runs") -> str:
    """The report of runs, a sweep or a comparison: figures and tables."""
    return _TEMPLATES.get_template("runs.html.j2").render(
        title=title,
        version=__version__,
        runs=len(results),
        figures=_inline(_figures(results)),
        tables=[
            _table("Flows", results.flows, _flow_keys(results), FLOW_COLUMNS),
            _table("Bottleneck", results.runs, results.swept or ["scenario"], BOTTLENECK_COLUMNS),
        ],
        provenance=sorted({_provenance(run) for run in results.objects}),
    )


def _claim(judged: JudgedRow) -> dict[str, str]:
    row = judged.row
    return {
        "id": row.id,
        "config": row.config,
        "metric": row.metric,
        "printed": printed(row),
        "ours": ours(judged),
        "tolerance": row.tolerance.replace("+-", "±"),
        "verdict": judged.verdict.value,
        "note": judged.note,
    }


def _inline(figures: Iterable[Figure]) -> list[dict[str, str]]:
    return [{"svg": plot.svg(figure.drawing, figure.name), "caption": figure.caption} for figure in figures]


def _figures(results: Results) -> Iterator[Figure]:
    if {"flow.sender", "edge.regulator"} & set(results.swept):
        yield Figure(
            "goodput-against-delay", "Further up and to the left is better.", plot.goodput_against_delay(results)
        )
    if results.swept:
        for column, label, unit in FLOW_COLUMNS[:2]:
            yield Figure(
                f"sweep-{column}", f"Mean {label} with its interval.", plot.sweep(results, column, label, unit)
            )
    for i, series in enumerate(results.series):
        yield Figure(f"series-{i}", f"Run {i + 1}, flow 0.", plot.time_series(series))


def _flow_keys(results: Results) -> list[str]:
    return [*results.swept, "id", *([] if "flow.sender" in results.swept else ["sender"])]


def _table(title: str, data: pd.DataFrame, keys: Sequence[str], columns: Sequence[tuple[str, str, float]]) -> Table:
    there = [column for column in columns if column[0] in data]
    rows = []
    for _, group in data.groupby([data[key].astype(str) for key in keys], sort=False):
        names = [str(group[key].iloc[0]) for key in keys]
        rows.append(names + [_cell(group[name] * unit) for name, _, unit in there])
    return Table(title, [*keys, *(heading for _, heading, _ in there)], rows, len(keys))


def _cell(values: pd.Series[Any]) -> str:
    """Mean and interval; `-` where no run has the number."""
    known = values.dropna().astype(float)
    if known.empty:
        return "-"
    mean = float(known.mean())
    half = half_interval(known.to_numpy())
    return f"{mean:,.4g}" if half == 0 else f"{mean:,.4g} ± {half:.2g}"


def _provenance(run: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in (run.get("provenance") or {}).items())
