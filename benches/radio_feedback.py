"""Performance of a relay steered by reports of the radio, and the cost of faulty reports.

    python benches/radio_feedback.py [--picture FILE]

The tables and the picture of docs/discussion/radio-feedback.md, over the schedule of docs/how-to/radio-feedback.md:
384, 128, 32, 0 and 384 kbit/s, 2 MB. A row is a sender end to end, with a regulator, over Split TCP, or the relay
under a fault of its reports. All of it is simulated and the same on every machine; seconds of CPU time.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ackclock import run
from ackclock.picture import save
from ackclock.plot.style import STYLE

RECORDING = Path(__file__).resolve().parents[1] / "scenarios" / "recordings" / "synthetic-evdo-driving.down"

Keys = Mapping[str, Any]
Columns = Mapping[str, NDArray[np.float64]]
RATES = ((0, 384e3), (10, 128e3), (20, 32e3), (30, 0.0), (32, 384e3))  # s, bit/s
SHARE = 1500 / 1448  # of a packet on the wire to its payload
FINE = 0.05  # s between two rows of a series
BEGUN = 1.5  # s, when the first window is there
PLAIN: Keys = {
    "version": 1,
    "preset": "linux",
    "duration": "90s",
    "path": {"rate": "2Mbit/s", "delay": "90ms"},
    "edge": {
        "buffer": "30p",
        "down": {"kind": "constant", "rate": "384kbit/s", "delay": "60ms"},
        "up": {"kind": "constant", "rate": "384kbit/s", "delay": "60ms"},
        "at": [{"time": f"{time}s", "set": {"down.rate": f"{rate:.0f}bit/s"}} for time, rate in RATES[1:]],
    },
    "flow": [{"sender": "cubic", "workload": {"kind": "file", "size": "2MB"}}],
}
SPLIT: Keys = {"relay.core.delay": "0ms"}
RELAY: Keys = {**SPLIT, "relay.steering.kind": "rnf", "edge.report.every": "1s", "edge.report.delay": "50ms"}
OTHERS: Mapping[str, Keys] = {
    **{f"{name} end to end": {"flow.sender": name.lower()} for name in ("Reno", "SACK", "CUBIC", "BBR")},
    **{f"Split TCP, {name}": {**SPLIT, "flow.sender": name.lower()} for name in ("Reno", "CUBIC", "BBR")},
    **{
        f"CUBIC and `{name}`": {"edge.regulator": name}
        for name in ("snoop", "ack-regulator", "ack-rate-control", "wrs", "wrd", "wrb", "forecast")
    },
}
FAULTS: Mapping[str, Keys] = {
    "none": {},
    "0.2 s late": {"edge.report.delay": "200ms"},
    "0.5 s late": {"edge.report.delay": "500ms"},
    "1 s late, and `lag` says so": {"edge.report.delay": "1s", "relay.steering.lag": "1s"},
    "1 s late": {"edge.report.delay": "1s"},
    "1 s late, `gain = 0.5`": {"edge.report.delay": "1s", "relay.steering.gain": 0.5},
    "10 % lost": {"edge.report.loss": 0.1},
    "30 % lost": {"edge.report.loss": 0.3},
    "50 % lost": {"edge.report.loss": 0.5},
    "half of the rate told": {"edge.report.scale": 0.5},
    "twice the rate told": {"edge.report.scale": 2},
    "half of `tau`": {"relay.steering.tau": "60ms"},
    "twice `tau`": {"relay.steering.tau": "240ms"},
    "silent from 5 s on": {"edge.report.outages": '[{ at = "5s", for = "85s" }]'},
    "silent from 25 to 40 s": {"edge.report.outages": '[{ at = "25s", for = "15s" }]'},
    "never told anything": {"edge.report.outages": '[{ at = "0s", for = "90s" }]'},
}
# Boxes that may stand at the radio beside a steered relay.
BESIDE = ("none", "snoop", "ack-regulator", "wrd")
SEEDS = 3
DRIVING: Keys = {
    "version": 1,
    "preset": "linux",
    "duration": "300s",
    "path": {"rate": "100Mbit/s", "delay": "51ms"},
    "edge": {
        "buffer": "200p",
        "down": {"kind": "trace", "file": str(RECORDING), "delay": "50ms"},
        "up": {"rate": "64kbit/s", "delay": "50ms"},
    },
    "flow": [{"sender": "cubic"}],
}
DRIVEN: Keys = {
    "path.delay": "50ms",
    "relay.core.delay": "1ms",
    "relay.steering.kind": "rnf",
    "edge.report.every": "1s",
    "edge.report.delay": "150ms",
}
TARGETS = ("6p", "12p", "20p")
ON_RECORDING: Mapping[str, Keys] = {
    "150 ms late": {},
    "300 ms late": {"edge.report.delay": "300ms"},
    "1 s late": {"edge.report.delay": "1s"},
    "half of the rate told": {"edge.report.scale": 0.5},
    "twice the rate told": {"edge.report.scale": 2},
    "half of `tau`": {"relay.steering.tau": "51ms"},
    "twice `tau`": {"relay.steering.tau": "204ms"},
    "50 % lost": {"edge.report.loss": 0.5},
    "silent for 200 s": {"edge.report.outages": '[{ at = "50s", for = "200s" }]'},
}
PLAINLY: Mapping[str, Keys] = {
    "CUBIC end to end": {},
    "CUBIC, 20 packets of buffer": {"edge.buffer": "20p"},
    "BBR end to end": {"flow.sender": "bbr"},
    "BBR, 20 packets of buffer": {"flow.sender": "bbr", "edge.buffer": "20p"},
    "Split TCP, CUBIC": {"path.delay": "50ms", "relay.core.delay": "1ms"},
    "Split TCP, BBR": {"path.delay": "50ms", "relay.core.delay": "1ms", "flow.sender": "bbr"},
    "CUBIC and `ack-regulator`": {"edge.regulator": "ack-regulator"},
    "CUBIC and `wrd`": {"edge.regulator": "wrd"},
}


def main() -> int:
    """Measure, and print the tables."""
    if sys.argv[1:2] == ["--picture"]:
        save(picture(), sys.argv[2])
        return 0
    first = {"relay with RNF": RELAY, **OTHERS}
    heads = ("sender", "done s", "goodput kbit/s", "used %", "queue mean, p95, packets", "wait p95 ms", "sent again")
    table(heads, {name: Seen(keys).row() for name, keys in first.items()})
    boxes = ("alone" if box == "none" else f"and `{box}`" for box in BESIDE)
    faults = {name: [under(keys, box) for box in BESIDE] for name, keys in FAULTS.items()}
    table(("fault of the reports", *boxes), faults)
    targets = {target: {**DRIVEN, "relay.steering.q_ref": target} for target in TARGETS}
    driven = {name: [driving({**of, **keys}) for of in targets.values()] for name, keys in ON_RECORDING.items()}
    table(("reports", *(f'`q_ref = "{target}"`' for target in targets)), driven)
    table(("without a steering", ""), {name: [driving(keys)] for name, keys in PLAINLY.items()})
    return 0


def table(heads: Sequence[str], rows: Mapping[str, Sequence[str]]) -> None:
    """Print a table in Markdown; a row is its name and its cells."""
    for cells in (heads, ["---"] * len(heads), *([name, *cells] for name, cells in rows.items())):
        print(f"| {' | '.join(cells)} |")
    print()


class Seen:
    """One run."""

    def __init__(self, keys: Keys, seed: int = 1) -> None:
        results = run(PLAIN, set={**keys, "seed": seed}, series_interval=FINE)
        flow = results.flows.iloc[0]
        self.series: Columns = results.series[0]
        self.done, self.goodput = float(flow["completion_s"]), float(flow["goodput_bps"]) / 1e3
        self.again = int(flow["retransmits"])
        self.carried = float(flow["delivered_bytes"]) * 8 * SHARE
        self.wait = float(results.runs["bottleneck.queue_ms.p95"].iloc[0])
        inside = (self.series["time"] >= BEGUN) & (self.series["time"] < self.done)
        self.queue = self.series["queue"][inside]

    def row(self) -> list[str]:
        """A row of the first table."""
        ends = [*(begin for begin, _ in RATES[1:]), self.done]
        could = sum(rate * max(min(end, self.done) - begin, 0) for (begin, rate), end in zip(RATES, ends, strict=True))
        queue = f"{self.queue.mean():.1f}, {np.quantile(self.queue, 0.95, method='lower'):.0f}"
        numbers = [f"{self.done:.1f}", f"{self.goodput:.1f}", f"{100 * self.carried / could:.1f}"]
        return [*numbers, queue, f"{self.wait:.0f}", str(self.again)]


def under(fault: Keys, regulator: str) -> str:
    """Goodput, kbit/s, and 95th percentile of the queue, packets; over seeds if chance is in the fault."""
    seeds = range(1, SEEDS + 1 if "edge.report.loss" in fault else 2)
    seen = [Seen({**RELAY, **fault, "edge.regulator": regulator}, seed) for seed in seeds]
    goodput = sorted({f"{one.goodput:.1f}" for one in seen})
    queue = sorted({int(np.quantile(one.queue, 0.95, method="lower")) for one in seen})
    ends = [f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else f"{numbers[0]}" for numbers in (goodput, queue)]
    return ", ".join(ends)


def driving(keys: Keys) -> str:
    """Used share of the recording's capacity, %, and p95 queueing delay, ms."""
    of = run(DRIVING, set=keys).runs.iloc[0]
    return f"{100 * of['bottleneck.utilisation']:.1f}, {of['bottleneck.queue_ms.p95']:.0f}"


def picture() -> Figure:
    """The queue with CUBIC and with the relay, the relay's window, and the queue with late reports."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 7), layout="constrained")
        above, middle, below = figure.subplots(3, 1, sharex=True)
        relay = Seen(RELAY).series
        for name, series in (("CUBIC end to end", Seen({}).series), ("relay with RNF", relay)):
            above.plot(series["time"], series["queue"], label=name, linewidth=1)
        above.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
        middle.plot(relay["time"], relay["relay_cwnd/0"], color="C1", linewidth=1)
        middle.set_title("relay with RNF", loc="left", fontsize=11)
        late = Seen({**RELAY, **FAULTS["1 s late"]}).series
        below.plot(late["time"], late["queue"], color="C1", linewidth=1)
        below.set_title("relay with RNF, reports 1 s late", loc="left", fontsize=11)
        for axes, what in ((above, "queue"), (middle, "window"), (below, "queue")):
            axes.set(ylabel=f"{what} (packets)", xlim=(0, 63), ylim=(0, None))
        below.set(xlabel="time (s)")
    return figure


if __name__ == "__main__":
    sys.exit(main())
