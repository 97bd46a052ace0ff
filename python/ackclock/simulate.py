"""Runs scenarios: once, as a sweep, or with several senders and regulators."""

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

from ackclock import _core, arguments
from ackclock.arguments import Values
from ackclock.classes import CLASSES
from ackclock.names import listed, near
from ackclock.progress import Progress, bar
from ackclock.results import Results, label
from ackclock.scenario import Scenario, Source, overrides, source

Engine = Literal["local", "dask", "ray"]
One = str | Mapping[str, Any]
OneOrMore = One | Sequence[One]


def run(
    scenario: Scenario,
    *,
    set: Values | None = None,  # noqa: A002
    seed: int | None = None,
    runs: int | None = None,
    duration: str | float | None = None,
    series_interval: float | None = None,
) -> Results:
    """Run a scenario, once for each of its `runs`.

    Args:
        scenario: A path, TOML text, or a mapping with the keys of a scenario file.
        set: Keys to override, such as `{"edge.buffer": "4p"}`; a flow key means every flow. Here and in a mapping,
            NumPy numbers and paths are accepted.
        seed: Seed, overriding the scenario's.
        runs: Number of runs, overriding the scenario's.
        duration: Simulated time, overriding the scenario's: seconds, or a time such as `"10min"`.
        series_interval: Seconds between two samples of the time series; default: no series.

    Raises:
        ValueError: if the scenario is wrong; the message names file, line, key and what is allowed.
        RuntimeError: if the run failed.

    Example:
        >>> results = run({"version": 1, "preset": "cr02"}, runs=2, duration=10)
        >>> results
        <Results: 2 runs>
        >>> results.flows[["sender", "timeouts"]].to_numpy().tolist()
        [['reno', 1], ['reno', 1]]
    """
    text = source(scenario)
    asked = arguments.keys(set, seed=seed, runs=runs, duration=duration)
    outcomes = _core.run(
        text.text,
        name=text.name,
        base_dir=text.base_dir,
        set=overrides(arguments.one_value_each(asked, "run")),
        series_interval=series_interval,
    )
    series = [outcome.series for outcome in outcomes] if series_interval is not None else ()
    objects = Results.from_lines(outcome.json for outcome in outcomes).objects
    return Results(objects, series)


