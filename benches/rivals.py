"""Recent senders, queues and markers beside the regulators, on six links: tables and a picture.

    make rivals
    python benches/rivals.py --held-back

Each rival is a sender with a queue, a regulator or a shaper. Every rival downloads over every link for a minute, from
three start offsets or with three seeds, as 1 flow, 4 flows, and one flow beside pages. ACKCLOCK_SHARED names the folder
whose `traces` hold the recordings of mahimahi; without it there are four links. Limits are computed before any run.
Runs are stored in out/rivals and not repeated; remove them after a change of the simulator. Writes
docs/discussion/rivals.svg and the tables of docs/discussion/rivals.md and docs/discussion/quic.md: a quarter of an
hour of a core, of which the limits take a third. With --held-back, the rivals run over the two recordings that were
held back, and only their table is written: some minutes.
"""

import argparse
import hashlib
import json
import math
import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from statistics import fmean, median
from tempfile import NamedTemporaryFile
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox
from standings import Bounds

from ackclock.models import bound
from ackclock.models.order_up_to import Ints
from ackclock.progress import bar
from ackclock.results import half_interval

OUT, PICTURE = Path("out/rivals"), Path("docs/discussion/rivals.svg")
RIVALS_PAGE, QUIC_PAGE = Path("docs/discussion/rivals.md"), Path("docs/discussion/quic.md")
WIRE_MS, DURATION_S, STARTS, CONFIDENCE = 20, 60, 3, 0.95
PACKET_BITS = 12_000
# A page of 60 kB, and its pause, as in benches/scoreboard.py.
PAGES = 'workload = { kind = "ftp", size = "60kB", interval = "e(3s)", interval_from = "end" }'
LOADS = ("1", "4", "pages")
# Delays below it count as equal in a rank.
LEAST_MS = 10.0
UP = 'up = { kind = "constant", rate = "10Mbit/s", delay = "0ms" }\n'


@cache
def slots_of(file: str) -> Ints:
    """Packets that a recording can send in each millisecond."""
    return bound.opportunities(Path(file))


@dataclass(frozen=True)
class Link:
    """A recording, or the radio of a preset."""

    name: str
    file: str | None = None
    preset: str = "linux"
    edge: str = ""

    def slots(self) -> Ints | None:
        """Packets that it can send in each millisecond; None without a recording."""
        return None if self.file is None else slots_of(self.file)

    def begin_s(self, start: int) -> float:
        """Start offset of a run in the recording."""
        slots = self.slots()
        return 0.0 if slots is None else start / STARTS * len(slots) * bound.SLOT_S

    def capacity_bits(self, start: int) -> float | None:
        """What it can send in a run; None if that is not known."""
        slots = self.slots()
        if slots is None:
            return None
        first = round(self.begin_s(start) / bound.SLOT_S)
        window = range(first, first + round(DURATION_S / bound.SLOT_S))
        return float(slots.take(window, mode="wrap").sum()) * PACKET_BITS


# Presets of `ackclock trace synth` with the seeds of the built-in recordings.
SYNTHETIC = (
    ("EV-DO in a car, synthetic", "evdo-driving", 14),
    ("LTE in a car, synthetic", "lte-driving", 26),
    ("Starlink, synthetic", "starlink", 1),
)
CELL = Link("5G cell, preset `nr`", preset="nr", edge="user = [{ mean_snr = 5.0 }]\n")
MAHIMAHI = (
    ("EV-DO in a car, recorded", "mahimahi-3g-lte/Verizon-EVDO-driving.down"),
    ("LTE in a car, recorded", "mahimahi-3g-lte/ATT-LTE-driving-2016.down"),
)
# Recordings on which no rival was compared before, and the heading of their table.
HELD_BACK = (
    ("4G", "ghent-4g/report_tram_0001.json"),
    ("HSDPA", "norway-hsdpa-3g/tram.jernbanetorget-ljabru-report.2010-12-09_1222CET.json"),
)
HELD_BACK_LOADS = ("1", "pages")
HELD_BACK_HEADING = "## Two recordings held back"


