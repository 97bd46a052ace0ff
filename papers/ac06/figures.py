"""Figures 1, 2, 5 and 7 to 11 of AC06."""

from collections.abc import Iterator, Mapping

from matplotlib.figure import Figure as Drawing

from ackclock import Results, plot, run
from ackclock.paper import Figure, Runs
from ackclock.paper.measure import Measure
from ackclock.papers.ac06 import grid
from ackclock.papers.ac06.grid import BUFFER, CONFIGURATIONS, Control
from ackclock.papers.ac06.measures import BUFFERED, TTI, delay, goodput

GOODPUT, DELAY = "goodput (kbit/s)", "delay of a packet (s)"
CONFIDENCE = 0.9
DRAWN = "The window is drawn as the sender keeps it; the receiver allows 43 packets."


def figures(runs: Runs) -> Iterator[Figure]:
    """Plot all figures; bands are 90 % confidence intervals over the runs, as in the source."""
    for name, of, label in (("goodput", goodput, GOODPUT), ("delay", delay, DELAY)):
        family = {f"{flows} flow(s)": grid.by_buffer(flows) for flows in grid.BUFFER_FLOWS}
        drawing = curves(runs, family, of, "buffer (packets)", label)
        yield Figure(f"figure-1-{name}", "The conventional case over the buffer.", drawing)
    yield Figure("figure-2", f"One conventional download: window, and packets in the buffer. {DRAWN}", traced(None))
    yield Figure("figure-5", "Formula 1: the delay between two ACKs over the occupancy, maxd 500 ms.", shapes())
    for figure, flows in ((7, 1), (8, 4)):
        for alpha in grid.SHOWN_ALPHAS:
            yield from sweep(runs, figure, flows, alpha)
    yield Figure("figure-9", "Formula 1 with the configurations of table 2.", laws(CONFIGURATIONS))
    for name, of, label in (("goodput", goodput, GOODPUT), ("delay", delay, DELAY)):
        family = {f"maxd {ms} ms": grid.by_alpha(ms) for ms in grid.ALPHA_LONGEST}
        drawing = curves(runs, family, of, "alpha", label)
        drawing.axes[0].set_xscale("symlog", linthresh=1)
        drawing.axes[0].set_xticks(grid.ALPHAS, [f"{alpha:g}" for alpha in grid.ALPHAS])
        yield Figure(f"figure-10-{name}", "One flow, minth 10 packets, over alpha.", drawing)
    for part, control in zip("abc", (CONFIGURATIONS[0], CONFIGURATIONS[1], CONFIGURATIONS[3]), strict=True):
        yield Figure(f"figure-11{part}", f"One download with {control.name}. {DRAWN}", traced(control))


def sweep(runs: Runs, figure: int, flows: int, alpha: float) -> Iterator[Figure]:
    """A panel of figures 7 and 8: goodput and delay over the maximum delay, one curve per threshold."""
    family = {f"minth {threshold}": grid.by_longest(flows, alpha, threshold) for threshold in grid.THRESHOLDS}
    conventional = grid.download(flows)
    for name, of, label in (("goodput", goodput, GOODPUT), ("delay", delay, DELAY)):
        drawing = curves(runs, family, of, "maxd (ms)", label)
        level = float(runs(conventional, of).mean())
        drawing.axes[0].axhline(level, color="#777777", linestyle="--", linewidth=1.2)
        caption = f"{flows} flow(s), alpha {alpha:g}; the broken line is the conventional case."
        yield Figure(f"figure-{figure}-{alpha:g}-{name}", caption, drawing)


def curves(
    runs: Runs, family: Mapping[str, Mapping[float, str]], measure: Measure, xlabel: str, ylabel: str
) -> Drawing:
    """Curves of points."""
    lines = {
        label: plot.Curve(list(curve), [runs(at, measure) for at in curve.values()]) for label, curve in family.items()
    }
    return plot.curves(lines, xlabel, ylabel, confidence=CONFIDENCE)


def traced(control: Control | None) -> Drawing:
    """Window and buffer of one download, TTI by TTI."""
    result: Results = run(grid.download(1, control), set={"runs": 1}, series_interval=TTI)
    series = result.series[0]
    with plot.panel("time (s)", "packets") as (drawing, axes):
        axes.plot(series["time"], series[BUFFERED], linewidth=0.8, label="in the buffer")
        axes.plot(series["time"], series["cwnd/0"], linewidth=1.2, label="congestion window")
        axes.set_ylim(0, 80)
        axes.legend(fontsize=8)
    return drawing


def shapes() -> Drawing:
    """Formula 1 for several alphas."""
    return laws([Control(alpha, 10, 500) for alpha in (0, 0.2, 0.5, 1, 2, 5)])


def laws(controls: tuple[Control, ...] | list[Control]) -> Drawing:
    """Formula 1, one curve per setting."""
    occupancies = range(BUFFER + 1)
    lines = {control.name: plot.Curve(occupancies, [control.delay(at) for at in occupancies]) for control in controls}
    return plot.curves(lines, "occupancy (packets)", "delay between two ACKs (ms)")
