"""The table of a `Results`: one row per point of a sweep, as text, HTML, Markdown and LaTeX."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from ackclock.results import Results

# Columns, shown if present: name, heading with unit, and factor to that unit.
_OF_FLOWS = (
    ("goodput_bps", "goodput kbit/s", 1e-3),
    ("rtt_ms.mean", "RTT mean ms", 1.0),
    ("rtt_ms.p95", "RTT p95 ms", 1.0),
    ("retransmits", "retransmits", 1.0),
    ("timeouts", "timeouts", 1.0),
)
_OF_RUNS = (
    ("bottleneck.queue_ms.p95", "queueing delay p95 ms", 1.0),
    ("bottleneck.utilisation", "used %", 100.0),
)

# Maximum rows of the HTML table.
MOST_ROWS = 30


def points(results: Results) -> pd.DataFrame:
    """One row per point: its number of runs, and means of each run's combined flows."""
    import pandas as pd

    if not results.objects:
        return pd.DataFrame()
    keys = results.varied or ["scenario"]
    columns = {"runs": results.runs.groupby(keys, sort=False, dropna=False).size()}
    for table, shown in ((results.flows, _OF_FLOWS), (results.runs, _OF_RUNS)):
        for column, heading, unit in shown:
            if column in table and table[column].notna().any():
                values = results.measured(column, keys)
                columns[heading] = unit * values.groupby(keys, sort=False, dropna=False)[column].mean()
    return pd.DataFrame(columns).reset_index()


def as_text(value: Any) -> str:
    """A cell: four significant digits, `-` without a number."""
    if not isinstance(value, float):
        return str(value)
    if value != value:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def html(results: Results) -> str:
    """The table for a notebook: at most `MOST_ROWS` rows, then the number of omitted ones."""
    table = points(results)
    head = "".join(f"<th>{escape(str(name))}</th>" for name in table)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(as_text(cell))}</td>" for cell in row) + "</tr>"
        for row in table.head(MOST_ROWS).itertuples(index=False)
    )
    more = f"<p>and {len(table) - MOST_ROWS} more</p>" if len(table) > MOST_ROWS else ""
    summary = escape(repr(results))
    return f"<p>{summary}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def markdown(results: Results) -> str:
    """The table in Markdown, with numbers aligned right."""
    table = points(results)
    marks = ["---:" if table[name].dtype.kind in "if" else "---" for name in table]
    cells = [list(map(str, table)), marks, *([as_text(cell) for cell in row] for row in table.itertuples(index=False))]
    return "".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |\n" for row in cells)


def latex(results: Results, **options: Any) -> str:
    """The table in LaTeX (package `booktabs`); options are those of `DataFrame.to_latex`."""
    table = points(results)
    return str(table.map(as_text).to_latex(**{"index": False, "escape": True, **options}))
