"""The flows of one run over time, a curve for each."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.plot.style import COLOURS, STYLE, Picture, plain
from ackclock.plot.timeline import binned, legend_on_top
from ackclock.results import Results, Series

# Maximum number of flows with curves: as many as there are colours.
MOST_FLOWS = len(COLOURS)

# Panels: label, name of a flow's column, factor to the label's unit.
_PANELS = (
    ("goodput\n(kbit/s)", "rate", 1e-3),
    ("window\n(packets)", "cwnd", 1.0),
    ("RTT\n(ms)", "rtt", 1e3),
)


def per_flow(
    runs: Results | Series, run: int = 0, *, width: float = 8.4, names: Mapping[int, str] | None = None
) -> Figure:
    """Goodput, congestion window and round-trip time of each flow of a run over time; capacity as a grey area.

    Args:
        runs: Results with time series, or one entry of `Results.series`.
        run: Number of the run of `Results` to plot.
        width: Width of the figure, inches.
        names: Names of the flows by id; default: id and sender.

    Raises:
        ValueError: if there are no series, none of this run, no flows, or more than `MOST_FLOWS`.
    """
    if isinstance(runs, Results):
        if run not in range(len(runs.series)):
            there = f"the {len(runs.series)} with time series"
            raise ValueError(f"run: {run} is none of {there}; run(..., series_interval=0.1) keeps them")
        names = names or flow_names(runs, run)
        series = runs.series[run]
    else:
        series = runs
    flows = {flow: plain((names or {}).get(flow, f"flow {flow}")) for flow in flows_of(series)}
    if not 1 <= len(flows) <= MOST_FLOWS:
        raise ValueError(f"the series has {len(flows)} flows; 1 to {MOST_FLOWS} have curves")
    panels = [panel for panel in _PANELS if _has_values(series, panel[1], flows)]
    with mpl.rc_context(STYLE):
        figure = Picture(figsize=(width, 1.0 + 1.6 * len(panels)), layout="constrained")
        drawn = list(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0])
        for axes, (label, column, factor) in zip(drawn, panels, strict=True):
            if column == "rate" and "link_rate" in series:
                _draw_capacity(axes, series, factor)
            _draw_flows(axes, series, flows, column, factor)
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0)
        legend_on_top(drawn[0], width)
        time = series["time"]
        drawn[-1].set_xlabel("time (s)")
        drawn[-1].set_xlim(time[0], max(time[-1], time[0] + 1e-9))
        figure.align_ylabels(drawn)
    return figure


def _has_values(series: Series, column: str, flows: Mapping[int, str]) -> bool:
    """Whether a flow has values of a column: media over UDP has no window, and a flow that did not start no RTT."""
    return any(np.isfinite(series[name]).any() for flow in flows if (name := f"{column}/{flow}") in series)


def flows_of(series: Series) -> list[int]:
    """Ids of the flows with a goodput in a series."""
    return sorted(int(name.removeprefix("rate/")) for name in series if name.startswith("rate/"))


def flow_names(results: Results, run: int) -> dict[int, str]:
    """Id and sender of each flow of a run, and the direction of an upload: `0 cubic`, `1 cubic upload`."""
    flows = results.objects[run].get("flows") or [] if run < len(results.objects) else []
    way = {"server": " upload"}
    return {
        flow["id"]: f"{flow['id']} {flow['sender']}{way.get(flow.get('towards'), '')}"
        for flow in flows
        if "sender" in flow
    }


def _draw_capacity(axes: Axes, series: Series, factor: float) -> None:
    time, rate = binned(series, series["link_rate"] * factor)
    axes.fill_between(time, rate, facecolor="#cccccc", edgecolor="#888888", linewidth=0.8, step="mid", label="capacity")


def _draw_flows(axes: Axes, series: Series, flows: Mapping[int, str], column: str, factor: float) -> None:
    for at, (flow, name) in enumerate(flows.items()):
        if f"{column}/{flow}" in series:
            time, values = binned(series, series[f"{column}/{flow}"] * factor)
            there = np.isfinite(values)  # missing samples do not break the line
            axes.plot(time[there], values[there], color=COLOURS[at], linewidth=1.1, label=name)
