"""How well the worlds agree (`make agree`): the kernel's senders over `ackclock link` beside ours in the simulator.

Both read the same scenario file. Runs of the kernel take real time, several at once; each is kept under out/agree/runs
and not made again, so an interrupted measurement goes on where it stood. They need root, for the settings of their own
namespaces.
"""

import argparse
import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import agreement
from agreement import Outcome, Pair
from cells import CELLS, LINKS, Cell
from rich.console import Console

# What both worlds print of a run.
Result = dict[str, Any]
# Runs of the kernel begin when the link has run for so long, each a step later than the one before: a recording is met
# in different places.
FIRST_BEGIN_S, STEP_S = 2.0, 0.37
# Where the kernel's runs of a cell lie further apart than the bar, of their mean, there are so many more.
MORE_RUNS = 9
# Simulated runs of a cell and sender, and within how much of the kernel's beginnings they begin.
STARTS, AROUND_S = 60, 0.07
BULK = Path(__file__).with_name("bulk.py")


@dataclass(frozen=True)
class Sender:
    """One of the kernel's senders: its name here, its congestion control there, and whether it uses SACK."""

    ours: str
    control: str
    sack: int


SENDERS = [
    Sender("sack", "reno", 1),
    Sender("newreno", "reno", 0),
    Sender("cubic", "cubic", 1),
    Sender("bbr", "bbr", 1),
]


@dataclass(frozen=True)
class Job:
    """One run of one sender over one cell."""

    cell: Cell
    sender: Sender
    seed: int


def main() -> int:
    """Measure what is missing, compare, and write the table."""
    parser = argument_parser(__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=10, help="namespaces at once")
    parser.add_argument("--kernel-only", action="store_true", help="measure the kernel's senders, and compare nothing")
    given = parser.parse_args()
    cells = [cell for cell in CELLS if given.only in cell.name and usable(cell)]
    senders = [sender for sender in SENDERS if sender.ours in given.senders]
    if os.geteuid() != 0:
        print("skipped: the kernel's settings of a network namespace can only be made by root")
        return 0
    worlds = Worlds(given.out, given.seconds, cells)
    jobs = [Job(cell, sender, 1 + run) for run in range(given.runs) for cell in cells for sender in senders]
    with ThreadPoolExecutor(given.jobs) as pool:
        real = dict(zip(jobs, pool.map(worlds.real, jobs), strict=True))
        more = [Job(job.cell, job.sender, job.seed + run) for job in apart(real) for run in range(1, 1 + MORE_RUNS)]
        real |= zip(more, pool.map(worlds.real, more), strict=True)
    if given.kernel_only:
        return 0
    with ThreadPoolExecutor() as pool:
        simulated = dict(zip(real, pool.map(worlds.simulated, real, real.values(), counts(real)), strict=True))
    pairs = list(pair(cells, senders, real, simulated, worlds))
    Console(width=180).print(agreement.table(pairs))
    print(agreement.summary([pair.words() for pair in pairs]), end="")
    (given.out / "agree.md").write_text(agreement.markdown(pairs))
    (given.out / "agree.json").write_text(json.dumps(agreement.plain(pairs), indent=1) + "\n")
    return 0


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """The options that say which runs are meant."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", default="", help="cells with this in their names")
    parser.add_argument("--senders", nargs="+", default=[sender.ours for sender in SENDERS])
    parser.add_argument("--out", type=Path, default=Path("out/agree"))
    return parser


def usable(cell: Cell) -> bool:
    """Whether its recording is there."""
    if missing := LINKS[cell.link].missing():
        print(f"skipped: {cell.name}: {missing}")
    return missing is None


class Worlds:
    """Runs of both worlds, and the folder that keeps those of the kernel."""

    def __init__(self, out: Path, seconds: float, cells: Sequence[Cell]) -> None:
        self.out = out
        self.seconds = seconds
        for folder in ("runs", "scenarios"):
            (out / folder).mkdir(parents=True, exist_ok=True)
        for cell in cells:
            self.scenario(cell).write_text(cell.scenario(seconds))

    def scenario(self, cell: Cell) -> Path:
        """The file that both read."""
        return self.out / "scenarios" / f"{cell.name}.toml"

    def kept(self, job: Job) -> Path:
        """The file of a run of the kernel's."""
        digest = hashlib.sha256(job.cell.scenario(self.seconds).encode()).hexdigest()[:8]
        return self.out / "runs" / f"{job.cell.name}-{job.sender.ours}-{job.seed}-{digest}.json"

    def real(self, job: Job) -> Result:
        """The kernel's sender; from disk if it was measured before."""
        kept = self.kept(job)
        if not kept.exists():
            serve = shlex.join([sys.executable, str(BULK), "send", job.sender.control, str(job.sender.sack)])
            begin = FIRST_BEGIN_S + STEP_S * (job.seed - 1)
            take = f"exec {sys.executable} {BULK} take $ACKCLOCK_BASE {self.seconds:g} {begin:g}"
            # Other work on the machine is not to disturb what happens in real time.
            link = ["ackclock", "link", "--scenario", str(self.scenario(job.cell)), "--seed", str(job.seed)]
            command = ["nice", "-n", "-10", *link, "--json", "--server", serve, "--", "sh", "-c", take]
            result = run(command, first="begins_s")
            kept.write_text(json.dumps(result) + "\n")
        return json.loads(kept.read_text())

    def simulated(self, job: Job, real: Result, starts: int, sets: Mapping[str, str] | None = None) -> list[Result]:
        """Our sender, which begins as much later than the link as the kernel's programs did, give or take some ms.

        On a recording a few milliseconds decide what an outage meets: one beginning would say little. `sets` are
        further keys of the scenario.
        """
        shifts = [AROUND_S * (2 * (start + 0.5) / starts - 1) for start in range(starts)]
        return [self.simulate(job, real["begins_s"] + shift, sets or {}) for shift in shifts]

    def capacity_bps(self, job: Job, start: float) -> float:
        """What the link could have carried from `start` on, in payload: 1448 of every 1500 bytes."""
        end = start + self.seconds
        until = [self.simulated_capacity_bps(job, time) * time for time in (start, end)]
        return (until[1] - until[0]) / self.seconds * 1448 / 1500

    def simulated_capacity_bps(self, job: Job, duration: float) -> float:
        """What the link could have carried from its beginning on."""
        options = ["--json", "--seed", str(job.seed), "--set", f"duration={duration:.3f}s"]
        capacity: float = run(["ackclock", "run", str(self.scenario(job.cell)), *options])["bottleneck"]["capacity_bps"]
        return capacity

    def simulate(self, job: Job, start: float, more: Mapping[str, str]) -> Result:
        """Our sender from `start` on, in seconds."""
        sets = {
            "flow.sender": job.sender.ours,
            "flow.start": f"{start:.3f}s",
            "duration": f"{self.seconds + start:.3f}s",
            **more,
        }
        options = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
        return run(["ackclock", "run", str(self.scenario(job.cell)), "--json", "--seed", str(job.seed), *options])


