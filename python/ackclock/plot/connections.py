"""Connections of a live link over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ackclock.plot.style import COLOURS, NARROW, SMALL, STYLE, Picture

if TYPE_CHECKING:
    import pandas as pd

# More connections than this are not drawn: those with the most bytes are.
MOST_CONNECTIONS = 40


def waterfall(connections: pd.DataFrame, *, width: float = 8.4) -> Figure:
    """Waterfall of connections in order of their start, a bar per connection, with peer and bytes above it.

    Args:
        connections: Rows of `Results.connections`; of more than `MOST_CONNECTIONS`, those with the most
            bytes are drawn.
        width: Width of the figure, inches.

    Raises:
        ValueError: if there are no connections.
    """
    if connections.empty:
        raise ValueError("there are no connections to draw")
    order = (connections["down_bytes"] + connections["up_bytes"]).sort_values(ascending=False, kind="stable").index
    shown = connections.loc[order[:MOST_CONNECTIONS]].sort_values("start_s", kind="stable")
    protocols = sorted({*connections["protocol"]})
    colours = dict(zip(protocols, COLOURS, strict=False))
    with mpl.rc_context(STYLE):
        figure = Picture(figsize=(width, 1.1 + 0.32 * len(shown)), layout="constrained")
        axes = figure.subplots()
        end = max(float(connections["end_s"].max()), 1e-3)
        rows: list[dict[str, Any]] = shown.to_dict("records")  # type: ignore[assignment]
        for row, one in enumerate(rows):
            # A connection of one packet lasts no time.
            length = max(one["end_s"] - one["start_s"], end / 300)
            axes.barh(row, length, left=one["start_s"], height=0.3, color=colours[one["protocol"]])
            label = f"{_short(one['peer'], width)}  {_bytes(one['down_bytes'])} down, {_bytes(one['up_bytes'])} up"
            # The text starts with its bar unless it would end outside the panel.
            left = max(0.0, min(one["start_s"] / end, 1 - _CHARACTER * len(label) / width))
            text = axes.text(left, row - 0.2, label, va="bottom", fontsize=SMALL, transform=axes.get_yaxis_transform())
            text.set_in_layout(False)
        axes.set(xlabel="time (s)", xlim=(0, end), ylim=(len(shown) - 0.5, -0.9))
        axes.set_yticks([])
        axes.grid(visible=False, axis="y")
        keys = [Line2D([], [], color=colours[name], linewidth=5, label=name) for name in protocols]
        columns = len(keys) if width > NARROW else 2
        figure.legend(handles=keys, loc="outside upper center", ncols=columns, fontsize=10)
    return figure


# Width of a character, inches.
_CHARACTER = 0.078


def _short(address: str, width: float) -> str:
    """An address, shortened in the middle if the figure is narrow."""
    return address if width > NARROW or len(address) <= 22 else f"{address[:9]}…{address[-11:]}"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
