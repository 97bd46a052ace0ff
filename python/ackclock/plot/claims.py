"""Our values of a document beside the printed ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.figure import Figure

from ackclock.axis import legend_above
from ackclock.plot.style import COLOURS, panel

# A ratio of this or more is drawn at the edge of the panel.
_FARTHEST = 4.0

Held = Literal["within tolerance", "by order only", "by sign only", "not reproduced"]
_LOOKS: dict[Held, tuple[str, str, bool]] = {
    "not reproduced": (COLOURS[1], "s", False),
    "by sign only": (COLOURS[1], "o", False),
    "by order only": (COLOURS[0], "o", False),
    "within tolerance": (COLOURS[0], "o", True),
}


@dataclass(frozen=True)
class Against:
    """Our value of a row: its ratio to the printed one, standard deviation of the ratio, and verdict."""

    ratio: float
    spread: float
    held: Held


def against_printed(rows: Sequence[Against], width: float = 6.4) -> Figure:
    """Ratio of our values to the printed ones, the largest deviations first.

    Marks of rows within tolerance are filled. Those of rows of which only order or sign holds, and of rows that are
    not reproduced, are hollow. Whiskers are standard deviations over the seeds.

    Args:
        rows: Rows with a printed number other than zero.
        width: Width of the figure, inches.
    """
    ordered = sorted(rows, key=lambda row: -_deviation(row.ratio))
    with panel("rows, largest deviation first", "ours / printed", size=(width, 3.6)) as (figure, axes):
        axes.axhline(1, color="#777777", linewidth=1.2)
        for held, (colour, marker, is_filled) in _LOOKS.items():
            places = [place for place, row in enumerate(ordered, start=1) if row.held == held]
            if places:
                some = [ordered[place - 1] for place in places]
                axes.errorbar(
                    places, [_shown(row.ratio) for row in some],
                    yerr=[0 if math.isnan(row.spread) else row.spread for row in some],
                    color=colour, marker=marker, linestyle="none", elinewidth=0.8,
                    markerfacecolor=colour if is_filled else "#ffffff", label=f"{held} ({len(some)})",
                    zorder=2 if is_filled else 3,
                )  # fmt: skip
        axes.set_yscale("log")
        axes.set_ylim(1 / _FARTHEST / 1.1, _FARTHEST * 1.1)
        axes.set_yticks([0.25, 0.5, 1, 2, 4], ["≤ 1/4", "1/2", "1", "2", "≥ 4"])
        axes.minorticks_off()
        legend_above(figure)
    return figure


def _deviation(ratio: float) -> float:
    return abs(math.log(ratio)) if ratio > 0 else math.inf


def _shown(ratio: float) -> float:
    """The ratio inside the panel; values of the other sign lie at its lower edge."""
    return min(max(ratio, 1 / _FARTHEST), _FARTHEST)
