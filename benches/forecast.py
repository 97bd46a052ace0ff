"""Effect of each part of the regulator `forecast` on recordings: the tables of docs/discussion/forecast.md.

    ACKCLOCK_SHARED=FOLDER python benches/forecast.py

One flow over recordings of mahimahi below FOLDER/traces, from four start offsets: a cell is the mean of goodput, with
headers, as a share of the capacity in %, of the p95 queueing delay in ms, and of the timeouts; goodput has the
half width of its 95 % interval. All of it is simulated and the same on every machine; a minute of CPU time.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean

from regulators import EVDO, LTE, OUT, Radio, printed

from ackclock.results import mean_and_interval

STARTS = 4
WIRES = ("1ms", "20ms", "50ms")
# Name, buffer and table of each variant.
ABLATION = (
    ("forecast", "2000p", 'kind = "forecast"'),
    ("without reserve", "2000p", 'kind = "forecast", reserve = 0'),
    ("without updates", "2000p", 'kind = "forecast", updates = 0'),
    ("with neither", "2000p", 'kind = "forecast", reserve = 0, updates = 0'),
    ("gain of 1.75", "2000p", 'kind = "forecast", learning = 0'),
    ("idle = 0.02", "2000p", 'kind = "forecast", idle = 0.02'),
    ("packets = 4", "2000p", 'kind = "forecast", packets = 4'),
)
OTHERS = (
    ("drop-tail, 200p", "200p", 'kind = "none"'),
    ("wrd, 20p", "20p", 'kind = "wrd"'),
    ("wrd, 50p", "50p", 'kind = "wrd"'),
)
BBR = (
    ("alone, 1000p", "1000p", 'kind = "none"'),
    ("forecast", "2000p", 'kind = "forecast"'),
    ("without reserve", "2000p", 'kind = "forecast", reserve = 0'),
)
LOSS = (*OTHERS, ("forecast", "2000p", 'kind = "forecast"'))


def main() -> int:
    """Measure, and print the tables."""
    if not EVDO.file.exists():
        print("skipped: ACKCLOCK_SHARED, the folder of public recordings, is not set or lacks them")
        return 0
    OUT.mkdir(parents=True, exist_ok=True)
    parts = {radio.name: [begun_at(radio, start) for start in range(STARTS)] for radio in (EVDO, LTE)}
    for heading, rows, wires, keys in (
        ("One CUBIC flow", (*OTHERS, *ABLATION), WIRES, ("flow.sender=cubic",)),
        ("One BBR flow", BBR, WIRES, ("flow.sender=bbr",)),
        ("One CUBIC flow, 1 % of loss on the wire", LOSS, ("20ms",), ("flow.sender=cubic", "path.loss=0.01")),
    ):
        print(f"### {heading}\n\n" + "".join(table(parts, rows, wires, keys)))
    return 0


def begun_at(radio: Radio, start: int) -> Path:
    """The recording from a start offset on, continued from its beginning."""
    times = [int(line) for line in radio.file.read_text().split()]
    place = times[-1] * start // STARTS
    turned = [time - place for time in times if time > place]
    turned += [time + times[-1] - place for time in times if time <= place]
    file = OUT / f"{radio.file.stem}-{start}.down"
    file.write_text("".join(f"{time}\n" for time in turned))
    return file


def table(
    parts: dict[str, list[Path]], rows: Sequence[tuple[str, str, str]], wires: Sequence[str], keys: Sequence[str]
) -> Iterator[str]:
    """A table with a row per variant and a column per recording and wired path."""
    columns = [(radio, wire) for radio in (EVDO, LTE) for wire in wires]
    yield "| | " + " | ".join(f"{radio.name}, {wire}" for radio, wire in columns) + " |\n"
    yield "| --- |" + " --- |" * len(columns) + "\n"
    for name, buffer, regulator in rows:
        sets = (*keys, f"edge.buffer={buffer}", f"edge.regulator={{ {regulator} }}")
        cells = [cell(parts[radio.name], radio.seconds, (*sets, f"path.delay={wire}")) for radio, wire in columns]
        yield f"| {name} | " + " | ".join(cells) + " |\n"
    yield "\n"


def cell(files: Sequence[Path], seconds: int, sets: Sequence[str]) -> str:
    """Mean over the start offsets of a recording."""
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(lambda file: run(file, seconds, sets), files))
    goodput, p95, timeouts = (list(column) for column in zip(*results, strict=True))
    mean, half = mean_and_interval(goodput)
    return f"{mean:.1f} ± {half:.1f} / {fmean(p95):.0f} / {fmean(timeouts):.0f}"


def run(file: Path, seconds: int, sets: Sequence[str]) -> tuple[float, float, int]:
    """Goodput in %, p95 queueing delay in ms, and timeouts."""
    scenario = file.with_suffix(".toml")
    scenario.write_text(
        f'version = 1\npreset = "linux"\nduration = "{seconds}s"\n\n[edge.down]\nkind = "trace"\nfile = "{file}"\n\n'
        '[edge.up]\nrate = "10Mbit/s"\n\n[[flow]]\n'
    )
    options = [text for value in sets for text in ("--set", value)]
    result = json.loads(printed(["ackclock", "run", str(scenario), "--json", *options]))
    (flow,), link = result["flows"], result["bottleneck"]
    return 100 * flow["wire_goodput_bps"] / link["capacity_bps"], link["queue_ms"]["p95"], flow["timeouts"]


if __name__ == "__main__":
    sys.exit(main())
