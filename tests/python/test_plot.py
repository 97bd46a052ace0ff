"""Plots: what must stand on them, and that equal figures are equal files."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import ackclock
from ackclock import plot
from ackclock.axis import numbers
from ackclock.plot.timeline import legend_on_top
from ackclock.results import Results
from conftest import run_object, swept_objects, web_object


def test_curves_have_units_and_a_band_as_wide_as_the_interval():
    figure = plot.curves({"Reno": plot.Curve([1, 2], [[9, 11], [20, 20]])}, "buffer (packets)", "goodput (kbit/s)")
    (axes,) = figure.axes
    assert axes.get_xlabel() == "buffer (packets)"
    assert axes.get_ylabel() == "goodput (kbit/s)"
    assert axes.lines[0].get_ydata() == pytest.approx([10, 20])
    band = axes.collections[0].get_paths()[0].vertices
    # t(0.975, 1) = 12.706; two values 9 and 11 have the standard error 1.
    assert band[:, 1].max() == pytest.approx(22.706, abs=0.001)


def test_a_sweep_goes_along_the_key_with_numbers():
    (axes,) = plot.sweep(Results(swept_objects()), "goodput_bps", "goodput (kbit/s)", 1e-3).axes
    assert axes.get_xlabel() == "edge.buffer"
    assert list(axes.get_xticks()) == [4, 10, 20]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["4p", "10p", "20p"]
    assert len(axes.lines) == 2


def test_values_of_one_quantity_stand_at_their_place_whatever_their_unit():
    assert numbers(["500kbit/s", "1Mbit/s", "4Mbit/s"]) == [500, 1000, 4000]
    assert numbers(["4p", "10p"]) == [4, 10]
    assert numbers(["50ms", "10p"]) is None
    assert numbers(["none", "wrb"]) is None


def test_no_two_of_many_curves_look_alike():
    lines = {str(i): plot.Curve([1, 2], [[i], [i]]) for i in range(20)}
    drawn = plot.curves(lines, "x (1)", "y (1)").axes[0].lines
    assert len({(line.get_color(), line.get_marker()) for line in drawn}) == 20


def test_labels_of_many_values_are_few():
    runs = [run_object(1e3 * n, point={"edge.buffer": f"{n}p"}) for n in range(1, 1001)]
    (axes,) = plot.sweep(Results(runs), "goodput_bps").axes
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert len(labels) <= plot.MOST_TICKS
    assert labels[0] == "1p"


def test_runs_of_no_sweep_have_no_curves():
    with pytest.raises(ValueError, match="not of a sweep"):
        plot.sweep(Results([run_object()]))


def test_goodput_against_delay_names_every_variant():
    figure = plot.goodput_against_delay(Results(swept_objects()))
    assert not figure.legends  # two variants are named at their marks
    assert {"reno 4p", "sack 4p", "capacity"} <= {text.get_text() for text in figure.axes[0].texts}
    many = [run_object(point={"flow.sender": f"sender-{number}"}) for number in range(plot.MOST_DIRECT + 1)]
    assert len(plot.goodput_against_delay(Results(many)).legends[0].get_texts()) == len(many)
    assert figure.axes[0].get_xlabel() == "RTT mean (ms)"


def test_time_series_show_four_panels_of_the_span(series):
    figure = plot.time_series(series, span=(10, 20))
    assert [axes.get_ylabel().split("\n")[0] for axes in figure.axes] == ["window", "queue", "rate over 1 s", "RTT"]
    assert figure.axes[-1].get_xlim() == pytest.approx((10, 20), abs=0.11)


def test_a_burst_is_spread_over_a_second_and_missing_samples_break_no_line(series):
    burst = np.zeros_like(series["time"])
    burst[300] = 2e6  # a tenth of a second at 2 Mbit/s is a second at 200 kbit/s
    rtt = np.where(np.arange(burst.size) % 2, np.nan, 0.5)
    figure = plot.time_series(series | {"rate/0": burst, "rtt/0": rtt})
    rate, delay = (axes.lines[0].get_ydata() for axes in figure.axes[2:])
    assert rate.max() == pytest.approx(200)
    assert np.isfinite(delay).all()


def test_marks_of_values_without_an_order_are_not_joined():
    runs = [run_object(point={"flow.sender": sender}) for sender in ("reno", "sack")]
    (axes,) = plot.sweep(Results(runs), "goodput_bps").axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["reno", "sack"]
    assert {line.get_linestyle() for line in axes.lines} == {"None"}


def test_the_window_keeps_to_the_span(series):
    (axes,) = plot.window(series, span=(10, 30)).axes
    time, packets = axes.lines[0].get_data()
    assert (time.min(), time.max()) == pytest.approx((10, 30))
    assert packets.size == 201


def test_a_trace_tells_its_mean():
    figure = plot.trace(np.arange(4.0), np.array([0.0, 1e6, 2e6, 1e6]), "made by hand")
    assert figure.axes[0].get_legend().get_texts()[0].get_text() == "mean 1 Mbit/s"


def test_the_gauges_of_the_radio_are_plotted_where_they_have_values():
    over = {"duration": "3s", "edge.report.every": "1s"}
    (series,) = ackclock.run("scenarios/chain.toml", set=over, series_interval=0.1).series
    figure = plot.radio(series)
    names = [axes.get_ylabel().split("\n")[0] for axes in figure.axes]
    assert names == ["base station", "credits", "target"]
    pdus, granted, target = (axes.lines[0].get_ydata() for axes in figure.axes)
    assert pdus.max() > 100
    assert granted.max() > 0
    assert 20 <= target.min() <= target.max() <= 500
    # Without flow control there are no credits.
    over["edge.bearer.iub.flow_control"] = "none"
    (series,) = ackclock.run("scenarios/chain.toml", set=over, series_interval=0.1).series
    assert "credits\n(PDUs)" not in [axes.get_ylabel() for axes in plot.radio(series).axes]
    allocated = series["time"] * 1e3
    assert plot.radio({"time": series["time"], "down.allocated_bps": allocated}).axes[0].get_ylim()[1] >= 3
    assert plot.radio({"time": series["time"], "queue": allocated}) is None


def test_svg_stands_alone_and_is_reproducible(series):
    texts = {plot.svg(plot.window(series), "window") for _ in range(2)}
    assert len(texts) == 1
    (text,) = texts
    assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert "congestion window (packets)" in text


def test_a_picture_is_written(tmp_path, series):
    plot.save(plot.window(series), tmp_path / "w.png")
    assert (tmp_path / "w.png").read_bytes().startswith(b"\x89PNG")


def test_latency_by_size_has_a_curve_a_user_or_a_point():
    figure = plot.latency_by_size(Results([web_object(), web_object(seed=2)]))
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.lines] == ["user 0", "user 1"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["≤ 5", "≤ 15", "> 1000"]
    assert list(axes.lines[0].get_ydata()) == [101.5, 201.5, 9001.5]
    swept = [web_object(point={"flow.sender": sender}) for sender in ("reno", "sack")]
    assert [line.get_label() for line in plot.latency_by_size(Results(swept)).axes[0].lines] == ["reno", "sack"]
    with pytest.raises(ValueError, match="no transfers"):
        plot.latency_by_size(Results([run_object()]))


def test_an_upload_is_drawn_with_the_queue_of_its_mobile():
    upload = {
        "duration": "20s", "edge.down.rate": "4Mbit/s", "edge.up.rate": "1Mbit/s", "edge.buffer": "30p",
        "flow.0.towards": "server", "flow.0.max_window": "100p",
    }  # fmt: skip
    (series,) = ackclock.run("scenarios/cr02-item1.toml", set=upload, series_interval=0.1).series
    figure = plot.time_series(series, uplink=True)
    assert [axes.get_ylabel().split("\n")[0] for axes in figure.axes][1:3] == ["queue", "queue up"]
    # The upload overflows the queue of 30 packets, which a sample may just miss.
    assert 28 <= max(figure.axes[2].lines[0].get_ydata()) <= 30
    assert series["up.drops"].sum() > 0
    assert len(plot.time_series(series).axes) == 4


def test_labels_have_commas_between_thousands_as_tables_have():
    rates = np.array([0.0, 12e6, 30e6])
    series = {"time": np.arange(3.0), "link_rate": rates, "rate/0": rates, "queue_ms": np.array([1.0, 50.0, 8000.0])}
    figures = [plot.over_time({"run": series}), plot.per_flow(series), plot.delay_cdf({"run": series})]
    for figure in figures:
        figure.draw_without_rendering()
    of = [[label.get_text() for label in axes.get_yticklabels()] for axes in figures[0].axes]
    assert "20,000" in of[0]
    assert {"1", "100", "10,000"} <= {*of[1]} or {"1", "1,000"} <= {*of[1]}
    assert "20,000" in [label.get_text() for label in figures[1].axes[0].get_yticklabels()]
    assert "1,000" in [label.get_text() for label in figures[2].axes[0].get_xticklabels()]


def test_labels_of_categories_are_their_names():
    with plot.panel("SNR (dB)", "share") as (figure, axes):
        axes.bar(["5", "10", "20"], [2000.0, 3000.0, 5000.0])
        figure.draw_without_rendering()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["5", "10", "20"]
    assert "5,000" in [label.get_text() for label in axes.get_yticklabels()]


@pytest.mark.parametrize("width", [4.1, 8.4])
def test_a_panel_without_labels_has_no_legend(width):
    with plot.panel("time (s)", "rate") as (_, axes):
        legend_on_top(axes, width)
    assert axes.get_legend() is None
    assert axes.get_title() == ""


@pytest.mark.parametrize("width", [4.1, 8.4])
@pytest.mark.parametrize("flows", [1, 3, 5, plot.MOST_FLOWS])
def test_the_legend_of_any_number_of_flows_is_in_the_picture(width, flows):
    series = {"time": np.arange(3.0), "link_rate": np.full(3, 1e6)}
    series |= {f"rate/{flow}": np.full(3, 1e5) for flow in range(flows)}
    figure = plot.per_flow(series, width=width, names={flow: f"{flow} cubic upload" for flow in range(flows)})
    figure.draw_without_rendering()
    box, page = figure.axes[0].get_legend().get_window_extent(), figure.bbox
    assert box.y1 <= page.y1
    assert box.x0 >= page.x0


def test_a_panel_without_values_is_left_out():
    missing = np.full(3, np.nan)
    series = {"time": np.arange(3.0), "rate/0": np.full(3, 1e5), "cwnd/0": missing, "rtt/0": missing}
    series |= {"rate/1": np.full(3, 1e5), "cwnd/1": np.full(3, 4.0), "rtt/1": missing}
    labels = [axes.get_ylabel().split("\n")[0] for axes in plot.per_flow(series).axes]
    assert labels == ["goodput", "window"]


@pytest.mark.parametrize("width", [4.1, 8.4])
def test_the_label_of_the_percentile_is_below_the_ticks_of_drops(width):
    series = {"time": np.arange(3.0), "queue_ms": np.full(3, 4000.0), "drops": np.ones(3)}
    figure = plot.over_time({"none": series, "wrd": series}, p95={"none": 5000.0, "wrd": 5000.0}, width=width)
    figure.draw_without_rendering()
    for axes in figure.axes[1:3]:
        (label,) = axes.texts
        ticks = axes.transAxes.transform((0, 0.96))[1] - figure.dpi * 3.5 / 72
        assert label.get_window_extent().y1 <= ticks


@pytest.mark.parametrize(("delay", "label"), [(0.0, "p95 0 ms"), (12_345.6, "p95 12,346 ms")])
def test_the_percentile_of_delays_is_that_of_the_packets(delay, label):
    series = {"time": np.arange(3.0), "queue_ms": np.full(3, 77.0)}
    drawn = (plot.over_time({"run": series}, p95={"run": delay}), plot.over_time({"run": series}))
    texts, none = ([text.get_text() for axes in figure.axes for text in axes.texts] for figure in drawn)
    assert none == []
    assert texts == [label]


def test_a_series_without_flows_shows_the_queue(series):
    figure = plot.time_series({name: series[name] for name in ("time", "queue")})
    assert len(figure.axes) == 1


@pytest.mark.parametrize("draw", [plot.sweep, plot.goodput_against_delay])
def test_runs_without_rows_of_flows_are_refused(draw):
    with pytest.raises(ValueError, match="no rows of flows"):
        draw(Results([web_object(point={"flow.sender": sender}) for sender in ("reno", "sack")]))


@pytest.mark.parametrize("draw", [plot.time_series, plot.window])
def test_a_span_without_samples_names_those_there_are(series, draw):
    with pytest.raises(ValueError, match=r"span: 100 to 200 s holds none of the samples, which are from 0 to 59\.9 s"):
        draw(series, span=(100, 200))


def test_a_flow_without_a_series_names_those_there_are(series):
    with pytest.raises(ValueError, match=r"flow: 9 has no window in this series, which has time, cwnd/0"):
        plot.window(series, flow=9)
    with pytest.raises(ValueError, match=r"flow: 9 is none of this series, which has time, cwnd/0"):
        plot.time_series({name: series[name] for name in ("time", "cwnd/0")}, flow=9)


def test_a_single_sample_is_drawn(series):
    figure = plot.time_series({name: values[:1] for name, values in series.items()})
    low, high = figure.axes[-1].get_xlim()
    assert low < 0 < high


@pytest.mark.parametrize("name", ["noending", "wrong.part", ".png"])
def test_a_picture_without_a_pictures_ending_is_refused(tmp_path, series, name):
    with pytest.raises(ValueError, match=r"is no picture; its name must end in one of .*\.png"):
        plot.save(plot.window(series), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_dollar_signs_of_names_are_text_and_no_mathematics():
    drawing = plot.trace(np.arange(3.0), np.full(3, 1e6), "cost$a_b$c.csv")
    assert ">cost$a_b$c.csv</text>" in plot.svg(drawing, "trace")
