"""Sweeps in several processes: Dask, Ray or a pool of this machine runs parts of about ten seconds each.

A pool of processes is for classes in Python, because the interpreter runs on one thread at a time.

A job's seed depends on its position in the sweep only, so the lines equal those of a local sweep, whatever the
cluster's size.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from ackclock import _core
from ackclock.classes import CLASSES, Registered, ensure
from ackclock.scenario import Source

if TYPE_CHECKING:
    from ackclock.progress import Progress

_NEEDS = {"dask": ("dask", "distributed"), "ray": ("ray",)}
_PACKAGES = {"dask": "'dask[distributed]'", "ray": "ray"}
PART_SECONDS = 10.0
PARTS_PER_WORKER = 2  # so that a worker need not wait for its next part

Part = tuple[list[str], float]  # lines of some jobs, and their duration in seconds


@dataclass(frozen=True)
class Cluster:
    """Operations of Dask or Ray for a sweep.

    Attributes:
        workers: Jobs that run at the same time.
        submit: Calls a function on a worker and returns a future.
        wait: Waits for at least one future and returns the finished ones with their results.
    """

    workers: int
    submit: Callable[..., Any]
    wait: Callable[[list[Any]], Iterable[tuple[Any, Any]]]


def fill(
    jobs: _core.Jobs,
    text: Source,
    keys: list[str],
    engine: Literal["local", "dask", "ray"],
    *,
    address: str | None = None,
    progress: "Progress | None" = None,
) -> None:
    """Run the missing jobs of a sweep in other processes; `progress` is called with (runs done, total runs).

    `address` is that of the cluster. Without it, the engine's own environment variable (`DASK_SCHEDULER_ADDRESS`,
    `RAY_ADDRESS`) applies, and without both the engine starts a cluster on this machine.

    Raises:
        ImportError: with the remedy, if the engine is not installed.
    """
    start = {"local": _processes, "dask": _dask, "ray": _ray}[engine]
    try:
        with start(address) as cluster:
            spread(jobs, text, keys, cluster, progress)
    except ModuleNotFoundError as error:
        if error.name not in _NEEDS.get(engine, ()):
            raise
        raise ImportError(f"engine {engine} is not installed; get it with: pip install {_PACKAGES[engine]}") from error


def spread(
    jobs: _core.Jobs,
    text: Source,
    keys: list[str],
    cluster: Cluster,
    progress: "Progress | None" = None,
) -> None:
    """Distribute the missing jobs in parts, and store each part's lines when it finishes."""
    missing = jobs.missing
    classes = CLASSES if jobs.uses_python else {}
    done = len(jobs) - len(missing)
    _tell(progress, done, len(jobs))
    running: dict[Any, list[int]] = {}
    size = 1
    while missing or running:
        while missing and len(running) < PARTS_PER_WORKER * cluster.workers:
            part, missing = missing[:size], missing[size:]
            running[cluster.submit(run_part, text, tuple(keys), part, classes, _core.__version__)] = part
        for future, (lines, seconds) in cluster.wait(list(running)):
            part = running.pop(future)
            for job, line in zip(part, lines, strict=True):
                jobs.put(job, line)
            done += len(part)
            _tell(progress, done, len(jobs))
            size = max(1, int(PART_SECONDS * len(part) / max(seconds, 1e-3)))
            size = min(size, 1 + len(missing) // (PARTS_PER_WORKER * cluster.workers))  # keeps all workers busy


def _tell(progress: "Progress | None", done: int, runs: int) -> None:
    if progress is not None:
        progress(done, runs)


def run_part(
    text: Source, keys: tuple[str, ...], part: list[int], classes: dict[str, Registered], version: str
) -> Part:
    """Run some jobs of a sweep, on a worker; `classes` are the classes in Python that it may need.

    Raises:
        RuntimeError: if the worker has another `version` of ackclock.
    """
    if version != _core.__version__:
        raise RuntimeError(f"a worker has ackclock {_core.__version__}, not {version}; install the same version there")
    before = time.monotonic()
    ensure(classes)
    # One thread, because the cluster has many workers.
    lines = _jobs(text, keys).run(part, threads=1)
    return lines, time.monotonic() - before


@lru_cache(maxsize=1)
def _jobs(text: Source, keys: tuple[str, ...]) -> _core.Jobs:
    # The process that started the sweep has warned.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _core.Jobs.of_sweep(text.text, name=text.name, base_dir=text.base_dir, set=keys)


@contextmanager
def _processes(_: str | None) -> Iterator[Cluster]:
    from concurrent.futures import FIRST_COMPLETED, wait

    from joblib.externals.loky import get_reusable_executor

    cores = len(os.sched_getaffinity(0))
    pool = get_reusable_executor(cores)

    def done(futures: list[Any]) -> Iterable[tuple[Any, Any]]:
        return [(future, future.result()) for future in wait(futures, return_when=FIRST_COMPLETED).done]

    yield Cluster(cores, pool.submit, done)


@contextmanager
def _dask(address: str | None) -> Iterator[Cluster]:
    from distributed import Client, get_client, wait

    is_ours = address is not None
    try:
        client = Client(address) if is_ours else get_client()
    except ValueError:
        is_ours = True
        client = Client(dashboard_address=None)

    def done(futures: list[Any]) -> Iterable[tuple[Any, Any]]:
        return [(future, future.result()) for future in wait(futures, return_when="FIRST_COMPLETED").done]

    def submit(function: Callable[..., Any], *arguments: Any) -> Any:
        return client.submit(function, *arguments, pure=False)

    with client if is_ours else nullcontext():
        yield Cluster(max(1, sum(client.nthreads().values())), submit, done)


@contextmanager
def _ray(address: str | None) -> Iterator[Cluster]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    if not ray.is_initialized():
        # Without an address, `ray.init` joins whatever cluster a file of an earlier session names.
        given = address or os.environ.get("RAY_ADDRESS")
        ray.init(address=given) if given else ray.init(address="local", include_dashboard=False)

    def done(futures: list[Any]) -> Iterable[tuple[Any, Any]]:
        return [(future, ray.get(future)) for future in ray.wait(futures)[0]]

    def submit(function: Callable[..., Any], *arguments: Any) -> Any:
        return ray.remote(function).remote(*arguments)

    yield Cluster(max(1, int(ray.cluster_resources().get("CPU", 1))), submit, done)
