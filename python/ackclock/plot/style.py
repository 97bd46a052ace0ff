"""Style of the plots: colours, marks, text and panels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.typing import RcKeyType

from ackclock.axis import Separated
from ackclock.picture import svg
from ackclock.results import Results, label

# Hues of Okabe and Ito, which colour-blind readers can distinguish, with a contrast of 3:1 on light and dark pages;
# and markers distinguishable in print.
COLOURS = ("#00558C", "#A63000", "#00A06A", "#CC79A7", "#C48600", "#2F8AE0", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

# Smallest text size, points; figures below this width, inches, are for phones.
SMALL, NARROW = 9, 5.0
GRID = "#dddddd"

STYLE: dict[RcKeyType, Any] = {
    "font.size": 11,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "axes.prop_cycle": cycler(color=COLOURS),
}


class Picture(Figure):
    """A figure that notebooks display without pyplot, with commas between the thousands of its labels."""

    def add_subplot(self, *args: Any, **how: Any) -> Any:
        """Axes of this figure."""
        axes = super().add_subplot(*args, **how)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(Separated())
            # Values with a formatter of their own, such as names and dates, replace only a default one.
            axis.isDefault_majfmt = True
        return axes

    def _repr_svg_(self) -> str:
        return svg(self, "picture")


@contextmanager
def panel(
    xlabel: str, ylabel: str, title: str = "", size: tuple[float, float] = (6.4, 4.2)
) -> Iterator[tuple[Figure, Axes]]:
    """A figure of one panel in this style."""
    with mpl.rc_context(STYLE):
        figure = Picture(figsize=size, layout="constrained")
        axes = figure.subplots()
        axes.set(xlabel=xlabel, ylabel=ylabel)
        if title:
            axes.set_title(plain(title), fontsize=11)
        yield figure, axes


def plain(text: str) -> str:
    """Text with dollar signs escaped for matplotlib."""
    return text.replace("$", r"\$")


def colours(results: Results) -> dict[str, str]:
    """Colour of each value of `Results.coloured`."""
    key = results.coloured
    points = [run.get("point") or {} for run in results.objects]
    values = [] if key is None else dict.fromkeys(str(label(point.get(key))) for point in points)
    return {value: COLOURS[i % len(COLOURS)] for i, value in enumerate(values)}


def look(i: int) -> tuple[str, str]:
    """Colour and marker of a curve: no two of the first 49 share both."""
    return COLOURS[i % len(COLOURS)], MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]
