"""Random variation: distributions of samples and runs, and paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ackclock.axis import legend_above
from ackclock.plot.lines import grouped
from ackclock.plot.style import COLOURS, look, panel, plain
from ackclock.results import Results


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
            values = np.sort(group[name].dropna().to_numpy(dtype=float))
            shares = np.arange(values.size + 1) / max(values.size, 1)
            axes.plot(
                np.repeat(values, 2),
                np.repeat(shares, 2)[1:-1],
                color=COLOURS[i % len(COLOURS)],
                label=", ".join(names),
            )
        axes.set(xlabel=name.removesuffix(".cdf"), ylabel=share, ylim=(0, 1.02))
        if ax is not None:
            ax.legend()
            figure = ax.get_figure(root=True) or figure
        elif keys:
            legend_above(figure)
    return figure


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
        colour, marker = look(0)
        mean = table["mean_difference"] * percent
        half = ((table["high"] - table["mean_difference"]) * percent).fillna(0)
        axes.errorbar(mean, range(len(names)), xerr=half, color=colour, marker=marker, linestyle="none", capsize=4)
        axes.set_yticks(range(len(names)), [plain(name) for name in names])
        axes.invert_yaxis()
        axes.margins(y=0.5 / len(names))
        axes.grid(visible=False, axis="y")
    return figure
