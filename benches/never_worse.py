"""Is a regulator ever worse than none? Every regulator in random scenarios, compared with drop-tail of equal buffer.

    make never-worse

A scenario (`chance.py`) is run with eight seeds under each regulator. It counts as worse if the 95 % interval of the
paired difference in goodput, relative to drop-tail's mean, is completely below -1 %, and as better if it is completely
above +1 %. `none, other seeds` shows the effect of chance. Runs are stored in out/never-worse, by set and build,
and not repeated; JSON and table go there too. `--final` is for the last judgement of a regulator: see `chance.py`.
With `--box` the regulator is in a box that observes the queue, on either side of the radio, with the box's default
buffer; `forecast`, the box's default, is compared unless `--only` names others.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import chance

import ackclock
from ackclock import _core
from ackclock.progress import bar
from ackclock.results import mean_and_interval

OUT = Path("out/never-worse")
RUNS, SCENARIOS = 8, 1000
# A negligible difference, and the confidence level of intervals.
MARGIN, CONFIDENCE = 0.01, 0.95
NONE, CHANCE = "none", "none, other seeds"
# The regulator of `ackclock box`.
BOX_DEFAULT = "forecast"
# What a regulator is asked for beside what it is by itself, where it has such a key.
VARIANTS = {"floor": True}

# Goodput of all flows in bit/s and 95th percentile of the queue in ms, a number a seed.
Measured = dict[str, list[float]]


def main() -> int:
    """Measure what is missing, and write JSON and tables."""
    given = options()
    name = chance.SETS["final" if given.final else "design"]
    folder = OUT / name.replace(", ", "-").replace(" ", "-") / build() / ("box" if given.box else "")
    folder.mkdir(parents=True, exist_ok=True)
    tried = contenders(given.only or (BOX_DEFAULT if given.box else ""))
    judged = []
    with bar(f"{given.scenarios} scenarios") as progress:
        for number in range(given.scenarios):
            if given.box and not chance.has_box(name, number):
                continue
            judged.append(Judged.of(name, number, measured(folder, name, number, tried, given.box)))
            if progress is not None:
                progress(number + 1, given.scenarios)
    text = f"{table(judged, list(tried))}\n{grouped(judged, list(tried))}"
    (folder / "never-worse.md").write_text(text)
    (folder / "never-worse.json").write_text(json.dumps([one.as_json() for one in judged], indent=1) + "\n")
    print(text, end="")
    print(f"{folder}/never-worse.json has every scenario")
    return 0


def options() -> argparse.Namespace:
    """Command line options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenarios", type=int, default=SCENARIOS, help="the first so many of the set")
    parser.add_argument("--final", action="store_true", help="the set that is kept for the last judgement")
    parser.add_argument("--box", action="store_true", help="in a box that observes the queue")
    parser.add_argument("--only", default="", help="regulators, separated by commas; all of them unless said")
    return parser.parse_args()


def build() -> str:
    """The simulator that measures: results of another build are no longer true."""
    return hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()[:12]


def contenders(only: str = "") -> dict[str, Any]:
    """Every regulator that this build has, by itself and with each variant that it knows."""
    found: dict[str, Any] = {}
    for regulator in json.loads(_core.list_components())["regulators"]:
        name, keys = regulator["name"], regulator["schema"].get("properties", {})
        if name == NONE:
            continue
        found[name] = name
        for key in VARIANTS.keys() & keys.keys():
            found[f"{name}, {key}"] = {"kind": name, key: VARIANTS[key]}
    return {name: value for name, value in found.items() if not only or name.split(", ")[0] in only.split(",")}


def measured(
    folder: Path, name: str, number: int, tried: Mapping[str, Any], boxed: bool = False
) -> dict[str, Measured]:
    """Results of each contender in a scenario; from disk if measured before."""
    kept = folder / f"{number}.json"
    known: dict[str, Measured] = json.loads(kept.read_text()) if kept.exists() else {}
    if missing := {label: value for label, value in tried.items() if label not in known}:
        scenario = partial(chance.scenario, name, number, boxed=boxed)
        known |= runs(scenario, number, {NONE: NONE} | missing, range(RUNS))
        if CHANCE not in known:
            known[CHANCE] = runs(scenario, number, {NONE: NONE}, range(RUNS, 2 * RUNS))[NONE]
        kept.write_text(json.dumps(known) + "\n")
    return known


