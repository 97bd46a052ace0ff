"""Judges `forecast`, before and after a change to it, over the same scenarios with the same seeds.

    make judge                                                   # current regulator compared with judged.jsonl
    python benches/judge.py --regulator '{ kind = "forecast", idle = 0.02 }'
    python benches/judge.py --final --random 1000                # the last judgement: see chance.py

Each case runs drop-tail (`none`) and the regulator in pairs: on recordings (one CUBIC flow, 16 of them, one BBR flow;
1, 20 and 50 ms of wired path each way; 120 s from three start offsets), on steady links, in random scenarios, on slow
links with an AQM below the regulator, for BBR with loss on the wired path, and for downloads that start together over
600 ms of base RTT. Recordings are those of scenarios/recordings and of the folder ACKCLOCK_SHARED, where it is set.

Results are appended to out/judge, one line per case and regulator, and not repeated by the same build. `judged.jsonl`
next to this file is from an earlier build: its regulator is compared case by case. "Certainly worse" is a
paired 95 % interval of goodput below -1 %.
"""

import argparse
import json
import os
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from zlib import crc32

import chance
import never_worse
from never_worse import MARGIN, NONE, build, change
from scoreboard import OURS, PACKET_BITS, PATTERNS, Recording

from ackclock.progress import bar
from ackclock.results import half_interval

OUT, BEFORE = Path("out/judge"), Path(__file__).resolve().with_name("judged.jsonl")
REGULATOR = "forecast"
RANDOM, RUNS = 500, 8
LOADS = {"1 cubic": ("cubic", 1), "16 cubic": ("cubic", 16), "1 bbr": ("bbr", 1)}
WIRES_MS, STARTS, LONGEST_S = (1, 20, 50), 3, 120
STEADY_BPS, STEADY_WIRES_MS, STEADY_S = (500e3, 2e6, 10e6, 50e6), (10, 50), 60
SLOW_BPS, SLOW_S = (16e3, 24e3, 35e3, 50e3, 70e3, 100e3, 140e3), 120
LOSSES, LOSSY_BPS, LOSSY_S = (0.01, 0.05), (70e3, 300e3, 3e6), 60
TOGETHER, TOGETHER_BPS, TOGETHER_S, TOGETHER_WIRE_MS = (4, 8, 16), (1e6, 2e6, 4e6, 8e6), 10, 300
# Payload bits of a full packet: 1448 of its 1500 bytes.
PAYLOAD_BITS = PACKET_BITS * 1448 / 1500


@dataclass(frozen=True)
class Case:
    """Scenarios that are compared as one: a case of a part.

    Attributes:
        scenario: The scenario of a run, without a regulator.
        capacity_bps: Payload that the link could deliver in a run once its flows have started, over the whole run;
            None where it is not known.
    """

    part: str
    name: str
    scenario: Callable[[int], str]
    runs: int = RUNS
    capacity_bps: Callable[[int], float] | None = None


@dataclass(frozen=True)
class Row:
    """Results of a regulator in a case, one number per run: goodput and capacity in bit/s, p95 of the queue in ms."""

    part: str
    case: str
    regulator: str
    goodput_bps: list[float]
    p95_ms: list[float]
    capacity_bps: list[float] | None


Rows = dict[tuple[str, str, str], Row]


def main() -> int:
    """Measure what is missing, and print how the regulator compares."""
    given = options()
    OUT.mkdir(parents=True, exist_ok=True)
    kept = OUT / f"{build()}.jsonl"
    wanted = [case for case in cases(given) if given.part in case.part]
    rows = measured(kept, wanted, given.regulator)
    print(table(wanted, rows, given.regulator, read(given.against)), end="")
    print(f"{kept} has every run")
    return 0


