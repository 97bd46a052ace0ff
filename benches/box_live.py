"""What `ackclock box` brings on the kernel's own TCP: goodput and queueing delay without and with a box.

    python benches/box_live.py [--asked] [--radios lte,ns3-lte]

`ackclock link` plays a recording as the radio between a server and a client, which are real programs in namespaces of
their own; the radio `ns3-lte` is ns-3's LTE instead, in wall-clock time (needs libns3-dev and g++, left out without).
The box is on the client's interface, or on the server's. Each row of out/box-live.jsonl is one run; out/box-live.md has
the tables. Runs take real time: goodput and delay depend on the load of the machine, ratios of runs made side by side
less so. Needs root; 50 minutes, with `--asked` (only the runs of figures that are asked for) 4.
"""

import argparse
import itertools
import json
import os
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from box_ends import SERVER, STEP_S, Run
from regulators import printed
from worlds import NS3_LIBRARIES, build_peer

ROOT = Path(__file__).resolve().parents[1]
ENDS = Path(__file__).with_name("box_ends.py")
OUT = ROOT / "out" / "box-live"


@dataclass(frozen=True)
class Radio:
    """The radio of a run.

    Attributes:
        down: Recording of the downlink; none for ns-3's LTE.
        buffer: Size of the queue in front of the downlink, deep as in real radios.
        up: Rate of the uplink.
        box_buffer: Buffer of the box.
    """

    down: str = ""
    buffer: str = "1s"
    up: str = "10Mbit/s"
    box_buffer: str = "3bdp"


def evdo(name: str) -> Radio:
    """A synthetic recording of 1xEV-DO."""
    return Radio(str(ROOT / "scenarios" / "recordings" / f"synthetic-evdo-{name}.down"), "1000p", "1Mbit/s", "20p")


RADIOS = {
    "driving": evdo("driving"),
    "walking": evdo("walking"),
    "shared": evdo("shared"),
    "lte": Radio("synthetic:lte-driving"),
    # The rates of `lte` times five.
    "5g-like": Radio(str(OUT / "5g-like.csv")),
    "starlink": Radio("synthetic:starlink"),
    "ns3-lte": Radio(),
}
CONTROLS = ("cubic", "reno", "bbr")


@dataclass(frozen=True)
class Load:
    """What is downloaded at once.

    Attributes:
        flows: Downloads.
        idle: Connections that fetched 5 kB before and stay open.
        resets: Connections that are reset with data on its way when the downloads begin.
        udp_share: Share of the mean rate that UDP datagrams take.
    """

    flows: int = 1
    idle: int = 0
    resets: int = 0
    udp_share: float = 0.0


ONE = Load()
LOADS = {
    "1 flow": ONE,
    "1 flow, 1 idle": Load(idle=1),
    "1 flow, 6 idle": Load(idle=6),
    "1 flow, 20 idle": Load(idle=20),
    "1 flow, 200 idle": Load(idle=200),
    "1 flow, 20 reset": Load(resets=20),
    "4 flows": Load(flows=4),
    "4 flows, 6 idle": Load(flows=4, idle=6),
    "beside 20 % of UDP": Load(udp_share=0.2),
    "UDP alone": Load(flows=0, udp_share=0.2),
}
# `link wrs` is the same regulator in a simulated box in the link, at the same place.
REGULATORS = ("wrs", "wrd", "forecast")
BOXES = ("no box", "wrd", "wrd, network side", "forecast", "forecast, network side")
# Goodput of a box in per cent of that without one, and its p95 queueing delay to that without one.
LEAST_GOODPUT = {"cubic": 95, "reno": 95, "bbr": 93}
MOST_DELAY = 0.2
SECONDS, JOBS = 30, 4
# Of ns-3's LTE: the time that it needs beyond the downloads, and one mobile near and far from its base station in turn.
BEFORE_S = 13
NS3 = {"blocks": 25, "buffer": 2_000_000, "distances": "100,2000,4000", "hold": 2}


