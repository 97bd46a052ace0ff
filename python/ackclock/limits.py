"""The bound of the runs of a report: the least queueing delay at each goodput over their recording."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ackclock.description import milliseconds
from ackclock.results import Results

# Less goodput than this share of the capacity is not shown: controllers of the bound waste none on purpose.
_LEAST_SHOWN = 0.5


class Limit(NamedTuple):
    """Least p95 queueing delays, ms, with their goodput, kbit/s.

    `same_runs` is true if the limit is that of the very runs, and false if it is that of the complete recording.
    """

    points: list[tuple[float, float]]
    same_runs: bool


def of_runs(results: Results, scenario: Mapping[str, Any]) -> Limit | None:
    """The limit of single downloads over a recording; None for other runs, whose limit is not known.

    The limit is `models.bound` with the law known: of what each run meets if all start at the beginning of the
    recording, otherwise of the complete recording.
    """
    down = scenario.get("edge", {}).get("down", {})
    # A regulator at the edge controls what arrives there after this path, whatever the delay of the radio.
    wired = milliseconds(scenario.get("path", {}).get("delay"))
    recording = _recording(results, str(down.get("file", "")))
    if recording is None or wired is None or not _are_single_downloads(results):
        return None
    from ackclock.models import bound

    slots = bound.opportunities(recording)
    same_runs = down.get("begin", "0s") == "0s" and results.runs["run"].nunique() == 1
    if same_runs:
        lasts = round(float(results.runs["duration_s"].iloc[0]) / bound.SLOT_S)
        slots = slots.take(range(lasts), mode="wrap")
    try:
        known = bound.of_link(slots, wired / 1000).known
    except ValueError:  # too short a recording or path
        return None
    carried = results.flows["goodput_bps"].sum() / results.flows["wire_goodput_bps"].sum()
    capacity = results.runs["bottleneck.capacity_bps"].mean() / 1e3 * carried
    shown = [point for point in known if point.utilisation >= _LEAST_SHOWN]
    return Limit([(1e3 * max(one.p95_s, bound.SLOT_S), one.utilisation * capacity) for one in shown], same_runs)


def _recording(results: Results, file: str) -> Path | None:
    """The recording of all runs, if it is still the file that they read."""
    run = results.objects[0]
    digest = ((run.get("provenance") or {}).get("inputs") or {}).get(file)
    path = Path(str(run.get("scenario"))).parent / file
    if digest is None or not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        return None
    return path


def _are_single_downloads(results: Results) -> bool:
    flows = results.flows
    varied = [key for key in results.varied if key.startswith(("edge.down", "edge.up", "path", "duration", "flow.t"))]
    towards = set(flows.get("towards", ["mobile"]))
    return not (flows.empty or varied) and flows["id"].nunique() == 1 and towards == {"mobile"}
