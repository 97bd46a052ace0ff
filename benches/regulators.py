"""Every regulator under today's senders on recordings of EV-DO and LTE: docs/discussion/regulators-on-recordings.md.

    ACKCLOCK_SHARED=FOLDER make regulators

FOLDER/traces/mahimahi-3g-lte holds mahimahi's recordings. The sweeps over latency and loss use the synthetic recording
of scenarios/, and with `--kernel` (as root) so do the kernel's own senders over `ackclock link`. Runs are kept in
out/regulators and not made again; the tables go there as Markdown, the picture into docs/discussion.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib import pyplot
from programs import Run

from ackclock import plot

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = Path(__file__).with_name("programs.py")
OUT = ROOT / "out" / "regulators"
PICTURE = ROOT / "docs" / "discussion" / "regulators-on-recordings.svg"

REGULATORS = ("none", "ack-regulator", "wrs", "wrd", "wrb")
SENDERS = ("reno", "sack", "cubic", "bbr")
# The kernel's reno uses SACK, as its systems do unless they are told not to.
KERNEL = {"sack": "reno", "cubic": "cubic", "bbr": "bbr"}
BUFFERS = ("10p", "20p", "50p", "200p")
KERNEL_BUFFERS = ("20p", "50p")
DELAYS = ("1ms", "20ms", "50ms", "70ms", "100ms", "200ms", "400ms")
LOSSES = ("0", "1e-4", "1e-3", "1e-2")


@dataclass(frozen=True)
class Radio:
    """A recording and its length, s."""

    name: str
    file: Path
    seconds: int

    def capacity_bps(self) -> float:
        """Its mean capacity: 1500 bytes per line."""
        return len(self.file.read_text().splitlines()) * 12000 / self.seconds


SHARED = Path(os.environ.get("ACKCLOCK_SHARED", "/nowhere"), "traces", "mahimahi-3g-lte")
EVDO = Radio("EV-DO", SHARED / "Verizon-EVDO-driving.down", 1062)
LTE = Radio("LTE", SHARED / "ATT-LTE-driving-2016.down", 120)
SYNTHETIC = Radio("synthetic EV-DO", ROOT / "scenarios" / "recordings" / "synthetic-evdo-driving.down", 300)


@dataclass(frozen=True)
class Setting:
    """Settings common to all senders, regulators and buffers of a table."""

    radio: Radio
    delay: str = "50ms"
    loss: str = "0"

    @property
    def name(self) -> str:
        """A name that files can have."""
        return f"{self.radio.name}-{self.delay}-{self.loss}-{self.radio.seconds}s".replace(" ", "-").lower()

    def scenario(self) -> Path:
        """The scenario, written down: wired part, recording down, a fast way back."""
        path = OUT / f"{self.name}.toml"
        path.write_text(
            f'version = 1\npreset = "linux"\nduration = "{self.radio.seconds}s"\n\n'
            f'[path]\ndelay = "{self.delay}"\nloss = {self.loss}\n\n'
            f'[edge.down]\nkind = "trace"\nfile = "{self.radio.file}"\n\n[edge.up]\nrate = "1Mbit/s"\n'
        )
        return path


@dataclass(frozen=True)
class Got:
    """Results of a download: share of the capacity, p95 queueing delay, mean round trip at the sender, s."""

    share: float
    queue_s: float
    rtt_s: float | None

    @classmethod
    def of(cls, result: dict[str, Any], capacity_bps: float) -> "Got":
        """From the object of a run; goodput counts payload, 1448 of every 1500 bytes that the link carries."""
        flow = max(result["flows"], key=lambda one: one["delivered_bytes"])
        share = flow["goodput_bps"] * 1500 / 1448 / capacity_bps
        # The kernel does not report its round-trip samples.
        rtt_ms = flow["rtt_ms"]["mean"]
        rtt_s = None if rtt_ms is None else rtt_ms / 1e3
        return cls(share, result["bottleneck"]["queue_ms"]["p95"] / 1e3, rtt_s)


Key = tuple[str, str, str]
Table = dict[Key, Got]


def main() -> int:
    """Run what is missing and write tables and picture."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kernel", action="store_true", help="the kernel's senders too (root, 10 minutes)")
    options.add_argument("--jobs", type=int, default=15, help="links at once")
    given = options.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if not EVDO.file.exists():
        print("skipped: the recordings: ACKCLOCK_SHARED, the folder of public recordings, is not set or lacks them")
    else:
        settings = [Setting(radio, delay) for radio in (EVDO, LTE) for delay in ("50ms", "1ms")]
        tables = {setting: simulated(setting) for setting in settings}
        text = "\n".join(f"{title(setting)}\n\n{markdown(table)}" for setting, table in tables.items())
        (OUT / "recordings.md").write_text(text)
        picture([(setting, table) for setting, table in tables.items() if setting.delay == "50ms"])
    (OUT / "sweeps.md").write_text(sweeps())
    if given.kernel and os.geteuid() != 0:
        print("skipped: the kernel's senders: the settings of a network namespace can only be made by root")
    elif given.kernel:
        ours = simulated(Setting(SYNTHETIC), list(KERNEL), KERNEL_BUFFERS)
        text = f"### Kernel\n\n{markdown(kernel(given.jobs))}\n### Simulated\n\n{markdown(ours)}"
        (OUT / "kernel.md").write_text(text)
    return 0


