"""Figures 13 to 20 of L02."""

from collections.abc import Iterator, Mapping

import numpy as np
from matplotlib.figure import Figure as Drawing

from ackclock import Results, plot, run
from ackclock.paper import Figure, Runs
from ackclock.papers.l02 import grid
from ackclock.papers.l02.grid import IN, LARGE_FILES, Download
from ackclock.papers.l02.measures import increase
from ackclock.results import Series

SPAN = (0, 100)  # s


def figures(runs: Runs) -> Iterator[Figure]:
    """Plot all figures; those over time show one run."""
    for place, cell in enumerate(grid.FASTER):
        caption = (
            f"Window of Reno at {cell.kbps} kbit/s with packets of {cell.packet} bytes, out of sequence, as the sender "
            f"keeps it; the receiver allows {cell.window} packets."
        )
        yield Figure(f"figure-{13 + place}", caption, plot.window(traced(Download(cell)), span=SPAN))
    senders = {
        "Reno": LARGE_FILES["L02-T3-1"],
        "Split TCP": LARGE_FILES["L02-T7-1"],
        "in sequence": LARGE_FILES["L02-T8-1"],
        "Eifel": LARGE_FILES["L02-T5-1"],
        "Westwood": LARGE_FILES["L02-T6-1"],
    }
    caption = "Data received at 384 kbit/s with packets of 576 bytes; the upper three lie on each other."
    yield Figure("figure-17", caption, received(senders, SPAN))
    for number, error in ((18, 0.0), (19, 0.1)):
        windows = {
            f"initial window {initial}": Download(size=100_000, error=error, initial=initial) for initial in (1, 3, 4)
        }
        caption = f"A file of 100 kB with {100 * error:.0f} % of the blocks lost, one run each."
        yield Figure(f"figure-{number}", caption, received(windows, (0, 8)))
    yield Figure("figure-20", "Increase with blocks of 40 bytes in sequence, 384/576.", bars(runs))


def traced(download: Download) -> Series:
    """Time series of one run."""
    result: Results = run(download.point(), set={"runs": 1, "duration": f"{SPAN[1]}s"}, series_interval=0.05)
    return result.series[0]


def received(downloads: Mapping[str, Download], span: tuple[float, float]) -> Drawing:
    """In-order data over time."""
    with plot.panel("time (s)", "data received (kB)") as (drawing, axes):
        for name, download in downloads.items():
            series = traced(download)
            time = series["time"]
            # There is no rate before the first sample.
            kilobytes = np.nancumsum(series["rate/0"] * (time[1] - time[0]) / 8e3)
            axes.plot(time, kilobytes, label=name, linewidth=1.2)
        axes.set_xlim(*span)
        axes.legend(fontsize=8)
    return drawing


def bars(runs: Runs) -> Drawing:
    """Figure 20."""
    values = {
        "Reno": LARGE_FILES["L02-T15-1"],
        "Westwood": LARGE_FILES["L02-F20-1"],
        "Eifel": LARGE_FILES["L02-F20-2"],
        "Split TCP": LARGE_FILES["L02-F20-3"],
    }
    assert all(download.order == IN for download in values.values())
    with plot.panel("", "increase of the download time (%)") as (drawing, axes):
        axes.bar(list(values), [float(increase(runs, download).mean()) for download in values.values()], 0.5)
    return drawing