@dataclass(frozen=True)
class Case:
    """One run.

    Attributes:
        radio: A key of `RADIOS`.
        box: One of `BOXES`, a regulator, `shaper`, or a simulated box in the link.
        load: A key of `LOADS`.
    """

    radio: str = "driving"
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
    options.add_argument("--radios", default=",".join(RADIOS), help="of the table, with commas between")
    options.add_argument("--jobs", type=int, default=JOBS, help="runs at once")
    given = options.parse_args()
    if os.geteuid() != 0:
        print("skipped: the box on real packets: only root loads BPF programs")
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    radios = [] if given.asked else available(given.radios.split(","))
    with ThreadPoolExecutor(given.jobs) as pool:
        cases = list(dict.fromkeys([*ASKED, *product(radios)]))
        rows = dict(zip(cases, pool.map(measured, cases), strict=True))
        pair = pool.submit(two_subscribers).result()
    # Alone, so that no other run takes its CPU time.
    text = f"{figures(rows, pair, cost())}\n{table(rows)}\n{told(rows)}"
    lines = [json.dumps(asdict(case) | row) for case, row in rows.items()]
    OUT.with_suffix(".jsonl").write_text("\n".join([*lines, ""]))
    OUT.with_suffix(".md").write_text(text)
    print(text)
    return 0


def available(names: list[str]) -> list[str]:
    """The radios that can run here; makes what they need."""
    if "5g-like" in names:
        write_5g_like(Path(RADIOS["5g-like"].down))
    if "ns3-lte" in names and not build_peer("lte.cc", OUT / "ns3-lte", ["lte", "mobility", *NS3_LIBRARIES]):
        print("skipped: the radio ns3-lte: libns3-dev or g++ is missing (sudo apt install libns3-dev g++)")
        names.remove("ns3-lte")
    return names


def write_5g_like(file: Path) -> None:
    """Write the rates of `lte`, with another seed, times five."""
    command = ["ackclock", "trace", "synth", "--preset", "lte-driving", "--seed", "26", "--format", "csv"]
    note, head, *lines = printed([*command, "--bin", "20ms"]).splitlines()
    samples = (line.split(",") for line in lines)
    # The last line is the end, without a rate.
    faster = [f"{time},{5 * float(kbps) if kbps else ''}" for time, kbps in samples]
    file.write_text("\n".join([note, head, *faster, ""]))


def product(radios: list[str]) -> Iterator[Case]:
    """Every radio and box, with every congestion control for one flow and with CUBIC for the other loads."""
    for radio, box in itertools.product(radios, BOXES):
        yield from (Case(radio, box, control) for control in CONTROLS)
        yield from (Case(radio, box, load=load) for load in LOADS if LOADS[load].udp_share == 0)


def measured(case: Case) -> dict[str, Any]:
    """One run: goodput, utilisation, queueing delay, and what the box reported."""
    load, radio = LOADS[case.load], RADIOS[case.radio]
    name, _, side = case.box.partition(", ")
    reports = OUT / f"{case.radio}-{case.box}-{case.control}-{case.load}.reports".replace(" ", "-")
    run = Run(
        case.control,
        SECONDS,
        load.flows,
        idle=load.idle,
        resets=load.resets,
        udp_bps=load.udp_share * mean_bps(radio) if load.udp_share else 0,
        regulator=name if name in REGULATORS else None,
        buffer=radio.box_buffer,
        side="network" if side else "mobile",
        reports=str(reports),
    )
    row = over_link(run, case) if radio.down else over_ns3(run)
    return row | {"goodput_bps": row["taken_bytes"] * 8 / SECONDS} | (of_box(reports) if run.regulator else {})