@dataclass(frozen=True)
class Rival:
    """A sender, and what stands at the link."""

    name: str
    sender: str
    edge: str = ""
    buffer: str = "1000p"
    shaper: bool = False
    flow: str = ""

    def fits(self, link: "Link") -> bool:
        """Whether it can stand at a link: the preset of a radio has no keys for one behind a shaper."""
        return link.file is not None or not self.shaper


MARKS = 'regulator = { kind = "forecast", act = "mark" }'
CUBIC, ECN = '"cubic"', '{ kind = "cubic", ecn = "on" }'
RIVALS = (
    Rival("CUBIC", CUBIC),
    Rival("BBR", '"bbr"'),
    Rival("BBRv3", '"bbr3"'),
    Rival("Copa", '"copa"'),
    Rival("ABC", '"abc"', 'queue = "abc-router"'),
    Rival("CUBIC, CoDel", CUBIC, 'queue = "codel"'),
    Rival("CUBIC, FQ-CoDel", CUBIC, 'queue = "fq-codel"'),
    Rival("CUBIC, CAKE", CUBIC, 'queue = "cake"'),
    Rival("CUBIC, autorate over CAKE", CUBIC, 'queue = "cake"', shaper=True),
    Rival("Prague, DualPI2", '"prague"', 'queue = "dualpi2"'),
    Rival("Prague, wait-marker", '"prague"', 'regulator = "wait-marker"'),
    Rival("CUBIC with ECN, wait-marker", ECN, 'regulator = "wait-marker"'),
    Rival("CUBIC, Zhuge", CUBIC, 'regulator = "zhuge"'),
    Rival("BBRv3, Zhuge", '"bbr3"', 'regulator = "zhuge"'),
    Rival("CUBIC, Ack Regulator 50p", CUBIC, 'regulator = "ack-regulator"', "50p"),
    Rival("CUBIC, wrd 50p", CUBIC, 'regulator = "wrd"', "50p"),
    Rival("Prague, marks of forecast", '"prague"', MARKS),
    Rival("CUBIC, forecast", CUBIC, 'regulator = "forecast"'),
)
HIDDEN = 'headers = "encrypted"\nacks = { kind = "delayed", count = 10, timeout = "25ms" }'
# Senders with the loss recovery of QUIC.
QUIC_CUBIC = '{ kind = "cubic", stack = "linux", probe_timeout = "on" }'
QUIC_ECN = '{ kind = "cubic", stack = "linux", ecn = "on", probe_timeout = "on" }'
QUIC_PRAGUE = '{ kind = "prague", stack = "linux", probe_timeout = "on" }'
QUIC = (
    Rival("nothing", QUIC_CUBIC, flow=HIDDEN),
    Rival("`forecast` by windows, which cannot act", QUIC_CUBIC, 'regulator = "forecast"', flow=HIDDEN),
    Rival("short queue, 50 packets", QUIC_CUBIC, "", "50p", flow=HIDDEN),
    Rival("age limit of 150 ms", QUIC_CUBIC, 'age_limit = "150ms"', flow=HIDDEN),
    Rival("CoDel", QUIC_CUBIC, 'queue = "codel"', flow=HIDDEN),
    Rival("CAKE", QUIC_CUBIC, 'queue = "cake"', flow=HIDDEN),
    Rival("drop early", QUIC_CUBIC, 'regulator = { kind = "wait-marker", not_ect = "drop" }', flow=HIDDEN),
    Rival("mark, CUBIC with ECN", QUIC_ECN, 'regulator = "wait-marker"', flow=HIDDEN),
    Rival("mark, Prague", QUIC_PRAGUE, 'regulator = "wait-marker"', flow=HIDDEN),
    Rival("mark by `forecast`, Prague", QUIC_PRAGUE, MARKS, flow=HIDDEN),
    Rival("mark by `forecast`, CUBIC with ECN", QUIC_ECN, MARKS, flow=HIDDEN),
    Rival("mark by DualPI2, Prague", QUIC_PRAGUE, 'queue = "dualpi2"', flow=HIDDEN),
    Rival("nothing, BBRv3", '{ kind = "bbr3", stack = "linux", probe_timeout = "on" }', flow=HIDDEN),
)
OURS = ("forecast", "wrd", "Ack Regulator")


