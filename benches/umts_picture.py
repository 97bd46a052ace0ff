"""The picture of docs/lab/2026-11-umts.md: goodput and queue of every sender over UMTS, in both worlds.

    python benches/agree.py --kinds umts --drawn 0
    python benches/umts_picture.py

The first measures (root), the second draws what it left in out/agree/agree.json.
"""

import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib import pyplot

from ackclock import plot

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "out" / "agree" / "agree.json"
PICTURE = ROOT / "docs" / "lab" / "umts.svg"

SENDERS = {"newreno": "reno", "sack": "reno with SACK", "cubic": "cubic", "bbr": "bbr"}
EDGES = {"none": "no regulator", "ack-rate-control": "ACK rate control", "snoop": "Snoop"}
SHOWN = (("goodput_bps", 1e3, "goodput, kbit/s"), ("queue_p95_ms", 1e3, "p95 of the wait in the queue, s"))
WIDTH = 0.13


def main() -> int:
    """Draw it."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else MEASURED
    measured = (cell for cell in json.loads(path.read_text())["cells"] if cell["kind"] == "umts")
    cells = {(cell["edge"], cell["sender"]): cell for cell in measured}
    figure, axes = pyplot.subplots(1, len(SHOWN), figsize=(11, 4), layout="constrained")
    for axis, (quantity, divisor, label) in zip(axes, SHOWN, strict=True):
        for place, (edge, edge_name) in enumerate(EDGES.items()):
            for world, hatch in (("kernel", None), ("simulated", "////")):
                offset = (2 * place + (world == "simulated") - 2.5) * WIDTH
                heights = [value(cells[edge, sender], world, quantity) / divisor for sender in SENDERS]
                said = f"{edge_name}, {world}"
                xs = [x + offset for x in range(len(SENDERS))]
                axis.bar(xs, heights, WIDTH, color=f"C{place}", hatch=hatch, edgecolor="white", label=said)
        axis.set_xticks(range(len(SENDERS)), list(SENDERS.values()))
        axis.set_ylabel(label)
        axis.grid(axis="y", alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    plot.save(figure, PICTURE)
    return 0


def value(cell: dict[str, Any], world: str, quantity: str) -> float:
    """Mean of a quantity over the runs of a world."""
    return fmean(run[quantity] for run in cell[world])


if __name__ == "__main__":
    sys.exit(main())