def apart(real: dict[Job, Result]) -> Iterator[Job]:
    """The last run of each cell and sender whose runs lie further apart than the bar."""
    for (cell, sender), jobs in grouped(real).items():
        rates = [outcome(real[job]).goodput_bps for job in jobs]
        if max(rates) - min(rates) > agreement.WORST / 100 * fmean(rates):
            print(f"{cell.name} {sender.ours}: {', '.join(f'{rate / 1e3:.0f}' for rate in rates)} kbit/s; more runs")
            yield jobs[-1]


def grouped(real: Iterable[Job]) -> dict[tuple[Cell, Sender], list[Job]]:
    """The runs of each cell and sender."""
    groups: dict[tuple[Cell, Sender], list[Job]] = {}
    for job in real:
        groups.setdefault((job.cell, job.sender), []).append(job)
    return groups


def counts(real: Iterable[Job]) -> Iterator[int]:
    """How many simulated runs go with each run of the kernel."""
    groups = grouped(real)
    return (STARTS // len(groups[job.cell, job.sender]) for job in real)


def run(command: Sequence[str], first: str | None = None) -> Result:
    """The one object that a command prints, with what `first` names in the one that it prints before."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stderr}")
    lines = done.stdout.splitlines()
    result = json.loads(lines[-1])
    return result if first is None else {first: json.loads(lines[0])[first], **result}


def outcome(result: Result) -> Outcome:
    """What is compared; the download is the flow that brought most."""
    flow = max(result["flows"], key=lambda one: one["delivered_bytes"])
    queue = result["bottleneck"]["queue_ms"]
    return Outcome(flow["goodput_bps"], queue["p50"], queue["p95"], flow["retransmits"] / result["duration_s"])


def pair(
    cells: Sequence[Cell],
    senders: Sequence[Sender],
    real: dict[Job, Result],
    simulated: dict[Job, list[Result]],
    worlds: Worlds,
) -> Iterator[Pair]:
    """Means over the runs, side by side."""
    groups = grouped(real)
    for cell in cells:
        for sender in senders:
            jobs = groups[cell, sender]
            kernel = [outcome(real[job]) for job in jobs]
            ours = [outcome(result) for job in jobs for result in simulated[job]]
            capacity = fmean(worlds.capacity_bps(job, real[job]["begins_s"]) for job in jobs)
            yield Pair((cell.link, cell.buffer, cell.regulator), sender.ours, kernel, ours, capacity)


if __name__ == "__main__":
    sys.exit(main())
