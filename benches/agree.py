"""Agreement of the worlds (`make agree`): the kernel's senders over `ackclock link` compared with simulated ones.

Both use the same scenario file. Kernel runs take real time, several in parallel; results are stored in out/agree/runs
and not repeated, so an interrupted measurement can continue. They need root for the settings of their network
namespaces. In addition to the cells of cells.py, some are drawn from the commit's hash (drawn.py).
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import agreement
import drawn
from agreement import Outcome, Pair
from cells import BOARD, BOARD_KIND, CELLS, KINDS, SENDERS, Cell
from programs import PRIORITY, Run
from rich.console import Console

# Quantities that both worlds report.
Result = dict[str, Any]
# Kernel runs start this long after the link, each a step later than the previous one, and so at different offsets
# of a recording.
FIRST_BEGIN_S, STEP_S = 2.0, 3.7
# If a cell's runs differ by more than this in either world, in percent of their mean, there are more kernel runs:
# with several possible outcomes, three runs may all have the same.
APART, MORE_RUNS = 5.0, 9
# If the standard error of the difference is then still above this, in percent of the kernel's mean, there are even
# more runs: with a dozen, the mean difference would be mostly random.
UNSURE, MOST_MORE = 2.0, 36
# Minimum of simulated runs per cell and per kernel run, and their maximum distance from the kernel's start times.
STARTS, STARTS_EACH, AROUND_S = 60, 5, 0.07
# Timestamps count milliseconds and timers ticks of 4 ms, and a connection begins at any time between two: when a round
# trip of the receiver ends, and so how far its window grows, hangs on that. Each of our runs begins in another part.
TICK_S, PARTS = 0.004, 0.618
# The wires of `ackclock link` send a packet in no time. Yet of two ACKs one comes first, and what they let out leaves
# at two instants, by which RACK orders it.
WIRE = "100Gbit/s"
# Links that deliver fewer packets than this during a cell are excluded: a draw may start in a long outage.
LEAST_PACKETS = 100
PROGRAMS = Path(__file__).with_name("programs.py")


@dataclass(frozen=True)
class Job:
    """One run over one cell."""

    cell: Cell
    seed: int


def main() -> int:
    """Measure what is missing, compare, and write the table."""
    given = options()
    if os.geteuid() != 0:
        print("skipped: the kernel's settings of a network namespace can only be made by root")
        return 0
    commit = given.commit or drawn.head()
    draws = dict(enumerate(drawn.cells(commit, given.drawn)))
    cells = usable([*fixed(given), *(cell for cell in draws.values() if cell.sender.ours in given.senders)])
    print(f"{len(cells)} cells; drawn from {commit}{' (sources changed since)' if drawn.changed() else ''}")
    worlds = Worlds(given.out, cells)
    cells = [cell for cell in cells if worlds.carries(cell)]
    load = [os.getloadavg()[0]]
    real = measured(worlds, cells, given.runs, given.jobs)
    load.append(os.getloadavg()[0])
    simulated = worlds.around(real)
    pairs = [pair(cell, real, simulated, worlds) for cell in cells]
    where = {"kernel_release": os.uname().release, "load": load}
    keep(commit, draws, dict(zip(cells, pairs, strict=True)), simulated, given.out, where)
    Console(width=220).print(agreement.table(pairs))
    shown = agreement.markdown(pairs)
    print(agreement.judgement([one.words() for one in pairs]), end="")
    print(f"Load of the machine before and after: {load[0]:.1f}, {load[1]:.1f}")
    (given.out / "agree.md").write_text(shown)
    (given.out / "agree.json").write_text(json.dumps({**where, "cells": agreement.plain(pairs)}, indent=1) + "\n")
    if given.page:
        given.page.write_text(agreement.put(given.page.read_text(), shown))
    return 0


def options() -> argparse.Namespace:
    """Command line options."""
    parser = argument_parser(__doc__)
    parser.add_argument("--drawn", type=int, default=24, help="how many cells are drawn")
    parser.add_argument("--commit", help="draw the cells of this commit, and not of the one that stands here")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=10, help="namespaces at once")
    parser.add_argument("--page", type=Path, help="put the table and what is said of it into this page")
    return parser.parse_args()


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """Options that select runs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--kinds", type=kinds, default=list(KINDS), help=f"of {','.join((*KINDS, BOARD_KIND))}; or none"
    )
    parser.add_argument("--only", default="", help="cells with this in a row of the table, as 'LTE'")
    parser.add_argument("--senders", nargs="+", default=[sender.ours for sender in SENDERS])
    parser.add_argument("--out", type=Path, default=Path("out/agree"))
    return parser


