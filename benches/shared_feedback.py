"""Radio network feedback over a channel that users share, beside regulators: goodput against queueing delay.

    python benches/shared_feedback.py FILE

The picture of docs/discussion/radio-feedback.md. A download for each user goes through a proxy to the cell of the
preset hsdpa-mac. The proxy is steered by reports, or a regulator acts at the cell. All of it is simulated and the same
on every machine; minutes of CPU time.
"""

import sys
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ackclock import run
from ackclock.paper.runs import edited
from ackclock.papers.m05.hsdpa import TARGETS, split, steered
from ackclock.picture import save
from ackclock.plot.style import MARKERS, STYLE

USERS = (1, 4)
BUFFERS = (6, 12, 24)  # packets for each user
DELAYS = (10, 20, 50, 100, 200, 500)  # ms, ticks of the picture


def lines(users: int) -> Mapping[str, Sequence[tuple[str, str]]]:
    """By legend entry, the points of a line: the label of a mark, and the scenario."""
    plain = split(users)
    return {
        "proxy with RNF, by q_ref": [(str(target), steered(users, target)) for target in TARGETS],
        "wrd, by buffer": [
            (str(buffer), edited(plain, {"edge.buffer": f"{buffer}p", "edge.regulator": "wrd"})) for buffer in BUFFERS
        ],
        "forecast": [("", edited(plain, {"edge.regulator": "forecast"}))],
        "proxy without reports (Split TCP)": [("", plain)],
    }


def measured(scenario: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Median queueing delay, ms, and goodput of all users, kbit/s: a number for each seed."""
    runs = run(scenario).objects
    waits = [one["bottleneck"]["queue_ms"]["p50"] for one in runs]
    return np.array(waits), np.array([sum(flow["wire_goodput_bps"] for flow in one["flows"]) / 1e3 for one in runs])


def picture() -> Figure:
    """A panel for each number of users."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.4, 4.6), layout="constrained")
        for axes, users in zip(figure.subplots(1, len(USERS), sharey=True), USERS, strict=True):
            full = measured(split(users))[1].mean()
            for (name, marks), marker in zip(lines(users).items(), MARKERS, strict=False):
                seen = [measured(scenario) for _, scenario in marks]
                waits, shares = [wait for wait, _ in seen], [goodput / full * 100 for _, goodput in seen]
                means = [[one.mean() for one in many] for many in (waits, shares)]
                spreads = [[one.std(ddof=1) for one in many] for many in (waits, shares)]
                axes.errorbar(*means, xerr=spreads[0], yerr=spreads[1], marker=marker, label=name, capsize=2)
                for (label, _), *at in zip(marks, *means, strict=True):
                    axes.annotate(label, at, xytext=(5, -10), textcoords="offset points", fontsize=9)
            axes.set(title="1 user" if users == 1 else f"{users} users", xlabel="median queueing delay (ms)")
            axes.set(xscale="log", xlim=(10, 700))
            axes.set_xticks(DELAYS, [str(delay) for delay in DELAYS])
            axes.minorticks_off()
        figure.axes[0].set(ylabel="goodput (% of Split TCP)")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=10)
        return figure


if __name__ == "__main__":
    save(picture(), sys.argv[1])
