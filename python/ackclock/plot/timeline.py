"""Runs over the same link over time: capacity, goodput, queueing delay, windows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ackclock.axis import write_out
from ackclock.plot.style import COLOURS, NARROW, SMALL, STYLE, Picture, plain
from ackclock.results import Results, Series
from ackclock.text import number

# Maximum points of a curve over time.
MOST_BINS = 300


def over_time(
    runs: Results | Mapping[str, Series],
    run: int = 0,
    *,
    width: float = 8.4,
    uplink: bool = False,
    colours: Mapping[str, str] | None = None,
    p95: Mapping[str, float] | None = None,
) -> Figure:
    """Runs over the same link: capacity, goodput, queueing delay with drops, and windows and held ACKs of the last run.

    Queueing delay is the mean of the packets of an interval. Series without it show the queue in packets.

    Args:
        runs: Results of a run with time series, or series by the name of their run.
        run: Number of the run of `Results` to plot.
        width: Width of the figure, inches.
        uplink: Whether to plot the uplink.
        colours: Colours of runs, to match another figure; default: one after the other.
        p95: 95th percentile of the queueing delay over all packets of a run, ms, by the name of the run; default: that
            of the runs of `Results`.

    Raises:
        ValueError: if there are no series, or none of this run.
    """
    if isinstance(runs, Results):
        results, runs = runs, _of_run(runs, run)
        if p95 is None and len(results.series) == len(results.objects):
            link = results.objects[run].get("uplink" if uplink else "bottleneck") or {}
            quantile = (link.get("queue_ms") or {}).get("p95")
            p95 = {} if quantile is None else dict.fromkeys(runs, float(quantile))
    if not runs:
        raise ValueError("there are no series to draw")
    names, last = list(runs), list(runs.values())[-1]
    colours = {name: (colours or {}).get(name, COLOURS[i % len(COLOURS)]) for i, name in enumerate(names)}
    heights = [1.5, *(1.0 for _ in names), *([1.0] if _windows(last) else [])]
    with mpl.rc_context(STYLE):
        figure = Picture(figsize=(width, 1.0 + 1.3 * sum(heights)), layout="constrained")
        panels = list(figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0])
        _draw_rates(panels[0], runs, colours, width, "up." if uplink else "")
        queues = panels[1 : 1 + len(names)]
        for axes, name in zip(queues, names, strict=True):
            label, percentile = plain(name) if len(runs) > 1 else "", (p95 or {}).get(name)
            _draw_queue(axes, runs[name], label, colours[name], "up." if uplink else "", percentile)
        top = max(axes.get_ylim()[1] for axes in queues)
        for axes in queues:
            axes.set_ylim(top=top)
        if _windows(last):
            _draw_windows(panels[-1], last, names[-1] if len(runs) > 1 else "", colours[names[-1]], width)
        panels[-1].set_xlabel("time (s)")
        panels[-1].set_xlim(last["time"][0], max(last["time"][-1], last["time"][0] + 1e-9))
        figure.align_ylabels(panels)
    return figure


def _of_run(results: Results, run: int) -> Mapping[str, Series]:
    if not results.series:
        raise ValueError("these runs have no time series; run(..., series_interval=0.1) keeps them")
    if run not in range(len(results.series)):
        raise ValueError(f"run: {run} is none of the {len(results.series)} with time series, counted from 0")
    return {f"run {run}": results.series[run]}


def _draw_rates(axes: Axes, runs: Mapping[str, Series], colours: Mapping[str, str], width: float, way: str) -> None:
    first = next(iter(runs.values()))
    if f"{way}link_rate" in first:
        time, rate = binned(first, first[f"{way}link_rate"] / 1e3)
        axes.fill_between(
            time, rate, facecolor="#cccccc", edgecolor="#888888", linewidth=0.8, step="mid", label="capacity"
        )
    # Flows of a simulated run have one direction; a link has goodput in both.
    goodput = f"{way}rate" if f"{way}rate" in first else "rate"
    for name, series in runs.items():
        time, rate = binned(series, _summed(series, goodput) / 1e3)
        axes.plot(time, rate, color=colours[name], linewidth=1.1, label=name if len(runs) > 1 else "goodput")
    axes.set(ylabel="rate\n(kbit/s)")
    axes.set_ylim(bottom=0)
    legend_on_top(axes, width)


def _draw_queue(axes: Axes, series: Series, run: str, colour: str, way: str, p95: float | None) -> None:
    """Queueing delay on a logarithmic axis from 1 ms with its 95th percentile, or the queue in packets; with drops."""
    delays = [name for name in series if name == f"{way}queue_ms" or name.startswith(f"{way}queue_ms/")]
    if delays:
        time, values = binned(series, np.fmax.reduce([series[name] for name in delays]))
        # Intervals without packets have no delay and do not break the line.
        time, delay = time[np.isfinite(values)], values[np.isfinite(values)]
        values = np.maximum(delay, 1.0)
        axes.set_yscale("log")
        write_out(axes.yaxis)
        highest = max(float(values.max(initial=1.0)), p95 or 1.0)
        axes.set_ylim(1, max(10.0, 8 * highest, highest ** (1 / (1 - _ROOM))))
        if p95 is not None:
            _draw_percentile(axes, p95)
    else:
        time, values = binned(series, _summed(series, "up.queue_packets" if way else "queue"))
        axes.set_ylim(0, 1.05 * max(1.0, float(values.max())))
    axes.fill_between(time, values, axes.get_ylim()[0], color=colour, alpha=0.35, linewidth=0)
    axes.plot(time, values, color=colour, linewidth=1.1)
    _draw_drops(axes, series, f"{way}drops")
    what = "queueing\ndelay (ms)" if delays else "queue (pkt)" if run else "queue\n(packets)"
    axes.set(ylabel=f"{run}\n{what}" if run else what)


# Share of a panel that the label of a line and the ticks of drops need above the line.
_ROOM = 0.34


def _draw_percentile(axes: Axes, p95: float) -> None:
    """The 95th percentile of the delays of all packets, ms, as a line with its value."""
    line = max(p95, 1.0)
    axes.axhline(line, color="#777777", linestyle="--", linewidth=1.2)
    axes.annotate(
        f"p95 {number(p95)} ms", (1, line), xycoords=("axes fraction", "data"), xytext=(0, 2),
        textcoords="offset points", ha="right", va="bottom", fontsize=SMALL, color="#555555",
    )  # fmt: skip


def _draw_drops(axes: Axes, series: Series, name: str) -> None:
    """Ticks at the upper edge when packets were dropped."""
    at = series["time"][_summed(series, name) > 0]
    axes.plot(at, np.full(at.size, 0.96), "|", color="#a33c00", markersize=7, transform=axes.get_xaxis_transform())


def _windows(series: Series) -> list[str]:
    """Names of the windows of the first flow that has windows."""
    windows = (name for name in series if name.startswith("cwnd/") and np.isfinite(series[name]).any())
    first = next((name.removeprefix("cwnd/") for name in windows), None)
    return [] if first is None else [name for name in (f"cwnd/{first}", f"advertised/{first}") if name in series]


def _draw_windows(axes: Axes, series: Series, run: str, colour: str, width: float) -> None:
    # Colours name runs, so lines differ by their style.
    congestion, *advertised = _windows(series)
    time, window = binned(series, series[congestion])
    axes.plot(time, window, color=colour, linewidth=1.1, label="congestion window")
    highest = used = float(np.nanmax(window))
    for name in advertised:
        _, told = binned(series, series[name])
        used = min(used, float(np.nanmax(np.minimum(told, window))))
        if np.nanmin(told) < min(1.15 * highest, 1.5 * used):  # otherwise it never limits the sender
            axes.plot(time, told, color="#333333", linestyle="--", linewidth=1.1, label="advertised window")
    held = _summed(series, "held_acks")
    if np.nanmax(held) > 0:
        _, acks = binned(series, held)
        axes.plot(time, acks, color="#777777", linestyle=":", linewidth=1.4, label="held ACKs")
    # An unused congestion window, far above the advertised window, would flatten the others.
    axes.set(
        ylabel=f"{plain(run)}\nwindow (pkt)" if run else "window\n(packets)",
        ylim=(0, min(1.15 * highest, 3 * used)),
    )
    legend_on_top(axes, width)


def legend_on_top(axes: Axes, width: float) -> None:
    """Draw the legend above a panel, in as many columns as fit; none if no curve has a label."""
    labels = axes.get_legend_handles_labels()[1]
    if not labels:
        return
    columns = min(len(labels), 5 if width > NARROW else 2)
    rows = math.ceil(len(labels) / columns)
    legend = axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=columns, fontsize=SMALL, borderpad=0)
    legend.set_in_layout(False)
    # Space above the panel: a row of a legend is higher than a line of text.
    axes.set_title("\n".join([" "] * math.ceil(1.4 * rows - 0.4)), fontsize=SMALL)


def _summed(series: Series, name: str) -> NDArray[np.float64]:
    """A column of the run, or the sum of its flows' or edges' columns; zeros if there is none."""
    columns = [values for key, values in series.items() if key == name or key.startswith(f"{name}/")]
    return np.sum([np.nan_to_num(values) for values in columns], axis=0) if columns else np.zeros_like(series["time"])


def binned(series: Series, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Time and means of at most `MOST_BINS` equal intervals; NaN if an interval has no value."""
    size = max(1, math.ceil(values.size / MOST_BINS))
    whole = max(1, values.size // size) * size
    time, cut = (array[:whole].reshape(-1, size) for array in (series["time"], values))
    there = np.isfinite(cut).sum(axis=1)
    return time.mean(axis=1), np.where(there > 0, np.nansum(cut, axis=1) / np.maximum(there, 1), np.nan)
