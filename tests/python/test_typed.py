"""What a user of pandas types: tables in a notebook, slices, sums, files, lists as axes, completion by Tab."""

import numpy as np
import pytest

import ackclock
from ackclock import _core, points
from ackclock.results import Results
from conftest import run_object, swept_objects, web_object

SCENARIO = {
    "version": 1,
    "preset": "cr02",
    "duration": "5s",
    "edge": {"buffer": "10p", "down": {"rate": "200kbit/s", "delay": "20ms"}, "up": {"delay": "20ms"}},
}


def test_a_list_of_values_is_an_axis():
    results = ackclock.sweep(SCENARIO, set={"edge.buffer": ["4p", "8p"], "flow.sender": "sack"}, runs=2, seed=7)
    assert results.runs["edge.buffer"].tolist() == ["4p", "4p", "8p", "8p"]
    assert set(results.flows["sender"]) == {"sack"}
    assert set(results.runs["seed"]) == {7}


@pytest.mark.parametrize("values", [("4p", "8p"), np.array(["4p", "8p"])])
def test_an_axis_is_any_sequence_and_replaces_that_of_the_scenario(values):
    swept = {**SCENARIO, "sweep": {"edge": {"buffer": ["20p"]}, "flow.sender": ["reno", "sack"]}}
    results = ackclock.sweep(swept, set={"edge.buffer": values})
    assert len(results) == 4
    assert set(results.runs["edge.buffer"]) == {"4p", "8p"}


def test_seed_runs_and_duration_are_arguments():
    for results in (
        ackclock.run(SCENARIO, seed=5, runs=2, duration=3),
        ackclock.sweep(SCENARIO, seed=5, runs=2, duration="3000ms"),
        ackclock.compare(SCENARIO, senders="reno", seed=5, runs=2, duration=np.float64(3.0)),
    ):
        assert results.runs[["seed", "run", "duration_s"]].to_numpy().tolist() == [[5, 0, 3], [5, 1, 3]]


def test_a_table_is_a_value():
    regulator = {"kind": "ack-regulator", "alpha": 2}
    one = ackclock.run(SCENARIO, set={"edge.regulator": regulator})
    many = ackclock.sweep(SCENARIO, set={"edge.regulator": [regulator]})
    assert one.objects[0]["flows"] == many.objects[0]["flows"]


def test_progress_goes_to_the_caller():
    seen = []
    ackclock.sweep(SCENARIO, runs=3, progress=lambda done, runs: seen.append((done, runs)))
    assert seen[-1] == (3, 3)


def test_a_table_of_points_is_shown_with_at_most_thirty_rows():
    results = Results([run_object(n, point={"edge.buffer": f"{n}p"}) for n in range(1, 121)])
    assert repr(results) == "<Results: 120 runs over edge.buffer (120)>"
    html = results._repr_html_()
    assert html.count("<tr>") == 31
    assert "and 90 more" in html
    assert "goodput kbit/s" in html
    assert repr(Results([])) == "<Results: 0 runs>"


def test_a_name_is_no_html():
    results = Results([run_object(point={"edge.buffer": "<script>"})])
    assert "<script>" not in results._repr_html_()


@pytest.mark.parametrize("objects", [[], [run_object()], [web_object()]])
def test_any_runs_can_be_shown(objects):
    assert "table" in Results(objects)._repr_html_()


def test_runs_are_taken_by_number_slice_and_point(series):
    results = Results(swept_objects())
    results.confidence = 0.5
    assert len(results[0]) == len(results[-1]) == 1
    assert results[2:5].objects == results.objects[2:5]
    assert [one.objects[0] for one in results] == results.objects
    picked = results[{"edge.buffer": "4p", "flow.sender": "sack"}]
    assert picked.runs[["edge.buffer", "flow.sender"]].drop_duplicates().to_numpy().tolist() == [["4p", "sack"]]
    assert picked.confidence == 0.5
    two = Results([run_object(), run_object(seed=2)], [series, {}])
    assert two[1].series == [{}]
    with pytest.raises(IndexError, match="run 12: there are 12 runs"):
        results[12]


def test_a_sum_has_the_runs_of_both_with_their_provenance():
    one, other = Results([run_object()]), Results([{**run_object(seed=2), "provenance": {"version": "1"}}])
    assert [run["provenance"]["version"] for run in (one + other).objects] == ["0", "1"]
    with pytest.raises(ValueError, match=r"columns edge\.buffer$"):
        one + Results([run_object(point={"edge.buffer": "4p"})])
    with pytest.raises(ValueError, match="time series"):
        one + Results([run_object()], [{}])


def test_the_table_of_points_has_means_in_its_units():
    # Runs of 154.1 and 154.2 kbit/s with headers, 0.96 of it without.
    table = points.points(Results(swept_objects())[{"flow.sender": "sack", "edge.buffer": "4p"}])
    assert table["goodput kbit/s"].tolist() == pytest.approx([0.96 * 154.15])
    assert table["runs"].tolist() == [2]
    assert table["used %"].tolist() == [75]


