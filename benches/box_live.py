"""What `ackclock box` brings on the kernel's own TCP: utilisation and queueing delay without and with a box.

    python benches/box_live.py [--asked]

`ackclock link` plays a recording as the radio between a server and a client, which are real programs in namespaces of
their own; the box is on the client's interface, or on the server's. Each row of out/box-live.jsonl is one download;
out/box-live.md has the tables. Runs take real time: utilisation and delay depend on the load of the machine, ratios of
runs made side by side less so. Needs root; 15 minutes, with `--asked` (only the runs of figures that are asked for) 4.
"""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from box_ends import SERVER, Run
from regulators import printed

ROOT = Path(__file__).resolve().parents[1]
ENDS = Path(__file__).with_name("box_ends.py")
OUT = ROOT / "out" / "box-live"
RECORDINGS = ("driving", "walking", "shared")
CONTROLS = ("cubic", "reno", "bbr")
LOADS = {"1 flow": (1, 0.0), "4 flows": (4, 0.0), "beside 20 % of UDP": (1, 0.2), "UDP alone": (0, 0.2)}
# `link wrs` is the same regulator in a simulated box in the link, at the same place.
REGULATORS = ("wrs", "forecast")
BOXES = ("no box", "shaper", *REGULATORS)
SECONDS, JOBS = 40, 6


@dataclass(frozen=True)
class Case:
    """One run.

    Attributes:
        box: One of `BOXES`, one of these with the side, or a simulated box in the link.
        load: A key of `LOADS`.
    """

    recording: str = "driving"
    box: str = "no box"
    control: str = "cubic"
    load: str = "1 flow"


NONE, WRS, FORECAST = Case(), Case(box="wrs"), Case(box="forecast")
LINK_WRS, LINK_FORECAST = Case(box="link wrs"), Case(box="link forecast")
WRS_BEFORE, FORECAST_BEFORE = Case(box="wrs, network side"), Case(box="forecast, network side")
FOUR, BESIDE = Case(box="forecast", load="4 flows"), Case(box="forecast", load="beside 20 % of UDP")
# No box can shorten the queue of UDP alone: a queue with UDP beside TCP is no shorter.
UDP_ALONE = Case(load="UDP alone")
ASKED = (NONE, WRS, FORECAST, LINK_WRS, LINK_FORECAST, WRS_BEFORE, FORECAST_BEFORE, FOUR, BESIDE, UDP_ALONE)
Rows = dict[Case, dict[str, Any]]


