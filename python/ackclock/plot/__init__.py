"""Plots of runs, sweeps, traces and windows.

Every function returns a `matplotlib.figure.Figure` without a window or global state. `save` writes
it to a file, `svg` returns it as text for a report.
"""

from ackclock.picture import save, svg
from ackclock.plot.chance import cdf, delay_cdf, paired
from ackclock.plot.claims import Against, Held, against_printed
from ackclock.plot.connections import MOST_CONNECTIONS, waterfall
from ackclock.plot.course import radio, time_series, trace, window
from ackclock.plot.lines import MOST_TICKS, Curve, curves, latency_by_size, sweep
from ackclock.plot.per_flow import MOST_FLOWS, per_flow
from ackclock.plot.style import COLOURS, MARKERS, STYLE, colours, panel
from ackclock.plot.timeline import over_time
from ackclock.plot.variants import MOST_DIRECT, goodput_against_delay

__all__ = [
    "COLOURS",
    "MARKERS",
    "MOST_CONNECTIONS",
    "MOST_DIRECT",
    "MOST_FLOWS",
    "MOST_TICKS",
    "STYLE",
    "Against",
    "Curve",
    "Held",
    "against_printed",
    "cdf",
    "colours",
    "curves",
    "delay_cdf",
    "goodput_against_delay",
    "latency_by_size",
    "over_time",
    "paired",
    "panel",
    "per_flow",
    "radio",
    "save",
    "svg",
    "sweep",
    "time_series",
    "trace",
    "waterfall",
    "window",
]
