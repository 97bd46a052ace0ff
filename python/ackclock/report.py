"""Reports: self-contained HTML files."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from matplotlib.figure import Figure as Drawing

from ackclock import __version__, description, limits, plot
from ackclock.axis import legend_above, numbers, write_out
from ackclock.findings import findings
from ackclock.interval import resolution_of
from ackclock.paper import Figure, JudgedRow, Outcome, Table, Verdict
from ackclock.paper.claims_page import CAVEATS, MISSES, effect, ours, printed, with_spread
from ackclock.plot.per_flow import flow_names, flows_of
from ackclock.results import Results, Series, is_live, label, mean_and_interval
from ackclock.text import number, with_separators

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
MEDIA_COLUMNS = (
    ("media.target_bps", "target (kbit/s)", 1e-3),
    ("media.frames", "frames", 1.0),
    ("media.frames_lost", "frames lost", 1.0),
    ("media.frame_delay_ms.p50", "frame delay p50 (ms)", 1.0),
    ("media.frame_delay_ms.p95", "frame delay p95 (ms)", 1.0),
    ("media.freezes", "freezes", 1.0),
    ("media.freeze_s", "frozen (s)", 1.0),
    ("media.key_frames", "key frames", 1.0),
)
ONE_WAY_COLUMNS = (
    ("capacity_bps", "capacity (kbit/s)", 1e-3),
    ("utilisation", "utilisation (%)", 100.0),
    ("drops", "drops", 1.0),
    ("aged", "aged", 1.0),
    ("queue_ms.mean", "queue mean (ms)", 1.0),
    ("queue_ms.p95", "queue p95 (ms)", 1.0),
)
FAIRNESS_COLUMNS = (
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
RADIO_COLUMNS = (
    ("controller_queue_ms.p50", "RLC queue p50 (ms)", 1.0),
    ("controller_queue_ms.p95", "RLC queue p95 (ms)", 1.0),
    ("base_station_queue_ms.p50", "base station p50 (ms)", 1.0),
    ("base_station_queue_ms.p95", "base station p95 (ms)", 1.0),
    ("rlc.retransmitted", "RLC retr. (%)", 100.0),
    ("rlc.duplicates", "duplicates (%)", 100.0),
    ("harq.repeated", "HARQ retr. (%)", 100.0),
    ("padding", "padding (%)", 100.0),
    ("lost_by.max_dat", "lost: MaxDAT", 1.0),
    ("lost_by.reset", "lost: reset", 1.0),
    ("lost_by.air", "lost: air", 1.0),
    ("lost_by.base_station", "lost: base station", 1.0),
    ("lost_by.handover", "lost: hand-over", 1.0),
    ("lost_by.aged", "lost: aged", 1.0),
)
# Counts of radio results that are shown as a share of another count.
RADIO_SHARES = (("rlc.retransmitted", "rlc.pdus"), ("rlc.duplicates", "rlc.pdus"), ("harq.repeated", "harq.blocks"))
LINK_COLUMNS = (
    ("capacity_bps", "capacity (kbit/s)", 1e-3),
    ("utilisation", "utilisation (%)", 100.0),
    ("sent", "packets sent", 1.0),
    ("drops", "drops", 1.0),
    ("aged", "aged", 1.0),
    ("lost_by_machine", "lost by this machine", 1.0),
    ("delivered_bytes", "delivered (kB)", 1e-3),
    ("queue_ms.mean", "queue mean (ms)", 1.0),
    ("queue_ms.p95", "queue p95 (ms)", 1.0),
)
# Maximum number of rows of a table of points.
MOST_ROWS = 500
# Maximum number of connections in the table of a link: those with the most bytes.
MOST_CONNECTIONS = 500
# Maximum number of users listed one by one.
MOST_USERS = 50


def of_paper(outcome: Outcome, figures: Iterable[Figure]) -> str:
    """Report of a reproduced document: verdicts, deviations, figures and every row."""
    rows = [_claim(row) for row in sorted(outcome.rows, key=lambda row: _WORST_FIRST.index(row.verdict))]
    return _TEMPLATES.get_template("paper.html.j2").render(
        title=outcome.paper.title,
        version=__version__,
        outcome=outcome,
        misses=[{**_claim(row), "note": row.note} for row in outcome.misses],
        caveats=[{**_claim(row), "note": caveat} for row, caveat in outcome.caveats],
        about_misses=MISSES,
        about_caveats=CAVEATS,
        rows=rows,
        figures=[*_against_printed(outcome), *_inline(_numbered(figures))],
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
    if results.are_live and not all(map(is_live, results.objects)):
        raise ValueError(
            "runs of the simulator and of a link together; give the lines of one, and both time series with --series"
        )
    described = description.Described(results, scenario or {})
    return _TEMPLATES.get_template("runs.html.j2").render(
        title=title or described.title(),
        about=described.paragraph(),
        version=__version__,
        findings=findings(results),
        runs=0 if results.are_live else len(results),
        confidence=percent(results),
        figures=_both_widths(_with_capacities(results, scenario or {}), limits.of_runs(results, scenario or {})),
        tables=list(_tables(results)),
        provenance=[*([("command", command)] if command else []), *description.provenance(results)],
    )


def _with_capacities(results: Results, scenario: Mapping[str, Any]) -> Results:
    """The results without link rates that are no capacity of the flows.

    In a cell of several users it is the rate of one user, and beside uploads that of the other direction.
    """
    if description.users_of_cell(scenario) < 2 and not _uploads(results):
        return results
    shown = copy.copy(results)
    shown.series = [{name: of for name, of in one.items() if name != "link_rate"} for one in results.series]
    return shown


def page(title: str, words: Sequence[str], figures: Iterable[Figure], tables: Sequence[Table]) -> str:
    """A page of text, figures one below the other, and tables."""
    return _TEMPLATES.get_template("page.html.j2").render(
        title=title, version=__version__, words=words, figures=_inline(figures), tables=tables
    )


def _claim(judged: JudgedRow) -> dict[str, str]:
    row = judged.row
    return {
        "id": row.id,
        "kind": judged.kind,
        "config": row.config,
        "metric": row.metric,
        "printed": printed(row),
        "ours": ours(judged),
        "effect": effect(judged),
        "weak": judged.weak,
        "null": judged.null.value if judged.null else "",
        "tolerance": row.tolerance.replace("+-", "±"),
        "verdict": judged.verdict.value,
        # The attempts are described above the table.
        "note": judged.claim.note if judged.verdict in (Verdict.SIGN_ONLY, Verdict.NOT_REPRODUCED) else judged.note,
    }


_WORST_FIRST = (
    Verdict.NOT_REPRODUCED,
    Verdict.SIGN_ONLY,
    Verdict.ORDERING_HOLDS,
    Verdict.REPRODUCED,
    Verdict.NOT_CHECKED,
)


def _against_printed(outcome: Outcome) -> list[dict[str, str]]:
    """The figure of all simulated rows with one printed number, unless there are none."""
    rows = [row for judged in outcome.rows if (row := _against(judged)) is not None]
    caption = (
        "Simulated values divided by the printed ones, worst first, with standard deviations over "
        f"{outcome.runs.seeds}. Hollow marks are rows that are not reproduced or of which only order or sign holds."
    )
    both = ([Figure("claims", caption, plot.against_printed(rows, width))] for width in (WIDE, NARROW))
    return _pairs(*both) if rows else []


def _against(judged: JudgedRow) -> plot.Against | None:
    """A simulated row that is judged and has one printed number, as a ratio to it."""
    try:
        printed_number = float(judged.row.value)
    except ValueError:
        return None
    if judged.kind != "sim" or judged.verdict not in _HELD or len(judged.claim.means) != 1 or printed_number == 0:
        return None
    mean, spread = judged.claim.means[0] / printed_number, judged.claim.spreads[0] / abs(printed_number)
    return plot.Against(mean, spread, _HELD[judged.verdict]) if np.isfinite(mean) else None


_HELD: dict[Verdict, plot.Held] = {
    Verdict.REPRODUCED: "within tolerance",
    Verdict.ORDERING_HOLDS: "by order only",
    Verdict.SIGN_ONLY: "by sign only",
    Verdict.NOT_REPRODUCED: "not reproduced",
}


def _numbered(figures: Iterable[Figure]) -> Iterator[Figure]:
    """Figures whose captions begin with the number in the source, which their names contain."""
    for figure in figures:
        at = re.match(r"figure-(\d+)([a-z]?)\b", figure.name)
        if at is None or figure.caption.startswith("Figure"):
            yield figure
        else:
            part = f"({at[2]})" if at[2] else ""
            yield replace(figure, caption=f"Figure {at[1]}{part}: {figure.caption}")


def _inline(figures: Iterable[Figure]) -> list[dict[str, str]]:
    return [
        {"svg": plot.svg(figure.drawing, figure.name), "narrow": "", "caption": figure.caption, "name": figure.name}
        for figure in figures
    ]


# Widths of a figure on a wide page and on a phone, inches; a page shows one of them.
WIDE, NARROW, WHOLE = 6.4, 3.5, 11.0


def _both_widths(results: Results, limit: limits.Limit | None) -> list[dict[str, str]]:
    return _pairs(_figures(results, WIDE, limit), _figures(results, NARROW, limit))


def _pairs(wide_ones: Iterable[Figure], narrow_ones: Iterable[Figure]) -> list[dict[str, str]]:
    return [
        {
            "svg": plot.svg(wide.drawing, wide.name),
            "narrow": plot.svg(narrow.drawing, f"{narrow.name}-narrow"),
            "caption": wide.caption,
            "name": wide.name,
        }
        for wide, narrow in zip(wide_ones, narrow_ones, strict=True)
    ]


def _tables(results: Results) -> Iterator[Table]:
    if results.are_live:
        yield from _tables_of_link(results)
        return
    if not results.flows.empty:
        yield _table("Flows", results.flows, _flow_keys(results), FLOW_COLUMNS, results.confidence)
    if "media.frames" in results.flows:
        media = results.flows[results.flows["media.frames"].notna()]
        yield _table("Frames", media, _flow_keys(results), MEDIA_COLUMNS, results.confidence)
    users = 0 if results.users.empty else results.users["id"].nunique()
    if 1 < users <= MOST_USERS or (users and results.flows.empty):
        several = ["id"] if 1 < users <= MOST_USERS else []
        yield _table(
            "Users", results.users, [*results.varied, *several] or ["scenario"], USER_COLUMNS, results.confidence
        )
    if not results.transfers.empty:
        yield _transfers(results, users)
    for title, link in _links(results):
        columns = [(f"{link}.{name}", heading, unit) for name, heading, unit in ONE_WAY_COLUMNS]
        columns += FAIRNESS_COLUMNS if link == "bottleneck" or _uploads(results) else ()
        yield _table(title, results.runs, results.varied or ["scenario"], columns, results.confidence)
    if "radio.down.padding" in results.users:
        yield _table("Radio", _radio(results), [*results.varied, "direction"], RADIO_COLUMNS, results.confidence)


def _radio(results: Results) -> pd.DataFrame:
    """One row per run and direction with the results of the radio network; causes without a lost packet are omitted."""
    import pandas as pd

    ways = (("bottleneck.radio.", "down"), ("uplink.radio.", "up"))
    names = list(map(str, results.runs))
    of_way = [
        results.runs.rename(columns={name: name.removeprefix(start) for name in names}).assign(direction=way)
        for start, way in ways
    ]
    radio = pd.concat(of_way, ignore_index=True)
    for part, total in RADIO_SHARES:
        if part in radio:
            radio[part] /= radio[total].where(radio[total] > 0)
    causes = [name for name, *_ in RADIO_COLUMNS if name.startswith("lost_by.")]
    return radio.drop(columns=[cause for cause in causes if cause in radio and not radio[cause].any()])


def _tables_of_link(results: Results) -> Iterator[Table]:
    """Both directions of a live link, and its connections."""
    run = results.runs.iloc[0]
    columns = [column for column in LINK_COLUMNS if f"bottleneck.{column[0]}" in run]
    rows = [
        [way, *(number(run[f"{link}.{name}"] * unit) for name, _, unit in columns)]
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
    headings = [
        "from",
        "to",
        "protocol",
        "start (s)",
        "end (s)",
        "down (kB)",
        "up (kB)",
        "goodput (kbit/s)",
        "RTT (ms)",
    ]
    rows = [
        [
            str(one["from"]), str(one["to"]), str(one["protocol"]), f"{one['start_s']:.3f}", f"{one['end_s']:.3f}",
            *map(number, (one["down_bytes"] / 1e3, one["up_bytes"] / 1e3, one["goodput_bps"] / 1e3)),
            number(one["rtt_ms.mean"] if one["rtt_ms.mean"] == one["rtt_ms.mean"] else one["edge_rtt_ms"]),
        ]
        for one in shown.to_dict("records")
    ]  # fmt: skip
    yield Table(title, headings, rows, 3)


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


def _figures(results: Results, width: float, limit: limits.Limit | None = None) -> Iterator[Figure]:
    """Every figure of a report, laid out for a width in inches."""
    if results.are_live:
        yield from _figures_of_link(results, width)
        return
    if results.series:
        yield _over_time(results, width)
        yield from _flows_over_time(results, width)
        yield from _radio_over_time(results, width)
    if not results.flows.empty and {"flow.sender", "edge.regulator"} & set(results.varied):
        yield Figure(
            "goodput-against-delay",
            f"Goodput against queueing delay; further up and to the right is better; {_spread(results)}.{_of(limit)}",
            plot.goodput_against_delay(
                results, results.queueing_delay, width, better="right", limit=limit.points if limit else ()
            ),
        )
    yield from _distribution(results, width)
    yield from _differences(results, width)
    if not results.transfers.empty:
        latency = plot.latency_by_size(results)
        yield _at(width, "latency-by-size", f"From the request to the last byte: {_spread(results)}.", latency)
    # The figure above suits unordered values better.
    flows = results.flows
    ordered = [] if flows.empty else [key for key in results.varied if numbers([*flows[key].astype(str).unique()])]
    if ordered:
        for column, heading, unit in FLOW_COLUMNS[:2]:
            caption = f"{heading[0].upper()}{heading[1:]}: {_spread(results)}."
            drawing = plot.sweep(results, column, heading, unit)
            drawing.axes[0].set_xlabel(description.plain_key(drawing.axes[0].get_xlabel()))
            yield _at(width, f"sweep-{column}", caption, drawing)


def _of(limit: limits.Limit | None) -> str:
    """What the line of a limit shows."""
    if limit is None:
        return ""
    over = "the same part of the recording" if limit.same_runs else "the complete recording"
    return f" Dotted: the bound, the least delay of a controller that knows the statistics of {over}."


def _distribution(results: Results, width: float) -> Iterator[Figure]:
    """Distribution of RTT samples where they were measured, otherwise of the queueing delay of the runs over time."""
    if "rtt_ms.cdf" in results.flows:
        drawing = plot.cdf(results, "rtt_ms")
        drawing.axes[0].set_xlabel("RTT (ms)")
        drawing.axes[0].set_xscale("log")
        write_out(drawing.axes[0].xaxis)
        yield _at(width, "distribution", "Share of RTT samples below each RTT.", drawing)
    elif _have_queued(results):
        drawing = plot.delay_cdf(results.named_series, uplink=_uploads(results), colours=_colours_of_series(results))
        # In one line, the label is wider than a phone.
        drawing.axes[0].set_xlabel("mean queueing delay\nof an interval (ms)")
        caption = "Share of intervals with a mean queueing delay below each value, of the runs shown over time."
        yield _at(width, "distribution", caption, drawing)


def _have_queued(results: Results) -> bool:
    """Whether packets were queued for more than 1 ms, the least delay on the axis of a distribution."""
    name = "up.queue_ms" if _uploads(results) else "queue_ms"
    delays = [of for one in results.series for key, of in one.items() if key.split("/")[0] == name]
    return any(bool((of > 1).any()) for of in delays)


# Maximum rows of a figure of paired differences.
_MOST_DIFFERENCES = 40


def _differences(results: Results, width: float) -> Iterator[Figure]:
    """Paired differences of goodput and queueing delay from the runs without regulator, or from the first sender."""
    key = next((key for key in ("edge.regulator", "flow.sender") if key in results.varied), None)
    values = [] if key is None or results.flows.empty else list(dict.fromkeys(results.flows[key].astype(str)))
    rows = len(results) // max(results.runs["run"].nunique(), 1)
    if key is None or len(values) < 2 or rows > _MOST_DIFFERENCES:
        return
    baseline = "none" if "none" in values else values[0]
    for column, heading in (("goodput_bps", "goodput"), (results.queueing_delay, "p95 queueing delay")):
        table = results.paired(column, by=key, baseline=baseline)
        if not table["relative"].notna().any():
            continue
        drawing = plot.paired(results, column, by=key, baseline=baseline)
        # Right-aligned in two lines, the label also fits a phone beside long names.
        drawing.axes[0].set_xlabel(f"{heading},\ndifference to {baseline} (%)", loc="right")
        several = f", run by run, with {percent(results)} % intervals" if table["low"].notna().any() else ""
        caption = f"Differences of {heading}{several}."
        yield _at(width, f"paired-{heading.replace(' ', '-')}", caption, drawing)


def _figures_of_link(results: Results, width: float) -> Iterator[Figure]:
    """Both directions of a live link over time, and the waterfall of its connections."""
    whole = WHOLE if width == WIDE else width
    for series in results.series:
        for way, uplink in (("downlink", False), ("uplink", True)):
            yield Figure(
                f"over-time-{way}",
                f"{way.capitalize()} over time: capacity (grey), goodput, and mean queueing delay with its 95th "
                "percentile over all packets (dashed). Red ticks are dropped packets. "
                "Goodput of TCP counts acknowledged data, so it peaks when a loss is repaired.",
                plot.over_time(
                    {way: series}, width=whole, uplink=uplink, p95=_percentiles(results, [way], uplink=uplink)
                ),
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
    of_all, own = _common_values(list(results.named_series))
    series = {own[name]: _of_downloads(results, one) for name, one in results.named_series.items()}
    which = (
        f"Below {next(iter(series))}: the one with the largest ratio of goodput to p95 queueing delay. "
        if len(series) > 1 and "edge.regulator" in results.varied
        else ""
    )
    percentiles = _percentiles(results, list(own), uplink=_uploads(results))
    p95 = {own[name]: value for name, value in percentiles.items()}
    colours = {own[name]: colour for name, colour in _colours_of_series(results).items()}
    of_run = f" of {of_all}" if of_all and results.varied else ""
    median = ", the one of median goodput" if len(results) > 1 else ""
    dashed = "; the 95th percentile over all packets is dashed" if p95 else ""
    return Figure(
        "over-time",
        f"{which}Each curve is one run{of_run}{median}. Red ticks are dropped packets. "
        "Goodput counts data in order, so it peaks when a loss is repaired. "
        f"The curve of queueing delay is the mean of an interval{dashed}.",
        plot.over_time(
            series,
            width=WHOLE if width == WIDE else width,
            uplink=_uploads(results),
            colours=colours,
            p95=p95,
        ),
    )


def _common_values(names: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Values that all names of runs contain, and each name without them; a name is kept if nothing would remain."""
    parts = [name.split(", ") for name in names]
    common = [part for part in parts[0] if all(part in others for others in parts)] if parts else []
    own = [", ".join(part for part in name if part not in common) for name in parts]
    return ", ".join(common), {name: rest or name for name, rest in zip(names, own, strict=True)}


