"""Run scenarios: once, over a sweep, or under several senders and regulators."""

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from ackclock import _core, progress
from ackclock.results import Results
from ackclock.scenario import Scenario, Source, Value, overrides, source, tables, toml

Engine = Literal["local", "dask", "ray"]
Values = Mapping[str, Value]
One = str | Mapping[str, Any]
OneOrMore = One | Sequence[One]


def run(scenario: Scenario, *, set: Values | None = None, series_interval: float | None = None) -> Results:  # noqa: A002
    """Run a scenario, once for each of its `runs`.

    Args:
        scenario: A path, TOML text, or a mapping with the keys of a scenario file.
        set: Keys to replace, such as `{"edge.buffer": "4p", "seed": 7}`; a flow key means every flow. Here and in a
            mapping, numbers of NumPy and paths are taken as those of Python and as text.
        series_interval: Seconds between two samples of the time series; none are kept unless given.

    Raises:
        ValueError: if the scenario is wrong; the message names file, line, key and what is allowed.
        RuntimeError: if the run failed.
    """
    text = source(scenario)
    outcomes = _core.run(
        text.text,
        name=text.name,
        base_dir=text.base_dir,
        set=overrides(set or {}),
        series_interval=series_interval,
    )
    series = [outcome.series for outcome in outcomes] if series_interval is not None else ()
    objects = Results.from_lines(outcome.json for outcome in outcomes).objects
    return Results(objects, series)


def sweep(
    scenario: Scenario,
    *,
    set: Values | None = None,  # noqa: A002
    engine: Engine = "local",
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Results:
    """Run every combination of the scenario's `[sweep]` x its `runs`.

    Args:
        scenario: As for `run`.
        set: As for `run`.
        engine: `local` uses all cores of this machine, `dask` and `ray` those of a cluster (a client or session
            that exists already is used).
        out: File for the JSON lines. `OUT.partial` has each line as soon as it is there: an interrupted sweep goes on
            where it stood when it is called again.
        overwrite: Whether lines of other runs, another build or changed inputs in `out` are replaced.

    Raises:
        ValueError: if the scenario is wrong, as for `run`, the engine is none of these, or `out` has lines of other
            runs.
        OSError: if `out` cannot be written.
        RuntimeError: if a run failed.
    """
    return Results.from_lines(sweep_lines(source(scenario), overrides(set or {}), engine, out, overwrite=overwrite))


def compare(
    scenario: Scenario,
    *,
    senders: OneOrMore = (),
    regulators: OneOrMore = (),
    buffers: OneOrMore = (),
    queues: OneOrMore = (),
    set: Values | None = None,  # noqa: A002
    engine: Engine = "local",
) -> Results:
    """Run one scenario under all senders, regulators, buffers and queues asked for; under every regulator if none are.

    One alone need not stand in a list. A `[sweep]` in the scenario is not looked at. `Results.runs` and `.flows` then
    carry the columns `flow.sender`, `edge.regulator`, `edge.buffer`, `edge.queue`, and `plot.goodput_against_delay`
    draws them.

    Raises:
        ValueError: if the scenario is wrong, as for `run`, or the engine is none of those of `sweep`.
        RuntimeError: if a run failed.
    """
    asked = {"flow.sender": senders, "edge.regulator": regulators, "edge.buffer": buffers, "edge.queue": queues}
    axes = {key: listed for key, values in asked.items() if (listed := _listed(values))}
    if not axes:
        axes["edge.regulator"] = [one["name"] for one in json.loads(_core.list_components())["regulators"]]
    text = source(scenario)
    # Written behind the text, so that messages about the rest keep their line numbers.
    own = text.text.rstrip("\n") + "\n\n"
    found = tables(text.text, text.name)
    if found.pop("sweep", None) is not None:
        warnings.warn(f"{text.name}: compare does not look at [sweep]; sweep does", stacklevel=2)
        own = toml(found) + "\n"
    text = replace(text, text=own + toml({"sweep": axes}))
    return Results.from_lines(sweep_lines(text, overrides(set or {}), engine))


def sweep_lines(
    text: Source,
    keys: list[str],
    engine: Engine,
    out: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
    found: Callable[[int, int], None] = lambda found, runs: None,
) -> list[str]:
    """The JSON lines of a sweep; `keys` are strings as `--set` takes them, arguments and errors as of `sweep`.

    `found` hears how many of the runs are in `out` already.
    """
    if engine not in get_args(Engine):
        raise ValueError(f"engine: {engine} is none of {', '.join(get_args(Engine))}")
    jobs = _core.Jobs.of_sweep(
        text.text, name=text.name, base_dir=text.base_dir, set=keys, out=out, overwrite=overwrite
    )
    if jobs.found:
        found(jobs.found, len(jobs))
    if engine != "local":
        from ackclock import cluster

        cluster.fill(jobs, text, keys, engine)
    else:
        with progress.bar(text.name) as shown:
            jobs.run(progress=shown)
    return jobs.finish()


def _listed(values: OneOrMore) -> list[One]:
    return [values] if isinstance(values, str | Mapping) else list(values)
