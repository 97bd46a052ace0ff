"""Figures 7 to 10, 14 and 15 of CR04, and figure 9 under other Doppler frequencies."""

from collections.abc import Iterator, Mapping

from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import LogLocator, NullFormatter

from ackclock import plot
from ackclock.paper import Figure, Runs
from ackclock.paper.measure import Measure, aggregate, goodput, mean_rtt
from ackclock.paper.order import gain
from ackclock.paper.runs import PerSeed
from ackclock.papers.cr04 import grid
from ackclock.papers.cr04.sizes import SIZES

GOODPUT = "goodput (kbit/s)"
BUFFER = "buffer (packets)"
EACH_BUFFER = "buffer of each user (packets)"


def figures(runs: Runs) -> Iterator[Figure]:
    """Plot all figures; bands are 95 % confidence intervals over the seeds."""
    yield from buffers(runs)
    yield from delays(runs)
    yield from losses(runs)
    yield from latencies(runs)


def buffers(runs: Runs) -> Iterator[Figure]:
    """Figures 7 and 8."""
    sack = grid.JUDGED.by_buffer()
    reno = {f"{name}, Reno": grid.JUDGED.by_buffer("reno")[name] for name in ("DT", "AR")}
    drawing = plot.curves(_lines(runs, {**sack, **reno}), BUFFER, GOODPUT)
    cell = f"{grid.JUDGED.told()}, {grid.places()}"
    caption = "One user: SACK under every scheme, Reno where it makes a difference (Window Regulators lose no packet)"
    caption = f"{caption}; {cell}."
    yield Figure("figure-7", caption, drawing)
    for users in (4, 8):
        family = grid.JUDGED.shared(users)
        drawing = plot.curves(_lines(runs, family, aggregate), EACH_BUFFER, "goodput of all users (kbit/s)")
        yield Figure(f"figure-8-{users}", f"{users} users, each with a queue of its own; {cell}.", drawing)
        drawing = plot.curves(_lines(runs, family, mean_rtt), EACH_BUFFER, "mean round trip time (ms)")
        yield Figure(
            f"figure-8-{users}-rtt", f"What it costs: round trip times of the same {users} users; {cell}.", drawing
        )


def delays(runs: Runs) -> Iterator[Figure]:
    """Figure 9, and the effect of the Doppler frequency."""
    for channel, name in ((grid.JUDGED, "figure-9"), (grid.Channel(30), "figure-9-30-hz")):
        drawing = plot.curves(_lines(runs, channel.by_delay()), "one-way delay of the wire (ms)", GOODPUT)
        cell = f"{channel.told()}, {grid.places()}"
        caption = f"One user, buffer {grid.BUFFER} packets; the source's axis is the round trip, twice this; {cell}."
        yield Figure(name, caption, drawing)


def losses(runs: Runs) -> Iterator[Figure]:
    """Figure 10."""
    for name, where, said in (
        ("figure-10-random", grid.RADIO, "packets lost by the radio at random"),
        ("figure-10-congestion", grid.WIRE, "packets lost on the wire, ACKs as well"),
    ):
        family = {
            scheme: {p: at for p, at in curve.items() if p > 0} for scheme, curve in grid.JUDGED.by_loss(where).items()
        }
        drawing = plot.curves(_lines(runs, family), f"share of {said}", GOODPUT)
        drawing.axes[0].set_xscale("log")
        cell = f"{grid.JUDGED.told()}, {grid.places()}"
        yield Figure(name, f"One user, buffer {grid.BUFFER} packets, {said}; {cell}.", drawing)


def latencies(runs: Runs) -> Iterator[Figure]:
    """Figures 14 and 15, each with the differences that its logarithmic axis hides."""
    for name, users in (("figure-14", "different"), ("figure-15", "same")):
        points = grid.JUDGED.by_scheme(users)
        snrs = " and ".join(f"{snr:+g} dB" for snr in dict.fromkeys(grid.BASE_SNRS[users]))
        cell = f"users at {snrs}, Doppler {grid.JUDGED.doppler:g} Hz, {grid.places()}"
        seconds = {scheme: [runs(at, of) / 1e3 for of in SIZES.values()] for scheme, at in points.items()}
        drawing = _over_sizes(seconds, "mean latency (s)")
        drawing.axes[0].set_yscale("log")
        axis = drawing.axes[0].yaxis
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
        yield Figure(name, f"Latency of web objects and files by size; {cell}.", drawing)
        base = seconds.pop("PF/FIFO")
        beside = {scheme: list(map(gain, values, base)) for scheme, values in seconds.items()}
        drawing = _over_sizes(beside, "latency beside PF/FIFO (%)")
        yield Figure(f"{name}-beside", f"The same beside PF/FIFO, seed by seed; {cell}.", drawing)


def _over_sizes(values: Mapping[str, list[PerSeed]], ylabel: str) -> Drawing:
    places = range(len(SIZES))
    drawing = plot.curves({scheme: plot.Curve(places, of) for scheme, of in values.items()}, "size", ylabel)
    drawing.axes[0].set_xticks(places, list(SIZES))
    return drawing


def _lines(runs: Runs, family: grid.Family, measure: Measure = goodput) -> dict[str, plot.Curve]:
    return {
        label: plot.Curve(list(curve), [runs(at, measure) for at in curve.values()]) for label, curve in family.items()
    }
