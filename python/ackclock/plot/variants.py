"""Goodput against delay of the variants in a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from ackclock.axis import legend_above, log_if_wide, not_below_zero
from ackclock.interval import possible
from ackclock.plot import style
from ackclock.plot.lines import MOST_CURVES, grouped
from ackclock.plot.style import COLOURS, MARKERS, NARROW, SMALL, panel, plain
from ackclock.results import Results, mean_and_interval

if TYPE_CHECKING:
    import pandas as pd

# Above this number, variants are named in a legend instead of at their marks; half as many on a phone.
MOST_DIRECT = 8


def goodput_against_delay(
    results: Results,
    delay: str = "rtt_ms.mean",
    width: float = 6.4,
    *,
    better: Literal["left", "right"] = "left",
    limit: Sequence[tuple[float, float]] = (),
) -> Figure:
    """Goodput against delay of a comparison.

    Colours are values of `Results.coloured` (the regulator), markers those of the others (the sender). A line connects
    the buffers of a variant, which are labelled at its first and last mark. Up to eight variants are named at their
    marks, more of them in a legend. The dashed line is the mean capacity of the link, the dotted line a limit.

    Args:
        results: Runs of `compare`, or of any sweep.
        delay: The column of `Results.flows` or `Results.runs` on the x axis, in ms.
        width: Width of the figure, inches.
        better: Side of the x axis with small delays.
        limit: Delays, ms, and goodputs, kbit/s, that no run can be better than.

    Raises:
        ValueError: if there are no rows of flows with the column.
    """
    joined = "edge.buffer" if "edge.buffer" in results.varied else None
    keys = [key for key in results.varied if key != joined] or ["sender"]
    name = delay.replace("_ms.", " ").replace("rtt", "RTT")
    xlabel = f"{'p95 queueing delay' if name.endswith('queue p95') else name} (ms)"
    with panel(xlabel, "goodput (kbit/s)", size=(width, 4.4)) as (figure, axes):
        runs = results.per_run([delay, "goodput_bps"], list(dict.fromkeys([*keys, *results.varied])))
        if len(runs.drop_duplicates(keys)) > MOST_CURVES:
            _draw_cloud(axes, results, runs, delay)
            labels = []
        else:
            labels = _draw_variants(axes, results, runs, delay, keys, joined)
        _draw_limits(axes, results, limit)
        axes.margins(0.12)
        # A limit of zero would remain on a logarithmic axis.
        log_if_wide(axes)
        not_below_zero(axes, "xy")
        if better == "right":
            axes.invert_xaxis()
        if not labels or len(axes.containers) > (MOST_DIRECT if width > NARROW else MOST_DIRECT // 2):
            labels = []
            legend_above(figure)
        _label_marks(figure, axes, labels, limit)
    return figure


def _draw_limits(axes: Axes, results: Results, limit: Sequence[tuple[float, float]]) -> None:
    """Mean capacity of the link in the direction of the data, and the limit as far down as the marks reach."""
    capacity = results.runs.get(f"{results.queueing_delay.split('.')[0]}.capacity_bps")
    if capacity is not None and capacity.notna().any():
        axes.axhline(capacity.mean() / 1e3, color="#777777", linestyle="--", linewidth=1.2)
        axes.annotate(
            "capacity", (1, capacity.mean() / 1e3), xycoords=("axes fraction", "data"), xytext=(0, 3),
            textcoords="offset points", ha="right", va="bottom", fontsize=SMALL, color="#555555",
        )  # fmt: skip
    lowest = axes.dataLim.y0
    shown = [point for point in limit if point[1] >= lowest]
    if shown:
        axes.plot(*zip(*shown, strict=True), color="#000000", linestyle=":", linewidth=1.4)
        axes.annotate(
            "bound", shown[0], xytext=(0, -3), textcoords="offset points", ha="center", va="top", fontsize=SMALL,
            color="#333333",
        )  # fmt: skip


def _draw_variants(
    axes: Axes, results: Results, runs: pd.DataFrame, delay: str, keys: Sequence[str], joined: str | None
) -> list[tuple[float, float, str]]:
    """Mean and interval of each point; returns the names of marks with their places."""
    place = keys.index(results.coloured) if results.coloured in keys else 0
    colours = {plain(value): colour for value, colour in style.colours(results).items()}
    marks: dict[tuple[str, ...], str] = {}
    labels: list[tuple[float, float, str]] = []
    for names, group in grouped(runs, keys):
        colour = colours.setdefault(names[place], COLOURS[len(colours) % len(COLOURS)])
        others = (*names[:place], *names[place + 1 :])
        marker = marks.setdefault(others, MARKERS[len(marks) % len(MARKERS)])
        points = list(grouped(group, [joined] if joined else []))
        x, x_half = np.transpose([mean_and_interval(point[delay], results.confidence) for _, point in points])
        y, y_half = np.transpose(
            [mean_and_interval(point["goodput_bps"] / 1e3, results.confidence) for _, point in points]
        )
        axes.errorbar(
            x, y, xerr=possible(x, x_half), yerr=possible(y, y_half),
            color=colour, marker=marker, linestyle="-" if marker == MARKERS[0] else "--", linewidth=1.1,
            label=", ".join(names),
        )  # fmt: skip
        for i in sorted({0, len(points) - 1}):
            words = [*((", ".join(names),) if i == 0 else ()), "".join(points[i][0])]
            labels.append((x[i], y[i], " ".join(filter(None, words))))
    return labels


# Maximum number of points of a colour among many points; of more, every n-th is drawn.
_MOST_POINTS = 500


def _draw_cloud(axes: Axes, results: Results, runs: pd.DataFrame, delay: str) -> None:
    """Means of many points without intervals: a reader can tell apart only a colour per regulator."""
    means = runs.groupby(results.varied, sort=False)[[delay, "goodput_bps"]].mean().reset_index()
    keys = [] if results.coloured is None else [results.coloured]
    for colour, (names, group) in zip(cycle(COLOURS), grouped(means, keys), strict=False):
        shown = group.iloc[:: 1 + len(group) // _MOST_POINTS]
        axes.plot(
            shown[delay], shown["goodput_bps"] / 1e3, color=colour, marker="o", markersize=3, linestyle="none",
            label=", ".join(names),
        )  # fmt: skip


def _label_marks(
    figure: Figure, axes: Axes, labels: Sequence[tuple[float, float, str]], limit: Sequence[tuple[float, float]]
) -> None:
    """Writes names next to marks, each at the first position without overlap of marks, intervals and limit."""
    figure.draw_without_rendering()
    frame = axes.get_window_extent()
    marks = [axes.transData.transform(place) for place in (*(label[:2] for label in labels), *limit)]
    taken = [Bbox.from_bounds(x - 6, y - 6, 12, 12) for x, y in marks]
    bars = [bar for drawn in axes.containers if isinstance(drawn, ErrorbarContainer) for bar in drawn.lines[2]]
    taken += [Bbox(axes.transData.transform(line)).padded(2) for bar in bars for line in bar.get_segments()]
    for x, y, text in sorted(labels, key=lambda label: -label[1]):
        note = axes.annotate(
            text, (x, y), xytext=(0, 0), textcoords="offset points", va="center", fontsize=SMALL, color="#333333"
        )
        note.set_in_layout(False)
        for dx, dy in [(side, step) for step in (0, -13, 13, -26, 26, -39, 39) for side in (7, -7)]:
            note.set(position=(dx, dy), ha="left" if dx > 0 else "right")
            box = note.get_window_extent()
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1
            if inside and not any(box.overlaps(other) for other in taken):
                break
        taken.append(box)
