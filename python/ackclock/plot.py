"""Plots of runs, sweeps, traces and windows.

Every function returns a `matplotlib.figure.Figure` that belongs to nobody: no window, no global state. `save` writes
it to a file, `svg` gives it as text for a report.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import Bbox
from matplotlib.typing import RcKeyType
from numpy.typing import ArrayLike, NDArray

from ackclock.axis import legend_above, log_if_wide, not_below_zero, numbers, positions
from ackclock.picture import save as save
from ackclock.picture import svg as svg
from ackclock.results import Results, Series, mean_and_interval

if TYPE_CHECKING:
    import pandas as pd

# Colours that stay apart for colour-blind eyes (Okabe and Ito), and markers that stay apart in print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

# More labels of values would overlap, and each costs milliseconds.
MOST_TICKS = 24
# More variants are named in a legend than at their marks.
MOST_DIRECT = 8
# Points of a curve over time.
MOST_BINS = 300
# Smallest text, points; width below which a figure is for a telephone, inches.
SMALL, NARROW = 9, 5.0

STYLE: dict[RcKeyType, Any] = {
    "font.size": 11,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "axes.prop_cycle": cycler(color=COLOURS),
}


@dataclass(frozen=True)
class Curve:
    """A line over a parameter: `values[i]` holds one number a run at `x[i]`."""

    x: Sequence[float]
    values: Sequence[ArrayLike]


@contextmanager
def panel(
    xlabel: str, ylabel: str, title: str = "", size: tuple[float, float] = (6.4, 4.2)
) -> Iterator[tuple[Figure, Axes]]:
    """A figure of one panel in the house style."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        axes.set(xlabel=xlabel, ylabel=ylabel)
        if title:
            axes.set_title(plain(title), fontsize=11)
        yield figure, axes


def curves(
    lines: Mapping[str, Curve],
    xlabel: str,
    ylabel: str,
    title: str = "",
    limit: Curve | None = None,
    confidence: float = 0.95,
) -> Figure:
    """Curves over a parameter: mean of the runs with its confidence interval as a band.

    Args:
        lines: Curves by label.
        xlabel: Name and unit of the parameter.
        ylabel: Name and unit of the values.
        title: Stands above the panel.
        limit: What theory allows, drawn as a broken line.
        confidence: Probability with which an interval holds the mean.
    """
    with panel(xlabel, ylabel, title) as (figure, axes):
        if limit is not None:
            axes.plot(
                limit.x,
                _mean_and_interval(limit, confidence)[0],
                color="#777777",
                linestyle="--",
                linewidth=1.2,
                label="capacity",
            )
        for i, (label, curve) in enumerate(lines.items()):
            colour, marker = _style(i)
            mean, half = _mean_and_interval(curve, confidence)
            axes.plot(curve.x, mean, color=colour, marker=marker, label=label)
            axes.fill_between(curve.x, mean - half, mean + half, color=colour, alpha=0.22, linewidth=0)
        legend_above(figure)
    return figure


def sweep(results: Results, column: str = "goodput_bps", ylabel: str = "", unit: float = 1.0) -> Figure:
    """What the flows of a run have together (`Results.per_run`) over one swept key; the others make the curves.

    The key of the axis is one whose values are numbers, such as a buffer, or else the one with the most values; the
    marks of values without an order are not joined.

    Args:
        results: Runs of a sweep.
        column: A column of `Results.flows`.
        ylabel: Its name and unit on the axis.
        unit: Factor from the column's unit to that of the axis.

    Raises:
        ValueError: if nothing was swept, or there are no rows of flows with the column.
    """
    if not results.swept:
        raise ValueError("these runs are not of a sweep")
    flows = results.per_run([column], results.varied)
    values = {key: list(dict.fromkeys(flows[key].astype(str))) for key in results.varied}
    over = max(results.varied, key=lambda key: (numbers(values[key]) is not None, len(values[key])))
    others = [key for key in results.varied if key != over]
    ticks = values[over]
    position = positions(ticks)
    lines = {}
    for names, group in _grouped(flows, others):
        by_value = dict(iter(group.groupby(group[over].astype(str))[column]))
        there = {position[tick]: unit * by_value[tick] for tick in ticks if tick in by_value}
        lines[", ".join(names) or "mean"] = Curve(list(there), list(there.values()))
    draw = curves if numbers(ticks) is not None else _marks
    figure = draw(lines, over, ylabel or column, confidence=results.confidence)
    step = math.ceil(len(ticks) / MOST_TICKS)
    figure.axes[0].set_xticks(list(position.values())[::step], [plain(tick) for tick in ticks[::step]])
    not_below_zero(figure.axes[0])
    return figure