def runs(
    scenario: Callable[[int], str], number: int, regulators: Mapping[str, Any], which: Iterable[int]
) -> dict[str, Measured]:
    """Every regulator with the same seeds in the runs `which` of a scenario; `number` is part of the seeds."""
    values = ", ".join(json_as_toml(value) for value in regulators.values())
    found: dict[str, Measured] = {label: {"goodput_bps": [], "p95_ms": []} for label in regulators}
    labels = {json.dumps(value): label for label, value in regulators.items()}
    for run in which:
        whole = f'{scenario(run)}\n[sweep]\n"edge.regulator" = [{values}]\n'
        for result in ackclock.sweep(whole, set={"runs": 1, "seed": 1 + number + 10**6 * run}).objects:
            one = found[labels[json.dumps(result["point"]["edge.regulator"])]]
            # Not the sum of the flows' own rates: each is over its own time, and one that begins late would weigh more.
            delivered = sum(flow["delivered_bytes"] for flow in result["flows"])
            one["goodput_bps"].append(8 * delivered / result["duration_s"])
            one["p95_ms"].append(result["bottleneck"]["queue_ms"]["p95"] or 0.0)
    return found


def json_as_toml(value: Any) -> str:
    """A name, or a table on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {json.dumps(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


@dataclass(frozen=True)
class Judged:
    """A scenario and each contender's change of goodput, with its interval, and its p95 over that of drop-tail."""

    number: int
    features: dict[str, str]
    changes: dict[str, tuple[float, float, float]]
    waits: dict[str, float]

    @classmethod
    def of(cls, name: str, number: int, measured: Mapping[str, Measured]) -> "Judged":
        """The judgement of what was measured."""
        none = measured[NONE]
        others = {label: one for label, one in measured.items() if label != NONE}
        return cls(
            number,
            chance.features(name, number),
            {label: change(one["goodput_bps"], none["goodput_bps"]) for label, one in others.items()},
            {label: fmean(one["p95_ms"]) / max(fmean(none["p95_ms"]), 1.0) for label, one in others.items()},
        )

    def is_worse(self, label: str) -> bool:
        """Whether the whole interval lies below the margin."""
        return self.changes[label][2] < -MARGIN

    def is_better(self, label: str) -> bool:
        """Whether the whole interval lies above the margin."""
        return self.changes[label][1] > MARGIN

    def as_json(self) -> dict[str, Any]:
        """The judgement with names, for JSON."""
        return {
            "scenario": self.number,
            **self.features,
            "regulators": {
                label: {"change": mean, "low": low, "high": high, "worse": high < -MARGIN, "p95": self.waits[label]}
                for label, (mean, low, high) in self.changes.items()
            },
        }


def change(goodput: Sequence[float], none: Sequence[float]) -> tuple[float, float, float]:
    """The mean paired difference as a share of what drop-tail carries, and its interval; nothing where that is 0."""
    scale = fmean(none)
    if scale == 0:
        return 0.0, 0.0, 0.0
    differences = [(one - other) / scale for one, other in zip(goodput, none, strict=True)]
    mean, half = mean_and_interval(differences, CONFIDENCE)
    return mean, mean - half, mean + half


def table(judged: Sequence[Judged], labels: Sequence[str]) -> str:
    """One row per contender: share worse and better, changes of goodput, and p95 relative to drop-tail's."""
    columns = ("worse in %", "better in %", "goodput: median %", "worst %", "p95 of the queue: median")
    text = heading(f"{len(judged)} scenarios", *columns)
    for label in (CHANCE, *labels):
        changes = [100 * one.changes[label][0] for one in judged]
        worse, better = percent(judged, label, Judged.is_worse), percent(judged, label, Judged.is_better)
        wait = median(one.waits[label] for one in judged)
        text += f"| {label} | {worse} | {better} | {median(changes):+.1f} | {min(changes):+.0f} | {wait:.2f} x |\n"
    return text


def heading(first: str, *columns: str) -> str:
    """The head of a table whose columns are numbers but for the first."""
    return f"| {first} | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}\n"


def percent(judged: Sequence[Judged], label: str, holds: Any) -> str:
    """The share of scenarios for which a judgement holds, in %."""
    return f"{100 * sum(holds(one, label) for one in judged) / len(judged):.1f}"


def grouped(judged: Sequence[Judged], labels: Sequence[str]) -> str:
    """The share of scenarios in which each contender is worse, in %, by what the scenarios are like."""
    text = heading("worse in % of", "scenarios", CHANCE, *labels)
    for words, group in groups(judged):
        cells = " | ".join(percent(group, label, Judged.is_worse) for label in (CHANCE, *labels))
        text += f"| {words} | {len(group)} | {cells} |\n"
    return text


def groups(judged: Sequence[Judged]) -> Iterator[tuple[str, list[Judged]]]:
    """Scenarios that have a feature in common."""
    for feature in judged[0].features if judged else ():
        for value in sorted({one.features[feature] for one in judged}):
            yield f"{feature}: {value}", [one for one in judged if one.features[feature] == value]


if __name__ == "__main__":
    sys.exit(main())
