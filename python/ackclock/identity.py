"""Identity of runs: scenario and settings, point of a sweep, seed, number and build."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Run = Mapping[str, Any]

# Fields of the provenance that identify settings and build.
_OF_PROVENANCE = ("version", "commit", "dirty", "scenario_sha256", "configuration_sha256", "set")


def once(runs: Sequence[Run]) -> list[int]:
    """Numbers of the runs without repetitions of equal ones.

    Runs of real packets differ each time, so that only equal ones are the same run.

    Raises:
        ValueError: naming point, seed and number, if runs of the same identity have different results.
    """
    first: dict[str, list[str]] = {}
    kept = []
    for number, run in enumerate(runs):
        result, known = _result(run), first.setdefault(_identity(run), [])
        if result in known:
            continue
        if known and not _is_live(run):
            raise ValueError(f"{_named(run)}: there are two such runs of the same build with different results")
        known.append(result)
        kept.append(number)
    return kept


def _identity(run: Run) -> str:
    provenance = run.get("provenance") or {}
    build = [provenance.get(field) for field in _OF_PROVENANCE]
    return _text([*(run.get(key) for key in ("scenario", "point", "seed", "run")), *build])


def _result(run: Run) -> str:
    """Everything that equal runs have in common: all but the CPU time."""
    engine = {key: value for key, value in (run.get("engine") or {}).items() if key != "cpu_s"}
    return _text({**run, "engine": engine})


def _is_live(run: Run) -> bool:
    return "sent" in (run.get("bottleneck") or {})


def _named(run: Run) -> str:
    keys = {**(run.get("point") or {}), **{key: run.get(key) for key in ("seed", "run")}}
    return ", ".join(f"{key} {value}" for key, value in keys.items())


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