def _of_downloads(results: Results, series: Series) -> Series:
    """A series without the uploads beside downloads, whose goodput is no share of the downlink."""
    if not results.has_both_directions:
        return series
    uploads = results.flows.loc[results.flows["towards"] == "server", "id"].unique()
    left_out = {f"{column}/{flow}" for flow in uploads for column in ("rate", "cwnd", "advertised")}
    return {name: values for name, values in series.items() if name not in left_out}


def _flows_over_time(results: Results, width: float) -> Iterator[Figure]:
    """The flows of each run over time that has several, a curve for each."""
    for name, series in results.named_series.items():
        flows = flows_of(series)
        if not 2 <= len(flows) <= plot.MOST_FLOWS:
            continue
        names = _senders_of(results, name)
        of_run = f" of {name}" if len(results.series) > 1 else ""
        capacity = " with the capacity (grey)" if "link_rate" in series else ""
        yield Figure(
            f"flows-over-time-{name.replace(' ', '-')}",
            f"Flows{of_run}, each with its curve: goodput{capacity}, congestion window and RTT.",
            plot.per_flow(series, width=WHOLE if width == WIDE else width, names=names),
        )


def _senders_of(results: Results, name: str) -> dict[int, str]:
    """Id and sender of the flows of a named run."""
    for at, run in enumerate(results.objects):
        point = {str(label(value)) for value in (run.get("point") or {}).values()}
        if len(results) == 1 or set(name.split(", ")) <= point or (not point and name == f"run {run.get('run')}"):
            return flow_names(results, at)
    return {}


