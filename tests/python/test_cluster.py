"""Sweeps that go on where they stood, here and on a cluster."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

import pytest

import ackclock
from ackclock import _core
from ackclock.cluster import Cluster, run_part, spread
from ackclock.paper.runs import simulate
from ackclock.scenario import source

TEXT = """version = 1
preset = "cr02"
duration = "2s"
runs = 3
[[flow]]
sender = "reno"
[sweep]
"edge.buffer" = ["4p", "10p"]
"""


def read(path):
    return path.read_text().splitlines()


def on(pool):
    """A cluster of the processes of a pool."""

    def done(futures):
        return [(future, future.result()) for future in wait(futures, return_when=FIRST_COMPLETED).done]

    return Cluster(2, pool.submit, done)


def finished(result):
    future = Future()
    future.set_result(result)
    return future


def first(futures):
    """Wait for the future that was submitted first."""
    return [(futures[0], futures[0].result())]


def test_a_cluster_gives_the_lines_of_a_local_sweep():
    jobs = _core.Jobs.of_sweep(TEXT, set=["seed=7"])
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        spread(jobs, source(TEXT), ["seed=7"], on(pool))
    assert jobs.finish() == _core.sweep(TEXT, set=["seed=7"])


def test_a_cluster_runs_only_what_is_missing_and_keeps_each_line_as_it_comes(tmp_path):
    out, partial = tmp_path / "runs.jsonl", tmp_path / "runs.jsonl.partial"
    lines = _core.sweep(TEXT)
    partial.write_text(lines[4] + "\n" + lines[1] + "\n" + lines[0][:50])
    jobs = _core.Jobs.of_sweep(TEXT, out=out)
    assert (jobs.found, len(jobs), jobs.missing) == (2, 6, [0, 2, 3, 5])
    kept = []

    def submit(function, *arguments):
        kept.append(len(read(partial)))
        return finished(function(*arguments))

    spread(jobs, source(TEXT), [], Cluster(1, submit, first))
    assert kept == [2, 2, 3]  # two parts of one job at first
    assert jobs.finish() == lines == read(out)
    assert not partial.exists()


def test_parts_grow_to_ten_seconds_and_leave_every_worker_something(monkeypatch):
    many = _core.Jobs.of_sweep(TEXT, set=["runs=500"])
    line = _core.sweep(TEXT)[0]
    sizes = []

    def submit(function, text, keys, part, classes, version):
        sizes.append(len(part))
        return finished(([line] * len(part), 0.5 * len(part)))

    spread(many, source(TEXT), [], Cluster(2, submit, first))
    assert sizes[:5] == [1, 1, 1, 1, 20]
    assert sum(sizes) == 1000
    assert max(sizes) == 20
    assert sizes[-1] < 5


def test_a_worker_with_another_version_is_named():
    with pytest.raises(RuntimeError, match=r"a worker has ackclock .*, not 9\.9\.9; install the same version there"):
        run_part(source(TEXT), (), [0], {}, "9.9.9")


def test_an_address_needs_an_engine():
    with pytest.raises(ValueError, match="address: tcp://head:8786 needs the engine dask or ray"):
        ackclock.sweep(TEXT, address="tcp://head:8786")


def test_dask_gives_the_lines_of_a_local_sweep_though_a_worker_is_killed():
    from distributed import LocalCluster

    text = TEXT.replace("2s", "20min").replace("runs = 3", "runs = 20")
    with LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        killed = []

        def kill_one(done, runs):
            if done >= 4 and not killed:
                killed.append(next(iter(cluster.workers.values())).process.pid)
                os.kill(killed[0], signal.SIGKILL)

        found = ackclock.sweep(text, engine="dask", address=cluster.scheduler_address, progress=kill_one)
    assert killed
    assert found.objects == ackclock.sweep(text).objects


@pytest.fixture
def short_folder():
    """A folder whose path leaves room for the names of Ray's sockets, which have 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        yield Path(folder)


def test_ray_without_an_address_starts_a_cluster_and_gives_the_lines_of_a_local_sweep(short_folder):
    # This file names a cluster that is gone; Ray looks for it where none is given.
    (short_folder / "ray").mkdir()
    (short_folder / "ray" / "ray_current_cluster").write_text("127.0.0.1:9")
    code = "import json, sys, ackclock; print(json.dumps(ackclock.sweep(sys.argv[1], engine='ray').objects))"
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    found = subprocess.run(
        [sys.executable, "-c", code, TEXT],
        env={**environment, "HOME": str(short_folder), "RAY_TMPDIR": str(short_folder)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout.splitlines()[-1]) == ackclock.sweep(TEXT).objects


def test_an_interrupted_sweep_goes_on(tmp_path):
    out = tmp_path / "runs.jsonl"
    lines = _core.sweep(TEXT)
    (tmp_path / "runs.jsonl.partial").write_text("".join(f"{line}\n" for line in lines[2:5]))
    results = ackclock.sweep(TEXT, out=out)
    assert read(out) == lines
    assert results.objects == [json.loads(line) for line in lines]
    with pytest.raises(ValueError, match=r"runs.jsonl:1: it is not one of these runs: <python>, seed 1, run 0, \{"):
        ackclock.sweep(TEXT, set={"seed": 2}, out=out)
    ackclock.sweep(TEXT, set={"seed": 2}, out=out, overwrite=True)
    assert read(out) == _core.sweep(TEXT, set=["seed=2"])


def test_a_rerun_of_a_paper_goes_on(tmp_path):
    points = [TEXT.split("[sweep]")[0], TEXT.split("[sweep]")[0].replace("reno", "sack")]
    whole = simulate(points).objects
    out = tmp_path / "new" / "runs.jsonl"
    assert simulate(points, out=out).objects == whole
    lines = read(out)
    out.unlink()
    # A line of another build is replaced.
    other = lines[2].replace('"version":"', '"version":"9.')
    (tmp_path / "new" / "runs.jsonl.partial").write_text(f"{lines[5]}\n{other}\n")
    assert simulate(points, out=out).objects == whole
    assert read(out) == lines


LONG = 'version = 1\nduration = "100000h"\n[edge.down]\nrate = "1Gbit/s"\n'


@pytest.mark.parametrize("call", ["run(text)", "run(text, series_interval=1e5)", "sweep(text)"])
def test_ctrl_c_ends_a_run_that_would_take_days(call):
    # A shell starts its background jobs with SIGINT ignored, and children inherit that.
    handled = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program = f"{handled}import ackclock, sys\ntext = {LONG!r}\nprint(flush=True)\nackclock.{call}"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as child:
        try:
            child.stdout.readline()
            time.sleep(0.5)
            child.send_signal(signal.SIGINT)
            _, error = child.communicate(timeout=60)  # far less than the run
        finally:
            child.kill()
    assert error.rstrip().endswith("KeyboardInterrupt")