def goodput_against_delay(results: Results, delay: str = "rtt_ms.mean", width: float = 6.4) -> Figure:
    """What `compare` ran: further up and to the left is better.

    A colour for each value of the first key (the sender), a marker for each of the others (the regulator); a line joins
    the buffers of a variant, which are written at its first and last mark. Up to eight variants are named at their
    marks, more of them in a legend. The broken line is the mean capacity of the link.

    Args:
        results: Runs of `compare`, or of any sweep.
        delay: The column of `Results.flows` that stands on the x axis, in ms.
        width: Width of the figure, inches.

    Raises:
        ValueError: if there are no rows of flows with the column.
    """
    joined = "edge.buffer" if "edge.buffer" in results.varied else None
    keys = [key for key in results.varied if key != joined] or ["sender"]
    colours: dict[str, str] = {}
    marks: dict[tuple[str, ...], str] = {}
    labels: list[tuple[float, float, str, str]] = []
    xlabel = f"{delay.replace('_ms.', ' ').replace('rtt', 'RTT')} (ms)"
    with panel(xlabel, "goodput (kbit/s)", size=(width, 4.4)) as (figure, axes):
        runs = results.per_run([delay, "goodput_bps"], list(dict.fromkeys([*keys, *results.varied])))
        for names, group in _grouped(runs, keys):
            colour = colours.setdefault(names[0], COLOURS[len(colours) % len(COLOURS)])
            marker = marks.setdefault(names[1:], MARKERS[len(marks) % len(MARKERS)])
            points = list(_grouped(group, [joined] if joined else []))
            x, x_half = np.transpose([mean_and_interval(point[delay], results.confidence) for _, point in points])
            y, y_half = np.transpose(
                [mean_and_interval(point["goodput_bps"] / 1e3, results.confidence) for _, point in points]
            )
            axes.errorbar(
                x, y, xerr=x_half, yerr=y_half,
                color=colour, marker=marker, linestyle="-" if marker == MARKERS[0] else "--", linewidth=1.1,
                label=", ".join(names),
            )  # fmt: skip
            for i in sorted({0, len(points) - 1}):
                words = [*((", ".join(names),) if i == 0 else ()), "".join(points[i][0])]
                labels.append((x[i], y[i], " ".join(filter(None, words)), colour))
        capacity = results.runs.get("bottleneck.capacity_bps")
        if capacity is not None and capacity.notna().any():
            axes.axhline(capacity.mean() / 1e3, color="#777777", linestyle="--", linewidth=1.2)
            axes.annotate(
                "capacity", (1, capacity.mean() / 1e3), xycoords=("axes fraction", "data"), xytext=(0, 3),
                textcoords="offset points", ha="right", fontsize=SMALL, color="#555555",
            )  # fmt: skip
        axes.margins(0.12)
        not_below_zero(axes, "xy")
        log_if_wide(axes)
        if len(axes.containers) > MOST_DIRECT:
            labels = []
            legend_above(figure)
        _label_marks(figure, axes, labels)
    return figure