def _colours_of_series(results: Results) -> dict[str, str]:
    """Colour of each series: that of its regulator, sender or other coloured value in all figures of the page."""
    known = plot.colours(results)
    found = {
        name: [known[part] for part in (name, *name.split(", ")) if part in known] for name in results.named_series
    }
    return {name: colours[0] for name, colours in found.items() if colours}


def _percentiles(results: Results, names: Sequence[str], *, uplink: bool) -> dict[str, float]:
    """p95 queueing delay over all packets of each named run, ms; runs that the name does not determine are omitted."""
    found = {}
    # One run has one series; another series beside it, such as that of a link, is of none of these runs.
    is_only = len(results) == 1 and len(results.series) == 1
    for name in names:
        points = [{str(label(value)) for value in (run.get("point") or {}).values()} for run in results.objects]
        runs = [
            run
            for run, point in zip(results.objects, points, strict=True)
            if is_only or set(name.split(", ")) <= point or (not any(points) and name == f"run {run.get('run')}")
        ]
        p95 = (
            ((runs[0].get("uplink" if uplink else "bottleneck") or {}).get("queue_ms") or {}).get("p95")
            if runs
            else None
        )
        if len(runs) == 1 and p95 is not None:
            found[name] = p95
    return found


def _radio_over_time(results: Results, width: float) -> Iterator[Figure]:
    """Gauges of the base station and of the allocation of rates, of the last run over time that has them."""
    name, series = list(results.named_series.items())[-1]
    drawing = plot.radio(series)
    if drawing is not None:
        of_run = f" of {name}" if len(results.series) > 1 else ""
        caption = f"Downlink of the radio{of_run}: sums over the users, target as their mean."
        yield _at(width, "radio-over-time", caption, drawing)


