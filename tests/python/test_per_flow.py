"""Curves of each flow, series of comparisons, and simulated beside live runs in one figure."""

import pytest

import ackclock
from ackclock import plot, report

TWO = {
    "version": 1,
    "preset": "linux",
    "duration": "10s",
    "edge": {"buffer": "50p", "down": {"kind": "constant", "rate": "4Mbit/s"}},
    "flow": [{"sender": "cubic"}, {"sender": "reno", "start": "2s"}],
}


@pytest.fixture(scope="module")
def two():
    return ackclock.run(TWO, series_interval=0.1)


def test_each_flow_has_a_curve_with_its_name_and_colour(two):
    goodput, window, rtt = plot.per_flow(two).axes
    curves = {line.get_label(): line.get_color() for line in goodput.lines}
    assert list(curves) == ["0 cubic", "1 reno"]
    assert len(set(curves.values())) == 2
    for axes in (window, rtt):
        assert [line.get_color() for line in axes.lines] == list(curves.values())
    assert "RTT" in rtt.get_ylabel()
    with pytest.raises(ValueError, match="run: 1 is none of the 1 with time series"):
        plot.per_flow(two, 1)
    with pytest.raises(ValueError, match="the series has 0 flows; 1 to 7 have curves"):
        plot.per_flow({"time": two.series[0]["time"]})


def test_the_report_of_two_flows_shows_both(two):
    page = report.of_runs(two)
    assert 'id="flows-over-time' in page
    assert "1 reno" in page
    one = ackclock.run({**TWO, "flow": [{"sender": "cubic"}]}, series_interval=0.1)
    assert 'id="flows-over-time' not in report.of_runs(one)


def test_a_comparison_has_a_named_series_of_each_run():
    senders = ["cubic", "reno"]
    scenario = {**TWO, "flow": [{}]}
    compared = ackclock.compare(scenario, senders=senders, regulators=["none", "wrd"], series_interval=0.5)
    assert compared.series_of == ["cubic, none", "cubic, wrd", "reno, none", "reno, wrd"]
    assert len(compared.series) == len(compared) == 4
    (kept,) = compared[{"flow.sender": "reno", "edge.regulator": "wrd"}].series
    alone = ackclock.run({**scenario, "flow": [{"sender": "reno"}]}, set={"edge.regulator": "wrd"}, series_interval=0.5)
    assert kept["cwnd/0"].tolist() == alone.series[0]["cwnd/0"].tolist()
    repeated = ackclock.compare(scenario, senders=senders, runs=2, series_interval=0.5)
    assert repeated.series_of[:2] == ["cubic, run 0", "cubic, run 1"]
    drawn = plot.over_time(ackclock.compare(scenario, senders=senders, series_interval=0.5).named_series)
    assert [line.get_label() for line in drawn.axes[0].lines] == senders