def kinds(words: str) -> list[str]:
    """Kinds of cells, as `web,paced`."""
    named = [] if words == "none" else words.split(",")
    if unknown := [word for word in named if word not in (*KINDS, BOARD_KIND)]:
        allowed = ", ".join((*KINDS, BOARD_KIND))
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: allowed are {allowed}, or none")
    return named


def fixed(given: argparse.Namespace) -> list[Cell]:
    """The selected cells of cells.py."""
    meant = (cell for cell in (*CELLS, *BOARD) if cell.kind in given.kinds and cell.sender.ours in given.senders)
    return [cell for cell in meant if given.only in " ".join(cell.words())]


def usable(cells: Sequence[Cell]) -> list[Cell]:
    """Cells whose recordings are installed; the others are counted."""
    reasons = [missing for cell in cells if (missing := cell.link.missing())]
    for reason in dict.fromkeys(reasons):
        print(f"skipped: {reasons.count(reason)} cells: {reason}")
    return [cell for cell in cells if not cell.link.missing()]


def measured(worlds: "Worlds", cells: Sequence[Cell], runs: int, at_once: int) -> dict[Job, Result]:
    """This number of kernel runs per cell, and more if runs differ a lot in either world."""
    jobs = [Job(cell, 1 + run) for run in range(runs) for cell in cells]
    with ThreadPoolExecutor(at_once) as pool:
        real = dict(zip(jobs, pool.map(worlds.real, jobs), strict=True))
        for choose, count in ((apart, MORE_RUNS), (unsure, MOST_MORE)):
            last = choose(real, worlds.around(real))
            more = [Job(job.cell, job.seed + run) for job in last for run in range(1, 1 + count)]
            real |= dict(zip(more, pool.map(worlds.real, more), strict=True))
        return real