def over_link(run: Run, case: Case) -> dict[str, Any]:
    """Bytes that came, and what `ackclock link` measured."""
    link = ["ackclock", "link", "--scenario", str(scenario(case)), "--json"]
    words = run.json()
    *said, result = printed(
        [*link, "--server", shlex.join(ends("serve", words)), "--", *ends("take", words)]
    ).splitlines()
    row: dict[str, Any] = json.loads(said[-1])
    return row | of_link(json.loads(result))


def over_ns3(run: Run) -> dict[str, Any]:
    """Bytes that came, and what ns-3 measured of its bearer."""
    options = [f"--{key}={value}" for key, value in NS3.items()]
    beside = STEP_S if run.idle or run.resets else 0
    times = [f"--seconds={SECONDS + BEFORE_S + beside}", f"--from={4 + beside}"]
    radio = [str(OUT / "ns3-lte"), *options, *times]
    said = printed(["unshare", "--net", "--mount", *ends("radio", run.json()), *radio])
    taken: dict[str, Any]
    taken, bearer = (json.loads(line) for line in said.splitlines()[-2:])
    keys = ("delay_p50_ms", "delay_p95_ms", "window_p50_ms", "window_p95_ms")
    p50, p95, true_p50, true_p95 = (bearer[key] - bearer["delay_min_ms"] for key in keys)
    windows = {"true_p50_ms": true_p50, "true_p95_ms": true_p95}
    return taken | windows | {"p50_ms": p50, "p95_ms": p95, "drops": bearer["drops"], "lag_ms": bearer["lag_ms"]}


def ends(end: str, words: str) -> list[str]:
    """The command of one end."""
    return [sys.executable, str(ENDS), end, words]


def of_link(result: dict[str, Any]) -> dict[str, Any]:
    """Share of the capacity used, p95 queueing delay and capacity of the radio."""
    down = result["bottleneck"]
    return {
        "used": down["utilisation"],
        "p50_ms": down["queue_ms"]["p50"],
        "p95_ms": down["queue_ms"]["p95"],
        "drops": down["drops"],
        "link_bps": down["capacity_bps"],
        "lost_by_machine": down["lost_by_machine"],
    }


def of_box(file: Path) -> dict[str, Any]:
    """What the box reported: the rate, its estimate of the queueing delay, and the share of lower windows.

    Each report is of the last 10 s; the median rate of the reports with data, the mean queueing delay of those from the
    tenth on, and the last share of a report with ACKs stand for the run.
    """
    # The last line may be incomplete.
    reports = [json.loads(line) for line in file.read_text().split("\n")[:-1]]
    rates = [report["rate_bps"] for report in reports if report["rate_bps"] > 0]
    shares = [report["lower_share"] for report in reports if report["lower_share"] is not None]
    delays = {key: [one[key] for one in reports[10:] if one[key] is not None] for key in ("wait_p50_ms", "wait_p95_ms")}
    return {
        "box_rate_bps": median(rates) if rates else None,
        **{f"box_{key}": fmean(values) if values else None for key, values in delays.items()},
        "lower_share": shares[-1] if shares else None,
    }


def mean_bps(radio: Radio) -> float:
    """Mean rate of a mahimahi recording during the downloads, each line 1500 bytes."""
    times_ms = [int(line) for line in Path(radio.down).read_text().split()]
    return sum(time < SECONDS * 1000 for time in times_ms) * 12000 / SECONDS


def scenario(case: Case) -> Path:
    """The radio, with a simulated box in the link if the case has one."""
    file = OUT / f"{case.radio}-{case.box}.toml".replace(" ", "-")
    simulated = simulated_box(case)
    place, radio = "edge.behind" if simulated else "edge", RADIOS[case.radio]
    accounting = 'accounting = "ip"\n' if radio.down.endswith(".down") else ""
    file.write_text(
        f'version = 1\n[path]\ndelay = "10ms"\n{simulated}[{place}]\nbuffer = "{radio.buffer}"\n'
        f'[{place}.down]\nkind = "trace"\nfile = "{radio.down}"\n{accounting}delay = "20ms"\n'
        f'[{place}.up]\nkind = "constant"\nrate = "{radio.up}"\ndelay = "20ms"\n'
    )
    return file


