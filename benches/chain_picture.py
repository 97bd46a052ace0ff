"""The picture of docs/how-to/radio-chain.md: what `scenarios/chain.toml` simulates, from servers to terminals.

python benches/chain_picture.py [FILE]
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from ackclock.picture import save
from ackclock.plot.style import COLOURS

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "radio-chain.svg"

# Nodes from top to bottom with their parts in the order in which data to the terminals passes.
NODES: Sequence[tuple[str, Sequence[str]]] = (
    ("Servers", ("TCP senders",)),
    ("Proxy", ("splits each connection", "window set by reports")),
    ("Radio network controller", ("queue of each user", "regulator", "RLC: PDUs")),
    ("Base station", ("queue of each user", "scheduler", "HARQ")),
    ("Terminals", ("RLC: reassembly", "TCP receivers")),
)
# Below each node but the last: what goes down, and what comes up.
LINKS = (
    ("wired path: data", "ACKs"),
    ("core: data", "ACKs, reports of each user's share"),
    ("Iub: PDUs", "credits, PDUs of the uplink"),
    ("shared channel: blocks of PDUs", "dedicated channel: ACKs, STATUS, upload"),
)
# The way back begins at the terminals, from right to left.
UPLINK = ("TCP upload", "regulator", "uplink queue")
WIDTH, NODE, GAP = 10.0, 1.5, 1.15
DATA, BACK = COLOURS[0], COLOURS[1]


def main() -> int:
    """Draw it."""
    save(picture(), sys.argv[1] if len(sys.argv) > 1 else PICTURE)
    return 0


def picture() -> Figure:
    """The chain from top to bottom: data on the left, the way back on the right."""
    with mpl.rc_context({"font.size": 11}):
        tops = [-index * (NODE + GAP) for index in range(len(NODES))]
        figure = Figure(figsize=(6.4, 7.6), layout="constrained")
        axes = figure.subplots()
        for top, (name, parts) in zip(tops, NODES, strict=True):
            last = top == tops[-1]
            node(axes, top, name, NODE + last * 0.8)
            row(axes, top - 0.6, parts, DATA)
        row(axes, tops[-1] - 1.4, UPLINK[::-1], BACK)
        for top, (down, up) in zip(tops, LINKS, strict=False):
            arrow(axes, 1.0, top - NODE, top - NODE - GAP, DATA)
            axes.text(1.25, top - NODE - 0.36, down, va="center", color=DATA)
            arrow(axes, WIDTH - 1.0, top - NODE - GAP, top - NODE, BACK)
            axes.text(WIDTH - 1.25, top - NODE - 0.79, up, va="center", ha="right", color=BACK)
        axes.set(xlim=(-0.1, WIDTH + 0.1), ylim=(tops[-1] - NODE - 0.95, 0.1))
        axes.axis("off")
        return figure


def node(axes: Axes, top: float, name: str, height: float) -> None:
    """A node: a frame with its name."""
    axes.add_patch(FancyBboxPatch((0, top - height), WIDTH, height, "round,pad=0,rounding_size=0.2", fc="#f4f4f4"))
    axes.text(0.25, top - 0.3, name, va="center", weight="bold")


def row(axes: Axes, y: float, parts: Sequence[str], colour: str) -> None:
    """Parts of a node in a row, joined in the order in which data passes."""
    width = (WIDTH - 0.5 - 0.4 * (len(parts) - 1)) / len(parts)
    for index, part in enumerate(parts):
        left = 0.25 + index * (width + 0.4)
        axes.add_patch(
            FancyBboxPatch((left, y - 0.7), width, 0.6, "round,pad=0,rounding_size=0.1", fc="white", ec=colour)
        )
        axes.text(left + width / 2, y - 0.41, part, va="center", ha="center")
        if index > 0:
            ends = [(left, y - 0.4), (left - 0.4, y - 0.4)]
            joined = ends if colour == DATA else ends[::-1]
            axes.annotate("", joined[0], joined[1], arrowprops={"arrowstyle": "->", "color": colour})


def arrow(axes: Axes, x: float, begin: float, end: float, colour: str) -> None:
    """An arrow between two nodes."""
    axes.annotate(
        "", (x, end), (x, begin), arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0}
    )


if __name__ == "__main__":
    sys.exit(main())
