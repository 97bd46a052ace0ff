"""What regulators cost where they do not help: the last two tables of docs/discussion/regulators-on-recordings.md.

    ACKCLOCK_SHARED=FOLDER make regulators-cost

Reno over the recordings of FOLDER/traces with and without the Ack Regulator, begun at eight places of each; and every
regulator beside none over random scenarios. All of it is simulated and the same on every machine; the tables go to
out/regulators/cost.md.
"""

import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median

from regulators import OUT, REGULATORS, SENDERS, printed

TRACES = Path(os.environ.get("ACKCLOCK_SHARED", "/nowhere"), "traces")
RECORDINGS = ("norway-hsdpa-3g/*.json", "mahimahi-3g-lte/*.up", "mahimahi-3g-lte/*.down")
STARTS, LONGEST_S = 8, 300
BUFFERS = ("50p", "200p")
# Random scenarios, runs of each with every regulator, and how many seconds they last.
SCENARIOS, RUNS, SECONDS = 1000, 3, 60
# Shares of bandwidth x delay that the buffer holds: less than the first, from there to the second, and so on.
SHARES = (0.1, 0.5, 1.0, 4.0, 16.0)


def main() -> int:
    """Measure, and write both tables."""
    OUT.mkdir(parents=True, exist_ok=True)
    files = [file for pattern in RECORDINGS for file in sorted(TRACES.glob(pattern))]
    if not files:
        print("skipped: the recordings: ACKCLOCK_SHARED, the folder of public recordings, is not set or lacks them")
    with ThreadPoolExecutor() as pool:
        recorded = list(pool.map(Recorded.measured, files))
        drawn = list(pool.map(Drawn.measured, range(SCENARIOS)))
    text = f"### Reno on more recordings\n\n{on_recordings(recorded)}\n### Random scenarios\n\n{on_random(drawn)}"
    (OUT / "cost.md").write_text(text)
    print(text, end="")
    return 0


@dataclass(frozen=True)
class Recorded:
    """Reno over a recording: goodput in bit/s and timeouts of each start, by buffer and regulator."""

    name: str
    mean_bps: float
    runs: dict[tuple[str, str], list[tuple[float, int]]]

    @classmethod
    def measured(cls, file: Path) -> "Recorded":
        """Every buffer without a regulator and under the Ack Regulator."""
        told = json.loads(printed(["ackclock", "trace", "info", str(file), "--json"]))
        length = told["length_s"]
        lasts = min(length, LONGEST_S)
        keys = [(buffer, regulator) for buffer in BUFFERS for regulator in ("none", "ack-regulator")]
        starts = [length * start / STARTS for start in range(STARTS)]
        runs = {key: [reno(file, *key, start, lasts) for start in starts] for key in keys}
        return cls(short(file), told["mean_bps"], runs)

    def row(self, buffer: str) -> str:
        """A row of the table."""
        none, held = self.runs[buffer, "none"], self.runs[buffer, "ack-regulator"]
        gains = [100 * (with_it / without - 1) for (with_it, _), (without, _) in zip(held, none, strict=True)]
        total = 100 * (sum(bps for bps, _ in held) / sum(bps for bps, _ in none) - 1)
        loses = sum(gain < -1 for gain in gains)
        timeouts = " -> ".join(f"{fmean(number for _, number in runs):.1f}" for runs in (none, held))
        ends = f"{min(gains):+.0f} to {max(gains):+.0f}"
        return (
            f"| {self.name} | {self.mean_bps / 1e3:.0f} | {buffer} | {total:+.1f} | {ends} | {loses} | {timeouts} |\n"
        )


def reno(file: Path, buffer: str, regulator: str, start: float, lasts: float) -> tuple[float, int]:
    """Goodput and timeouts of a download that begins at `start` of the recording."""
    scenario = OUT / f"cost-{file.parent.name}-{file.name}-{buffer}-{regulator}-{start:.0f}.toml"
    scenario.write_text(
        f'version = 1\npreset = "linux"\nduration = "{start + lasts:.3f}s"\n\n[path]\ndelay = "50ms"\n\n'
        f'[edge]\nbuffer = "{buffer}"\nregulator = "{regulator}"\n\n'
        f'[edge.down]\nkind = "trace"\nfile = "{file}"\n\n[edge.up]\nrate = "1Mbit/s"\n\n'
        f'[[flow]]\nsender = "reno"\nstart = "{start:.3f}s"\n'
    )
    (flow,) = json.loads(printed(["ackclock", "run", str(scenario), "--json"]))["flows"]
    scenario.unlink()
    return flow["goodput_bps"], flow["timeouts"]


def short(file: Path) -> str:
    """The name of a recording as a table has room for it."""
    # Those of Oslo begin with vehicle and way and end with the day.
    if file.suffix == ".json":
        return f"HSDPA, {file.name.split('.')[0]}, {file.stem.rsplit('_', 1)[0].rsplit('.', 1)[-1]}"
    return f"{file.stem.split('-')[1]}, {file.suffix.removeprefix('.')}"


def on_recordings(recorded: Sequence[Recorded]) -> str:
    """The table of recordings."""
    head = (
        "| recording | kbit/s | buffer | goodput % | of single starts | loses > 1 % in | timeouts |\n"
        "| --- | ---: | --- | ---: | ---: | ---: | ---: |\n"
    )
    return head + "".join(one.row(buffer) for one in recorded for buffer in BUFFERS)