class Worlds:
    """Runs of both worlds, and the folder for kernel runs."""

    def __init__(self, out: Path, cells: Sequence[Cell]) -> None:
        self.out = out
        for folder in ("runs", "scenarios"):
            (out / folder).mkdir(parents=True, exist_ok=True)
        self.names = {cell: cell.name(out / "recordings") for cell in cells}
        for cell in cells:
            self.scenario(cell).write_text(cell.scenario(out / "recordings"))

    def scenario(self, cell: Cell) -> Path:
        """Scenario file of both worlds."""
        return self.out / "scenarios" / f"{self.names[cell]}.toml"

    def kept(self, job: Job) -> Path:
        """Result file of a kernel run."""
        return self.out / "runs" / f"{self.names[job.cell]}-{job.seed}.json"

    def real(self, job: Job) -> Result:
        """The kernel's sender; from disk if it was measured before."""
        kept = self.kept(job)
        if not kept.exists():
            with tempfile.TemporaryDirectory() as folder:
                measured = run(self.linked(job, Path(folder, "requests")), first=("begins_s", "taken_bytes"))
            kept.write_text(json.dumps(measured) + "\n")
        result: Result = json.loads(kept.read_text())
        return result

    def linked(self, job: Job, pipe: Path) -> list[str]:
        """The command of a run: both programs around the link, and the pipe of their requests where they need one."""
        cell = job.cell
        words = Run(
            cell.sender.control,
            cell.sender.sack,
            int(cell.ecn == "on"),
            FIRST_BEGIN_S + STEP_S * (job.seed - 1),
            cell.seconds,
            real_time=True,
        )
        if cell.files:
            os.mkfifo(pipe)
            asked = {"pipe": str(pipe), "size": cell.files.size, "since": cell.files.since}
            words = Run(**{**asdict(words), **asked, "interval_s": cell.files.interval_ms / 1000})
        python = ["chrt", "--other", "0", sys.executable]
        serve, take = ([*python, str(PROGRAMS), end, words.json()] for end in ("send", "take"))
        link = ["ackclock", "link", "--scenario", str(self.scenario(cell)), "--seed", str(job.seed), "--json"]
        # Real-time priority, so that other programs, and starting programs of other runs, do not disturb this run.
        return ["chrt", "--fifo", str(PRIORITY), *link, "--server", shlex.join(serve), "--", *take]

    def simulated(self, job: Job, real: Result, starts: int, sets: Mapping[str, str] | None = None) -> list[Result]:
        """The simulated sender, started within some ms of the kernel's programs.

        Results depend on where in a recording a run starts, to the millisecond, so there are several runs. `sets`
        are further keys of the scenario.
        """
        around = [AROUND_S * (2 * (start + 0.5) / starts - 1) for start in range(starts)]
        shifts = [shift + TICK_S * (PARTS * start % 1) for start, shift in enumerate(around)]
        ends = {"path.rate": WIRE, **(sets or {})}
        return [self.simulate(job, real["begins_s"] + shift, ends) for shift in shifts]

    def around(self, real: Mapping[Job, Result]) -> dict[Job, list[Result]]:
        """Simulated runs around each kernel run."""
        with ThreadPoolExecutor() as pool:
            return dict(zip(real, pool.map(self.simulated, real, real.values(), counts(real)), strict=True))

    def capacity_bps(self, job: Job, start: float) -> float:
        """Capacity of the link from `start` on, in payload: 1448 of every 1500 bytes."""
        end = start + job.cell.seconds
        until = [self.simulated_capacity_bps(job, time) * time for time in (start, end)]
        return (until[1] - until[0]) / job.cell.seconds * 1448 / 1500

    def carries(self, cell: Cell) -> bool:
        """Whether the link of a cell delivers enough packets; prints a remark if not."""
        seconds = FIRST_BEGIN_S + cell.seconds
        packets = self.simulated_capacity_bps(Job(cell, 1), seconds) * seconds / 8 / 1500
        if packets < LEAST_PACKETS:
            print(f"skipped: {' '.join(cell.words())}: the link carries {packets:.0f} packets in {seconds:.0f} s")
        return packets >= LEAST_PACKETS

    def simulated_capacity_bps(self, job: Job, duration: float) -> float:
        """Capacity of the link from its start on."""
        options = ["--json", "--seed", str(job.seed), "--set", f"duration={duration:.3f}s"]
        capacity: float = run(["ackclock", "run", str(self.scenario(job.cell)), *options])["bottleneck"]["capacity_bps"]
        return capacity

    def simulate(self, job: Job, start: float, more: Mapping[str, str]) -> Result:
        """The simulated sender from `start` on, s."""
        sets = {"flow.start": f"{start:.6f}s", "duration": f"{job.cell.seconds + start:.6f}s", **more}
        options = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
        return run(["ackclock", "run", str(self.scenario(job.cell)), "--json", "--seed", str(job.seed), *options])


def apart(real: Mapping[Job, Result], simulated: Mapping[Job, list[Result]]) -> Iterator[Job]:
    """The last run of each cell whose runs differ by more than `APART` in either world."""
    for cell, jobs in grouped(real).items():
        worlds = {"the kernel's": [real[job] for job in jobs], "ours": [one for job in jobs for one in simulated[job]]}
        for whose, results in worlds.items():
            rates = [outcome(result, cell).goodput_bps for result in results]
            least, most = min(rates), max(rates)
            if most - least > APART / 100 * fmean(rates):
                print(f"{' '.join(cell.words())}: {whose} {least / 1e3:.0f} to {most / 1e3:.0f} kbit/s; more runs")
                yield jobs[-1]
                break


