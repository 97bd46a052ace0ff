"""Tables of finished runs."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ackclock.results import Results, half_interval, mean_and_interval, read_series
from conftest import run_object, swept_objects, web_object


def test_flows_have_dotted_columns_and_their_point():
    flows = Results(swept_objects()).flows
    assert flows.loc[0, "rtt_ms.p95"] == 800
    assert list(flows["edge.buffer"].unique()) == ["4p", "10p", "20p"]
    assert len(flows) == 12


def test_runs_carry_the_bottleneck_and_the_uplink():
    runs = Results([run_object()]).runs
    assert runs.loc[0, "bottleneck.queue_ms.mean"] == 90
    assert runs.loc[0, "uplink.drops"] == 3
    assert runs.loc[0, "seed"] == 1


def test_users_and_transfers_are_tables():
    results = Results([web_object(), web_object(seed=2)])
    assert list(results.users["id"]) == [0, 1, 0, 1]
    transfers = results.transfers
    assert len(transfers) == 18
    together = transfers[transfers["user"].isna()]
    assert list(together["latency_ms.mean"]) == [101, 201, 9001, 102, 202, 9002]
    assert results.flows.empty
    assert results.runs.loc[0, "fairness.jain_users"] == 0.9
    assert Results([run_object()]).transfers.empty


def test_a_series_of_the_command_is_read_in_the_units_of_the_package(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text(
        "t_s,flow0.cwnd_bytes,flow0.rtt_ms,flow0.delivered_bytes,flow0.mss_bytes,edge.queue_packets\n"
        "0,960,,0,960,0\n0.5,2880,400,1000,960,3\n"
    )
    series = read_series(path)
    assert list(series) == ["time", "cwnd/0", "rtt/0", "rate/0", "queue"]
    assert list(series["cwnd/0"]) == [1, 3]
    assert (series["rtt/0"][1], series["queue"][1]) == (0.4, 3)
    assert series["rate/0"][1] == 16_000  # 1000 bytes in half a second
    assert np.isnan([series["rtt/0"][0], series["rate/0"][0]]).all()


def test_the_summary_has_students_interval():
    table = Results(swept_objects()).summary("wire_goodput_bps")
    # Two runs, 100 bit/s apart: mean in the middle, sd 100/sqrt 2, half width t(0.975, 1) * sd / sqrt 2.
    row = table.loc[("reno", "10p")]
    assert row["mean"] == pytest.approx(150_150)
    assert row["sd"] == pytest.approx(100 / np.sqrt(2))
    assert row["high"] - row["mean"] == pytest.approx(stats.t.ppf(0.975, 1) * 50)
    assert row["n"] == 2


def several_flows(goodputs, seed=1, rtts=(600.0,)):
    run = run_object(seed=seed)
    flow = run["flows"][0]
    rtt_of = lambda i: {**flow["rtt_ms"], "mean": rtts[i % len(rtts)]}  # noqa: E731
    flows = [
        {**flow, "id": i, "goodput_bps": goodput, "delivered_bytes": goodput * 450, "rtt_ms": rtt_of(i)}
        for i, goodput in enumerate(goodputs)
    ]
    return {**run, "flows": flows}


def test_the_flows_of_a_run_count_as_one_run():
    results = Results(
        [several_flows([1e5, 3e5], seed=1, rtts=(10, 30)), several_flows([2e5, 4e5], seed=2, rtts=(20, 40))]
    )
    goodput = results.summary().loc["reno"]
    assert (goodput["mean"], goodput["n"]) == (5e5, 2)
    assert goodput["high"] - goodput["mean"] == pytest.approx(stats.t.ppf(0.975, 1) * 1e5)
    assert results.summary("rtt_ms.mean").loc["reno", "mean"] == 25
    by_flow = results.summary(by=["id"])
    assert list(by_flow["mean"]) == [1.5e5, 3.5e5]
    # One run shows no spread, however many flows it has.
    single = Results([several_flows([1e5, 3e5])]).summary().loc["reno"]
    assert (single["mean"], single["n"]) == (4e5, 1)
    assert np.isnan(single["low"])


def test_a_total_covers_the_span_of_the_run_and_a_flow_its_own_life():
    # 45 MB in 3600 s are 100 kbit/s; the second flow sends 15 MB in 1200 s of them.
    run = several_flows([1e5, 1e5])
    run["flows"][0]["delivered_bytes"], run["flows"][1]["delivered_bytes"] = 45_000_000, 15_000_000
    results = Results([run])
    assert results.summary()["mean"].tolist() == pytest.approx([4 / 3 * 1e5])
    assert results.summary(by=["id"])["mean"].tolist() == [1e5, 1e5]


def test_equal_runs_count_once_and_different_ones_of_the_same_identity_are_refused(tmp_path):
    one, other = run_object(100e3), run_object(200e3, seed=2)
    results = Results([one, other])
    with pytest.warns(UserWarning, match="2 runs are there more than once"):
        twice = results + results
    assert len(twice) == 2
    pd.testing.assert_frame_equal(twice.summary(), results.summary())
    # The CPU time of equal runs differs.
    with pytest.warns(UserWarning, match="1 run is"):
        assert len(Results([one, {**one, "engine": {"cpu_s": 1.0}}])) == 1
    with pytest.raises(ValueError, match="seed 1, run 0: there are two such runs"):
        Results([one, run_object(101e3)])
    # Another build and another point are other runs.
    built = {**run_object(101e3), "provenance": {**one["provenance"], "commit": "1"}}
    assert len(Results([one, built, run_object(101e3, point={"edge.buffer": "4p"})])) == 3
    joined = tmp_path / "joined.jsonl"
    joined.write_text("".join(json.dumps(run) + "\n" for run in (one, run_object(101e3))))
    with pytest.raises(ValueError, match=r"joined\.jsonl: seed 1, run 0"):
        Results.read(joined)


def test_intervals_are_possible_or_none():
    equal = Results([run_object(seed=seed) for seed in (1, 2, 3)])
    assert np.isnan(equal.summary("retransmits")["low"]).all()
    p95 = equal.summary("rtt_ms.p95").iloc[0]
    assert p95["high"] - p95["mean"] == pytest.approx(0.016 * 800)
    wide = Results([run_object(goodput, seed=seed) for seed, goodput in enumerate((1e3, 90e3), start=1)])
    assert wide.summary()["low"].tolist() == [0]


def test_a_run_without_the_number_is_left_out():
    results = Results([several_flows([1e5], seed=i, rtts=(rtt,)) for i, rtt in enumerate([10.0, 12.0, None])])
    row = results.summary("rtt_ms.mean").loc["reno"]
    assert (row["mean"], row["n"]) == (11, 2)
    assert row["high"] - row["mean"] == pytest.approx(stats.t.ppf(0.975, 1))
    assert mean_and_interval([10, float("nan")]) == (10, 0)


def test_a_smaller_confidence_makes_a_smaller_interval():
    # Student's 95 % quantile with 2 degrees of freedom is 2.920, the standard error 1 / sqrt 3.
    assert mean_and_interval([1, 2, 3], 0.9)[1] == pytest.approx(2.920 / 3**0.5, abs=1e-3)


def test_one_value_has_no_interval():
    assert half_interval([3.0]) == 0


def test_equal_values_have_no_interval():
    assert half_interval([398.5 / 3] * 3) == 0


def test_series_are_not_copied(series):
    results = Results([run_object()], [series])
    assert results.series[0]["cwnd/0"] is series["cwnd/0"]


def test_lines_are_read_back(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(json.dumps(run) for run in swept_objects()) + "\n\n")
    assert Results.read(path).objects == swept_objects()


def test_ends_of_lines_within_strings_end_no_line(tmp_path):
    path = tmp_path / "runs.jsonl"
    runs = [{**run_object(), "scenario": f"one{end}two"} for end in "\u0085\u2028\u2029"]
    path.write_text("\n".join(json.dumps(run, ensure_ascii=False) for run in runs), encoding="utf-8")
    assert Results.read(path).objects == runs


def test_lines_that_are_not_utf_8_are_named_and_their_file_may_have_any_name(tmp_path):
    path = tmp_path / os.fsdecode(b"\xff.jsonl")
    path.write_text(json.dumps(run_object()))
    assert Results.read(path).objects == [run_object()]
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"\.jsonl: not UTF-8"):
        Results.read(path)


@pytest.mark.parametrize("objects", [[], [web_object()]])
def test_a_summary_without_rows_of_flows_says_so(objects):
    with pytest.raises(ValueError, match="no rows of flows"):
        Results(objects).summary()


def test_a_summary_of_no_column_names_those_there_are():
    with pytest.raises(ValueError, match=r"^godput: no column of flows or runs; there are .*goodput_bps"):
        Results([run_object()]).summary("godput")
    with pytest.raises(ValueError, match=r"^sendr: no column of flows; there are .*goodput_bps"):
        Results([run_object()]).summary(by="sendr")


def test_a_summary_takes_a_column_of_runs_and_the_name_of_one_key():
    results = Results(swept_objects())
    by_runs = results.summary("bottleneck.utilisation", by="edge.buffer")
    assert list(by_runs["n"]) == list(results.runs.groupby("edge.buffer", sort=False).size())


@pytest.mark.parametrize(("line", "message"), [("{", "not JSON"), ("3", "not the object"), ("{}", "not the object")])
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(run_object()) + "\n" + line)
    with pytest.raises(ValueError, match=rf"runs.jsonl:2: {message}"):
        Results.read(path)