def main() -> int:
    """Measure, print, and write rows and tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--asked", action="store_true", help="only the runs of figures that are asked for")
    options.add_argument("--jobs", type=int, default=JOBS, help="links at once")
    given = options.parse_args()
    if os.geteuid() != 0:
        print("skipped: the box on real packets: only root loads BPF programs")
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    every = [Case(*each) for each in product()] if not given.asked else []
    with ThreadPoolExecutor(given.jobs) as pool:
        cases = list(dict.fromkeys([*ASKED, *every]))
        rows = dict(zip(cases, pool.map(measured, cases), strict=True))
        pair = pool.submit(two_subscribers).result()
    # Alone, so that no other run takes its CPU time.
    text = f"{figures(rows, pair, cost())}\n{table(rows)}"
    lines = [json.dumps(asdict(case) | row) for case, row in rows.items()]
    OUT.with_suffix(".jsonl").write_text("\n".join([*lines, ""]))
    OUT.with_suffix(".md").write_text(text)
    print(text)
    return 0


def product() -> Iterator[tuple[str, str, str, str]]:
    """Every recording, box, congestion control and load with downloads."""
    loads = [load for load, (flows, _) in LOADS.items() if flows]
    for recording in RECORDINGS:
        for load in loads:
            for control in CONTROLS:
                for box in BOXES:
                    yield recording, box, control, load


def measured(case: Case) -> dict[str, Any]:
    """One run: utilisation, queueing delay, and what the box reported."""
    flows, udp_share = LOADS[case.load]
    name, _, side = case.box.partition(", ")
    reports = OUT / f"{case.recording}-{case.box}-{case.control}-{case.load}.reports".replace(" ", "-")
    run = Run(
        case.control,
        SECONDS,
        flows,
        udp_bps=udp_share * mean_bps(case.recording),
        regulator=name if name in REGULATORS else None,
        side="network" if side else "mobile",
        reports=str(reports),
    )
    words = run.json()
    link = ["ackclock", "link", "--scenario", str(scenario(case)), "--json"]
    *said, result = printed(
        [*link, "--server", shlex.join(ends("serve", words)), "--", *ends("take", words)]
    ).splitlines()
    row: dict[str, Any] = json.loads(said[-1])
    return row | of_link(json.loads(result)) | (of_box(reports) if run.regulator else {})


def ends(end: str, words: str) -> list[str]:
    """The command of one end."""
    return [sys.executable, str(ENDS), end, words]


def of_link(result: dict[str, Any]) -> dict[str, Any]:
    """Share of the capacity used, p95 queueing delay and capacity of the radio."""
    down = result["bottleneck"]
    return {
        "used": down["utilisation"],
        "p95_ms": down["queue_ms"]["p95"],
        "link_bps": down["capacity_bps"],
        "lost_by_machine": down["lost_by_machine"],
    }


def of_box(file: Path) -> dict[str, Any]:
    """What the box reported: the mean rate, its estimate of the p95 queueing delay, and the share of lower windows.

    The rate is that of the seconds with data; the first and the last of these are partly without.
    """
    # The last line may be incomplete.
    reports = [json.loads(line) for line in file.read_text().split("\n")[:-1]]
    rates = [report["rate_bps"] for report in reports if report["rate_bps"] > 0][1:-1]
    last = reports[-1]
    return {
        "box_rate_bps": fmean(rates) if rates else None,
        "box_wait_p95_ms": last["wait_p95_ms"],
        "lower_share": last["lower_share"],
    }


def recording(name: str) -> Path:
    """The file of a recording."""
    return ROOT / "scenarios" / "recordings" / f"synthetic-evdo-{name}.down"


def mean_bps(name: str) -> float:
    """Mean rate of a recording during the downloads, each line 1500 bytes."""
    times_ms = [int(line) for line in recording(name).read_text().split()]
    return sum(time < SECONDS * 1000 for time in times_ms) * 12000 / SECONDS


def scenario(case: Case) -> Path:
    """The radio, with a simulated box in the link if the case has one."""
    file = OUT / f"{case.recording}-{case.box}.toml".replace(" ", "-")
    simulated = simulated_box(case)
    radio = "edge.behind" if simulated else "edge"
    file.write_text(
        f'version = 1\n[path]\ndelay = "10ms"\n{simulated}[{radio}]\nbuffer = "1000p"\n'
        f'[{radio}.down]\nkind = "trace"\nfile = "{recording(case.recording)}"\naccounting = "ip"\ndelay = "20ms"\n'
        f'[{radio}.up]\nkind = "constant"\nrate = "1Mbit/s"\ndelay = "20ms"\n'
    )
    return file


def simulated_box(case: Case) -> str:
    """Keys of a box in the link: a shaper that knows the mean rate, or the regulator of `ackclock box`."""
    match case.box.split():
        case ["shaper"]:
            shares = {"min": 0.1, "base": 0.5, "max": 2}
            rates = ", ".join(f'{key} = "{share * mean_bps(case.recording):.0f}bit/s"' for key, share in shares.items())
            return f'[edge]\nbuffer = "1000p"\nbearer = {{ kind = "autorate", side = "mobile", {rates} }}\n'
        case ["link", regulator]:
            bearer = 'bearer = { kind = "observed", side = "mobile" }'
            return f'[edge]\nbuffer = "20p"\nregulator = "{regulator}"\n{bearer}\n'
        case _:
            return ""


def two_subscribers() -> dict[str, dict[str, Any]]:
    """Two subscribers, each with a radio of the same recording; the box on the server's side acts on one of them.

    One link inside the other: IPv4 crosses the queue of the outer one, and IPv6 that of the inner one.
    """
    acted_on, v6_server = "100.64.0.2", "fdac:6b63:6c6f:636b::6440:1"
    reports = OUT / "two-subscribers.reports"
    run = Run(
        "cubic",
        SECONDS,
        servers=["100.64.0.1", v6_server],
        regulator="wrs",
        side="network",
        act_on=[acted_on],
        reports=str(reports),
    )
    file, words = scenario(NONE), run.json()
    inner = ["ackclock", "link", "--scenario", str(file), "--only", "[::]/0", "--json", "--", *ends("take", words)]
    outer = ["ackclock", "link", "--scenario", str(file), "--only", "0.0.0.0/0", "--json"]
    said = printed([*outer, "--server", shlex.join(ends("serve", words)), "--", *inner]).splitlines()
    held_back, acted = (of_link(json.loads(line)) for line in said[-2:])
    return {"acted on": acted | of_box(reports), "held back": held_back}


def cost() -> dict[str, float]:
    """What the box's process costs at 300 Mbit/s."""
    words = Run("cubic", 10, 4, [SERVER], regulator="forecast", reports=str(OUT / "cost.reports")).json()
    got: dict[str, float] = json.loads(printed(["unshare", "--net", "--mount", *ends("cost", words)]))
    return got