def unsure(real: Mapping[Job, Result], simulated: Mapping[Job, list[Result]]) -> Iterator[Job]:
    """The last run of each cell for which the difference's standard error exceeds `UNSURE`."""
    for cell, jobs in grouped(real).items():
        kernel = [outcome(real[job], cell).goodput_bps for job in jobs]
        ours = [fmean(outcome(one, cell).goodput_bps for one in simulated[job]) for job in jobs]
        more = [our - theirs for our, theirs in zip(ours, kernel, strict=True)]
        error = 100 * stdev(more) / sqrt(len(more)) / fmean(kernel) if len(more) > 1 else 0.0
        if error > UNSURE:
            print(f"{' '.join(cell.words())}: ours {fmean(more) / 1e3:+.0f} kbit/s ± {error:.1f} %; more runs")
            yield jobs[-1]


def grouped(real: Iterable[Job]) -> dict[Cell, list[Job]]:
    """The runs of each cell."""
    groups: dict[Cell, list[Job]] = {}
    for job in real:
        groups.setdefault(job.cell, []).append(job)
    return groups


def counts(real: Iterable[Job]) -> Iterator[int]:
    """Number of simulated runs per kernel run."""
    groups = grouped(real)
    return (max(STARTS_EACH, STARTS // len(groups[job.cell])) for job in real)


def run(command: Sequence[str], first: Sequence[str] = ()) -> Result:
    """The object printed by a command, with the key `first` of the object printed before it."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stderr}")
    lines = done.stdout.splitlines()
    before = json.loads(lines[0])
    result: Result = {name: before[name] for name in first} | json.loads(lines[-1])
    return result


def outcome(result: Result, cell: Cell) -> Outcome:
    """Compared quantities: data read by the kernel's program, and data available to it in the simulator."""
    # Connections with successive files are counted by user, others one by one; a link counts connections.
    rows = result["flows"] or result["users"]
    download = max(rows, key=lambda one: one["delivered_bytes"])
    taken = result.get("taken_bytes", download["delivered_bytes"])
    queue = result["bottleneck"]["queue_ms"]
    again = download["retransmits"] / cell.seconds
    return Outcome(taken * 8 / cell.seconds, queue["p50"], queue["p95"], again)


def pair(cell: Cell, real: dict[Job, Result], simulated: dict[Job, list[Result]], worlds: Worlds) -> Pair:
    """Means over the runs, side by side."""
    jobs = grouped(real)[cell]
    kernel = [outcome(real[job], cell) for job in jobs]
    ours = [outcome(result, cell) for job in jobs for result in simulated[job]]
    capacity = fmean(worlds.capacity_bps(job, real[job]["begins_s"]) for job in jobs)
    return Pair(tuple(cell.words()), kernel, ours, capacity)


def keep(
    commit: str,
    draws: Mapping[int, Cell],
    pairs: Mapping[Cell, Pair],
    simulated: Mapping[Job, list[Result]],
    out: Path,
    where: Result,
) -> None:
    """Store results of drawn cells: in the project, or under out if the sources are not a commit."""
    built = next(iter(simulated.values()))[0]["provenance"]
    build = {"drawn_from": commit, "built_from": built["commit"], "changed_since": built["dirty"], **where}
    lines = [
        {**build, "number": number, **agreement.line(pairs[cell])} for number, cell in draws.items() if cell in pairs
    ]
    path = out / drawn.KEPT.name if built["dirty"] else drawn.KEPT
    if lines:
        drawn.keep(lines, path)
        print(f"the drawn cells are kept in {path}")


if __name__ == "__main__":
    sys.exit(main())