def sweep(
    scenario: Scenario,
    *,
    set: Values | None = None,  # noqa: A002
    seed: int | None = None,
    runs: int | None = None,
    duration: str | float | None = None,
    engine: Engine = "local",
    address: str | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Run every combination of the scenario's `[sweep]` and of the lists in `set`, `runs` times each.

    Args:
        scenario: As for `run`.
        set: As for `run`; a list of values is an axis: `{"edge.buffer": ["4p", "8p"]}`. It replaces the scenario's own
            axis of that key.
        seed: As for `run`.
        runs: As for `run`, for every combination.
        duration: As for `run`.
        engine: `local` uses all cores of this machine, `dask` and `ray` those of a cluster (a client or session
            that already exists is used).
        address: Address of the cluster; default: `DASK_SCHEDULER_ADDRESS` or `RAY_ADDRESS`, or else a cluster on this
            machine.
        out: File for the JSON lines. `OUT.partial` receives each line at once: to continue an interrupted sweep,
            repeat the call.
        overwrite: Whether lines of other runs, another build or changed inputs in `out` are replaced.
        progress: Called with (runs done, total runs) instead of showing a bar.

    Raises:
        ValueError: if the scenario is wrong, as for `run`, the engine is unknown, or `out` has lines of other
            runs.
        OSError: if `out` cannot be written.
        RuntimeError: if a run failed.

    Example:
        >>> sweep({"version": 1, "preset": "cr02"}, set={"edge.buffer": ["4p", "8p"]}, runs=3, duration=10)
        <Results: 6 runs over edge.buffer (2)>
    """
    ones, axes = arguments.split(arguments.keys(set, seed=seed, runs=runs, duration=duration))
    text = arguments.swept(source(scenario), axes)
    return Results.from_lines(
        sweep_lines(text, overrides(ones), engine, out, address=address, overwrite=overwrite, progress=progress)
    )


def compare(
    scenario: Scenario,
    *,
    senders: OneOrMore = (),
    regulators: OneOrMore = (),
    buffers: OneOrMore = (),
    queues: OneOrMore = (),
    set: Values | None = None,  # noqa: A002
    seed: int | None = None,
    runs: int | None = None,
    duration: str | float | None = None,
    engine: Engine = "local",
    series_interval: float | None = None,
) -> Results:
    """Compare senders, regulators, buffers and queues in one scenario; by default all built-in regulators.

    A single value needs no list. A `[sweep]` in the scenario is ignored. `Results.runs` and `.flows`
    have the columns `flow.sender`, `edge.regulator`, `edge.buffer`, `edge.queue`, `plot.goodput_against_delay`
    draws them, and `Results.paired` compares them run by run. Other arguments are those of `run`; with
    `series_interval`, each run is simulated again for its time series, and `Results.series_of` has their names.

    Raises:
        ValueError: if the scenario is wrong, as for `run`, or the engine is unknown.
        RuntimeError: if a run failed.

    Example:
        >>> compare({"version": 1, "preset": "cr02"}, senders=["reno", "sack"], regulators="none", duration=10)
        <Results: 2 runs over flow.sender (2)>
    """
    asked = {"flow.sender": senders, "edge.regulator": regulators, "edge.buffer": buffers, "edge.queue": queues}
    axes = {key: several for key, values in asked.items() if (several := _several(values))}
    if not axes:
        names = [one["name"] for one in json.loads(_core.list_components())["regulators"]]
        axes["edge.regulator"] = [name for name in names if name not in CLASSES]
    ones = arguments.one_value_each(arguments.keys(set, seed=seed, runs=runs, duration=duration), "compare")
    text, had_sweep = arguments.unswept(source(scenario))
    if had_sweep:
        warnings.warn(f"{text.name}: compare ignores [sweep]; use sweep", stacklevel=2)
    results = Results.from_lines(sweep_lines(arguments.swept(text, axes), overrides(ones), engine))
    if series_interval is not None:
        _add_series(results, text, ones, series_interval)
    return results


def _add_series(results: Results, text: Source, ones: Mapping[str, Any], interval: float) -> None:
    """Simulate each point again, and add the time series of its runs with their names."""
    of_points: dict[str, list[_core.RunOutcome]] = {}
    several = results.runs["run"].nunique() > 1
    for one in results.objects:
        point = one.get("point") or {}
        key = json.dumps(point)
        if key not in of_points:
            of_points[key] = _core.run(
                text.text,
                name=text.name,
                base_dir=text.base_dir,
                set=overrides({**ones, **point}),
                series_interval=interval,
            )
        names = [str(label(value)) for value in point.values()]
        results.series.append(of_points[key][one["run"]].series)
        results.series_of.append(", ".join([*names, f"run {one['run']}"] if several else names))


def sweep_lines(
    text: Source,
    keys: list[str],
    engine: Engine,
    out: str | os.PathLike[str] | None = None,
    *,
    address: str | None = None,
    overwrite: bool = False,
    found: Callable[[int, int], None] = lambda found, runs: None,
    progress: Progress | None = None,
) -> list[str]:
    """The JSON lines of a sweep; `keys` are strings for `--set`, arguments and errors as for `sweep`.

    `found` is called with the number of runs that `out` already contains.
    """
    if engine not in get_args(Engine):
        raise ValueError(f"engine: {engine} is none of {listed(get_args(Engine))}{near(engine, get_args(Engine))}")
    jobs = _core.Jobs.of_sweep(
        text.text, name=text.name, base_dir=text.base_dir, set=keys, out=out, overwrite=overwrite
    )
    if jobs.found:
        found(jobs.found, len(jobs))
    if address is not None and engine == "local":
        raise ValueError(f"address: {address} needs the engine dask or ray")
    fill = partial(_fill, jobs, text, keys, engine, address)
    if progress is not None:
        fill(progress)
    else:
        with bar(text.name) as shown:
            fill(shown)
    return jobs.finish()


def _fill(
    jobs: _core.Jobs,
    text: Source,
    keys: list[str],
    engine: Engine,
    address: str | None,
    progress: Progress | None,
) -> None:
    """Run the missing jobs; classes in Python need a process per core."""
    if engine != "local" or (jobs.uses_python and len(jobs.missing) > 1):
        from ackclock import cluster

        cluster.fill(jobs, text, keys, engine, address=address, progress=progress)
    else:
        jobs.run(progress=progress)


def _several(values: OneOrMore) -> list[One]:
    return [values] if isinstance(values, str | Mapping) else list(values)