def figures(rows: Rows, pair: dict[str, dict[str, Any]], cost: dict[str, float]) -> str:
    """Each figure that is asked for beside the measured one."""
    text = "| figure | asked | measured |\n| --- | --- | ---: |\n"
    return text + "".join(f"| {name} | {asked} | {got} |\n" for name, asked, got in lines(rows, pair, cost))


def lines(rows: Rows, pair: dict[str, dict[str, Any]], cost: dict[str, float]) -> Iterator[tuple[str, str, str]]:
    """Name, asked and measured."""
    used = {case: 100 * row["used"] for case, row in rows.items()}
    p95 = {case: row["p95_ms"] / 1000 for case, row in rows.items()}
    yield "no box, p95", ">= 8 s", f"{p95[NONE]:.2f} s"
    yield "`wrs`, used less that of the link's `wrs`", "within 3 points", f"{used[WRS] - used[LINK_WRS]:+.1f} points"
    yield "`wrs`, p95 to that of the link's `wrs`", "within 10 %", f"{100 * (p95[WRS] / p95[LINK_WRS] - 1):+.0f} %"
    yield "`forecast`, used (the link's `forecast`)", ">= 88 %", f"{used[FORECAST]:.1f} ({used[LINK_FORECAST]:.1f}) %"
    yield "`forecast`, p95", "<= 0.7 s", f"{p95[FORECAST]:.2f} s"
    yield "`forecast`, 4 flows, p95", "<= 1.2 s", f"{p95[FOUR]:.2f} s"
    yield "`forecast` beside UDP, p95 (UDP alone)", "<= 1.5 s", f"{p95[BESIDE]:.2f} ({p95[UDP_ALONE]:.2f}) s"
    rate = rows[BESIDE]["box_rate_bps"] / (rows[BESIDE]["used"] * rows[BESIDE]["link_bps"])
    yield "`forecast` beside UDP, rate that the box reports to the link's", "within 15 %", f"{100 * (rate - 1):+.0f} %"
    for name, before, behind in (("wrs", WRS_BEFORE, WRS), ("forecast", FORECAST_BEFORE, FORECAST)):
        sides = f"`{name}`, network side"
        yield (
            f"{sides}, used less that of the mobile side",
            "within 3 points",
            f"{used[before] - used[behind]:+.1f} points",
        )
        yield f"{sides}, p95 to that of the mobile side", "<= 1.25", f"{p95[before] / p95[behind]:.2f}"
    share = pair["acted on"]["p95_ms"] / pair["held back"]["p95_ms"]
    yield "p95 of a subscriber acted on to that of one held back", "<= 0.2", f"{share:.2f}"
    at = f"{cost['rate_bps'] / 1e6:.0f} Mbit/s"
    yield "the process of the box at 300 Mbit/s", "<= 5 % of a core", f"{100 * cost['core_share']:.1f} % at {at}"


def table(rows: Rows) -> str:
    """A row for each recording, load and congestion control: used in % / p95 queueing delay in s."""
    text = f"| recording | load | sender | {' | '.join(BOXES)} |\n| --- | --- | --- |{' ---: |' * len(BOXES)}\n"
    for name, load, control in dict.fromkeys((case.recording, case.load, case.control) for case in rows):
        each = (rows.get(Case(name, box, control, load)) for box in BOXES)
        cells = (f"{100 * row['used']:.1f} / {row['p95_ms'] / 1000:.2f}" if row else "" for row in each)
        text += f"| {name} | {load} | {control} | {' | '.join(cells)} |\n"
    return text


if __name__ == "__main__":
    sys.exit(main())
