"""Cost of the Ack Regulator for Reno on recordings: a table of docs/discussion/regulators-on-recordings.md.

    ACKCLOCK_SHARED=FOLDER make regulators-cost

Reno over the recordings of FOLDER/traces with and without the Ack Regulator, from eight start offsets each. All of it
is simulated and the same on every machine; the table goes to out/regulators/cost.md. Random scenarios are those of
`never_worse.py`.
"""

import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from regulators import OUT, printed

TRACES = Path(os.environ.get("ACKCLOCK_SHARED", "/nowhere"), "traces")
RECORDINGS = ("norway-hsdpa-3g/*.json", "mahimahi-3g-lte/*.up", "mahimahi-3g-lte/*.down")
STARTS, LONGEST_S = 8, 300
BUFFERS = ("50p", "200p")


def main() -> int:
    """Measure, and write the table."""
    OUT.mkdir(parents=True, exist_ok=True)
    files = [file for pattern in RECORDINGS for file in sorted(TRACES.glob(pattern))]
    if not files:
        print("skipped: ACKCLOCK_SHARED, the folder of public recordings, is not set or lacks them")
        return 0
    with ThreadPoolExecutor() as pool:
        recorded = list(pool.map(Recorded.measured, files))
    text = on_recordings(recorded)
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
    """Short name of a recording for tables."""
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


if __name__ == "__main__":
    sys.exit(main())
