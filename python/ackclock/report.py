"""Reports: self-contained HTML files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from matplotlib.figure import Figure as Drawing

from ackclock import __version__, description, plot
from ackclock.axis import legend_above, numbers
from ackclock.paper import Figure, JudgedRow, Outcome, Table, Verdict
from ackclock.paper.claims_page import CAVEATS, ours, printed, with_spread
from ackclock.results import Results, label, mean_and_interval

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
    ("completion_s", "done (s)", 1.0),
    ("link.utilisation", "link used (%)", 100.0),
)
BOTTLENECK_COLUMNS = (
    ("bottleneck.capacity_bps", "capacity (kbit/s)", 1e-3),
    ("bottleneck.utilisation", "utilisation (%)", 100.0),
    ("bottleneck.drops", "drops", 1.0),
    ("bottleneck.queue_ms.mean", "queue mean (ms)", 1.0),
    ("bottleneck.queue_ms.p95", "queue p95 (ms)", 1.0),
    ("fairness.jain_users", "Jain index of users", 1.0),
    ("fairness.jain_flows", "Jain index of flows", 1.0),
)
USER_COLUMNS = (
    ("goodput_bps", "goodput (kbit/s)", 1e-3),
    ("flows", "flows", 1.0),
    ("retransmits", "retransmits", 1.0),
    ("timeouts", "time-outs", 1.0),
)
TRANSFER_COLUMNS = (
    ("count", "transfers", 1.0),
    ("unfinished", "unfinished", 1.0),
    ("latency_ms.mean", "latency mean (ms)", 1.0),
    ("latency_ms.p50", "latency p50 (ms)", 1.0),
    ("latency_ms.p95", "latency p95 (ms)", 1.0),
    ("latency_ms.p99", "latency p99 (ms)", 1.0),
    ("goodput_bps", "goodput (kbit/s)", 1e-3),
    ("link.utilisation", "link used (%)", 100.0),
)
LINK_COLUMNS = (
    ("capacity_bps", "capacity (kbit/s)", 1e-3),
    ("utilisation", "utilisation (%)", 100.0),
    ("sent", "packets sent", 1.0),
    ("drops", "drops", 1.0),
    ("lost_by_machine", "lost by this machine", 1.0),
    ("delivered_bytes", "delivered (kB)", 1e-3),
    ("queue_ms.mean", "queue mean (ms)", 1.0),
    ("queue_ms.p95", "queue p95 (ms)", 1.0),
)
# Maximum number of connections in the table of a link: those with the most bytes.
MOST_CONNECTIONS = 500
# Maximum number of users listed one by one.
MOST_USERS = 50


def of_paper(outcome: Outcome, figures: Iterable[Figure]) -> str:
    """Report of a reproduced document: verdicts, deviations, figures and every row."""
    rows = [_claim(row) for row in outcome.rows]
    return _TEMPLATES.get_template("paper.html.j2").render(
        title=outcome.paper.title,
        version=__version__,
        outcome=outcome,
        misses=[{**_claim(row), "note": row.note} for row in outcome.misses],
        caveats=[{**_claim(row), "note": caveat} for row, caveat in outcome.caveats],
        about_caveats=CAVEATS,
        rows=rows,
        figures=_inline(figures),
        tables=outcome.tables,
    )


def of_runs(
    results: Results, title: str | None = None, scenario: Mapping[str, Any] | None = None, command: str = ""
) -> str:
    """Report of runs, a sweep, a comparison or a live link: description, figures and tables.

    Args:
        results: The runs; each of their `series` is plotted over time.
        title: Heading; default: senders and link.
        scenario: Tables of the scenario, to describe link, path, senders and buffer.
        command: Command line that repeats the runs.
    """
    described = description.Described(results, scenario or {})
    return _TEMPLATES.get_template("runs.html.j2").render(
        title=title or described.title(),
        about=described.paragraph(),
        version=__version__,
        findings=findings(results),
        runs=len(results),
        confidence=percent(results),
        figures=_both_widths(results),
        tables=list(_tables(results)),
        provenance=[*([("command", command)] if command else []), *description.provenance(results)],
    )


def page(title: str, words: Sequence[str], figures: Iterable[Figure], tables: Sequence[Table]) -> str:
    """A page of text, figures one below the other, and tables."""
    return _TEMPLATES.get_template("page.html.j2").render(
        title=title, version=__version__, words=words, figures=_inline(figures), tables=tables
    )


# Smaller differences count as none, even if significant.
_MATTERS = 0.01


def findings(results: Results) -> list[str]:
    """Significant results of a comparison: the largest goodput, and gains and costs of regulators.

    Combinations are compared run by run, under equal seeds.
    """
    if results.are_live:
        return _of_link(results)
    if results.flows.empty or not {"flow.sender", "edge.regulator"} & set(results.varied):
        return []
    runs = results.per_run(["goodput_bps", "rtt_ms.mean"], [*results.varied, "seed", "run"])
    goodput, rtt = (_of_points(runs, column, results.varied) for column in ("goodput_bps", "rtt_ms.mean"))
    first = int(goodput.mean().argmax())
    best = goodput.iloc[:, first] / 1e3
    equal = [
        _named(goodput.columns[i])
        for i in range(len(goodput.columns))
        if i != first and not _beyond_chance(best - goodput.iloc[:, i] / 1e3, float(best.mean()), results.confidence)
    ]
    much = with_spread(*mean_and_interval(best, results.confidence))
    at = f"{much} kbit/s at a mean round trip time of {rtt.iloc[:, first].mean():.0f} ms"
    name, count = _named(goodput.columns[first]), len(goodput.columns)
    if equal:
        others = ", ".join(equal) if len(equal) <= _MOST_NAMED else f"{len(equal)} others"
        largest = f"Of {count} combinations, {name} has the largest mean goodput, {at}"
        found = [f"{largest}; it does not differ beyond chance from {others}."]
    else:
        found = [f"Of {count} combinations, {name} has the most goodput: {at}."]
    gains, costs = (_against_none(table, results.confidence) for table in (goodput, rtt))
    told = [f"{name} changes goodput by {gains[name]} and the round trip time by {costs[name]}" for name in gains]
    return [*found, f"Beside the same link without a regulator, {'; '.join(told)}."] if told else found


def _of_link(results: Results) -> list[str]:
    """What a live link delivered in each direction, and its queueing delay."""
    run, connections = results.runs.iloc[0], len(results.connections)
    found = [f"{connections} connection{'s' if connections != 1 else ''} in {_number(run['duration_s'])} s."]
    for link, way in (("bottleneck", "downlink"), ("uplink", "uplink")):
        megabytes, drops = run[f"{link}.delivered_bytes"] / 1e6, int(run[f"{link}.drops"])
        used, p95 = run[f"{link}.utilisation"], run[f"{link}.queue_ms.p95"]
        shares = [f"{100 * used:.0f} % of its capacity"] if used == used else []
        delays = [f"p95 queueing delay {_number(p95)} ms"] if p95 == p95 else []
        dropped = f"{drops} packet{'s' if drops != 1 else ''} dropped"
        found.append(f"The {way} delivered {', '.join([f'{_number(megabytes)} MB', *shares, *delays, dropped])}.")
    return found


# More combinations than this are counted and not named.
_MOST_NAMED = 3


def _of_points(runs: pd.DataFrame, column: str, swept: Sequence[str]) -> pd.DataFrame:
    """A number of each run, with a column per point and a row per seed and run."""
    import pandas as pd

    values = runs.assign(**{key: runs[key].astype(str) for key in swept})
    points = values.groupby([*swept], sort=False).ngroup()
    names = values.drop_duplicates(list(swept))[list(swept)].itertuples(index=False, name=None)
    wide = values.assign(point=points).pivot_table(index=["seed", "run"], columns="point", values=column, dropna=False)
    wide.columns = pd.MultiIndex.from_tuples(list(names), names=list(swept))
    return wide


def _named(point: Any) -> str:
    return " + ".join(point)


def _beyond_chance(differences: pd.Series[float], of: float, confidence: float) -> bool:
    """Whether differences exceed a percent of `of` and their interval excludes zero."""
    mean, half = mean_and_interval(differences, confidence)
    return abs(mean) > max(half, _MATTERS * abs(of))


def _against_none(table: pd.DataFrame, confidence: float) -> dict[str, str]:
    """Paired change of a number by each regulator in percent, relative to the same point without one."""
    if "edge.regulator" not in table.columns.names:
        return {}
    place = list(table.columns.names).index("edge.regulator")
    points = [tuple(map(str, point)) for point in table.columns]
    bases = {_without(point, place): i for i, point in enumerate(points) if point[place] == "none"}
    changes: dict[str, list[tuple[float, float]]] = {}
    for i, point in enumerate(points):
        base = bases.get(_without(point, place))
        if base is not None and base != i:
            without = table.iloc[:, base]
            differences = 100 * (table.iloc[:, i] - without) / without.mean()
            changes.setdefault(point[place], []).append(mean_and_interval(differences, confidence))
    return {name: _range(of) for name, of in changes.items()}


def _without(point: tuple[str, ...], place: int) -> tuple[str, ...]:
    return point[:place] + point[place + 1 :]


def _range(changes: Sequence[tuple[float, float]]) -> str:
    """Range of mean changes in percent; a single one with its interval."""
    means = [mean for mean, _ in changes]
    low, high = f"{min(means):+.0f} %", f"{max(means):+.0f} %"
    certain = sum(abs(mean) > half for mean, half in changes)
    if not certain and any(half > 0 for _, half in changes):
        return f"nothing beyond chance ({low if low == high else f'{low} to {high}'})"
    some = f" ({certain} of {len(changes)} beyond chance)" if 0 < certain < len(changes) else ""
    return (low if low == high else f"{low} to {high}") + some


def _claim(judged: JudgedRow) -> dict[str, str]:
    row = judged.row
    return {
        "id": row.id,
        "kind": judged.kind,
        "config": row.config,
        "metric": row.metric,
        "printed": printed(row),
        "ours": ours(judged),
        "tolerance": row.tolerance.replace("+-", "±"),
        "verdict": judged.verdict.value,
        # The attempts are described above the table.
        "note": judged.claim.note if judged.verdict is Verdict.NOT_REPRODUCED else judged.note,
    }


def _inline(figures: Iterable[Figure]) -> list[dict[str, str]]:
    return [
        {"svg": plot.svg(figure.drawing, figure.name), "narrow": "", "caption": figure.caption, "name": figure.name}
        for figure in figures
    ]


# Widths of a figure on a wide page and on a phone, inches; a page shows one of them.
WIDE, NARROW, WHOLE = 6.4, 3.5, 11.0


def _both_widths(results: Results) -> list[dict[str, str]]:
    pairs = zip(_figures(results, WIDE), _figures(results, NARROW), strict=True)
    return [
        {
            "svg": plot.svg(wide.drawing, wide.name),
            "narrow": plot.svg(narrow.drawing, f"{narrow.name}-narrow"),
            "caption": wide.caption,
            "name": wide.name,
        }
        for wide, narrow in pairs
    ]


def _tables(results: Results) -> Iterator[Table]:
    if results.are_live:
        yield from _tables_of_link(results)
        return
    if not results.flows.empty:
        yield _table("Flows", results.flows, _flow_keys(results), FLOW_COLUMNS, results.confidence)
    users = 0 if results.users.empty else results.users["id"].nunique()
    if 1 < users <= MOST_USERS or (users and results.flows.empty):
        several = ["id"] if 1 < users <= MOST_USERS else []
        yield _table(
            "Users", results.users, [*results.varied, *several] or ["scenario"], USER_COLUMNS, results.confidence
        )
    if not results.transfers.empty:
        yield _transfers(results, users)
    yield _table("Bottleneck", results.runs, results.varied or ["scenario"], BOTTLENECK_COLUMNS, results.confidence)


def _tables_of_link(results: Results) -> Iterator[Table]:
    """Both directions of a live link, and its connections."""
    run = results.runs.iloc[0]
    columns = [column for column in LINK_COLUMNS if f"bottleneck.{column[0]}" in run]
    rows = [
        [way, *(_number(run[f"{link}.{name}"] * unit) for name, _, unit in columns)]
        for link, way in (("bottleneck", "down"), ("uplink", "up"))
    ]
    yield Table("Both directions", ["direction", *(heading for _, heading, _ in columns)], rows, 1)
    connections = results.connections
    if connections.empty:
        return
    most = (connections["down_bytes"] + connections["up_bytes"]).nlargest(MOST_CONNECTIONS).index
    shown = connections.loc[most].sort_values("start_s", kind="stable")
    title = "Connections"
    if len(shown) < len(connections):
        title = f"Connections: the {len(shown)} with the most bytes of {len(connections)}"
    headings = ["from", "to", "protocol", "start (s)", "end (s)", "down (kB)", "up (kB)", "goodput (kbit/s)", "RTT (ms)"]
    rows = [
        [
            str(one["from"]), str(one["to"]), str(one["protocol"]), f"{one['start_s']:.3f}", f"{one['end_s']:.3f}",
            *map(_number, (one["down_bytes"] / 1e3, one["up_bytes"] / 1e3, one["goodput_bps"] / 1e3)),
            _number(one["rtt_ms.mean"] if one["rtt_ms.mean"] == one["rtt_ms.mean"] else one["edge_rtt_ms"]),
        ]
        for one in shown.to_dict("records")
    ]  # fmt: skip
    yield Table(title, headings, rows, 3)


def _number(value: float) -> str:
    """A number with 4 significant digits; `-` if it is missing."""
    return "-" if value is None or value != value else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _transfers(results: Results, users: int) -> Table:
    """Transfers by size: of all users, and of each user if there are few."""
    transfers = results.transfers
    if users > MOST_USERS:
        transfers = transfers[transfers["user"].isna()]
    named = transfers.assign(
        user=["all" if np.isnan(user) else str(int(user)) for user in transfers["user"].astype(float)],
        bytes=[
            f"{first:,} to {last:,.0f}" if last == last else f"from {first:,}"
            for first, last in zip(transfers["from_bytes"], transfers["to_bytes"].astype(float), strict=True)
        ],
    )
    several = ["user"] if named["user"].nunique() > 1 else []
    return _table(
        "Transfers by size", named, [*results.varied, *several, "bytes"], TRANSFER_COLUMNS, results.confidence
    )


def _figures(results: Results, width: float) -> Iterator[Figure]:
    """Every figure of a report, laid out for a width in inches."""
    if results.are_live:
        yield from _figures_of_link(results, width)
        return
    if results.series:
        yield _over_time(results, width)
    if not results.flows.empty and {"flow.sender", "edge.regulator"} & set(results.varied):
        yield Figure(
            "goodput-against-delay",
            f"Goodput against round trip time; further up and to the left is better; {_spread(results)}.",
            plot.goodput_against_delay(results, width=width),
        )
    if not results.transfers.empty:
        latency = plot.latency_by_size(results)
        yield _at(width, "latency-by-size", f"From the request to the last byte: {_spread(results)}.", latency)
    # The figure above suits unordered values better.
    flows = results.flows
    ordered = [] if flows.empty else [key for key in results.varied if numbers([*flows[key].astype(str).unique()])]
    if ordered:
        for column, heading, unit in FLOW_COLUMNS[:2]:
            caption = f"{heading[0].upper()}{heading[1:]}: {_spread(results)}."
            yield _at(width, f"sweep-{column}", caption, plot.sweep(results, column, heading, unit))


def _figures_of_link(results: Results, width: float) -> Iterator[Figure]:
    """Both directions of a live link over time, and the waterfall of its connections."""
    whole = WHOLE if width == WIDE else width
    for series in results.series:
        for way, uplink in (("downlink", False), ("uplink", True)):
            yield Figure(
                f"over-time-{way}",
                f"{way.capitalize()} over time: capacity (grey), goodput, and mean queueing delay with its 95th "
                "percentile (dashed). Red ticks are dropped packets.",
                plot.over_time({way: series}, width=whole, uplink=uplink),
            )
    connections = results.connections
    if not connections.empty:
        drawn = min(len(connections), plot.MOST_CONNECTIONS)
        some = f"The {drawn} connections with the most bytes of {len(connections)}"
        which = some if drawn < len(connections) else "Connections"
        yield Figure(
            "waterfall",
            f"{which}, from first to last packet, with the address outside the link and the bytes delivered.",
            plot.waterfall(connections, width=whole),
        )


def _over_time(results: Results, width: float) -> Figure:
    uploads = "towards" in results.flows and bool((results.flows["towards"] == "server").any())
    names = results.series_of or [f"run {number}" for number in range(len(results.series))]
    series = dict(zip(names, results.series, strict=True))
    # As in the other figures, each value of the first key has a colour.
    first = results.varied[:1]
    order = list(dict.fromkeys(str(label(run["point"][key])) for key in first for run in results.objects))
    which = (
        "Below the link without a regulator: the regulator with the largest ratio of goodput to p95 queueing delay. "
        if len(series) > 1
        else ""
    )
    return Figure(
        "over-time",
        f"{which}Each curve is one run, the one of median goodput. Red ticks are dropped packets. "
        "Goodput counts data in order, so it peaks when a loss is repaired.",
        plot.over_time(series, width=WHOLE if width == WIDE else width, uplink=uploads, order=order),
    )


def _at(width: float, name: str, caption: str, drawing: Drawing) -> Figure:
    """A figure whose layout follows its width."""
    drawing.set_size_inches(width, drawing.get_figheight())
    for legend in drawing.legends:
        legend.remove()
    legend_above(drawing)
    return Figure(name, caption, drawing)


def _spread(results: Results) -> str:
    """What a point of a figure shows: one run, or the mean of several."""
    points = results.runs.groupby(results.varied).ngroups if results.varied else 1
    several = len(results) > points
    return (
        f"mean over the runs, with its {percent(results)} % confidence interval" if several else "each point is one run"
    )


def percent(results: Results) -> str:
    """Confidence level of intervals, in percent."""
    return f"{100 * results.confidence:.4g}"


def _flow_keys(results: Results) -> list[str]:
    several = ["id"] if results.flows["id"].nunique() > 1 else []
    return [*results.varied, *several, *([] if "flow.sender" in results.varied else ["sender"])]


def _table(
    title: str, data: pd.DataFrame, keys: Sequence[str], columns: Sequence[tuple[str, str, float]], confidence: float
) -> Table:
    there = [column for column in columns if column[0] in data and data[column[0]].notna().any()]
    rows = []
    for _, group in data.groupby([data[key].astype(str) for key in keys], sort=False):
        names = [str(group[key].iloc[0]) for key in keys]
        rows.append(names + [_cell(group[name] * unit, confidence) for name, _, unit in there])
    return Table(title, [*map(description.plain_key, keys), *(heading for _, heading, _ in there)], rows, len(keys))


def _cell(values: pd.Series[Any], confidence: float) -> str:
    """Mean and interval; `-` if no run of the point has the number."""
    known = values.dropna().astype(float)
    return "-" if known.empty else with_spread(*mean_and_interval(known, confidence))