def _label_marks(figure: Figure, axes: Axes, labels: Sequence[tuple[float, float, str, str]]) -> None:
    """Writes names beside marks, each at the first of some places where it overlaps no other name."""
    figure.draw_without_rendering()
    frame = axes.get_window_extent()
    marks = [axes.transData.transform(label[:2]) for label in labels]
    taken = [Bbox.from_bounds(x - 6, y - 6, 12, 12) for x, y in marks]
    for x, y, text, colour in sorted(labels, key=lambda label: -label[1]):
        note = axes.annotate(
            text, (x, y), xytext=(0, 0), textcoords="offset points", va="center", fontsize=SMALL, color=colour
        )
        note.set_in_layout(False)
        for dx, dy in [(side, step) for step in (0, -13, 13, -26, 26, -39, 39) for side in (7, -7)]:
            note.set(position=(dx, dy), ha="left" if dx > 0 else "right")
            box = note.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1
            if inside and not any(box.overlaps(other) for other in taken):
                break
        taken.append(box)


def over_time(
    runs: Mapping[str, Series], width: float = 8.4, *, uplink: bool = False, order: Sequence[str] = ()
) -> Figure:
    """Runs over the same link: capacity, goodput, the queue of each with its drops, windows and held ACKs of the last.

    Args:
        runs: Series by the name of their run.
        width: Width of the figure, inches.
        uplink: Whether to draw the queue of the link from the mobiles, which uploads fill.
        order: Names in the order of their colours, where another figure shows them too.

    Raises:
        ValueError: if there are no runs.
    """
    if not runs:
        raise ValueError("there are no series to draw")
    names, last = list(runs), list(runs.values())[-1]
    ordered = list(dict.fromkeys([*order, *names]))
    colours = {name: COLOURS[ordered.index(name) % len(COLOURS)] for name in names}
    heights = [1.5, *(1.0 for _ in names), *([1.0] if _windows(last) else [])]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 1.0 + 1.3 * sum(heights)), layout="constrained")
        panels = list(figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0])
        _draw_rates(panels[0], runs, colours, width, capacity=not uplink)
        queue = "up.queue_packets" if uplink else "queue"
        for axes, name in zip(panels[1:], names, strict=False):
            time, packets = _binned(runs[name], _summed(runs[name], queue))
            axes.fill_between(time, packets, color=colours[name], alpha=0.35, linewidth=0)
            axes.plot(time, packets, color=colours[name], linewidth=1.1)
            _draw_drops(axes, runs[name], "up.drops" if uplink else "drops")
            axes.set(ylabel=f"{plain(name)}\nqueue (pkt)" if len(runs) > 1 else "queue\n(packets)")
        top = max(axes.get_ylim()[1] for axes in panels[1 : 1 + len(names)])
        for axes in panels[1 : 1 + len(names)]:
            axes.set_ylim(0, top)
        if _windows(last):
            _draw_windows(panels[-1], last, names[-1] if len(runs) > 1 else "", width)
        panels[-1].set_xlabel("time (s)")
        panels[-1].set_xlim(last["time"][0], max(last["time"][-1], last["time"][0] + 1e-9))
        figure.align_ylabels(panels)
    return figure


def _draw_rates(
    axes: Axes, runs: Mapping[str, Series], colours: Mapping[str, str], width: float, *, capacity: bool
) -> None:
    first = next(iter(runs.values()))
    if capacity and "link_rate" in first:
        time, rate = _binned(first, first["link_rate"] / 1e3)
        axes.fill_between(time, rate, color="#cccccc", linewidth=0, step="mid", label="capacity")
    for name, series in runs.items():
        time, rate = _binned(series, _summed(series, "rate") / 1e3)
        axes.plot(time, rate, color=colours[name], linewidth=1.1, label=name if len(runs) > 1 else "goodput")
    axes.set(ylabel="rate\n(kbit/s)")
    axes.set_ylim(bottom=0)
    _legend_on_top(axes, width)


