"""What stands on and above the axes of a plot: places of values, scales, legends."""

import math
import re
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter


def numbers(ticks: Sequence[str]) -> list[float] | None:
    """The numbers of values that differ in nothing else (`4p`, `10p`); None where they do."""
    matches = [re.fullmatch(r"(-?[\d.]+)\s*(\D*)", tick) for tick in ticks]
    if None in matches or len({match[2] for match in matches if match}) > 1:
        return None
    return [float(match[1]) for match in matches if match]


def positions(ticks: Sequence[str]) -> dict[str, float]:
    """Where values stand on the axis: at their number, or in their order."""
    known = numbers(ticks)
    return dict(zip(ticks, known if known is not None else map(float, range(len(ticks))), strict=True))


def legend_above(figure: Figure) -> None:
    """A legend that cannot hide data."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    most = next(n for n in (5, 4, 3, 2, 1) if n * max(map(len, labels)) < 70 or n == 1)
    rows = math.ceil(len(labels) / most)
    columns = math.ceil(len(labels) / rows)
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=10)


def log_if_wide(axes: Axes) -> None:
    """A logarithmic x axis where linear marks would crowd at its left end."""
    low, high = axes.dataLim.intervalx
    if 0 < low < high / 8:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_minor_formatter(NullFormatter())