@dataclass(frozen=True)
class Cell:
    """What all rivals share: link, load and start offset or seed."""

    link: Link
    load: str
    start: int


def scenario(cell: Cell, rival: Rival) -> str:
    """Text of the scenario file."""
    begin = cell.link.begin_s(cell.start)
    radio = cell.link.edge
    if cell.link.file is not None:
        radio += f'down = {{ kind = "trace", file = "{cell.link.file}" }}\n{UP}'
    edge = f'[edge]\nbuffer = "{rival.buffer}"\n{rival.edge}\n{radio}'
    if rival.shaper:
        shaper = '{ kind = "autorate", queue = "cake", min = "300kbit/s", base = "2Mbit/s", max = "80Mbit/s" }'
        buffer = f'buffer = "{rival.buffer}"\n'
        edge = f"[edge]\n{buffer}bearer = {shaper}\n[edge.behind]\n{buffer}{radio}"
    count = 1 if cell.load == "pages" else int(cell.load)
    page = f'[[flow]]\nuser = {int(cell.link.file is not None)}\nsender = "cubic"\nstart = "{begin:.3f}s"\n{PAGES}\n'
    return (
        f'preset = "{cell.link.preset}"\nduration = "{begin + DURATION_S:.3f}s"\nseed = {1 + cell.start}\n'
        f'measure = ["transit"]\n[path]\ndelay = "{WIRE_MS}ms"\n{edge}\n'
        f'[[flow]]\nsender = {rival.sender}\ncount = {count}\npacket = "1500B"\nmax_window = "4000p"\n'
        f'start = "{begin:.3f}s"\n{rival.flow}\n{page if cell.load == "pages" else ""}'
    )