def simulated(setting: Setting, senders: Sequence[str] = SENDERS, buffers: Sequence[str] = BUFFERS) -> Table:
    """All combinations in the simulator."""
    kept = OUT / f"{setting.name}-{'-'.join(senders)}-{'-'.join(buffers)}.jsonl"
    if not kept.exists():
        axes = {"senders": senders, "regulators": REGULATORS, "buffers": buffers}
        words = [word for axis, values in axes.items() for word in (f"--{axis}", ",".join(values))]
        kept.write_text(printed(["ackclock", "compare", str(setting.scenario()), *words, "--json"]))
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    capacity = setting.radio.capacity_bps()
    return {key(line["point"]): Got.of(line, capacity) for line in lines}


def key(point: dict[str, str]) -> Key:
    """Sender, regulator, buffer of a line."""
    return point["flow.sender"], point["edge.regulator"], point["edge.buffer"]


def kernel(jobs: int) -> Table:
    """The kernel's senders over the synthetic recording, several links at once."""
    scenario, capacity = Setting(SYNTHETIC).scenario(), SYNTHETIC.capacity_bps()
    keys = [(sender, regulator, buffer) for sender in KERNEL for regulator in REGULATORS for buffer in KERNEL_BUFFERS]
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda one: of_kernel(scenario, one), keys)
        return {one: Got.of(result, capacity) for one, result in zip(keys, results, strict=True)}


def of_kernel(scenario: Path, one: Key) -> dict[str, Any]:
    """One download by the kernel; from disk if it was measured before."""
    sender, regulator, buffer = one
    kept = OUT / f"kernel-{sender}-{regulator}-{buffer}.json"
    if not kept.exists():
        words = Run(KERNEL[sender], sack=1, ecn=0, begin_s=0, seconds=SYNTHETIC.seconds).json()
        serve, take = ([sys.executable, str(PROGRAMS), end, words] for end in ("send", "take"))
        sets = ["--set", f"edge.regulator={regulator}", "--set", f"edge.buffer={buffer}"]
        link = ["ackclock", "link", "--scenario", str(scenario), *sets]
        kept.write_text(printed([*link, "--json", "--server", shlex.join(serve), "--", *take]).splitlines()[-1])
    result: dict[str, Any] = json.loads(kept.read_text())
    return result


def printed(command: Sequence[str]) -> str:
    """Output of a command, which must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def title(setting: Setting) -> str:
    """The heading of a table."""
    return f"### {setting.radio.name}, {setting.delay} of wire each way\n"


def markdown(table: Table) -> str:
    """A row for each sender and buffer, a column for each regulator: share of capacity in % / p95 queue in s."""
    head = f"| sender | buffer | {' | '.join(REGULATORS)} |\n| --- | --- |{' ---: |' * len(REGULATORS)}\n"
    rows = dict.fromkeys((sender, buffer) for sender, _, buffer in table)
    return head + "".join(f"| {s} | {b} | {' | '.join(cells(table, s, b))} |\n" for s, b in rows)


def cells(table: Table, sender: str, buffer: str) -> Iterator[str]:
    """The cells of a row."""
    for regulator in REGULATORS:
        got = table[sender, regulator, buffer]
        yield f"{100 * got.share:.1f} / {got.queue_s:.2f}"


def sweeps() -> str:
    """Latency and loss over the synthetic recording."""
    base = Setting(SYNTHETIC)
    by_delay = {delay: simulated(replace(base, delay=delay), ("reno", "cubic"), ("20p", "50p")) for delay in DELAYS}
    by_loss = {loss: simulated(replace(base, loss=loss), ("reno", "cubic"), ("20p", "50p")) for loss in LOSSES}
    return f"### Latency\n\n{by_value('wire each way', by_delay)}\n### Loss\n\n{by_value('loss on the wire', by_loss)}"


def by_value(name: str, tables: dict[str, Table]) -> str:
    """A row for each value, sender and buffer: share of capacity in % / mean round-trip time in s."""
    head = (
        f"| sender | buffer | {name} | {' | '.join(REGULATORS)} |\n| --- | --- | ---: |{' ---: |' * len(REGULATORS)}\n"
    )
    text = head
    for sender, buffer in dict.fromkeys((s, b) for table in tables.values() for s, _, b in table):
        for value, table in tables.items():
            gots = [table[sender, regulator, buffer] for regulator in REGULATORS]
            columns = " | ".join(f"{100 * got.share:.1f} / {got.rtt_s:.2f}" for got in gots)
            text += f"| {sender} | {buffer} | {value} | {columns} |\n"
    return text


def picture(tables: Sequence[tuple[Setting, Table]]) -> None:
    """Share of capacity against p95 queue: a panel per sender and recording, a line per regulator."""
    figure, axes = pyplot.subplots(
        len(tables),
        len(SENDERS),
        figsize=(13, 3.4 * len(tables)),
        sharey=True,
        sharex="row",
        squeeze=False,
        layout="constrained",
    )
    for row, (setting, table) in zip(axes, tables, strict=True):
        for axis, sender in zip(row, SENDERS, strict=True):
            for regulator in REGULATORS:
                gots = [table[sender, regulator, buffer] for buffer in BUFFERS]
                xs, ys = [got.queue_s for got in gots], [100 * got.share for got in gots]
                axis.plot(xs, ys, marker="o", markersize=4, label=regulator)
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter("{x:g}")
            axis.set_title(f"{sender}, {setting.radio.name}", fontsize=10)
            axis.grid(alpha=0.3)
        row[0].set_ylabel("goodput, % of capacity")
    for axis in axes[-1]:
        axis.set_xlabel("p95 of the wait in the queue, s")
    axes[0][-1].legend(fontsize=8, loc="lower right")
    plot.save(figure, PICTURE)


if __name__ == "__main__":
    sys.exit(main())
