"""Figures 4, 5 and 11 to 15 of CR02, and the sweeps that section 6.6 describes in words."""

from collections.abc import Iterator, Mapping

import numpy as np

from ackclock import Results, plot, run
from ackclock.models import capacity
from ackclock.paper import Figure, Runs
from ackclock.paper.measure import Measure, aggregate, goodput, timed_rtt
from ackclock.papers.cr02 import grid
from ackclock.results import Series

GOODPUT = "goodput (kbit/s)"
BUFFER = "buffer (packets)"
CAPACITY_50 = capacity.uniform(grid.MEAN_RATE, 50)


def figures(runs: Runs) -> Iterator[Figure]:
    """Plot all figures; bands are 95 % confidence intervals over the seeds."""
    yield from windows()
    yield from delay_figures(runs)
    yield from rate_figures(runs)
    yield from both_figures(runs)
    yield from cell_figures(runs)
    yield from parameter_figures(runs)


def delay_figures(runs: Runs) -> Iterator[Figure]:
    """Figure 11."""
    drawing = plot.curves(_lines(runs, grid.FIG11A), "mean x of the forward delay e(x) (ms)", GOODPUT)
    yield Figure("figure-11a", "Variable delay e(x) + 400 - x ms at 200 kbit/s, buffer 10 packets.", drawing)
    drawing = plot.curves(_lines(runs, grid.FIG11B), BUFFER, GOODPUT)
    yield Figure("figure-11b", "The same over the buffer, with x = 50 ms.", drawing)


def rate_figures(runs: Runs) -> Iterator[Figure]:
    """Figure 12."""
    deviations = list(grid.FIG12A["Reno"])
    limit = plot.Curve(deviations, [capacity.uniform(grid.MEAN_RATE, sd) for sd in deviations])
    label = "standard deviation x of the rate u(200, x) (kbit/s)"
    drawing = plot.curves(_lines(runs, grid.FIG12A), label, GOODPUT, limit=limit)
    yield Figure("figure-12a", "Variable rate u(200, x) kbit/s, 200 ms each way, buffer 10 packets.", drawing)
    drawing = plot.curves(_lines(runs, grid.FIG12B), BUFFER, GOODPUT, limit=_flat_limit(grid.FIG12B))
    caption = "The same over the buffer. The source does not state the deviation of this panel; here it is 50 kbit/s."
    yield Figure("figure-12b", caption, drawing)


def both_figures(runs: Runs) -> Iterator[Figure]:
    """Figure 13."""
    drawing = plot.curves(_lines(runs, grid.FIG13), BUFFER, GOODPUT, limit=_flat_limit(grid.FIG13))
    yield Figure("figure-13a", "Variable rate u(200, 50) kbit/s and variable delay 350 + e(50) ms.", drawing)
    drawing = plot.curves(_lines(runs, grid.FIG13, timed_rtt), BUFFER, "mean timed round trip time (ms)")
    yield Figure("figure-13b", "What the Ack Regulator costs: the round trip time of the same runs.", drawing)


def cell_figures(runs: Runs) -> Iterator[Figure]:
    """Figures 14 and 15."""
    drawing = plot.curves(_lines(runs, grid.fig14()), BUFFER, GOODPUT)
    cell = f"{grid.channel(1)}, {grid.places()}"
    yield Figure("figure-14a", f"One user of a 1xEV-DO cell: {cell}.", drawing)
    drawing = plot.curves(_lines(runs, grid.fig14(), timed_rtt), BUFFER, "mean timed round trip time (ms)")
    yield Figure("figure-14b", f"Round trip times of the same runs: {cell}.", drawing)
    for name, users in (("figure-15a", 4), ("figure-15b", 8)):
        drawing = plot.curves(_lines(runs, grid.fig15(users), aggregate), "buffer of each user (packets)", GOODPUT)
        caption = f"{users} users of the cell together, proportional fair: {grid.channel(users)}, {grid.places()}."
        yield Figure(name, caption, drawing)


def parameter_figures(runs: Runs) -> Iterator[Figure]:
    """Section 6.6."""
    family = {f"alpha {alpha}": curve for alpha, curve in grid.ALPHA.items()}
    drawing = plot.curves(_lines(runs, family), BUFFER, GOODPUT, limit=_flat_limit(family))
    yield Figure("alpha", "Reno with the Ack Regulator on the link of figure 13, for four target factors.", drawing)
    drawing = plot.curves(_lines(runs, grid.WIRED), "one-way wired delay (ms)", GOODPUT)
    yield Figure("wired-latency", "Wired latency on the link of figure 11(b), buffer 10 packets.", drawing)


def windows() -> Iterator[Figure]:
    """Figures 4 and 5: the window over time, for one seed without averaging."""
    constant = _traced(grid.TABLE1[1])
    drawing = plot.window(constant, span=(0, 300))
    yield Figure("figure-4a", "Congestion window of Reno, constant rate and delay (table 1, item 1).", drawing)
    variable = _traced(grid.TABLE1[4])
    drawing = plot.window(variable, span=(0, 300))
    yield Figure("figure-4b", "The same with the variable delay 300 + e(100) ms (item 4).", drawing)
    drawing = plot.window(variable, span=_around(_double_loss(variable)))
    yield Figure("figure-5a", "A cycle that ends with two losses: two halvings, no time-out.", drawing)
    drawing = plot.window(variable, span=_around(_timeout(variable)))
    yield Figure("figure-5b", "A cycle that ends with three losses: two halvings, time-out and slow start.", drawing)


def _lines(runs: Runs, family: Mapping[str, grid.Curve], measure: Measure = goodput) -> dict[str, plot.Curve]:
    return {
        label: plot.Curve(list(curve), [runs(at, measure) for at in curve.values()]) for label, curve in family.items()
    }


def _flat_limit(family: Mapping[str, grid.Curve]) -> plot.Curve:
    buffers = list(next(iter(family.values())))
    return plot.Curve(buffers, [CAPACITY_50 for _ in buffers])


def _traced(point: str) -> Series:
    traced: Results = run(point, set={"duration": "600s", "runs": 1}, series_interval=0.05)
    return traced.series[0]


def _around(time: float) -> tuple[float, float]:
    """From before the loss to the end of the next growth, as wide as in the source."""
    return time - 8, time + 14


def _halvings(series: Series) -> list[tuple[float, float, float]]:
    """(time, window before, window after) of every sudden decrease of the window."""
    time, cwnd = series["time"], series["cwnd/0"]
    falls = np.flatnonzero(cwnd[1:] < 0.7 * cwnd[:-1])
    return [(float(time[i + 1]), float(cwnd[i]), float(cwnd[i + 1])) for i in falls if time[i] > 30]


def _double_loss(series: Series) -> float:
    """The first pair of halvings within 2.5 s, neither of them down to one packet, with none near them."""
    falls = _halvings(series)
    for before, first, second, after in zip(falls, falls[1:], falls[2:], falls[3:], strict=False):
        quiet = first[0] - before[0] > 5 and after[0] - second[0] > 5
        if quiet and second[0] - first[0] < 2.5 and min(first[2], second[2]) > 1.5:
            return first[0]
    raise ValueError("no cycle with two losses in the traced run")


def _timeout(series: Series) -> float:
    """The first decrease to one packet after a fast retransmit, followed by a time without losses."""
    falls = _halvings(series)
    for first, second, after in zip(falls, falls[1:], falls[2:], strict=False):
        if first[2] > 1.5 and second[2] <= 1.5 and second[0] - first[0] < 6 and after[0] - second[0] > 8:
            return first[0]
    raise ValueError("no cycle with a time-out in the traced run")
