"""The engine from Python: runs, sweeps, comparisons and series."""

import json
import tomllib
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import ackclock
from ackclock import _core
from ackclock.classes import CLASSES

SCENARIO = """
version = 1
preset = "cr02"
duration = "60s"
seed = 1
runs = 2

[edge]
buffer = "10p"

[edge.down]
kind = "variable"
rate = "200kbit/s"
delay = "200ms"

[edge.up]
kind = "variable"
rate = "64kbit/s"
delay = "200ms"

[[flow]]
sender = "reno"
"""


def test_a_run_stays_below_the_capacity():
    results = ackclock.run(SCENARIO)
    assert len(results) == 2
    # 200 kbit/s, and a saw-tooth that hardly ever empties the queue.
    assert results.flows["wire_goodput_bps"].between(150e3, 200e3).all()


def test_a_mapping_runs_as_the_text_does():
    assert (
        ackclock.run(tomllib.loads(SCENARIO)).flows["goodput_bps"].equals(ackclock.run(SCENARIO).flows["goodput_bps"])
    )


def test_keys_can_be_replaced():
    results = ackclock.run(SCENARIO, set={"runs": 1, "seed": 7, "flow.sender": "newreno"})
    assert results.runs["seed"].tolist() == [7]
    assert results.flows["sender"].tolist() == ["newreno"]


def test_what_a_change_of_kind_drops_is_warned_of_at_the_line_that_asked_for_it():
    text = SCENARIO.replace('delay = "200ms"', 'delay = "200ms"\nredraw = "slot"', 1)
    with pytest.warns(UserWarning, match=r"edge\.down\.redraw \(`constant` has no such key\)") as warned:
        results = ackclock.run(text, set={"runs": 1, "edge.down.kind": "constant"})
    assert [one.filename for one in warned] == [__file__]
    # The rate of the file, and not the default of a constant link.
    assert results.objects[0]["bottleneck"]["capacity_bps"] == 200e3
    swept = text + '\n[sweep]\n"edge.down.kind" = ["constant", "variable"]\n"edge.buffer" = ["4p", "10p"]\n'
    with pytest.warns(UserWarning, match="redraw") as warned:
        ackclock.sweep(swept, set={"runs": 1})
    assert [one.filename for one in warned] == [__file__]


def test_keys_that_nothing_reacts_to_are_warned_of_once():
    text = SCENARIO + '\n[[flow]]\nstagger = "1s"\n'
    swept = text + '\n[sweep]\n"edge.buffer" = ["4p", "10p"]\n'
    for simulate in [
        lambda: ackclock.run(text, set={"runs": 1}),
        lambda: ackclock.sweep(swept, set={"runs": 1}),
        lambda: ackclock.compare(text, senders=["reno", "sack"], set={"runs": 1}),
    ]:
        with pytest.warns(UserWarning, match=r"stagger: `1s` has no effect on a single flow") as warned:
            simulate()
        assert [one.filename for one in warned] == [__file__]


def test_a_value_that_is_set_takes_the_place_of_the_axis():
    swept = SCENARIO + '\n[sweep]\n"edge.buffer" = ["4p", "10p"]\n'
    results = ackclock.sweep(swept, set={"runs": 1, "edge.buffer": "5p"})
    assert results.runs["edge.buffer"].tolist() == ["5p"]
    with pytest.raises(ValueError, match=r"sweep\.nonsense: a sweep is set in the file"):
        ackclock.sweep(swept, set={"sweep.nonsense": 3})
    with pytest.warns(UserWarning, match=r"run ignores \[sweep\] \(edge\.buffer\)"):
        ackclock.run(swept, set={"runs": 1})


def test_series_have_one_clock():
    results = ackclock.run(SCENARIO, set={"runs": 1}, series_interval=0.5)
    (series,) = results.series
    assert {"time", "queue", "cwnd/0", "ssthresh/0", "rate/0", "rtt/0"} <= series.keys()
    assert {array.shape for array in series.values()} == {series["time"].shape}
    assert np.diff(series["time"]) == pytest.approx(0.5)
    assert series["cwnd/0"].max() <= 500  # the preset's largest window
    assert series["queue"].max() <= 10