def test_tables_are_markdown_and_latex():
    results = Results([run_object(point={"edge.buffer": "4p|x_1"})])
    assert results.to_markdown().splitlines()[2].startswith(r"| 4p\|x_1 | 1 | 144 | 600 |")
    assert r"4p|x\_1 & 1 & 144 & 600" in results.to_latex()


def test_parquet_says_how_to_get_it_or_holds_the_table(tmp_path):
    results, path = Results(swept_objects()), tmp_path / "flows.parquet"
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        with pytest.raises(ImportError, match=r"pip install 'ackclock\[parquet\]'"):
            results.to_parquet(path)
    else:
        results.to_parquet(path)
        assert parquet.read_table(path).num_rows == len(results.flows)


def test_the_samples_of_a_flow_are_measured_if_asked_for():
    measured = ackclock.run({**SCENARIO, "measure": ["rtt_ms"]})
    cdf = measured.flows["rtt_ms.cdf"].iloc[0]
    assert (len(cdf), cdf) == (200, sorted(cdf))
    assert "rtt_ms.cdf" not in ackclock.run(SCENARIO).flows
    assert cdf[99] <= measured.quantiles(q=[0.5]).iloc[0, 0] <= cdf[100]


def test_missing_values_are_nan():
    flows = Results([run_object(), run_object() | {"run": 1}]).flows
    assert flows["completion_s"].tolist() == pytest.approx([np.nan, np.nan], nan_ok=True)
    assert flows["completion_s"].dtype == float


def test_tab_lists_what_is_imported_late():
    assert {"plot", "models", "paper", "run", "Results"} <= set(dir(ackclock))
    assert "pftk" in dir(ackclock.models)
    assert ackclock.models.saw_tooth.throughput(25.0, 0.44, 10.0) > 0
    with pytest.raises(AttributeError, match="pftkk"):
        ackclock.models.pftkk  # noqa: B018


MISSPELT = {
    "path": (lambda: ackclock.run(""), "path of a file, TOML text"),
    "scenario": (lambda: ackclock.run(5), "5 is none of the path"),
    "key": (lambda: ackclock.run(SCENARIO, set={"edge.bufer": "4p"}), "did you mean `?(edge.)?buffer"),
    "table": (lambda: ackclock.run({**SCENARIO, "egde": {}}), "did you mean `?edge"),
    "preset": (lambda: ackclock.run(SCENARIO, set={"preset": "cr20"}), "cr02"),
    "sender": (lambda: ackclock.run(SCENARIO, set={"flow.sender": "cubci"}), "cubic"),
    "regulator": (lambda: ackclock.compare(SCENARIO, regulators="ack-regulater"), "ack-regulator"),
    "queue": (lambda: ackclock.compare(SCENARIO, queues="codle"), "codel"),
    "unit": (lambda: ackclock.run(SCENARIO, set={"edge.buffer": "4pk"}), "edge.buffer"),
    "duration": (lambda: ackclock.run(SCENARIO, duration="3 sec"), "duration"),
    "seed": (lambda: ackclock.run(SCENARIO, seed=-1), "seed"),
    "twice": (lambda: ackclock.run(SCENARIO, seed=1, set={"seed": 2}), "seed: given twice"),
    "list": (lambda: ackclock.run(SCENARIO, set={"edge.buffer": ["4p"]}), "run takes one value; sweep runs each"),
    "list of compare": (lambda: ackclock.compare(SCENARIO, set={"edge.buffer": ["4p"]}), "compare takes one value"),
    "empty": (lambda: ackclock.sweep(SCENARIO, set={"edge.buffer": []}), "edge.buffer: an empty list"),
    "axis": (lambda: ackclock.sweep(SCENARIO, set={"edge.bufer": ["4p"]}), "did you mean `?(edge.)?buffer"),
    "engine": (lambda: ackclock.sweep(SCENARIO, engine="dsk"), "did you mean dask"),
    "column": (lambda: Results(swept_objects()).summary("godput_bps"), "did you mean goodput_bps"),
    "column of quantiles": (lambda: Results(swept_objects()).quantiles("rtt_ms.men"), "did you mean rtt_ms.mean"),
    "column of the link": (
        lambda: Results(swept_objects()).quantiles("botleneck.drops"),
        "did you mean bottleneck.drops",
    ),
    "point": (lambda: Results(swept_objects())[{"edge.bufer": "4p"}], "did you mean edge.buffer"),
    "value": (lambda: Results(swept_objects())[{"edge.buffer": "4"}], "did you mean 4p"),
    "parquet": (lambda: Results(swept_objects()).to_parquet("x", table="flow"), "did you mean flows"),
    "sender by hand": (lambda: ackclock.Sender("renno", mss=1460), "reno"),
}


@pytest.mark.parametrize("case", MISSPELT)
def test_an_error_says_what_was_meant(case):
    call, message = MISSPELT[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_the_module_names_what_is_public():
    assert set(ackclock.__all__) <= set(dir(ackclock))
    assert _core.__version__ == ackclock.__version__