def run(command: str, cell: Cell, rival: Rival) -> dict[str, Any]:
    """Results of a run, from disk if it was run before."""
    text = scenario(cell, rival)
    kept = OUT / "runs" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    if kept.exists():
        return dict(json.loads(kept.read_text()))
    with NamedTemporaryFile("w", suffix=".toml", dir=OUT) as file:
        file.write(text)
        file.flush()
        done = subprocess.run([command, "run", file.name, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{rival.name}, {cell}: {done.stderr}\n{text}")
    found = reached(json.loads(done.stdout.splitlines()[0]))
    kept.write_text(json.dumps(found))
    return found


def reached(result: dict[str, Any]) -> dict[str, Any]:
    """Delivered bits, p95 of the one-way delay beyond the wired path, of the link's queue, and of a page, in ms."""
    transit = [one["transit_ms"]["p95"] for one in result["flows"] if one["transit_ms"]["p95"] is not None]
    pages = result["transfers"][0]["latency_ms"] if result.get("transfers") else {}
    # 1448 of the 1500 bytes of a packet are payload where there are timestamps.
    rows = result["users"] or result["flows"]
    return {
        "bits": sum(one["delivered_bytes"] for one in rows) * 8 * 1500 / 1448,
        "delay": fmean(transit) - WIRE_MS,
        "queue": result["bottleneck"]["queue_ms"]["p95"] or 0.0,
        "page": pages.get("p95"),
    }


Results = dict[Cell, dict[Rival, dict[str, Any]]]


def measured(command: str, cells: Sequence[Cell], rivals: Sequence[Rival], jobs: int) -> Results:
    """Results of all rivals in all cells, with the share of the capacity or, where that is not known, of the most."""
    asked = [(cell, rival) for cell, rival in product(cells, rivals) if rival.fits(cell.link)]
    found: Results = {}
    with bar("runs") as progress, ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda one: run(command, *one), asked)
        for done, (one, result) in enumerate(zip(asked, results, strict=True)):
            found.setdefault(one[0], {})[one[1]] = result
            if progress is not None:
                progress(done + 1, len(asked))
    for cell, there in found.items():
        most = cell.link.capacity_bits(cell.start) or max(result["bits"] for result in there.values())
        for result in there.values():
            result["used"] = min(100.0, 100 * result["bits"] / most)
    return found


def over_links(found: Results, value: Callable[[Cell], float | None]) -> tuple[float, float]:
    """Mean of a value over links, and half of its interval: the links count, not the runs over them.

    Cells without the value count nothing.
    """
    means: dict[Link, list[float]] = {}
    for cell in found:
        if (one := value(cell)) is not None:
            means.setdefault(cell.link, []).append(one)
    each = [fmean(numbers) for numbers in means.values()]
    return (fmean(each), half_interval(each, CONFIDENCE) or 0.0) if len(each) > 1 else (math.nan, math.nan)


def number(found: Results, cell: Cell, rival: Rival, key: str) -> float | None:
    """A number of a rival in a cell; None if it was not run there."""
    result = found[cell].get(rival)
    return None if result is None else float(result[key])


def logarithm(found: Results, cell: Cell, rival: Rival) -> float | None:
    """Logarithm of the delay of a rival in a cell; None if it was not run there."""
    delay = number(found, cell, rival, "delay")
    return None if delay is None else math.log(delay)


def rank(found: Results, cell: Cell, rival: Rival) -> int | None:
    """Rank of a rival in a cell by power: the share of the capacity over the delay; None if it was not run there."""
    there = found[cell]
    if rival not in there:
        return None
    return 1 + sum(power(other) > power(there[rival]) for other in there.values())


def power(result: dict[str, Any]) -> float:
    """Share of the capacity over the delay, of at least 10 ms."""
    return float(result["used"] / max(result["delay"], LEAST_MS))


def table(rivals: Sequence[Rival], found: Results, bounds: Bounds | None) -> str:
    """Markdown: share of the capacity, delay, the delay against the limit, pages and rank; best rank first."""
    rows = []
    for rival in rivals:
        used, used_half = over_links(found, partial(number, found, rival=rival, key="used"))
        ranked, rank_half = over_links(found, partial(rank, found, rival=rival))
        ran = {cell: there[rival] for cell, there in found.items() if rival in there}
        delay = median(result["delay"] for result in ran.values())
        row = f"| {rival.name} | {used:.0f} ± {used_half:.0f} | {delay:.0f} |"
        if bounds is not None:
            times = [one for cell, result in ran.items() if (one := over_limit(bounds, cell, result)) is not None]
            row += " - |" if rival.shaper or not times else f" {median(times):.1f} |"
        if any(cell.load == "pages" for cell in ran):
            row += f" {page_s(ran):.1f} |"
        rows.append((ranked, f"{row} {ranked:.1f} ± {rank_half:.1f} |"))
    names = ["rival", "link used %", "p95 of the delay, ms"]
    if bounds is not None:
        names.append("queue over the limit")
    if any(cell.load == "pages" for cell in found):
        names.append("p95 of a page, s")
    names.append("rank")
    head = f"| {' | '.join(names)} |\n| --- |{' ---: |' * (len(names) - 1)}"
    return "\n".join([head, *(row for _, row in sorted(rows))])


def page_s(ran: dict[Cell, dict[str, Any]]) -> float:
    """Median of the p95 of a page in these results, in seconds. Where no page arrived, it took longer than the run."""
    pages = [result["page"] or DURATION_S * 1e3 for cell, result in ran.items() if cell.load == "pages"]
    return median(pages) / 1e3


def of_each_link(rivals: Sequence[Rival], links: Sequence[Link], found: Results) -> str:
    """Markdown: what one flow gets of each link, its delay, and pages; the shortest delay on the last link first."""
    rows = []
    for rival in rivals:
        row, last = f"| {rival.name} |", 0.0
        for link in links:
            ran = {cell: there[rival] for cell, there in found.items() if cell.link == link}
            alone = [result for cell, result in ran.items() if cell.load == "1"]
            used, last = fmean(one["used"] for one in alone), median(one["delay"] for one in alone)
            row += f" {used:.0f} | {last:.0f} | {page_s(ran):.1f} |"
        rows.append((last, row))
    names = [f"{link.name}: used % | delay, ms | page, s" for link in links]
    head = f"| rival | {' | '.join(names)} |\n| --- |{' ---: |' * (3 * len(links))}"
    return "\n".join([head, *(row for _, row in sorted(rows))])


def over_limit(bounds: Bounds, cell: Cell, result: dict[str, Any]) -> float | None:
    """Queue of one download over the limit at its share of the capacity; None where no limit is known."""
    if cell.load != "1" or (curve := bounds.of(cell.link.name, WIRE_MS, "runs")) is None:
        return None
    least = bound.at(curve.known, min(result["used"] / 100, curve.known[-1].utilisation))
    return None if not least else float(result["queue"] / 1e3 / least)


def paired(rivals: Sequence[Rival], found: Results, own: Rival) -> str:
    """Markdown: delay and share of the capacity of each rival against `own` in the same cells."""
    rows = []
    for rival in (one for one in rivals if one != own):

        def log(cell: Cell, rival: Rival = rival) -> float | None:
            theirs, ours = logarithm(found, cell, rival), logarithm(found, cell, own)
            return None if theirs is None or ours is None else theirs - ours

        def points(cell: Cell, rival: Rival = rival) -> float | None:
            theirs, ours = number(found, cell, rival, "used"), number(found, cell, own, "used")
            return None if theirs is None or ours is None else theirs - ours

        (mean, half), (more, more_half) = over_links(found, log), over_links(found, points)
        ends = f"{math.exp(mean - half):.2f} to {math.exp(mean + half):.2f}"
        rows.append((mean, f"| {rival.name} | {math.exp(mean):.2f} ({ends}) | {more:+.1f} ± {more_half:.1f} |"))
    head = "| beside `forecast` | delay, times | link used, points |\n| --- | ---: | ---: |"
    return "\n".join([head, *(row for _, row in sorted(rows))])


def write(page: Path, tables: str, heading: str = "# ") -> None:
    """Replace the first table of rivals below a heading of a page, and those that follow it directly."""
    lines = [*page.read_text().splitlines(), ""]
    below = next(at for at, line in enumerate(lines) if line.startswith(heading))
    first = next(at for at in range(below, len(lines)) if lines[at].startswith("| rival |"))
    last = first
    while lines[last].startswith("|") or (not lines[last] and "".join(lines[last + 1 : last + 2]).startswith("|")):
        last += 1
    page.write_text("\n".join([*lines[:first], tables, *lines[last:]]))


def picture(rivals: Sequence[Rival], found: Results) -> None:
    """Link used against delay, one point for each rival: means over links, with intervals of the share."""
    plt.rcParams["svg.hashsalt"] = "rivals"
    figure, axes = plt.subplots(figsize=(9, 5.5))
    points, labels = [], []
    for rival in rivals:
        used, half = over_links(found, partial(number, found, rival=rival, key="used"))
        log, _ = over_links(found, partial(logarithm, found, rival=rival))
        points.append((math.exp(log), used))
        colour = "#c0392b" if any(word in rival.name for word in OURS) else "#2c3e50"
        axes.errorbar(math.exp(log), used, yerr=half, fmt="o", color=colour, ecolor="#d0d0d0", elinewidth=1)
        labels.append((rival.name, colour))
    best = [one for one in points if not any(x <= one[0] and y >= one[1] and (x, y) != one for x, y in points)]
    axes.plot(*zip(*sorted(best), strict=True), color="#c0392b", linewidth=1, alpha=0.4, zorder=0)
    axes.set_xscale("log")
    axes.margins(x=0.16)
    axes.set_ylim(0, 105)
    axes.set_xlabel("95th percentile of the delay beyond the wired path, ms (mean of the links)")
    axes.set_ylabel("link used, % (mean of the links, with its 95 % interval)")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    name_points(axes, points, labels)
    figure.savefig(PICTURE, metadata={"Date": None})


# Offsets of a label from its point, points, and the side at which it begins.
PLACES = ((6, 3, "left"), (6, -10, "left"), (-6, 3, "right"), (-6, -10, "right"), (6, -20, "left"), (-6, -20, "right"))


def name_points(axes: Axes, points: Sequence[tuple[float, float]], labels: Sequence[tuple[str, str]]) -> None:
    """Writes the name of each point where it covers no other point and no other name, if there is such a place."""
    taken = [Bbox.from_bounds(x - 6, y - 10, 12, 20) for x, y in axes.transData.transform(points)]
    for point, (name, colour) in zip(points, labels, strict=True):
        for x, y, side in PLACES:
            text = axes.annotate(
                name, point, xytext=(x, y), textcoords="offset points", ha=side, fontsize=8, color=colour
            )
            box = text.get_window_extent()
            if not any(box.overlaps(other) for other in taken) or (x, y, side) == PLACES[-1]:
                taken.append(box)
                break
            text.remove()


def all_links(command: str) -> list[Link]:
    """The links; the synthetic recordings are written to files."""
    links = []
    for name, preset, seed in SYNTHETIC:
        file = OUT.resolve() / f"{preset}.{'csv' if preset == 'starlink' else 'down'}"
        synth = [command, "trace", "synth", "--preset", preset, "--seed", str(seed), "--out", str(file)]
        if not file.exists():
            subprocess.run(synth, check=True)
        links.append(Link(name, str(file)))
    return [*links, CELL, *recorded(MAHIMAHI)]


def recorded(recordings: Iterable[tuple[str, str]]) -> list[Link]:
    """Links of shared recordings; none without their folder."""
    shared = os.environ.get("ACKCLOCK_SHARED")
    folder = Path(shared).resolve() / "traces" if shared else None
    return [Link(name, str(folder / file)) for name, file in recordings] if folder else []


def limits(links: Iterable[Link]) -> Bounds:
    """The limits of one download over each recording, computed or read."""
    bounds = Bounds(OUT / "bounds")
    for link in links:
        if (slots := link.slots()) is not None:
            bounds.learn_runs(link.name, slots, WIRE_MS, bound.Downloads(DURATION_S, STARTS))
    return bounds


def held_back(command: str, jobs: int) -> None:
    """Runs the rivals over the recordings held back, and prints and writes their table."""
    links = recorded(HELD_BACK)
    if not links:
        raise SystemExit("--held-back: ACKCLOCK_SHARED names no folder with the recordings")
    cells = [Cell(*one) for one in product(links, HELD_BACK_LOADS, range(STARTS))]
    shown = of_each_link(RIVALS, links, measured(command, cells, RIVALS, jobs))
    print(f"\n{shown}")
    write(RIVALS_PAGE, shown, HELD_BACK_HEADING)


def main() -> None:
    """Computes the limits, runs all cells, prints both tables and draws the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", default="ackclock", help="the simulator")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="+", default=[], help="links with one of these in their name; writes no page")
    parser.add_argument("--held-back", action="store_true", help="run over the two recordings held back instead")
    arguments = parser.parse_args()
    (OUT / "runs").mkdir(parents=True, exist_ok=True)
    if arguments.held_back:
        held_back(arguments.command, arguments.jobs)
        return
    links = all_links(arguments.command)
    if arguments.only:
        links = [link for link in links if any(word in link.name for word in arguments.only)]
    bounds = limits(links)
    cells = [Cell(*one) for one in product(links, LOADS, range(STARTS))]
    found = measured(arguments.command, cells, RIVALS, arguments.jobs)
    one_flow = [cell for cell in cells if cell.load == "1"]
    hidden = measured(arguments.command, one_flow, QUIC, arguments.jobs)
    shown = f"{table(RIVALS, found, bounds)}\n\n{paired(RIVALS, found, RIVALS[-1])}"
    for page, tables in ((RIVALS_PAGE, shown), (QUIC_PAGE, table(QUIC, hidden, None))):
        print(f"\n{tables}")
        if not arguments.only:
            write(page, tables)
    if not arguments.only:
        picture(RIVALS, found)


if __name__ == "__main__":
    main()