def simulated_box(case: Case) -> str:
    """Keys of a box in the link: a shaper that knows the mean rate, or the regulator of `ackclock box`."""
    match case.box.split():
        case ["shaper"]:
            shares = {"min": 0.1, "base": 0.5, "max": 2}
            rates = ", ".join(
                f'{key} = "{share * mean_bps(RADIOS[case.radio]):.0f}bit/s"' for key, share in shares.items()
            )
            return f'[edge]\nbuffer = "1000p"\nbearer = {{ kind = "autorate", side = "mobile", {rates} }}\n'
        case ["link", regulator]:
            bearer = 'bearer = { kind = "observed", side = "mobile" }'
            return f'[edge]\nbuffer = "20p"\nregulator = "{regulator}"\n{bearer}\n'
        case _:
            return ""


def told(rows: Rows) -> str:
    """The queueing delay that the box told, in % of what ns-3 measured of its bearer: p50 and p95 of 10 s."""
    text = "| ns-3's LTE | load | sender | p50 told | p95 told |\n| --- | --- | --- | ---: | ---: |\n"
    for case, row in rows.items():
        if "true_p50_ms" in row and row.get("box_wait_p95_ms") is not None:
            shares = (100 * row[f"box_wait_{which}"] / row[f"true_{which}"] for which in ("p50_ms", "p95_ms"))
            text += f"| {case.box} | {case.load} | {case.control} | {' | '.join(f'{one:.0f} %' for one in shares)} |\n"
    return text


def two_subscribers() -> dict[str, dict[str, Any]]:
    """Two subscribers, each with a radio of the same recording; the box on the server's side acts on one of them.

    One link inside the other: IPv4 crosses the queue of the outer one, and IPv6 that of the inner one. Both are in a
    namespace without other links, which would have these addresses.
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
    outer = ["unshare", "--net", "ackclock", "link", "--scenario", str(file), "--only", "0.0.0.0/0", "--json"]
    said = printed([*outer, "--server", shlex.join(ends("serve", words)), "--", *inner]).splitlines()
    held_back, acted = (of_link(json.loads(line)) for line in said[-2:])
    return {"acted on": acted | of_box(reports), "held back": held_back}


def cost() -> dict[str, float]:
    """What the box's process costs at 300 Mbit/s."""
    words = Run("cubic", 10, 4, servers=[SERVER], regulator="forecast", reports=str(OUT / "cost.reports")).json()
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
    """A row for each radio, load and sender: goodput in % of that without a box / p95 queueing delay in ms.

    What misses `LEAST_GOODPUT` or `MOST_DELAY` is bold.
    """
    text = f"| radio | load | sender | {' | '.join(BOXES)} |\n| --- | --- | --- |{' ---: |' * len(BOXES)}\n"
    for radio, load, control in dict.fromkeys((case.radio, case.load, case.control) for case in rows):
        none = rows[Case(radio, "no box", control, load)]
        if not none["goodput_bps"]:
            continue
        cells = [f"{none['goodput_bps'] / 1e6:.2f} Mbit/s / {none['p95_ms']:.0f}"]
        cells += [cell(control, none, rows.get(Case(radio, box, control, load))) for box in BOXES[1:]]
        text += f"| {radio} | {load} | {control} | {' | '.join(cells)} |\n"
    return text


def cell(control: str, none: dict[str, Any], row: dict[str, Any] | None) -> str:
    """Goodput and queueing delay of a box."""
    if row is None:
        return ""
    share = 100 * row["goodput_bps"] / none["goodput_bps"]
    missed = share < LEAST_GOODPUT[control] or row["p95_ms"] > MOST_DELAY * none["p95_ms"]
    text = f"{share:.1f} / {row['p95_ms']:.0f}"
    return f"**{text}**" if missed else text


if __name__ == "__main__":
    sys.exit(main())