def _links(results: Results) -> list[tuple[str, str]]:
    """Title and name in the results of each direction that has data."""
    if results.has_both_directions:
        return [("Downlink", "bottleneck"), ("Uplink", "uplink")]
    return [("Uplink", "uplink")] if _uploads(results) else [("Bottleneck", "bottleneck")]


def _uploads(results: Results) -> bool:
    """Whether figures show the uplink: only where the headline does too."""
    return results.queueing_delay.startswith("uplink.")


def _at(width: float, name: str, caption: str, drawing: Drawing) -> Figure:
    """A figure whose layout follows its width."""
    drawing.set_size_inches(width, drawing.get_figheight())
    # The legend is laid out for its width.
    if drawing.legends or len(drawing.axes[0].get_legend_handles_labels()[1]) > 1:
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
    groups = data.groupby([data[key].astype(str) for key in keys], sort=False)
    if groups.ngroups > MOST_ROWS:
        title = f"{title}: the first {MOST_ROWS} of {groups.ngroups:,} rows"
    rows = []
    for _, group in islice(groups, MOST_ROWS):
        names = [str(group[key].iloc[0]) for key in keys]
        rows.append(names + [_cell(group[name] * unit, confidence, resolution_of(name)) for name, _, unit in there])
    return Table(title, [*map(description.plain_key, keys), *(heading for _, heading, _ in there)], rows, len(keys))


def _cell(values: pd.Series[Any], confidence: float, resolution: float) -> str:
    """Mean and interval; `-` if no run of the point has the number."""
    known = values.dropna().astype(float)
    return "-" if known.empty else with_separators(with_spread(*mean_and_interval(known, confidence, resolution)))