def _draw_drops(axes: Axes, series: Series, name: str) -> None:
    """Ticks at the upper edge where packets were dropped."""
    at = series["time"][_summed(series, name) > 0]
    axes.plot(at, np.full(at.size, 0.96), "|", color="#a33c00", markersize=7, transform=axes.get_xaxis_transform())


def _windows(series: Series) -> list[str]:
    """Names of the windows of the first flow."""
    first = next((name.removeprefix("cwnd/") for name in series if name.startswith("cwnd/")), None)
    return [] if first is None else [name for name in (f"cwnd/{first}", f"advertised/{first}") if name in series]


def _draw_windows(axes: Axes, series: Series, run: str, width: float) -> None:
    congestion, *advertised = _windows(series)
    time, window = _binned(series, series[congestion])
    axes.plot(time, window, linewidth=1.1, label="congestion window")
    used = float(np.nanmax(window))
    for name in advertised:
        _, told = _binned(series, series[name])
        used = min(used, float(np.nanmax(np.minimum(told, window))))
        if np.nanmin(told) < 1.5 * used:  # otherwise it never limits
            axes.plot(time, told, color=COLOURS[1], linewidth=1.1, label="advertised window")
    held = _summed(series, "held_acks")
    if np.nanmax(held) > 0:
        _, acks = _binned(series, held)
        axes.plot(time, acks, color=COLOURS[2], linewidth=1.1, label="held ACKs")
    # A congestion window that the advertised one keeps unused would flatten the others.
    axes.set(
        ylabel=f"{plain(run)}\nwindow (pkt)" if run else "window\n(packets)",
        ylim=(0, min(1.15 * float(np.nanmax(window)), 3 * used)),
    )
    _legend_on_top(axes, width)


def _legend_on_top(axes: Axes, width: float) -> None:
    labels = axes.get_legend_handles_labels()[1]
    columns = len(labels) if width > NARROW else 2
    legend = axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=columns, fontsize=SMALL, borderpad=0)
    legend.set_in_layout(False)
    axes.set_title("\n".join([" "] * math.ceil(len(labels) / columns)), fontsize=SMALL)  # room above the panel


def _summed(series: Series, name: str) -> NDArray[np.float64]:
    """A column of the run, or the sum of its flows' or edges' columns; zeros where there is none."""
    columns = [values for key, values in series.items() if key == name or key.startswith(f"{name}/")]
    return np.sum([np.nan_to_num(values) for values in columns], axis=0) if columns else np.zeros_like(series["time"])


