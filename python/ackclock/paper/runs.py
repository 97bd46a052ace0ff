"""The simulations of a document: every point once, all in one parallel batch."""

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from ackclock import _core, progress
from ackclock.files import read_text
from ackclock.paper.measure import Measure
from ackclock.scenario import tables, toml, with_keys

PerSeed = NDArray[np.float64]


def point(scenario: Path, keys: Mapping[str, Any]) -> str:
    """The text of one point: a scenario file without its `[sweep]` and with some keys replaced.

    The text identifies the point. Keys are sorted, so that equivalent files are one simulation.

    Raises:
        OSError: naming the file, if it cannot be read.
        ValueError: naming the file, if it is not TOML in UTF-8.
    """
    table = tables(read_text(scenario), str(scenario))
    table.pop("sweep", None)
    return toml(_sorted(with_keys(table, keys)))


def edited(at: str, keys: Mapping[str, Any]) -> str:
    """The text of a point with some keys replaced."""
    return toml(_sorted(with_keys(tomllib.loads(at), keys)))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value


class Runs:
    """The finished runs of every point: `runs(point, measure)` returns one number per seed."""

    def __init__(self, objects: Mapping[str, list[Mapping[str, Any]]]) -> None:
        self.objects = objects

    @property
    def seeds(self) -> str:
        """Number of seeds per point: `5 seeds a point`, or `3 to 20 seeds a point`."""
        counts = [len(runs) for runs in self.objects.values()] or [0]
        least, most = min(counts), max(counts)
        return f"{least if least == most else f'{least} to {most}'} {'seed' if most == 1 else 'seeds'} a point"

    def __call__(self, at: str, measure: Measure) -> PerSeed:
        """`measure` of each run of a point; NaN if a run has no such number."""
        numbers = [measure(run) for run in self.objects[at]]
        return np.array([np.nan if number is None else number for number in numbers], dtype=float)


class Replaced(Runs):
    """Runs in which every point is another one, such as that of a null model."""

    def __init__(self, runs: Runs, replace: Callable[[str], str]) -> None:
        super().__init__(runs.objects)
        self.replace = replace

    def __call__(self, at: str, measure: Measure) -> PerSeed:
        """`measure` of each run of the point that replaces `at`."""
        return super().__call__(self.replace(at), measure)


def simulate(
    points: Iterable[str], *, seeds: int | None = None, title: str = "simulating", out: Path | None = None
) -> Runs:
    """Run all points on all cores.

    Args:
        points: Scenario texts of `point`; equal ones are run once.
        seeds: Runs per point, overriding the scenario's `runs`.
        title: Title of the progress bar.
        out: File for the JSON lines of the runs. Runs that it already contains are not repeated; lines of
            other runs are replaced.
    """
    once = list(dict.fromkeys(points))
    texts = [_with_runs(text, seeds) for text in once] if seeds is not None else once
    with progress.bar(title) as shown:
        lines = _core.run_many(texts, progress=shown, out=out, overwrite=True)
    return Runs({text: [json.loads(line) for line in runs] for text, runs in zip(once, lines, strict=True)})


def _with_runs(text: str, seeds: int) -> str:
    return tomli_w.dumps({**tomllib.loads(text), "runs": seeds})
