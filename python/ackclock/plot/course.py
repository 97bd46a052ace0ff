"""One flow, or the rate of a recording, over time."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ackclock.plot.style import COLOURS, STYLE, Picture, panel, plain
from ackclock.results import Series


def time_series(
    series: Series, flow: int = 0, span: tuple[float, float] | None = None, *, uplink: bool = False
) -> Figure:
    """Window and threshold, queue, rate and round-trip time of a flow over time.

    Args:
        series: One entry of `Results.series`.
        flow: The flow's id; for a flow without these values, only the queue is plotted.
        span: First and last second to plot.
        uplink: Whether to plot the uplink queue as well.

    Raises:
        ValueError: if the span has no samples, or there is nothing to plot.
    """
    return _panels(series, _rows(series, flow, uplink=uplink), span)


def radio(series: Series, span: tuple[float, float] | None = None) -> Figure | None:
    """PDUs and credits at the base station, its target delay, and allocated rates over time; `None` without them.

    Args:
        series: One entry of `Results.series`, of a run over the bearer `radio-access`.
        span: First and last second to plot.

    Raises:
        ValueError: if the span has no samples.
    """
    rows = [row for row in _RADIO if row[1][0] in series and np.isfinite(series[row[1][0]]).any()]
    return _panels(series, rows, span) if rows else None


_Row = tuple[str, tuple[str, ...], float]

# Panels of radio access: label, names in the series, factor to the label's unit.
_RADIO: Sequence[_Row] = (
    ("base station\n(PDUs)", ("down.base_station_pdus",), 1.0),
    ("credits\n(PDUs)", ("down.credits",), 1.0),
    ("target\n(ms)", ("down.base_station_target_ms",), 1.0),
    ("allocated\n(kbit/s)", ("down.allocated_bps",), 1e-3),
)


def _panels(series: Series, rows: Sequence[_Row], span: tuple[float, float] | None) -> Figure:
    kept = _within(series["time"], span)
    time = series["time"][kept]
    with mpl.rc_context(STYLE):
        figure = Picture(figsize=(7.6, 1.8 * len(rows)), layout="constrained")
        panels = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (ylabel, names, unit) in zip(panels, rows, strict=True):
            for name in names:
                values = series[name][kept] * unit
                if name.startswith("rate/"):
                    values = _over_a_second(time, values)
                there = np.isfinite(values)  # missing samples do not break the line
                axes.plot(time[there], values[there], linewidth=1.1, label=name.split("/")[0])
            axes.set_ylabel(ylabel)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
            if len(names) > 1:
                axes.set_ylim(top=1.1 * np.nanmax(series[names[0]][kept]))  # the first threshold is far higher
                axes.legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 0.98))
        panels[-1].set_xlabel("time (s)")
        if time[0] < time[-1]:  # a single sample keeps matplotlib's margins
            panels[-1].set_xlim(time[0], time[-1])
        figure.align_ylabels(list(panels))
    return figure


def window(series: Series, flow: int = 0, span: tuple[float, float] | None = None, title: str = "") -> Figure:
    """A flow's congestion window over time; arguments as in `time_series`.

    Raises:
        ValueError: if the span has no samples, or the series has no window of the flow.
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
        title: Title above the panels.
    """
    mbps = rate / 1e6
    with mpl.rc_context(STYLE):
        figure = Picture(figsize=(9.0, 3.8), layout="constrained")
        over_time, share = figure.subplots(1, 2, width_ratios=(2.2, 1))
        over_time.plot(time, mbps, linewidth=0.9)
        over_time.set(xlabel="time (s)", ylabel="rate (Mbit/s)")
        over_time.axhline(mbps.mean(), color=COLOURS[1], linewidth=1.2, label=f"mean {mbps.mean():.3g} Mbit/s")
        over_time.set_ylim(0, 1.18 * max(float(mbps.max()), 1e-9))  # space for the legend
        over_time.legend(loc="upper right")
        share.plot(np.sort(mbps), np.arange(1, mbps.size + 1) / mbps.size)
        share.set(xlabel="rate (Mbit/s)", ylabel="share of time below", ylim=(0, 1.02))
        figure.suptitle(plain(title), fontsize=11)
    return figure


def _rows(series: Series, flow: int, *, uplink: bool) -> Sequence[_Row]:
    """Panels available for a flow's series: label, names in the series, factor to the label's unit."""
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
    """Running mean, because the end of a recovery delivers a complete window at one instant."""
    if time.size < 2:
        return rate
    samples = min(time.size, max(1, round(1 / float(time[1] - time[0]))))
    window = np.ones(samples)
    sums: NDArray[np.float64] = np.convolve(np.nan_to_num(rate), window, mode="same")
    return sums / np.convolve(np.ones(time.size), window, mode="same")


def _within(time: NDArray[np.float64], span: tuple[float, float] | None) -> slice:
    """The samples of a span as a slice, which copies no arrays."""
    low, high = span if span is not None else (-np.inf, np.inf)
    kept = slice(int(np.searchsorted(time, low)), int(np.searchsorted(time, high, side="right")))
    if time[kept].size == 0:
        there = f"from {time[0]:g} to {time[-1]:g} s" if time.size else "none at all"
        raise ValueError(f"span: {low:g} to {high:g} s holds none of the samples, which are {there}")
    return kept