@dataclass(frozen=True)
class Drawn:
    """A random scenario: its sender, its buffer in shares of bandwidth x delay, its goodputs over that without one."""

    sender: str
    share: float
    ratios: dict[str, float]

    @classmethod
    def measured(cls, seed: int) -> "Drawn":
        """Every regulator over one draw."""
        draw = random.Random(seed)
        sender = draw.choice(SENDERS)
        rate, wire = log_uniform(draw, 100e3, 20e6), log_uniform(draw, 0.001, 0.2)
        radio, buffer = log_uniform(draw, 0.001, 0.1), round(log_uniform(draw, 2, 500))
        loss = draw.choice((0.0, 0.0, log_uniform(draw, 1e-5, 1e-2)))
        scenario = OUT / f"cost-{seed}.toml"
        scenario.write_text(
            f'version = 1\npreset = "linux"\nduration = "{SECONDS}s"\nseed = {1 + seed}\n\n'
            f'[path]\ndelay = "{1e3 * wire:.3f}ms"\nloss = {loss:.6f}\n\n'
            f'[edge]\nbuffer = "{buffer}p"\n\n[edge.down]\n{link(draw, rate, radio)}\n\n'
            f'[edge.up]\nkind = "constant"\nrate = "{rate:.0f}bit/s"\ndelay = "{1e3 * radio:.3f}ms"\n\n'
            f"[[flow]]\ncount = {draw.choice((1, 1, 2, 4))}\n"
        )
        compare = ["ackclock", "compare", str(scenario), "--senders", sender, "--runs", str(RUNS), "--json"]
        totals = goodputs([*compare, "--regulators", ",".join(REGULATORS)])
        totals |= {CHANCE: goodputs([*compare, "--regulators", "none", "--seed", str(1 + SCENARIOS + seed)])["none"]}
        scenario.unlink()
        packets = rate * 2 * (wire + radio) / (1500 * 8)
        return cls(
            sender, buffer / packets, {name: totals[name] / totals["none"] for name in (CHANCE, *REGULATORS[1:])}
        )


# No regulator either, but other seeds: what chance alone makes of the comparison.
CHANCE = "none, other seeds"


def log_uniform(draw: random.Random, least: float, most: float) -> float:
    """A number of which every order of magnitude is as likely."""
    return least * (most / least) ** draw.random()


def link(draw: random.Random, rate: float, radio: float) -> str:
    """The table of a link, `rate` in bit/s and `radio` in s: constant, or variable in rate or delay."""
    kind = draw.choice(("constant", "rate", "delay"))
    rates = f'"{rate:.0f}bit/s"'
    delay = f'"{1e3 * radio:.3f}ms"'
    if kind == "constant":
        return f'kind = "constant"\nrate = {rates}\ndelay = {delay}'
    redraw = "packet"
    if kind == "rate":
        rates = f'"u({rate:.0f}bit/s, {rate * draw.uniform(0.1, 0.5):.0f}bit/s)"'
        redraw = f"interval({draw.choice((10, 50, 200, 1000))}ms)"
    else:
        delay = f'"e({1e3 * radio:.3f}ms)"'
    return f'kind = "variable"\nrate = {rates}\ndelay = {delay}\nredraw = "{redraw}"'


def goodputs(command: Sequence[str]) -> dict[str, float]:
    """Goodput of all flows together, in the mean over runs, by regulator."""
    totals: dict[str, list[float]] = {}
    for line in map(json.loads, printed(command).splitlines()):
        total = sum(flow["goodput_bps"] for flow in line["flows"])
        totals.setdefault(line["point"]["edge.regulator"], []).append(total)
    return {regulator: fmean(runs) for regulator, runs in totals.items()}


def on_random(drawn: Sequence[Drawn]) -> str:
    """The table of random scenarios: all of them, by the share of bandwidth x delay that is buffered, and by sender."""
    names = (CHANCE, *REGULATORS[1:])
    groups = {"all": list(drawn)}
    groups |= {f"buffer {words}": [one for one in drawn if low <= one.share < high] for words, low, high in bands()}
    groups |= {sender: [one for one in drawn if one.sender == sender] for sender in SENDERS}
    head = f"| scenarios | number | {' | '.join(names)} |\n| --- | ---: |{' ---: |' * len(names)}\n"
    rows = (
        f"| {words} | {len(group)} | {' | '.join(cost(group, name) for name in names)} |\n"
        for words, group in groups.items()
    )
    return head + "".join(rows)


def bands() -> Iterator[tuple[str, float, float]]:
    """Bands of the share of bandwidth x delay that the buffer holds, and what they are called."""
    yield f"below {SHARES[0]:g} x bandwidth x delay", 0, SHARES[0]
    for low, high in pairwise(SHARES):
        yield f"{low:g} to {high:g} x", low, high
    yield f"above {SHARES[-1]:g} x", SHARES[-1], float("inf")


def cost(group: Sequence[Drawn], regulator: str) -> str:
    """Share of scenarios in which more than 1 % of goodput is lost / the median of all / the worst, in %."""
    changes = [100 * (one.ratios[regulator] - 1) for one in group]
    lost = 100 * sum(change < -1 for change in changes) / len(changes)
    return f"{lost:.0f} / {round(median(changes), 1) + 0:+.1f} / {min(changes):+.0f}"


if __name__ == "__main__":
    sys.exit(main())
