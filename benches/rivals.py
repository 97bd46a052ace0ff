"""Recent senders, queues and markers beside the regulators, on six recordings: tables and a picture.

    nice -n 10 python benches/rivals.py --command target/quick/ackclock

Each rival is a sender with a queue, a regulator or a shaper. Every rival downloads over every recording, behind three
wired paths, with 1, 4 and 16 flows. ACKCLOCK_SHARED names the folder whose `traces` hold the recordings of mahimahi.
Writes docs/discussion/rivals.svg, and prints the tables of docs/discussion/rivals.md.
"""

import argparse
import json
import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import mean, median, stdev
from tempfile import NamedTemporaryFile
from typing import Any

import matplotlib.pyplot as plt

SYNTHETIC = ("evdo-driving", "lte-driving", "starlink")
SHIPPED = Path("scenarios/recordings/synthetic-evdo-walking.down")
MAHIMAHI = ("Verizon-EVDO-driving.down", "ATT-LTE-driving-2016.down")
DELAYS_MS = (1, 20, 50)
FLOWS = (1, 4, 16)
DURATION_S = 20
PICTURE = Path("docs/discussion/rivals.svg")


@dataclass(frozen=True)
class Rival:
    """A sender, and what stands at the link."""

    name: str
    sender: str
    edge: str = ""
    buffer: str = "1000p"
    shaper: bool = False
    flow: str = ""


CUBIC, ECN = '"cubic"', '{ kind = "cubic", ecn = "on" }'
RIVALS = (
    Rival("CUBIC", CUBIC),
    Rival("BBR", '"bbr"'),
    Rival("BBRv3", '"bbr3"'),
    Rival("CUBIC, CoDel", CUBIC, 'queue = "codel"'),
    Rival("CUBIC, PIE", CUBIC, 'queue = "pie"'),
    Rival("CUBIC, FQ-CoDel", CUBIC, 'queue = "fq-codel"'),
    Rival("CUBIC, CAKE", CUBIC, 'queue = "cake"'),
    Rival("CUBIC, autorate over CAKE", CUBIC, 'queue = "cake"', shaper=True),
    Rival("Prague, DualPI2", '"prague"', 'queue = "dualpi2"'),
    Rival("Prague, wait-marker", '"prague"', 'regulator = "wait-marker"'),
    Rival("CUBIC with ECN, wait-marker", ECN, 'regulator = "wait-marker"'),
    Rival("CUBIC, Ack Regulator 50p", CUBIC, 'regulator = "ack-regulator"', "50p"),
    Rival("CUBIC, wrd 50p", CUBIC, 'regulator = "wrd"', "50p"),
    Rival("CUBIC, forecast", CUBIC, 'regulator = "forecast"'),
)
HIDDEN = 'headers = "encrypted"\nacks = { kind = "delayed", count = 10, timeout = "25ms" }'
MARKS = 'regulator = { kind = "forecast", act = "mark" }'
QUIC = (
    Rival("nothing", CUBIC, flow=HIDDEN),
    Rival("`forecast` by windows, which cannot act", CUBIC, 'regulator = "forecast"', flow=HIDDEN),
    Rival("short queue, 50 packets", CUBIC, "", "50p", flow=HIDDEN),
    Rival("age limit of 150 ms", CUBIC, 'age_limit = "150ms"', flow=HIDDEN),
    Rival("CoDel", CUBIC, 'queue = "codel"', flow=HIDDEN),
    Rival("CAKE", CUBIC, 'queue = "cake"', flow=HIDDEN),
    Rival("drop early", CUBIC, 'regulator = { kind = "wait-marker", not_ect = "drop" }', flow=HIDDEN),
    Rival("mark, CUBIC with ECN", ECN, 'regulator = "wait-marker"', flow=HIDDEN),
    Rival("mark, Prague", '"prague"', 'regulator = "wait-marker"', flow=HIDDEN),
    Rival("mark by `forecast`, Prague", '"prague"', MARKS, flow=HIDDEN),
    Rival("mark by `forecast`, CUBIC with ECN", ECN, MARKS, flow=HIDDEN),
    Rival("mark by DualPI2, Prague", '"prague"', 'queue = "dualpi2"', flow=HIDDEN),
    Rival("nothing, BBRv3", '"bbr3"', flow=HIDDEN),
)


