"""Axes of plots: positions of values, scales, legends."""

import math
import re
from collections.abc import Sequence
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, ScalarFormatter

from ackclock.text import with_separators

# Units of each quantity as written in scenarios, as multiples of the first one.
_UNITS = (
    {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9},
    {"B": 1.0, "kB": 1e3, "KiB": 1024.0, "MB": 1e6, "MiB": 1024.0**2},
)


def numbers(ticks: Sequence[str]) -> list[float] | None:
    """Numbers of values of one quantity (`4p`, `10p`; `500kbit/s`, `1Mbit/s`) in the first one's unit, or None.

    >>> numbers(["500kbit/s", "1Mbit/s"]), numbers(["none", "wrd"])
    ([500.0, 1000.0], None)
    """
    matches = [match for tick in ticks if (match := re.fullmatch(r"(-?[\d.]+)\s*(\D*)", tick))]
    units = {match[2] for match in matches}
    known = [dict.fromkeys(units, 1.0)] if len(units) == 1 else [family for family in _UNITS if units <= set(family)]
    if len(matches) < len(ticks) or not known:
        return None
    return [float(match[1]) * known[0][match[2]] / known[0][matches[0][2]] for match in matches]


def positions(ticks: Sequence[str]) -> dict[str, float]:
    """Positions of values on the axis: their numbers, or their order."""
    known = numbers(ticks)
    return dict(zip(ticks, known if known is not None else map(float, range(len(ticks))), strict=True))


def legend_above(figure: Figure) -> None:
    """A legend above the axes, where it hides no data."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    room = 18 * figure.get_figwidth() - 45  # characters; the legend's marks need the rest
    most = next(n for n in (5, 4, 3, 2, 1) if n * max(map(len, labels)) < room or n == 1)
    rows = math.ceil(len(labels) / most)
    columns = math.ceil(len(labels) / rows)
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, fontsize=10, frameon=False)


class Separated(ScalarFormatter):
    """Labels of a linear axis with commas between thousands, as in tables."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Label of a tick."""
        return with_separators(str(super().__call__(x, pos)))


def write_out(axis: Axis, which: Literal["major", "minor"] = "major") -> None:
    """Label a logarithmic axis with complete numbers, with commas between thousands, in place of powers of ten."""
    getattr(axis, f"set_{which}_formatter")(FuncFormatter(lambda x, _: f"{x:,.10g}"))


def not_below_zero(axes: Axes, which: Literal["x", "y", "xy"] = "y") -> None:
    """Limits axes of rates and times to values from zero, despite intervals and margins."""
    if "x" in which and axes.get_xlim()[0] < 0:
        axes.set_xlim(left=0)
    if "y" in which and axes.get_ylim()[0] < 0:
        axes.set_ylim(bottom=0)


def log_if_wide(axes: Axes) -> None:
    """A logarithmic x axis if values would crowd at the left end of a linear one."""
    low, high = axes.dataLim.intervalx
    if 0 < low < high / 8:
        axes.set_xscale("log")
        write_out(axes.xaxis)
        figure = axes.get_figure(root=True)
        axes.xaxis.set_major_locator(_Decades(_OF_AXIS * figure.get_figwidth() if figure else math.inf))
        axes.xaxis.set_minor_formatter(NullFormatter())


class _Decades(LogLocator):
    """Ticks at 1, 2 and 5 times the powers of ten, or at the powers alone where these labels would overlap."""

    def __init__(self, width_in: float) -> None:
        super().__init__()
        self._width_in = width_in

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Positions of the ticks between two values."""
        low, high = sorted((vmin, vmax))
        # The closest labels, at 5 and 10 times a power, are log10(2) of a decade apart.
        gap = self._width_in * math.log10(2) / math.log10(high / low)
        self.set_params(subs=(1, 2, 5) if gap > _DIGIT * len(f"{high:,.0f}") else (1,))
        return super().tick_values(vmin, vmax)


# Share of a figure's width that an axis has, and width of a digit with its share of the gap to the next label, inches.
_OF_AXIS, _DIGIT = 0.75, 0.11