def _binned(series: Series, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Time and means of at most `MOST_BINS` equal intervals."""
    size = max(1, math.ceil(values.size / MOST_BINS))
    whole = max(1, values.size // size) * size
    return tuple(array[:whole].reshape(-1, size).mean(axis=1) for array in (series["time"], np.nan_to_num(values)))


def latency_by_size(results: Results) -> Figure:
    """Latency of transfers by their size: mean over the runs with its confidence interval.

    The swept keys, or else the users, make the curves; each class of size stands at its largest size.

    Args:
        results: Runs of workloads whose flows come and go.

    Raises:
        ValueError: if there are no transfers.
    """
    transfers = results.transfers
    if transfers.empty:
        raise ValueError("these runs have no transfers by size")
    together = transfers[transfers["user"].isna()]
    # Users are told apart where nothing else is.
    single = transfers[transfers["user"].notna()].copy()
    single["user"] = ["user " + str(int(user)) for user in single["user"]]
    by_user = not results.swept and 0 < single["user"].nunique() <= len(COLOURS)
    shown, keys = (single, ["user"]) if by_user else (together, results.swept)
    classes = sorted({int(size) for size in shown["from_bytes"]})
    lines = {}
    for names, group in _grouped(shown[shown["latency_ms.mean"].notna()], keys):
        by_class = group.groupby("from_bytes", sort=True)["latency_ms.mean"]
        there = [size for size in classes if size in by_class.groups]
        lines[", ".join(names) or "mean"] = Curve(
            [float(classes.index(size)) for size in there], [by_class.get_group(size) for size in there]
        )
    figure = curves(lines, "size (KB)", "latency (ms)", confidence=results.confidence)
    axes = figure.axes[0]
    axes.set_xticks(range(len(classes)), [_class_name(shown, size) for size in classes])
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    return figure


def _class_name(transfers: pd.DataFrame, first: int) -> str:
    """A class of size in KB, by its largest size."""
    largest = transfers.loc[transfers["from_bytes"] == first, "to_bytes"].iloc[0]
    return f"> {(first - 1) / 1e3:g}" if np.isnan(float(largest)) else f"≤ {float(largest) / 1e3:g}"


def time_series(
    series: Series, flow: int = 0, span: tuple[float, float] | None = None, *, uplink: bool = False
) -> Figure:
    """Window and threshold, queue, rate and round trip time of a flow over time.

    Args:
        series: One entry of `Results.series`.
        flow: The flow's id; of a flow that has none of these only the queue is drawn.
        span: First and last second to show.
        uplink: Whether to draw the queue of the mobiles too, which uploads fill.

    Raises:
        ValueError: if no sample lies in the span, or there is nothing to draw.
    """
    rows = _rows(series, flow, uplink=uplink)
    kept = _within(series["time"], span)
    time = series["time"][kept]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 1.8 * len(rows)), layout="constrained")
        panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (ylabel, names, unit) in zip(panels, rows, strict=True):
            for name in names:
                values = series[name][kept] * unit
                if name.startswith("rate/"):
                    values = _over_a_second(time, values)
                there = np.isfinite(values)  # an instant without a sample does not break the line
                axes.plot(time[there], values[there], linewidth=1.1, label=name.split("/")[0])
            axes.set_ylabel(ylabel)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
            if len(names) > 1:
                axes.set_ylim(top=1.1 * np.nanmax(series[names[0]][kept]))  # the first threshold is the largest window
                axes.legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 0.98))
        panels[-1].set_xlabel("time (s)")
        if time[0] < time[-1]:  # a single sample keeps the room that matplotlib gives it
            panels[-1].set_xlim(time[0], time[-1])
        figure.align_ylabels(list(panels))
    return figure


def window(series: Series, flow: int = 0, span: tuple[float, float] | None = None, title: str = "") -> Figure:
    """Course of a flow's congestion window; arguments as in `time_series`.

    Raises:
        ValueError: if no sample lies in the span, or the flow has no window in the series.
    """
    name = f"cwnd/{flow}"
    if name not in series:
        raise ValueError(f"flow: {flow} has no window in this series, which has {', '.join(series)}")
    kept = _within(series["time"], span)
    with panel("time (s)", "congestion window (packets)", title, size=(6.4, 3.4)) as (figure, axes):
        axes.plot(series["time"][kept], series[name][kept], linewidth=1.2)
        axes.set_ylim(bottom=0)
        axes.margins(x=0.01)
        axes.locator_params(steps=[1, 2, 5, 10])
    return figure


def trace(time: NDArray[np.float64], rate: NDArray[np.float64], title: str = "") -> Figure:
    """A recording: its rate over time, and the share of time below each rate.

    Args:
        time: Start of each interval, seconds.
        rate: Mean rate in it, bit/s.
        title: Stands above the panels.
    """
    mbps = rate / 1e6
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.0, 3.8), layout="constrained")
        over_time, share = figure.subplots(1, 2, width_ratios=(2.2, 1))
        over_time.plot(time, mbps, linewidth=0.9)
        over_time.set(xlabel="time (s)", ylabel="rate (Mbit/s)")
        over_time.axhline(mbps.mean(), color=COLOURS[1], linewidth=1.2, label=f"mean {mbps.mean():.3g} Mbit/s")
        over_time.set_ylim(0, 1.18 * max(float(mbps.max()), 1e-9))  # room for the legend
        over_time.legend(loc="upper right")
        share.plot(np.sort(mbps), np.arange(1, mbps.size + 1) / mbps.size)
        share.set(xlabel="rate (Mbit/s)", ylabel="share of time below", ylim=(0, 1.02))
        figure.suptitle(plain(title), fontsize=11)
    return figure


def _marks(lines: Mapping[str, Curve], xlabel: str, ylabel: str, *, confidence: float) -> Figure:
    """Means with their intervals beside each other, where neighbours on the axis have nothing between them."""
    with panel(xlabel, ylabel) as (figure, axes):
        for i, (label, curve) in enumerate(lines.items()):
            colour, marker = _style(i)
            mean, half = _mean_and_interval(curve, confidence)
            beside = np.asarray(curve.x) + 0.12 * (i - (len(lines) - 1) / 2)
            axes.errorbar(
                beside, mean, yerr=half, color=colour, marker=marker,
                linestyle="none", capsize=4, label=label,
            )  # fmt: skip
        axes.margins(x=0.2)
        axes.grid(visible=False, axis="x")
        legend_above(figure)
    return figure


def plain(text: str) -> str:
    """Text whose dollar signs are no mathematics to matplotlib."""
    return text.replace("$", r"\$")


def _style(i: int) -> tuple[str, str]:
    """Colour and marker of a curve: no two of the first 49 share both."""
    return COLOURS[i % len(COLOURS)], MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]


def _mean_and_interval(curve: Curve, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    mean, half = np.array([mean_and_interval(values, confidence) for values in curve.values]).reshape(-1, 2).T
    return mean, half


def _rows(series: Series, flow: int, *, uplink: bool) -> Sequence[tuple[str, tuple[str, ...], float]]:
    """The panels of a flow's series that can be drawn: label, names in the series, factor to the label's unit."""
    every = (
        ("window\n(packets)", (f"cwnd/{flow}", f"ssthresh/{flow}"), 1.0),
        ("queue\n(packets)", ("queue",), 1.0),
        *([("queue up\n(packets)", ("up.queue_packets",), 1.0)] if uplink else []),
        ("rate over 1 s\n(kbit/s)", (f"rate/{flow}",), 1e-3),
        ("RTT\n(ms)", (f"rtt/{flow}",), 1e3),
    )
    rows = [row for row in every if row[1][0] in series]
    if not rows:
        raise ValueError(f"flow: {flow} is none of this series, which has {', '.join(series)}")
    return rows


def _over_a_second(time: NDArray[np.float64], rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Running mean: the end of a recovery delivers a whole window in order at one instant."""
    if time.size < 2:
        return rate
    samples = min(time.size, max(1, round(1 / float(time[1] - time[0]))))
    window = np.ones(samples)
    sums: NDArray[np.float64] = np.convolve(np.nan_to_num(rate), window, mode="same")
    return sums / np.convolve(np.ones(time.size), window, mode="same")


def _within(time: NDArray[np.float64], span: tuple[float, float] | None) -> slice:
    """The samples of a span; a slice, so that the arrays are viewed and not copied."""
    low, high = span if span is not None else (-np.inf, np.inf)
    kept = slice(int(np.searchsorted(time, low)), int(np.searchsorted(time, high, side="right")))
    if time[kept].size == 0:
        there = f"from {time[0]:g} to {time[-1]:g} s" if time.size else "none at all"
        raise ValueError(f"span: {low:g} to {high:g} s holds none of the samples, which are {there}")
    return kept


def _grouped(flows: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """The flows of each combination of the keys' values, in the order of the runs."""
    if not keys:
        yield (), flows
        return
    for values, group in flows.groupby([flows[key].astype(str) for key in keys], sort=False):
        yield tuple(plain(str(value)) for value in values), group
