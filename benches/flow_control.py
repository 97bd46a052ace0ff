"""Flow control between controller and base station: goodput and queueing delay.

    python benches/flow_control.py [--picture FILE]

The table and the picture of docs/discussion/flow-control.md, over the preset hsdpa: a CUBIC download for each user, and
a controller whose buffer never drops. All of it is simulated and the same on every machine; minutes of CPU time.
"""

import sys
from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from ackclock.papers.chain.claims import USERS, Measured, controlled, measured
from ackclock.picture import save
from ackclock.plot.style import MARKERS, STYLE

FLOW_CONTROLS: Mapping[str, Any] = {
    "none": "none",
    "on-off": "on-off",
    "credits, 40 ms": {"kind": "credit", "target": "40ms"},
    "credits, 100 ms": {"kind": "credit", "target": "100ms"},
    "credits, adaptive": "credit",
}
DELAYS = (50, 100, 200, 500, 1000, 2000)  # ms, ticks of the picture


def main() -> int:
    """Measure, and print the table or draw the picture."""
    if sys.argv[1:2] == ["--picture"]:
        save(picture(), sys.argv[2])
        return 0
    print(f"| users | {' | '.join(FLOW_CONTROLS)} |")
    print("| --- " * (len(FLOW_CONTROLS) + 1) + "|")
    for users in USERS:
        print(f"| {users} | {' | '.join(cell(of(users, name)) for name in FLOW_CONTROLS)} |")
    return 0


def of(users: int, name: str) -> Measured:
    """The runs with this number of users under a flow control."""
    return measured(controlled(users, FLOW_CONTROLS[name]))


def cell(seen: Measured) -> str:
    """Goodput, kbit/s, and median queueing delay, ms, each with its standard deviation over the seeds."""
    return ", ".join(f"{numbers.mean():.0f} ± {numbers.std(ddof=1):.0f}" for numbers in (seen.goodput, seen.wait))


def picture() -> Figure:
    """Goodput against queueing delay, one line for each flow control, with marks from the fewest to the most users."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4.6), layout="constrained")
        axes = figure.subplots()
        for name, marker in zip(FLOW_CONTROLS, MARKERS, strict=False):
            seen = [of(users, name) for users in USERS]
            shares = [
                one.goodput / of(users, "none").goodput.mean() * 100 for users, one in zip(USERS, seen, strict=True)
            ]
            means = [[numbers.mean() for numbers in many] for many in ([one.wait for one in seen], shares)]
            spreads = [[numbers.std(ddof=1) for numbers in many] for many in ([one.wait for one in seen], shares)]
            axes.errorbar(
                means[0],
                means[1],
                xerr=spreads[0],
                yerr=spreads[1],
                marker=marker,
                label=name,
                capsize=2,
                elinewidth=0.8,
            )
            for end in (0, -1):
                at = (means[0][end], means[1][end])
                axes.annotate(str(USERS[end]), at, xytext=(5, 4), textcoords="offset points", fontsize=9)
        axes.set(xscale="log", xlabel="median queueing delay at the base station (ms)")
        axes.set_xticks(DELAYS, [str(delay) for delay in DELAYS])
        axes.minorticks_off()
        axes.set(ylabel="goodput (% of that without flow control)")
        figure.legend(loc="outside lower center", ncols=3, fontsize=10)
        return figure


if __name__ == "__main__":
    sys.exit(main())
