"""Random variation: distributions of samples and runs, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ackclock.axis import legend_above, write_out
from ackclock.interval import possible
from ackclock.plot import style
from ackclock.plot.lines import grouped
from ackclock.plot.style import COLOURS, panel, plain
from ackclock.results import Results, Series


def cdf(
    results: Results, column: str = "rtt_ms", *, by: str | Sequence[str] | None = None, ax: Axes | None = None
) -> Figure:
    """Cumulative distribution: share of samples below each value where they were measured, otherwise share of runs.

    Args:
        results: Runs of a sweep or comparison. With `measure = ["rtt_ms"]` in the scenario, RTT samples are drawn.
        column: A column of `Results.flows` (combined per run) or of `Results.runs`, or the name of a distribution such
            as `rtt_ms`.
        by: Keys with a curve per value; default: the varied keys.
        ax: Axes of the caller's figure to draw in.

    Raises:
        ValueError: if the column or a key does not exist.
    """
    keys = results.varied if by is None else [by] if isinstance(by, str) else list(by)
    rows, name = results.spread(column, keys)
    share = "share of samples" if name.endswith(".cdf") else "share of runs"
    with panel(name, share) as (figure, own):
        axes = own if ax is None else ax
        for i, (names, group) in enumerate(grouped(rows, keys)):
            colour, line = _look(results, keys, names, i)
            _draw_shares(axes, group[name].to_numpy(dtype=float), color=colour, linestyle=line, label=", ".join(names))
        axes.set(xlabel=name.removesuffix(".cdf"), ylabel=share, ylim=(0, 1.02))
        if ax is not None:
            ax.legend()
            figure = ax.get_figure(root=True) or figure
        elif keys:
            legend_above(figure)
    return figure


def delay_cdf(runs: Mapping[str, Series], *, uplink: bool = False, colours: Mapping[str, str] | None = None) -> Figure:
    """Share of the intervals of each run in which the mean queueing delay is below each value.

    Args:
        runs: Time series by the name of their run.
        uplink: Whether to plot the delay of the uplink.
        colours: Colours of runs; default: one after the other.

    Raises:
        ValueError: if no series has queueing delays.
    """
    name = "up.queue_ms" if uplink else "queue_ms"
    delays = {
        run: [values for key, values in series.items() if key.split("/")[0] == name] for run, series in runs.items()
    }
    if not any(delays.values()):
        raise ValueError("these series have no queueing delays")
    with panel("queueing delay (ms)", "share of intervals") as (figure, axes):
        for i, (run, values) in enumerate(delays.items()):
            colour = (colours or {}).get(run, COLOURS[i % len(COLOURS)])
            _draw_shares(axes, np.maximum(np.concatenate(values), 1.0), color=colour, label=run)
        axes.set(ylim=(0, 1.02), xscale="log")
        axes.set_xlim(left=1)
        write_out(axes.xaxis)
        if len(runs) > 1:
            legend_above(figure)
    return figure


def _draw_shares(axes: Axes, values: NDArray[np.float64], **how: Any) -> None:
    """The share of values below each value, as steps; missing values are ignored."""
    known = np.sort(values[np.isfinite(values)])
    shares = np.arange(known.size + 1) / max(known.size, 1)
    axes.plot(np.repeat(known, 2), np.repeat(shares, 2)[1:-1], **how)


def _look(results: Results, keys: Sequence[str], names: Sequence[str], i: int) -> tuple[str, str]:
    """Colour and line of the curve number `i` of points: the colour of its regulator if regulators differ."""
    known = {plain(value): colour for value, colour in style.colours(results).items()}
    if results.coloured is None or results.coloured not in keys or len(known) > len(COLOURS):
        return COLOURS[i % len(COLOURS)], "-"
    return known[names[list(keys).index(results.coloured)]], ("-", "--", ":", "-.")[i // len(known) % 4]


def paired(results: Results, column: str = "goodput_bps", *, by: str, baseline: Any) -> Figure:
    """Paired differences from a baseline (`Results.paired`), in percent of the baseline's mean, with their intervals.

    Args:
        results: Runs of a sweep or comparison.
        column: A column of `Results.flows` or `Results.runs`.
        by: The key whose values are compared, such as `"edge.regulator"`.
        baseline: The value that the others are compared with, such as `"none"`.

    Raises:
        ValueError: as for `Results.paired`.
    """
    table = results.paired(column, by=by, baseline=baseline)
    percent = 100 / table["baseline"]
    names = [", ".join(map(str, name if isinstance(name, tuple) else (name,))) for name in table.index]
    size = (6.4, 1.2 + 0.36 * len(names))
    with panel(f"{column}: difference to {baseline} (%)", "", size=size) as (figure, axes):
        axes.axvline(0, color="#777777", linewidth=1.2)
        known = style.colours(results) if by == results.coloured else {}
        firsts = [str(name[0] if isinstance(name, tuple) else name) for name in table.index]
        mean = table["mean_difference"] * percent
        half = ((table["high"] - table["mean_difference"]) * percent).fillna(0)
        below, above = possible(mean, half, least=-100.0)
        for row, first in enumerate(firsts):
            axes.errorbar(
                mean.iloc[row],
                row,
                xerr=[[below[row]], [above[row]]],
                color=known.get(first, COLOURS[0]),
                marker="o",
                capsize=4,
            )
        axes.set_yticks(range(len(names)), [plain(name) for name in names])
        axes.invert_yaxis()
        axes.margins(y=0.5 / len(names))
        axes.grid(visible=False, axis="y")
    return figure