def test_series_are_the_engines_own_memory():
    (outcome,) = _core.run(SCENARIO, set=["runs=1"], series_interval=0.5)
    (series,) = ackclock.Results([], [outcome.series]).series
    for name, array in outcome.series.items():
        assert array.dtype == np.float64
        assert type(array.base).__name__ == "PySliceContainer"  # a Rust vector; NumPy copied nothing
        assert np.shares_memory(array, series[name])


def test_two_threads_run_side_by_side():
    # Both are inside the engine's call at once: the first progress of each waits for that of the other.
    both = Barrier(2, timeout=60)
    met = []

    def swept(buffer: str) -> list[str]:
        def progress(done: int, total: int) -> None:
            if done == 1:
                met.append(both.wait())

        return _core.sweep(SCENARIO, set=[f"edge.buffer={buffer}"], progress=progress, threads=1)

    with ThreadPoolExecutor(2) as threads:
        together = list(threads.map(swept, ["4p", "10p"]))
    assert sorted(met) == [0, 1]
    assert together == [_core.sweep(SCENARIO, set=[f"edge.buffer={buffer}"]) for buffer in ("4p", "10p")]


def test_a_run_without_an_interval_keeps_no_series():
    assert ackclock.run(SCENARIO).series == []


def test_a_sweep_gives_every_point_and_run_in_order():
    results = ackclock.sweep(SCENARIO + '[sweep]\n"edge.buffer" = ["4p", "10p"]\n"flow.sender" = ["reno", "sack"]\n')
    assert results.swept == ["edge.buffer", "flow.sender"]
    rows = results.runs[["edge.buffer", "flow.sender", "run"]].to_numpy().tolist()
    assert rows == [[b, s, r] for b in ("4p", "10p") for s in ("reno", "sack") for r in (0, 1)]


def test_the_parts_of_a_sweep_are_the_sweep():
    text = SCENARIO + '[sweep]\n"edge.buffer" = ["4p", "10p", "20p"]\n'
    jobs = _core.Jobs.of_sweep(text)
    assert [line for part in ([0, 1, 2], [3], [4, 5]) for line in jobs.run(part)] == _core.sweep(text)


def test_progress_counts_every_job():
    seen = []
    _core.sweep(
        SCENARIO + '[sweep]\n"edge.buffer" = ["4p", "10p"]\n', progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (4, 4)


def test_many_scenarios_run_in_one_batch():
    lines = _core.run_many([SCENARIO, SCENARIO.replace("10p", "4p")])
    assert [len(runs) for runs in lines] == [2, 2]


def test_a_comparison_crosses_senders_regulators_and_buffers():
    results = ackclock.compare(SCENARIO, senders=["reno", "sack"], regulators=["none", "ack-regulator"], buffers=["4p"])
    assert len(results) == 2 * 2 * 1 * 2
    assert results.swept == ["flow.sender", "edge.regulator", "edge.buffer"]


def test_a_comparison_does_not_look_at_the_sweep_of_the_scenario():
    swept = SCENARIO + '[sweep]\n"edge.buffer" = ["4p", "7p", "9p"]\n'
    with pytest.warns(UserWarning, match=r"compare ignores \[sweep\]"):
        results = ackclock.compare(swept, senders=["reno"])
    assert results.swept == ["flow.sender"]
    assert results.objects == ackclock.compare(SCENARIO, senders=["reno"]).objects


def test_one_of_a_kind_need_not_stand_in_a_list():
    one = ackclock.compare(SCENARIO, senders="reno", regulators={"kind": "ack-regulator", "alpha": 2})
    listed = ackclock.compare(SCENARIO, senders=["reno"], regulators=[{"kind": "ack-regulator", "alpha": 2}])
    assert one.objects == listed.objects


def test_a_comparison_takes_queues():
    results = ackclock.compare(SCENARIO, queues=["drop-tail", "codel"])
    assert list(results.runs["edge.queue"].unique()) == ["drop-tail", "codel"]


def test_a_comparison_of_broken_toml_names_the_file_and_the_place(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text("version = 1\nseed = \n")
    with pytest.raises(ValueError, match=r"wrong\.toml: not TOML: .*line 2"):
        ackclock.compare(path, senders="reno")


@pytest.mark.parametrize("call", [ackclock.sweep, ackclock.compare])
def test_an_engine_that_there_is_not_names_those_there_are(call):
    with pytest.raises(ValueError, match="engine: foo is none of local, dask, ray"):
        call(SCENARIO, engine="foo")


def test_a_comparison_of_nothing_is_one_of_all_built_in_regulators():
    listed = [one["name"] for one in json.loads(_core.list_components())["regulators"]]
    names = [name for name in listed if name not in CLASSES]
    assert list(ackclock.compare(SCENARIO).runs["edge.regulator"].unique()) == names


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("bufer = 1", "bufer"),
        ('buffer = "-3p"', "-3p"),
        ('queue = "drop-tale"', "drop-tale"),
        ("buffer = ", "line|column|:"),
    ],
)
def test_a_wrong_scenario_is_a_value_error_that_names_it(tmp_path, wrong, message):
    path = tmp_path / "wrong.toml"
    path.write_text(SCENARIO.replace('buffer = "10p"', wrong))
    with pytest.raises(ValueError, match=message) as error:
        ackclock.run(path)
    assert "wrong.toml" in str(error.value)


