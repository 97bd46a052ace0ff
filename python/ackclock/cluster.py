"""Sweeps on a cluster: joblib hands the parts of a sweep to Dask or Ray.

Every part is a fixed set of jobs and every job's seed follows from its place in the sweep, so that the lines are
those of a local sweep whatever the cluster's size.
"""

import os
from collections.abc import Callable
from typing import Literal

import joblib

from ackclock import _core
from ackclock.scenario import Source

_NEEDS = {"dask": "'dask[distributed]'", "ray": "ray"}
PARTS_PER_WORKER = 4  # parts end at different times; a few each keep all workers busy until the end


def sweep(text: Source, keys: list[str], engine: Literal["dask", "ray"]) -> list[str]:
    """The JSON lines of a sweep in the order of the local one.

    Raises:
        ImportError: with the remedy, if the engine is not installed.
    """
    start: dict[str, Callable[[], None]] = {"dask": _start_dask, "ray": _start_ray}
    try:
        start[engine]()
    except ImportError as error:
        raise ImportError(f"engine {engine} is not installed; get it with: pip install {_NEEDS[engine]}") from error
    with joblib.parallel_config(backend=engine):
        n = joblib.effective_n_jobs(-1) * PARTS_PER_WORKER
        parts = joblib.Parallel(n_jobs=-1)(joblib.delayed(_part)(text, keys, (i, n)) for i in range(n))
    return interleaved(parts)


def interleaved(parts: list[list[str]]) -> list[str]:
    """Undo the dealing of jobs to parts: job k is entry k // n of part k % n."""
    n = len(parts)
    return [parts[k % n][k // n] for k in range(sum(map(len, parts)))]


def _part(text: Source, keys: list[str], part: tuple[int, int]) -> list[str]:
    # One thread: the cluster's workers are the parallelism.
    return _core.sweep(text.text, name=text.name, base_dir=text.base_dir, set=keys, part=part, threads=1)


def _start_dask() -> None:
    from distributed import Client, get_client

    try:
        get_client()
    except ValueError:
        Client(dashboard_address=None, set_as_default=True)


def _start_ray() -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray.util.joblib import register_ray

    if not ray.is_initialized():
        ray.init(include_dashboard=False)
    register_ray()