@dataclass(frozen=True)
class Case:
    """One run: a rival on a recording, behind a wired path, with a number of flows."""

    rival: Rival
    recording: str
    delay_ms: int
    flows: int

    def scenario(self) -> str:
        """Text of the scenario file."""
        rival = self.rival
        links = (
            f'down = {{ kind = "trace", file = "{self.recording}" }}\n'
            'up = { kind = "constant", rate = "10Mbit/s", delay = "0ms" }\n'
        )
        place = links
        if rival.shaper:
            shaper = '{ kind = "autorate", queue = "cake", min = "300kbit/s", base = "2Mbit/s", max = "80Mbit/s" }'
            place = f'bearer = {shaper}\n[edge.behind]\nbuffer = "{rival.buffer}"\n{links}'
        edge = "" if rival.shaper else rival.edge
        return (
            f'preset = "linux"\nduration = "{DURATION_S}s"\nmeasure = ["transit"]\n'
            f'[path]\ndelay = "{self.delay_ms}ms"\n'
            f'[edge]\nbuffer = "{rival.buffer}"\n{edge}\n{place}'
            f'[[flow]]\nsender = {rival.sender}\ncount = {self.flows}\npacket = "1500B"\n'
            f'max_window = "4000p"\n{rival.flow}\n'
        )


def run(command: str, folder: Path, case: Case) -> dict[str, Any]:
    """Goodput as a share of the capacity, and p95 of the queueing delay in ms."""
    with NamedTemporaryFile("w", suffix=".toml", dir=folder) as file:
        file.write(case.scenario())
        file.flush()
        done = subprocess.run([command, "run", file.name, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{case}: {done.stderr}")
    result = json.loads(done.stdout.splitlines()[0])
    return {"used": 100 * result["bottleneck"]["utilisation"], "p95": delay(result, case)}


def delay(result: dict[str, Any], case: Case) -> float:
    """p95 of the one-way delay beyond the wired path, ms: of all queues, also those of a shaper."""
    transit = [flow["transit_ms"]["p95"] for flow in result["flows"] if flow["transit_ms"]["p95"] is not None]
    return float(mean(transit)) - case.delay_ms


def table(rivals: Sequence[Rival], of: dict[Case, dict[str, Any]]) -> str:
    """Markdown: mean share of capacity, median p95 against CUBIC's, intervals over cases and mean rank."""
    cells: dict[tuple[str, int, int], dict[Rival, dict[str, Any]]] = {}
    for case, result in of.items():
        cells.setdefault((case.recording, case.delay_ms, case.flows), {})[case.rival] = result
    rows = []
    for rival in rivals:
        used = [cell[rival]["used"] for cell in cells.values()]
        p95 = [cell[rival]["p95"] for cell in cells.values()]
        rank = [sorted(cell, key=lambda one: -score(cell[one])).index(rival) + 1 for cell in cells.values()]
        half = 1.96 * stdev(used) / len(used) ** 0.5
        rows.append(
            (mean(rank), f"| {rival.name} | {mean(used):.1f} ± {half:.1f} | {median(p95):.0f} | {mean(rank):.1f} |")
        )
    head = "| rival | link used %: mean | p95 of the delay, ms: median | rank: mean |\n| --- | ---: | ---: | ---: |"
    return "\n".join([head, *(row for _, row in sorted(rows))])


def score(result: dict[str, Any]) -> float:
    """Power of a result: share of capacity over delay, of at least 10 ms."""
    return float(result["used"] / max(result["p95"], 10.0))


def picture(rivals: Sequence[Rival], of: dict[Case, dict[str, Any]]) -> None:
    """Link used against delay, one point for each rival: mean and median over all cases."""
    plt.rcParams["svg.hashsalt"] = "rivals"
    figure, axes = plt.subplots(figsize=(8, 5))
    for rival in rivals:
        results = [result for case, result in of.items() if case.rival == rival]
        x, y = median(one["p95"] for one in results), mean(one["used"] for one in results)
        own = "forecast" in rival.name or "wrd" in rival.name or "Ack Reg" in rival.name
        axes.plot(x, y, "o", color="#c0392b" if own else "#2c3e50")
        below = rival.name == "CUBIC, CoDel"
        axes.annotate(rival.name, (x, y), xytext=(6, -10 if below else 4), textcoords="offset points", fontsize=8)
    axes.set_xscale("log")
    axes.margins(x=0.12)
    axes.set_xlabel("95th percentile of the delay beyond the wired path, ms (median of all cases)")
    axes.set_ylabel("link used, % (mean of all cases)")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    """Runs all cases, prints both tables and draws the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", default="ackclock", help="the simulator")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("out/rivals"))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    shared = os.environ.get("ACKCLOCK_SHARED")
    recordings = [f"synthetic:{name}" for name in SYNTHETIC] + [str(SHIPPED.resolve())]
    if shared:
        recordings += [str(Path(shared).resolve() / "traces/mahimahi-3g-lte" / name) for name in MAHIMAHI]
    for rivals in (RIVALS, QUIC):
        cases = [Case(*one) for one in product(rivals, recordings, DELAYS_MS, FLOWS if rivals is RIVALS else (1,))]
        with ThreadPoolExecutor(arguments.jobs) as pool:
            of = dict(
                zip(cases, pool.map(lambda case: run(arguments.command, arguments.folder, case), cases), strict=True)
            )
        print(table(rivals, of), end="\n\n")
        if rivals is RIVALS:
            picture(rivals, of)


if __name__ == "__main__":
    main()