def options() -> argparse.Namespace:
    """Command line options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--regulator", default=REGULATOR, help="name, or table of TOML on one line")
    parser.add_argument("--against", type=Path, default=BEFORE, help="results of another build")
    parser.add_argument("--random", type=int, default=RANDOM, help="the first so many scenarios of the set")
    parser.add_argument("--final", action="store_true", help="the set that is kept for the last judgement")
    parser.add_argument("--part", default="", help="only parts with this in their name")
    return parser.parse_args()


def cases(given: argparse.Namespace) -> Iterator[Case]:
    """All cases in the order of the table."""
    yield from on_recordings()
    yield from steady()
    name = chance.SETS["final" if given.final else "design"]
    for number in range(given.random):
        yield Case(f"random, {name}", str(number), partial(chance.scenario, name, number))
    yield from slow_with_aqm()
    yield from bbr_with_loss()
    yield from start_together()


def on_recordings() -> Iterator[Case]:
    """Every recording, wired path and load; where there are no public recordings, only the synthetic ones."""
    shared = Path(os.environ.get("ACKCLOCK_SHARED", "/nowhere"), "traces")
    files = [*sorted(OURS.glob("*.down")), *(file for one in PATTERNS for file in sorted(shared.glob(one)))]
    for load, file in product(LOADS, files):
        recording = Recording.of(file)
        for wire_ms in WIRES_MS:
            yield Case(
                f"{load}, {file.parent.name}",
                f"{file.name}, {wire_ms} ms",
                partial(recorded, recording, wire_ms, load),
                STARTS,
                partial(capacity_bps, recording),
            )


def recorded(recording: Recording, wire_ms: int, load: str, run: int) -> str:
    """A run over a recording from one of its start offsets."""
    begin, lasts = offset(recording, run)
    down = f'kind = "trace"\nfile = "{recording.file.resolve()}"\naccounting = "ip"\n'
    return scenario(down, wire_ms, LOADS[load], start_s=begin, seconds=begin + lasts)


def capacity_bps(recording: Recording, run: int) -> float:
    """Payload that the recording could deliver in a run, over the whole of it."""
    begin, lasts = offset(recording, run)
    return recording.packets(begin, lasts) * PAYLOAD_BITS / (begin + lasts)


def offset(recording: Recording, run: int) -> tuple[float, float]:
    """Where in the recording a run starts, and how long it lasts, s."""
    return run / STARTS * recording.seconds, min(LONGEST_S, recording.seconds)


def steady() -> Iterator[Case]:
    """Links of constant rate."""
    for load, bps, wire_ms in product(LOADS, STEADY_BPS, STEADY_WIRES_MS):
        yield Case(
            f"{load}, steady",
            f"{bps / 1e6:g} Mbit/s, {wire_ms} ms",
            partial(over_constant, bps, wire_ms, LOADS[load], seconds=STEADY_S),
        )


def slow_with_aqm() -> Iterator[Case]:
    """One CUBIC flow over a slow link whose queue drops early."""
    for bps, queue in product(SLOW_BPS, chance.QUEUES):
        yield Case(
            "slow, AQM",
            f"{bps / 1e3:g} kbit/s, {queue}",
            partial(over_constant, bps, 20, ("cubic", 1), apart_s=1, seconds=SLOW_S, queue=queue),
        )


def bbr_with_loss() -> Iterator[Case]:
    """One BBR flow over a wired path that loses packets."""
    for loss, bps, queue in product(LOSSES, LOSSY_BPS, ("drop-tail", *chance.QUEUES)):
        yield Case(
            "bbr, loss",
            f"{loss:.0%}, {bps / 1e3:g} kbit/s, {queue}",
            partial(over_constant, bps, 20, ("bbr", 1), seconds=LOSSY_S, queue=queue, loss=loss),
        )


def start_together() -> Iterator[Case]:
    """CUBIC flows that start at the same instant, over a long base RTT."""
    for count, bps in product(TOGETHER, TOGETHER_BPS):
        yield Case(
            "start together, 600 ms",
            f"{count} flows, {bps / 1e6:g} Mbit/s",
            partial(over_constant, bps, TOGETHER_WIRE_MS, ("cubic", count), seconds=TOGETHER_S),
        )


def constant(bps: float) -> str:
    """A link of constant rate."""
    return f'kind = "constant"\nrate = "{bps:.0f}bit/s"\ndelay = "0ms"\n'


def over_constant(
    bps: float,
    wire_ms: int,
    load: tuple[str, int],
    run: int,
    *,
    seconds: float,
    apart_s: float = 1 / RUNS,
    queue: str = "drop-tail",
    loss: float = 0.0,
) -> str:
    """A run over a link of constant rate; each run starts `apart_s` after the one before."""
    return scenario(constant(bps), wire_ms, load, start_s=run * apart_s, seconds=seconds, queue=queue, loss=loss)


def scenario(
    down: str,
    wire_ms: int,
    load: tuple[str, int],
    *,
    start_s: float,
    seconds: float,
    queue: str = "drop-tail",
    loss: float = 0.0,
) -> str:
    """Flows over a link `down`, behind a wired path and a queue of 1000 packets."""
    sender, count = load
    return (
        f'version = 1\npreset = "linux"\nduration = "{seconds:.3f}s"\n\n'
        f'[path]\ndelay = "{wire_ms}ms"\nloss = {loss}\n\n'
        f'[edge]\nbuffer = "1000p"\nqueue = "{queue}"\n\n[edge.down]\n{down}\n[edge.up]\nrate = "10Mbit/s"\n\n'
        f'[[flow]]\nsender = "{sender}"\ncount = {count}\nstart = "{start_s:.3f}s"\nstagger = "0ms"\n'
    )


def measured(kept: Path, wanted: Sequence[Case], regulator: str) -> Rows:
    """The rows of all cases under `none` and a regulator; from disk if they were measured before."""
    rows = read(kept)
    with bar(f"{len(wanted)} cases") as progress, kept.open("a") as file:
        for number, case in enumerate(wanted):
            if missing := [one for one in (NONE, regulator) if (case.part, case.name, one) not in rows]:
                for row in run(case, missing):
                    rows[row.part, row.case, row.regulator] = row
                    file.write(json.dumps(vars(row)) + "\n")
                file.flush()
            if progress is not None:
                progress(number + 1, len(wanted))
    return rows


def run(case: Case, regulators: Sequence[str]) -> Iterator[Row]:
    """Run regulators from the same instants, with the same seeds: they follow from the names of the case alone."""
    values = {one: tomllib.loads(f"it = {one}")["it"] if one.startswith("{") else one for one in regulators}
    seed = crc32(f"{case.part}, {case.name}".encode()) % 10**6
    capacity = case.capacity_bps and [round(case.capacity_bps(run), 1) for run in range(case.runs)]
    for regulator, one in never_worse.runs(case.scenario, seed, values, range(case.runs)).items():
        goodput, p95 = ([round(value, 1) for value in one[name]] for name in ("goodput_bps", "p95_ms"))
        yield Row(case.part, case.name, regulator, goodput, p95, capacity)


def read(file: Path) -> Rows:
    """The rows of a file; none where it does not exist."""
    rows = [Row(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []
    return {(row.part, row.case, row.regulator): row for row in rows}


def table(wanted: Sequence[Case], rows: Rows, regulator: str, before: Rows) -> str:
    """One row per part: goodput and p95, scenarios worse than `none`, and comparison with the earlier regulator."""
    text = never_worse.heading(
        f"`{regulator}`",
        "cases",
        "goodput, % of capacity: none",
        "with it",
        "p95, ms, mean: none",
        "with it",
        "against none: worse",
        "better",
        "median %",
        "worst %",
        "against before: goodput %",
        "worse",
        "better",
        "p95",
    )
    for part in dict.fromkeys(case.part for case in wanted):
        names = [case.name for case in wanted if case.part == part]
        pairs = [(rows[part, name, NONE], rows[part, name, regulator]) for name in names]
        none, ours = zip(*pairs, strict=True)
        earlier = [(before[key], one) for one in ours if (key := (part, one.case, REGULATOR)) in before]
        cells = [len(pairs), share(none), share(ours), wait(none), wait(ours), *against(pairs), *compared(earlier)]
        text += f"| {part} | {' | '.join(map(str, cells))} |\n"
    return text


def share(rows: Sequence[Row]) -> str:
    """Mean goodput in % of the capacity."""
    pairs = [pair for row in rows if row.capacity_bps for pair in zip(row.goodput_bps, row.capacity_bps, strict=True)]
    known = [100 * goodput / capacity for goodput, capacity in pairs]
    return f"{fmean(known):.2f}" if known else "-"


def wait(rows: Sequence[Row]) -> str:
    """Mean p95 of the queue, ms."""
    return f"{fmean(one for row in rows for one in row.p95_ms):.0f}"


def against(pairs: Sequence[tuple[Row, Row]]) -> list[str]:
    """Cases certainly worse and better in goodput than the other of the pair, and the median and worst change in %."""
    changes = [change(one.goodput_bps, other.goodput_bps) for other, one in pairs]
    means = [100 * mean for mean, _, _ in changes]
    worse, better = sum(high < -MARGIN for _, _, high in changes), sum(low > MARGIN for _, low, _ in changes)
    return [str(worse), str(better), f"{median(means):+.1f}", f"{min(means):+.1f}"]


def compared(pairs: Sequence[tuple[Row, Row]]) -> list[str]:
    """Comparison with the earlier regulator: mean change of goodput, cases worse and better, ratio of p95."""
    if len(pairs) < 2:
        return ["-"] * 4
    changes = [100 * change(one.goodput_bps, other.goodput_bps)[0] for other, one in pairs]
    worse, better, *_ = against(pairs)
    ratios = [log(max(fmean(one.p95_ms), 1.0) / max(fmean(other.p95_ms), 1.0)) for other, one in pairs]
    return [f"{fmean(changes):+.2f} ± {half_interval(changes):.2f}", worse, better, f"{exp(fmean(ratios)):.2f} x"]


if __name__ == "__main__":
    sys.exit(main())
