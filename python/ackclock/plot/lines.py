"""Curves over a parameter: of a sweep, and of transfers by size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from ackclock.axis import legend_above, not_below_zero, numbers, positions, write_out
from ackclock.interval import possible
from ackclock.plot import style
from ackclock.plot.style import COLOURS, look, panel, plain
from ackclock.results import Results, mean_and_interval

if TYPE_CHECKING:
    import pandas as pd


# More labels would overlap, and each takes milliseconds.
MOST_TICKS = 24


# More curves cannot be told apart; then those of other keys than the coloured one are averaged.
MOST_CURVES = 24


@dataclass(frozen=True)
class Curve:
    """A curve over a parameter: `values[i]` has one number per run at `x[i]`."""

    x: Sequence[float]
    values: Sequence[ArrayLike]


def curves(
    lines: Mapping[str, Curve],
    xlabel: str,
    ylabel: str,
    title: str = "",
    limit: Curve | None = None,
    confidence: float = 0.95,
    colours: Mapping[str, str] | None = None,
) -> Figure:
    """Curves over a parameter: mean of the runs with its confidence interval as a band.

    Args:
        lines: Curves by label.
        xlabel: Name and unit of the parameter.
        ylabel: Name and unit of the values.
        title: Title above the panel.
        limit: Theoretical limit, plotted as a dashed line.
        confidence: Confidence level of the intervals.
        colours: Colours of lines by label; default: one after the other.
    """
    with panel(xlabel, ylabel, title) as (figure, axes):
        if limit is not None:
            axes.plot(
                limit.x,
                _means_and_intervals(limit, confidence)[0],
                color="#777777",
                linestyle="--",
                linewidth=1.2,
                label="capacity",
            )
        for i, (label, curve) in enumerate(lines.items()):
            colour, marker = look(i)
            colour = (colours or {}).get(label, colour)
            mean, half = _means_and_intervals(curve, confidence)
            axes.plot(curve.x, mean, color=colour, marker=marker, label=label)
            below, above = possible(mean, half)
            axes.fill_between(curve.x, mean - below, mean + above, color=colour, alpha=0.22, linewidth=0)
        legend_above(figure)
    return figure


def sweep(results: Results, column: str = "goodput_bps", ylabel: str = "", unit: float = 1.0) -> Figure:
    """A column, combined per run (`Results.per_run`), over one swept key, with a curve per value of the other keys.

    The axis is a key with numeric values, such as a buffer, or else the key with the most values; the
    marks of unordered values are not connected.

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
    if others and len(flows.drop_duplicates(others)) > MOST_CURVES:
        others = [key for key in others if key == results.coloured]
    ticks = values[over]
    position = positions(ticks)
    lines, looks = {}, {}
    known = {plain(value): colour for value, colour in style.colours(results).items()}
    for names, group in grouped(flows, others):
        by_value = dict(iter(group.groupby(group[over].astype(str))[column]))
        there = {position[tick]: unit * by_value[tick] for tick in ticks if tick in by_value}
        name = ", ".join(names) or "mean"
        lines[name] = Curve(list(there), list(there.values()))
        if results.coloured in others:
            looks[name] = known[names[others.index(results.coloured)]]
    draw = curves if numbers(ticks) is not None else _marks
    figure = draw(lines, over, ylabel or column, confidence=results.confidence, colours=looks)
    step = math.ceil(len(ticks) / MOST_TICKS)
    figure.axes[0].set_xticks(list(position.values())[::step], [plain(tick) for tick in ticks[::step]])
    not_below_zero(figure.axes[0])
    return figure


def latency_by_size(results: Results) -> Figure:
    """Latency of transfers by size: mean over the runs with its confidence interval.

    There is a curve per combination of swept keys, or else per user; each size class is plotted at its largest size.

    Args:
        results: Runs of workloads whose flows come and go.

    Raises:
        ValueError: if there are no transfers.
    """
    transfers = results.transfers
    if transfers.empty:
        raise ValueError("these runs have no transfers by size")
    together = transfers[transfers["user"].isna()]
    # Without swept keys, there is a curve per user.
    single = transfers[transfers["user"].notna()].copy()
    single["user"] = ["user " + str(int(user)) for user in single["user"]]
    by_user = not results.swept and 0 < single["user"].nunique() <= len(COLOURS)
    shown, keys = (single, ["user"]) if by_user else (together, results.swept)
    classes = sorted({int(size) for size in shown["from_bytes"]})
    lines = {}
    for names, group in grouped(shown[shown["latency_ms.mean"].notna()], keys):
        by_class = group.groupby("from_bytes", sort=True)["latency_ms.mean"]
        there = [size for size in classes if size in by_class.groups]
        lines[", ".join(names) or "mean"] = Curve(
            [float(classes.index(size)) for size in there], [by_class.get_group(size) for size in there]
        )
    figure = curves(lines, "size (KB)", "latency (ms)", confidence=results.confidence)
    axes = figure.axes[0]
    axes.set_xticks(range(len(classes)), [_class_name(shown, size) for size in classes])
    axes.set_yscale("log")
    write_out(axes.yaxis)
    write_out(axes.yaxis, "minor")
    return figure


def _class_name(transfers: pd.DataFrame, first: int) -> str:
    """Name of a size class: its largest size in KB."""
    largest = transfers.loc[transfers["from_bytes"] == first, "to_bytes"].iloc[0]
    return f"> {(first - 1) / 1e3:g}" if np.isnan(float(largest)) else f"≤ {float(largest) / 1e3:g}"


def _marks(
    lines: Mapping[str, Curve], xlabel: str, ylabel: str, *, confidence: float, colours: Mapping[str, str]
) -> Figure:
    """Means with intervals side by side, for axes of unordered values."""
    with panel(xlabel, ylabel) as (figure, axes):
        for i, (label, curve) in enumerate(lines.items()):
            colour, marker = look(i)
            colour = colours.get(label, colour)
            mean, half = _means_and_intervals(curve, confidence)
            beside = np.asarray(curve.x) + 0.12 * (i - (len(lines) - 1) / 2)
            axes.errorbar(
                beside, mean, yerr=possible(mean, half), color=colour, marker=marker,
                linestyle="none", capsize=4, label=label,
            )  # fmt: skip
        axes.margins(x=0.2)
        axes.grid(visible=False, axis="x")
        legend_above(figure)
    return figure


def _means_and_intervals(curve: Curve, confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    mean, half = np.array([mean_and_interval(values, confidence) for values in curve.values]).reshape(-1, 2).T
    return mean, half


def grouped(flows: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """The flows of each combination of the keys' values, in run order."""
    if not keys:
        yield (), flows
        return
    for values, group in flows.groupby([flows[key].astype(str) for key in keys], sort=False):
        yield tuple(plain(str(value)) for value in values), group
