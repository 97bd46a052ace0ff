"""Outputs of one run agree by the table of docs/reference/quantities.md."""

import re

import pytest

import ackclock
from ackclock import report
from ackclock.plot import COLOURS, over_time

LATE = {
    "version": 1,
    "preset": "linux",
    "duration": "20s",
    "edge": {
        "buffer": "60p",
        "down": {"rate": "4Mbit/s", "delay": "10ms"},
        "up": {"rate": "4Mbit/s", "delay": "10ms"},
    },
    "flow": [{"sender": "cubic"}, {"sender": "cubic", "start": "8s"}],
}


@pytest.fixture(scope="module")
def late() -> ackclock.Results:
    return ackclock.run(LATE, series_interval=0.5)


def test_the_total_is_the_same_in_json_tables_and_words(late):
    run = late.objects[0]
    total = run["bottleneck"]["goodput_bps"]
    assert total <= run["bottleneck"]["capacity_bps"] < sum(flow["goodput_bps"] for flow in run["flows"]) * 1.05
    span = run["bottleneck"]["active_s"]
    assert total == pytest.approx(8 * sum(flow["delivered_bytes"] for flow in run["flows"]) / span)
    assert late.summary()["mean"].tolist() == pytest.approx([total])
    assert late.summary(by=["id"])["mean"].tolist() == [flow["goodput_bps"] for flow in run["flows"]]
    assert re.search(r"goodput kbit/s .*\n.*\n.*\b" + f"{total / 1e3:,.0f}", late.to_markdown())
    assert f"Goodput is {total / 1e3:,.0f} kbit/s" in report.findings(late)[0]


def test_a_page_has_one_p95_queueing_delay(late):
    p95 = late.objects[0]["bottleneck"]["queue_ms"]["p95"]
    texts = [text.get_text() for axes in over_time(late).axes for text in axes.texts]
    assert texts == [f"p95 {p95:.4g} ms"]
    page = report.of_runs(late)
    assert set(re.findall(r"p95 ([\d.,]+) ms", page)) == {f"{p95:.4g}"}
    assert f"p95 queueing delay of {p95:.4g} ms" in page
    assert f'<td class="n">{p95:.4g}</td>' in page
    assert "confidence interval" not in page
    assert "% interval" not in page


def test_a_comparison_names_and_colours_each_sender_once_on_the_page(late):
    # Both runs over time of a comparison of senders, as `compare --report` passes them.
    compared = ackclock.compare(LATE, senders=["reno", "cubic"], duration=10)
    series = [
        ackclock.run(LATE, set={"flow.sender": name}, duration=10, series_interval=0.5).series[0]
        for name in ("cubic", "reno")
    ]
    compared.series, compared.series_of = series, ["cubic", "reno"]
    over, *_ = (figure.drawing for figure in report._figures(compared, 6.4) if figure.name == "over-time")
    drawn = {line.get_label(): line.get_color() for line in over.axes[0].lines}
    assert (drawn["reno"], drawn["cubic"]) == (COLOURS[0], COLOURS[1])
    assert len(report.findings(compared)[0].split("p95 queueing delay")) == 2