def test_the_catalogue_lists_what_scenarios_may_name():
    catalogue = json.dumps(json.loads(_core.list_components()))
    for name in ("reno", "newreno", "sack1", "cubic", "ack-regulator", "drop-tail", "codel", "variable", "trace"):
        assert f'"{name}"' in catalogue


def test_numpy_and_paths_run_as_what_python_has(tmp_path):
    recording = tmp_path / "rates.csv"
    recording.write_text("time_s,rate_kbps\n0,100\n60,\n")
    table = tomllib.loads(SCENARIO)
    down = {"kind": "trace", "file": recording, "delay": "100ms"}
    mine = {**table, "seed": np.int64(5), "runs": np.uint8(1), "edge": {**table["edge"], "down": down}}
    plain = {**mine, "seed": 5, "runs": 1, "edge": {**table["edge"], "down": {**down, "file": str(recording)}}}
    assert ackclock.run(mine).objects == ackclock.run(plain).objects
    keys = {"seed": np.int64(7), "edge.down.file": recording}
    assert ackclock.run(mine, set=keys).runs["seed"].tolist() == [7]


def test_a_comparison_takes_arrays():
    alphas = [{"kind": "ack-regulator", "alpha": alpha} for alpha in np.array([1.0, 2.0])]
    mine = ackclock.compare(SCENARIO, regulators=alphas, buffers=np.array(["4p", "10p"]), set={"runs": np.int64(1)})
    assert len(mine) == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _core.sweep(SCENARIO, threads=-1), "^threads: -1 is not a whole number from 1 to "),
        (lambda: _core.run_many([SCENARIO], threads=2**70), "^threads: 1180591620717411303424 is not a whole number"),
        (lambda: _core.Jobs.of_sweep(SCENARIO).run([2]), "^job: 2 is none of 2"),
        (lambda: ackclock.run(SCENARIO, series_interval=-1), "^series_interval: -1 is not above 0 seconds"),
        (lambda: ackclock.run(SCENARIO, series_interval=10**400), "^series_interval: 10*0 is not above 0 seconds"),
    ],
)
def test_an_argument_out_of_range_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_recording_that_is_not_there_is_named():
    with pytest.raises(FileNotFoundError) as error:
        _core.trace("nope.csv")
    assert error.value.filename == "nope.csv"
    with pytest.raises(ValueError, match=r"^interval: -1 is not at least 0\.001 seconds"):
        _core.trace("nope.csv", interval=-1)
