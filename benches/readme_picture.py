"""The picture of the README: the rate of a recording over time, and the queueing delay of a download under it.

python benches/readme_picture.py
"""

import sys
import tomllib
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import ackclock
from ackclock import plot
from ackclock.results import Series

ROOT = Path(__file__).resolve().parents[1]
SCENARIO = ROOT / "scenarios" / "demo.toml"
PICTURE = ROOT / "docs" / "queueing-delay.svg"
# A buffer of 100 packets, as deep as those of real cells: 2.5 s at the mean rate of the recording.
SETTINGS = {"flow.sender": "cubic", "edge.buffer": "100p", "duration": "120s"}
REGULATORS = {"none": "no regulator", "wrd": "wrd", "forecast": "forecast"}
SAMPLE_S = 0.1
PACKET_BYTES = 1500


def main() -> int:
    """Draw it."""
    scenario = tomllib.loads(SCENARIO.read_text())
    del scenario["sweep"]
    scenario["edge"]["down"]["file"] = SCENARIO.parent / scenario["edge"]["down"]["file"]
    with mpl.rc_context(plot.STYLE):
        figure = Figure(figsize=(9, 4.6), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
        for place, (regulator, name) in enumerate(REGULATORS.items()):
            results = ackclock.run(scenario, set=SETTINGS | {"edge.regulator": regulator}, series_interval=SAMPLE_S)
            series = results.series[0]
            label = f"{name}: {results.flows['goodput_bps'].iloc[0] / 1e3:.0f} kbit/s"
            below.plot(series["time"], delay_of_next(series), color=plot.COLOURS[place], linewidth=1.2, label=label)
        above.fill_between(series["time"], smoothed(series["link_rate"]) / 1e6, color="#999999", linewidth=0)
        above.set(ylabel="rate, Mbit/s", ylim=(0, None))
        below.set(xlabel="time, s", ylabel="queueing delay, s", xlim=(0, series["time"][-1]), ylim=(0, None))
        below.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, fontsize=10)
    plot.save(figure, PICTURE)
    return 0


def delay_of_next(series: Series) -> NDArray[np.float64]:
    """Seconds until the recording has served the queue of each sample; not a number where it ends before."""
    served = np.cumsum(series["link_rate"]) * SAMPLE_S / 8
    queue = series["queue"] * PACKET_BYTES
    later = np.interp(served + queue, served, series["time"], right=np.nan)
    return np.where(queue > 0, later - series["time"], 0.0)


def smoothed(rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean rate of each second around a sample."""
    samples = round(1 / SAMPLE_S)
    return np.convolve(rate, np.ones(samples) / samples, mode="same")


if __name__ == "__main__":
    sys.exit(main())
