"""Reports: one file that needs nothing else."""

import re
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.transforms import Bbox

import ackclock
from ackclock import description, limits, plot, report
from ackclock.paper import Claim, Figure, JudgedRow, Outcome, Runs, Verdict, load
from ackclock.paper.expected import Row
from ackclock.papers.cr02 import grid
from ackclock.results import Results
from conftest import link_object, run_object, swept_objects, web_object


def needs_nothing_else(html: str) -> bool:
    """No script, picture, style sheet or font comes from outside; namespace names and links inside do not count."""
    return not re.findall(r"<(?:script|link|img|iframe)\b|@import|url\((?!#)", html)


def test_a_report_of_a_sweep_has_tables_and_pictures():
    html = report.of_runs(Results(swept_objects()), "A & B")
    assert "<title>A &amp; B</title>" in html
    figures = ["goodput-against-delay", "paired-goodput", "paired-p95-queueing-delay"]
    assert re.findall(r'<figure id="([^"]+)"', html) == [*figures, "sweep-goodput_bps", "sweep-rtt_ms.mean"]
    assert "± " in html
    assert needs_nothing_else(html)


def test_a_figure_says_whether_its_points_are_single_runs():
    runs = swept_objects()
    results = Results(runs)
    assert "with its 95 % confidence interval" in report.of_runs(results)
    results.confidence = 0.9
    assert "with its 90 % confidence interval" in report.of_runs(results)
    single = {str(run["point"]): run for run in runs}
    html = report.of_runs(Results(single.values()))
    assert "each point is one run" in html
    assert "with its 95 % confidence interval" not in html


def test_a_number_that_some_runs_lack_is_shown_as_such():
    runs = swept_objects()
    assert "spurious time-outs" not in report.of_runs(Results(runs))  # null in all of them
    for run in runs:
        run["flows"][0]["spurious_timeouts"] = 3 if run["point"]["flow.sender"] == "sack" else None
    html = report.of_runs(Results(runs))
    rows = dict(
        re.findall(
            r"<tr><td>(reno|sack)</td><td>4p</td>.*<td class=\"n\">([^<]*)</td></tr>", html[: html.index("Bottleneck")]
        )
    )
    assert rows == {"reno": "-", "sack": "3"}


def test_a_report_shows_the_link_of_the_data():
    waits = {"mean": 300.0, "p50": 300.0, "p95": 700.0, "p99": 800.0}
    run = run_object()
    run["uplink"] = run["bottleneck"] | {"queue_ms": waits}
    headings = {"Bottleneck", "Downlink", "Uplink"}

    def shown(run: dict) -> tuple[list[str], str]:
        html = report.of_runs(Results([run]))
        titles = [title for title in re.findall("<h2>([^<]*)</h2>", html) if title in headings]
        return titles, html

    assert shown(run)[0] == ["Bottleneck"]
    download, upload = run["flows"][0], run["flows"][0] | {"towards": "server"}
    titles, html = shown(run | {"flows": [upload]})
    assert titles == ["Uplink"]
    # The p95 of the sentence and that of the table are one.
    assert "p95 queueing delay of 700 ms" in html
    assert re.findall(r'<td class="n">700</td>', html) == ['<td class="n">700</td>']
    run["bottleneck"] |= {"goodput_bps": 144e3}
    run["uplink"] |= {"goodput_bps": 20e3}
    titles, html = shown(run | {"flows": [download | {"towards": None}, upload | {"id": 1}]})
    assert titles == ["Downlink", "Uplink"]
    assert "Goodput of the downloads is 144 kbit/s at a p95 queueing delay of 200 ms." in html
    assert "That of the uploads is 20 kbit/s, with 700 ms of p95 queueing delay in the uplink." in html


def test_a_report_of_uploads_has_the_link_and_the_capacity_of_uploads():
    runs = [run_object(point={"flow.sender": sender}) for sender in ("reno", "cubic")]
    for run in runs:
        run["flows"][0] |= {"towards": "server"}
        run["uplink"] = run["bottleneck"] | {"capacity_bps": 384e3}
    rates = {name: np.full(3, 1e5) for name in ("link_rate", "rate/0", "rate/1")}
    results = Results(runs, [{"time": np.arange(3.0), **rates}])
    results.series_of = ["reno"]
    edge = {"down": {"kind": "constant", "rate": "8Mbit/s"}, "up": {"kind": "constant", "rate": "384kbit/s"}}
    scenario = {"edge": edge, "flow": [{"towards": "server"}]}
    assert description.Described(results, scenario).title().endswith(" over a link of 384kbit/s")
    figures = {figure.name: figure.drawing for figure in report._figures(report._with_capacities(results, {}), 6.4)}
    (capacity,) = [line for line in figures["goodput-against-delay"].axes[0].lines if line.get_linestyle() == "--"]
    assert capacity.get_ydata()[0] == pytest.approx(384)
    assert not figures["flows-over-time-reno"].axes[0].collections  # the rate of the downlink is no capacity of uploads


def test_delivered_bytes_have_a_unit_of_their_size():
    link = link_object()
    link["bottleneck"]["delivered_bytes"], link["uplink"]["delivered_bytes"] = 152, 2_630
    (_, down, up) = report.findings(Results([link]))
    assert down.startswith("The downlink delivered 152 B, ")
    assert up.startswith("The uplink delivered 2.63 kB, ")


def test_a_distribution_without_any_queueing_delay_is_left_out():
    for delay, drawn in ((0.0, 0), (5.0, 1)):
        series = {"time": np.arange(3.0), "rate/0": np.ones(3), "queue_ms": np.full(3, delay)}
        assert len(list(report._distribution(Results([run_object()], [series]), 6.4))) == drawn


def test_a_report_of_media_begins_with_frame_delay_and_freezes():
    delay = {"mean": 50.0, "p50": 45.0, "p95": 90.0, "p99": 95.0}
    media = {
        "target_bps": 9e5, "frames": 900, "key_frames": 2, "frames_shown": 890, "frames_lost": 9,
        "frame_delay_ms": delay, "freezes": 1, "freeze_s": 0.5, "packets_received": 3000,
    }  # fmt: skip
    run = run_object()
    run["flows"][0] |= {"sender": "gcc", "media": media}
    found = report.findings(Results([run]))
    said = "95 % of the frames are shown within 90 ms after their capture, and the picture is frozen for 0.5 s."
    assert found[0] == said
    assert len(found) == 2
    html = report.of_runs(Results([run]))
    assert re.findall("<h2>(Flows|Frames|Bottleneck)</h2>", html) == ["Flows", "Frames", "Bottleneck"]
    slow = run_object()
    slow["flows"][0] |= {"sender": "gcc", "media": media | {"frame_delay_ms": delay | {"p95": 800.0}, "freeze_s": 12.0}}
    points = [one | {"point": {"edge.queue": name}} for name, one in (("fq-codel", run), ("drop-tail", slow))]
    assert report.findings(Results(points))[0] == (
        "With fq-codel, 95 % of the frames are shown within 90 ms after their capture, and the picture is frozen for "
        "0.5 s; with drop-tail, within 800 ms after their capture, and the picture is frozen for 12 s."
    )


def test_the_radio_is_shown_by_direction_where_it_is_measured():
    waits = dict.fromkeys(("mean", "p50", "p95", "p99"), 20.0)
    lost = dict.fromkeys(("max_dat", "reset", "air", "base_station", "handover"), 0)
    up = {
        "controller_queue_ms": waits,
        "rlc": {"pdus": 0, "retransmitted": 0, "duplicates": 0},
        "padding": None,
        "lost_by": lost,
    }
    down = up | {
        "base_station_queue_ms": dict.fromkeys(waits, 40.0),
        "rlc": {"pdus": 1000, "retransmitted": 30, "duplicates": 10},
        "harq": {"blocks": 50, "repeated": 5},
        "padding": 0.125,
        "lost_by": lost | {"handover": 7},
    }
    run = run_object()
    run["bottleneck"]["radio"] = down
    run["uplink"]["radio"] = up
    assert "<h2>Radio</h2>" not in report.of_runs(Results([run]))
    run["users"] = [{"id": 0, "flows": 1, "radio": {"down": down, "up": up}}]
    html = report.of_runs(Results([run]))
    table = html[html.index("<h2>Radio</h2>") :]
    cells = [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in re.findall(r"<tr>.*?</tr>", table)]
    assert cells == [
        ["direction", "RLC queue p50 (ms)", "RLC queue p95 (ms)", "base station p50 (ms)", "base station p95 (ms)",
         "RLC retr. (%)", "duplicates (%)", "HARQ retr. (%)", "padding (%)", "lost: hand-over"],
        ["down", "20", "20", "40", "40", "3", "1", "10", "12.5", "7"],
        ["up", "20", "20", "-", "-", "-", "-", "-", "-", "0"],
    ]  # fmt: skip


def test_a_radio_is_named_and_the_rate_of_one_user_of_a_cell_is_not_called_capacity():
    run = run_object()
    run["flows"].append({**run["flows"][0], "id": 1, "user": 1})
    time = np.arange(0.1, 5, 0.1)
    rates = {f"rate/{flow}": np.full(time.shape, 1e6) for flow in (0, 1)}
    series = {"time": time, "link_rate": np.full(time.shape, 1e6), "queue_ms": np.ones(time.shape), **rates}
    scenario = {"edge": {"bearer": {"kind": "radio-access"}, "user": [{"count": 1}]}, "flow": [{"count": 2}]}
    one = report.of_runs(Results([run], [series]), scenario=scenario)
    assert "<h1>reno over the bearer radio-access</h1>" in one
    assert "Radio: the bearer radio-access, " in one
    assert ">capacity<" in one
    assert "with the capacity (grey)" in one
    scenario["edge"]["user"].append({"count": 3})
    several = report.of_runs(Results([run], [series]), scenario=scenario)
    assert ">capacity<" not in several
    assert "(grey)" not in several
    behind = {"edge": {"bearer": "observed", "behind": {"down": {"rate": "4Mbit/s"}}}}
    assert "Radio: a link of 4Mbit/s, " in description.Described(Results([run]), behind).paragraph()


def test_media_is_among_the_senders():
    run = run_object()
    run["flows"].append({**run["flows"][0], "id": 1, "sender": "gcc", "media": {"frames": 300}})
    scenario = {"flow": [{"sender": "cubic"}, {"workload": "media"}]}
    run["flows"][0]["sender"] = "cubic"
    assert description.Described(Results([run]), scenario).title().startswith("cubic and gcc over ")


def test_the_percentile_is_written_above_its_line():
    time = np.arange(0.1, 5, 0.1)
    series = {"time": time, "rate/0": np.full(time.shape, 1e6), "queue_ms": np.full(time.shape, 50.0)}
    figure = plot.over_time({"run": series}, p95={"run": 80.0})
    figure.draw_without_rendering()
    axes = next(axes for axes in figure.axes if axes.texts)
    assert axes.texts[0].get_window_extent().y0 > axes.transData.transform((0, 80))[1]


def test_the_name_of_a_mark_is_not_crossed_by_its_interval():
    runs = [
        run_object(150e3 + 2e3 * seed, seed=seed, point={"edge.regulator": name})
        for name in ("none", "ack-rate-control")
        for seed in range(6)
    ]
    for run in runs:
        run["bottleneck"]["queue_ms"]["p95"] = 1000 + 40 * run["seed"] + len(run["point"]["edge.regulator"])
    figure = plot.goodput_against_delay(Results(runs), "bottleneck.queue_ms.p95")
    axes = figure.axes[0]
    figure.draw_without_rendering()
    bars = [bar for drawn in axes.containers for bar in drawn.lines[2]]
    lines = [Bbox(axes.transData.transform(line)).padded(1) for bar in bars for line in bar.get_segments()]
    names = [note.get_window_extent() for note in axes.texts if note.get_text() in ("none", "ack-rate-control")]
    assert len(names) == 2
    assert not any(name.overlaps(line) for name in names for line in lines)


def test_flows_that_come_and_go_are_shown_by_user_and_by_size():
    html = report.of_runs(Results([web_object(), web_object(seed=2)]))
    assert "<h2>Flows</h2>" not in html
    assert "<h2>Users</h2>" in html
    assert "latency p95 (ms)" in html
    assert '<td>all</td><td>5,001 to 15,000</td><td class="n">10' in html
    assert "<td>1</td><td>from 1,000,001</td>" in html
    assert html.count("<figure ") == 1  # latency by size
    assert "Jain index of users" in html
    assert "Jain index of flows" not in html  # null in all runs


def test_a_comparison_of_flows_that_come_and_go_needs_no_rows_of_flows():
    runs = [web_object(seed=seed, point={"flow.sender": sender}) for sender in ("reno", "sack") for seed in (1, 2)]
    html = report.of_runs(Results(runs))
    assert "<td>sack</td><td>all</td><td>1 to 5,000</td>" in html
    assert html.count("<figure ") == 1


def test_a_comparison_says_what_it_shows():
    runs = [
        run_object(goodput, seed=seed, point={"flow.sender": sender, "edge.regulator": regulator})
        for sender, regulator, goodput in (
            ("reno", "none", 100e3), ("reno", "ack-regulator", 150e3),
            ("sack", "none", 120e3), ("sack", "ack-regulator", 156e3),
        )
        for seed in (1, 2)
    ]  # fmt: skip
    first, most, change = report.findings(Results(runs))
    # 56 % more goodput than reno without a regulator, and as much delay.
    assert first == "sack + ack-regulator compared with reno + none: 56 % more goodput, same p95 queueing delay."
    # 0.96 of 156 kbit/s is payload; every run has a p95 queueing delay of 200 ms.
    assert most.startswith("Of 4 combinations, sack + ack-regulator has the most goodput: 149.8 kbit/s at a p95")
    assert "ack-regulator changes goodput by +30 % to +50 % and the p95 queueing delay by +0 %" in change
    assert report.findings(Results([run_object()])) == ["Goodput is 144 kbit/s at a p95 queueing delay of 200 ms."]


def compared(**goodputs: list[float]) -> Results:
    """Runs of regulators, in each of which a regulator has one of its goodputs."""
    return Results(
        [
            {**run_object(goodput, point={"edge.regulator": name.replace("_", "-")}), "run": number}
            for name, listed in goodputs.items()
            for number, goodput in enumerate(listed)
        ]
    )


def test_nothing_is_called_best_inside_noise():
    # 0.4 % apart in the mean, and more only in two runs of three.
    close = compared(none=[100e3, 120e3, 140e3], wrd=[101e3, 119e3, 141.4e3])
    first, most, change = report.findings(close)
    assert first == "wrd compared with none: same goodput, same p95 queueing delay."
    assert most.startswith("Of 2 combinations, wrd has the largest mean goodput, ")
    assert most.endswith("; it does not differ beyond chance from none.")
    assert "wrd changes goodput by nothing beyond chance (+0 %)" in change
    # Certain, and less than a percent.
    small = compared(none=[100e3, 120e3, 140e3], wrd=[100.5e3, 120.5e3, 140.5e3])
    assert "does not differ" in report.findings(small)[1]


def test_what_each_run_shows_is_beyond_chance_however_much_runs_differ():
    # Means 120 and 132 within ± 50 each; run by run it is 10 % more.
    assert report.findings(compared(none=[100e3, 120e3, 140e3], wrd=[110e3, 132e3, 154e3])) == [
        "wrd compared with none: 10 % more goodput, same p95 queueing delay.",
        # The percentile of a histogram is accurate to 1.6 %.
        "Of 2 combinations, wrd has the most goodput: 127 ± 52 kbit/s at a p95 queueing delay of 200.0 ± 3.2 ms.",
        "Compared with the same link without a regulator, wrd changes goodput by +10 % "
        "and the p95 queueing delay by +0 %.",
    ]


def test_axes_of_goodput_and_delay_never_reach_below_zero():
    wide = compared(none=[1e3, 120e3], wrd=[2e3, 200e3])
    for figure in (plot.goodput_against_delay(wide), plot.sweep(wide)):
        axes = figure.axes[0]
        assert axes.get_ylim()[0] >= 0
        assert axes.get_xlim()[0] >= 0 or axes.get_xlabel() == "edge.regulator"


def test_regulators_alone_are_compared_too():
    alpha_3 = {"kind": "ack-regulator", "alpha": 3}
    runs = [run_object(g, point={"edge.regulator": r}) for r, g in (("none", 100e3), (alpha_3, 110e3))]
    assert "ack-regulator alpha 3 changes goodput by +10 %" in report.findings(Results(runs))[-1]


def test_a_regulator_has_the_same_colour_in_every_figure(link_series):
    runs = [
        run_object(goodput + seed, seed=seed, point={"flow.sender": sender, "edge.regulator": regulator})
        for regulator, goodput in (("none", 100e3), ("wrd", 110e3), ("forecast", 120e3))
        for sender in ("reno", "cubic")
        for seed in (1, 2, 3)
    ]  # fmt: skip
    results = Results(runs, [link_series, link_series])
    results.series_of = ["none", "forecast"]
    none, wrd, forecast = plot.colours(results).values()
    over_time, scatter, distribution, paired, _ = (figure.drawing for figure in report._figures(results, 6.4))
    goodputs = {line.get_label(): line.get_color() for line in over_time.axes[0].lines}
    assert (goodputs["none"], goodputs["forecast"]) == (none, forecast)
    marks = {bars.get_label(): bars.lines[0].get_color() for bars in scatter.axes[0].containers}
    assert marks["reno, wrd"] == marks["cubic, wrd"] == wrd
    assert [line.get_color() for line in distribution.axes[0].lines] == [none, forecast]
    assert [bars.lines[0].get_color() for bars in paired.axes[0].containers] == [wrd, wrd, forecast, forecast]


def test_a_curve_says_of_which_run_it_is(link_series):
    """What all curves share is in the caption, the rest names the curve."""

    def over_time(varied: str, *values: str, **others: str) -> tuple[str, list[str]]:
        runs = [run_object(point={**others, varied: value}) for value in values]
        results = Results(runs, [link_series] * (2 if varied == "edge.regulator" else 1))
        results.series_of = [", ".join([*others.values(), value]) for value in values[: len(results.series)]]
        figure = next(iter(report._figures(results, 6.4)))
        return figure.caption, [line.get_label() for line in figure.drawing.axes[0].lines]

    caption, curves = over_time("edge.regulator", "none", "wrd", **{"flow.sender": "cubic"})
    assert "Each curve is one run of cubic, the one of median goodput" in caption
    assert curves[:2] == ["none", "wrd"]
    caption, _ = over_time("edge.queue", "red", "codel")
    assert "Each curve is one run of red" in caption


def test_numbers_have_separators_in_sentences_and_tables():
    runs = [run_object(goodput, point={"edge.regulator": r}) for r, goodput in (("none", 5e6), ("wrd", 6e6))]
    for run in runs:
        run["bottleneck"]["queue_ms"]["p95"] = 12345.6
    sentences, html = " ".join(report.findings(Results(runs))), report.of_runs(Results(runs))
    assert "5,760 kbit/s at a p95 queueing delay of 12,346 ms" in sentences
    assert '<td class="n">5,760</td>' in html
    assert '<td class="n">12,346</td>' in html


@pytest.mark.parametrize("width", [3.4, 6.4])
def test_no_tick_is_over_another(width):
    results = with_delays(80.0, 7000.0, 12000.0)
    scatter = next(figure for figure in report._figures(results, width) if figure.name == "goodput-against-delay")
    scatter.drawing.draw_without_rendering()
    low, high = sorted(scatter.drawing.axes[0].get_xlim())
    ticks = [tick for tick in scatter.drawing.axes[0].xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    boxes = sorted((tick.label1.get_window_extent() for tick in ticks), key=lambda box: box.x0)
    assert len(boxes) >= 3
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_a_report_of_many_points_is_aggregated():
    runs = [
        run_object(1e5 + 1e3 * buffer, point={"flow.sender": f"s{s}", "edge.regulator": r, "edge.buffer": f"{buffer}p"})
        for s in range(13)
        for r in ("none", "wrd")
        for buffer in range(1, 25)
    ]
    html = report.of_runs(Results(runs))
    assert "<h2>Flows: the first 500 of 624 rows</h2>" in html
    assert "Over 624 points, mean goodput is 96.96 to 119 kbit/s" in html
    scatter, sweep, _ = (figure.drawing for figure in report._figures(Results(runs), 6.4))
    assert [text.get_text() for text in scatter.legends[0].get_texts()] == ["none", "wrd"]
    assert [text.get_text() for text in sweep.legends[0].get_texts()] == ["none", "wrd"]
    assert len(html) < 1_000_000


def test_better_is_up_and_right():
    results = Results([{**run, "bottleneck": {**run["bottleneck"], "queue_ms": {"p95": 100.0 + i}}} for i, run in (
        enumerate(swept_objects())
    )])  # fmt: skip
    (axes,) = plot.goodput_against_delay(results, "bottleneck.queue_ms.p95", better="right").axes
    assert axes.get_xlabel() == "p95 queueing delay (ms)"
    left, right = axes.get_xlim()
    assert left > right >= 0


def with_delays(*delays: float) -> Results:
    runs = [run_object(100e3 + delay, point={"edge.regulator": f"r{delay:g}"}) for delay in delays]
    for run, delay in zip(runs, delays, strict=True):
        run["bottleneck"]["queue_ms"] = {"mean": delay / 2, "p95": delay}
    return Results(runs)


@pytest.mark.parametrize("delays", [(20.0, 30.0), (20.0, 170.0), (20.0, 200.0, 2000.0), (100.0, 12_000.0)])
def test_every_mark_is_inside_the_axes(delays):
    (axes,) = plot.goodput_against_delay(with_delays(*delays), "bottleneck.queue_ms.p95", better="right").axes
    high, low = axes.get_xlim()
    assert low < min(delays) < max(delays) < high


def recorded(tmp_path, *, begin: str = "0s", runs: int = 1) -> tuple[Results, dict]:
    """Downloads over a recording that sends a packet every 10 ms, and their scenario."""
    (tmp_path / "even.down").write_text("".join(f"{10 * i}\n" for i in range(1, 6001)))
    scenario = {
        "version": 1,
        "duration": "30s",
        "edge": {
            "buffer": "10p",
            "down": {"kind": "trace", "file": "even.down", "delay": "20ms", "begin": begin},
            "up": {"rate": "1Mbit/s", "delay": "20ms"},
        },
        "flow": [{"sender": "reno"}],
    }
    path = tmp_path / "even.toml"
    path.write_text(ackclock.scenario.toml(scenario))
    return ackclock.run(path, set={"runs": runs}), {**scenario, "path": {"delay": "5ms"}}


def test_the_bound_of_a_recording_is_that_of_the_runs_or_of_the_whole(tmp_path):
    results, scenario = recorded(tmp_path)
    limit = limits.of_runs(results, scenario)
    assert limit is not None
    assert limit.same_runs
    # The link never waits for a controller that sends a packet every 10 ms: all of the capacity at no delay.
    delay, goodput = limit.points[-1]
    assert delay == pytest.approx(10, abs=10)
    payload = results.flows["goodput_bps"].iloc[0] / results.flows["wire_goodput_bps"].iloc[0]
    assert goodput == pytest.approx(1200 * payload, rel=0.02)
    assert results.flows["goodput_bps"].iloc[0] / 1e3 <= goodput * 1.001
    elsewhere = limits.of_runs(*recorded(tmp_path, begin="anywhere"))
    assert elsewhere is not None
    assert not elsewhere.same_runs


def test_no_bound_is_shown_of_a_recording_that_changed_or_of_other_delays(tmp_path):
    results, scenario = recorded(tmp_path)
    varying = {**scenario, "path": {"delay": "e(5ms)"}}
    assert limits.of_runs(results, varying) is None
    assert limits.of_runs(Results(swept_objects()), scenario) is None
    with (tmp_path / "even.down").open("a") as file:
        file.write("60010\n")
    assert limits.of_runs(results, scenario) is None


def test_the_bound_is_drawn_and_explained(tmp_path):
    results = with_delays(20.0, 200.0)
    limit = limits.Limit([(5.0, 90.0), (10.0, 100.0), (20.0, 150.0)], same_runs=True)
    scatter = next(figure for figure in report._figures(results, 6.4, limit) if figure.name.startswith("goodput-ag"))
    (axes,) = scatter.drawing.axes
    assert "bound" in [text.get_text() for text in axes.texts]
    # Below the lowest mark the bound says nothing.
    assert [list(line.get_xdata()) for line in axes.lines if line.get_linestyle() == ":"] == [[10.0, 20.0]]
    assert "statistics of the same part of the recording" in scatter.caption


def test_a_report_says_how_to_repeat_it_and_what_was_simulated():
    scenario = {
        "path": {"rate": "100Mbit/s", "delay": "20ms"},
        "edge": {"down": {"rate": "8Mbit/s", "delay": "15ms"}, "up": {"rate": "1Mbit/s", "delay": "15ms"}},
    }
    run = run_object()
    run["provenance"]["commit"] = "0123456789abcdef"
    html = report.of_runs(Results([run]), None, scenario, "ackclock run 'a b.toml'")
    assert "<dt>command</dt><dd>ackclock run &#39;a b.toml&#39;</dd>" in html
    assert "Base RTT 70 ms." in html
    assert "ackclock 0 0123456789." in html
    scenario["edge"]["down"]["delay"] = "15ms + e(5ms)"
    assert "Base RTT" not in report.of_runs(Results([run]), None, scenario)


def test_a_report_repeats_how_sure_a_recording_is():
    recordings = {"logs/phone.csv": "lower-bound: a bulk transfer to a phone"}
    run = run_object()
    results = Results([{**run, "provenance": {**run["provenance"], "recordings": recordings}}])
    scenario = {"edge": {"down": {"kind": "trace", "file": "logs/phone.csv"}}}
    text = description.Described(results, scenario).paragraph()
    assert "The rates of phone.csv are lower-bound: a bulk transfer to a phone." in text


def test_a_report_of_a_link_has_both_directions_and_its_connections(link_series):
    html = report.of_runs(Results([link_object()], [link_series]), command="ackclock link 1mbit 8mbit -- sh -c '<b>'")
    assert re.findall(r'<figure id="([^"]+)"', html) == ["over-time-downlink", "over-time-uplink", "waterfall"]
    assert "3 connections in 3,600 s." in html
    assert "The downlink delivered 2 MB, 75 % of its capacity, p95 queueing delay 200 ms, 500 packets dropped." in html
    assert "<td>192.0.2.1:443</td><td>100.64.0.2:40001</td><td>quic</td>" in html
    assert "sh -c &#39;&lt;b&gt;&#39;" in html
    assert "simulated" not in html
    assert needs_nothing_else(html)


def test_a_link_is_drawn_over_a_simulation_of_the_same_file_without_its_percentile(link_series):
    results = Results([run_object()], [link_series, link_series])
    results.series_of = ["simulated", "live"]
    edge = {"buffer": "60p", "down": {"rate": "6Mbit/s"}}
    html = report.of_runs(results, scenario={"path": {"delay": "5ms"}, "edge": edge})
    assert "simulated" in html
    assert "live" in html
    # The percentile is known of the simulated run alone, and the names do not say which that is.
    assert "p95 " not in "".join(re.findall("<svg.*?</svg>", html, re.DOTALL))
    assert "the one with the largest ratio" not in html
    assert "is dashed" not in html
    assert "Buffer 60p." in html
    assert "Wired path to the edge: 5ms one way." in html


def test_runs_of_a_simulation_and_of_a_link_have_no_common_report():
    with pytest.raises(ValueError, match="give the lines of one, and both time series with --series"):
        report.of_runs(Results([run_object(), link_object()]))


def test_text_from_outside_stays_text_in_a_report_of_a_link(link_series):
    run = link_object()
    run["flows"][0]["from"] = "<script>$x$</script>"
    html = report.of_runs(Results([run], [link_series]))
    assert "<script" not in html
    assert "&lt;script&gt;$x$&lt;/script&gt;" in html


def test_a_link_of_many_connections_shows_those_with_the_most_bytes():
    html = report.of_runs(Results([link_object(2000)]))
    assert "The 40 connections with the most bytes of 2000" in html
    assert "Connections: the 500 with the most bytes of 2000" in html
    assert len(html) < 1_000_000


def test_a_link_without_connections_has_a_report():
    html = report.of_runs(Results([link_object(0)]))
    assert "0 connections in" in html
    assert "<figure" not in html


def test_series_are_drawn(series):
    assert report.of_runs(Results([run_object()], [series])).count("<figure ") == 1


def row(name: str) -> Row:
    return Row(name, "X", "", "goodput", "100", "kbit/s", "+-3%", "sim", "")


def judged(**ours: tuple[float, float, Verdict]) -> list[JudgedRow]:
    """Simulated rows that print 100: mean, standard deviation and verdict by name."""
    return [
        JudgedRow(row(name), Claim(([mean - sd, mean + sd],)), verdict, "")
        for name, (mean, sd, verdict) in ours.items()
    ]


def outcome_of(rows: list[JudgedRow]) -> Outcome:
    return Outcome(load("chain"), Runs({}), rows)


def test_rows_that_do_not_hold_are_hollow_and_worst_come_first():
    rows = [
        plot.Against(1.01, 0.1, "within tolerance"),
        plot.Against(0.5, 0.1, "not reproduced"),
        plot.Against(1.5, float("nan"), "by order only"),
    ]
    (axes,) = plot.against_printed(rows).axes
    marks = {bars.get_label(): bars.lines[0] for bars in axes.containers}
    hollow = {name: mark.get_markerfacecolor() != mark.get_color() for name, mark in marks.items()}
    assert hollow == {"within tolerance (1)": False, "by order only (1)": True, "not reproduced (1)": True}
    assert {name: list(mark.get_xdata()) for name, mark in marks.items()} == {
        "not reproduced (1)": [1], "by order only (1)": [2], "within tolerance (1)": [3],
    }  # fmt: skip


def test_a_value_far_from_the_printed_one_stays_in_the_panel():
    (axes,) = plot.against_printed([plot.Against(r, 0, "not reproduced") for r in (-1.0, 0.0, 1e9)]).axes
    low, high = axes.get_ylim()
    assert all(low < y < high for bars in axes.containers for y in bars.lines[0].get_ydata())


def test_a_papers_report_shows_the_worst_rows_first_and_compares_numbers():
    rows = judged(
        FINE=(100, 1, Verdict.REPRODUCED), LOOSE=(110, 2, Verdict.ORDERING_HOLDS), OFF=(150, 3, Verdict.NOT_REPRODUCED),
        SEEN=(100, 1, Verdict.NOT_CHECKED),
    )  # fmt: skip
    page = report.of_paper(outcome_of(rows), [])
    assert re.findall("<td>(FINE|LOOSE|OFF|SEEN)</td>", page) == ["OFF", "LOOSE", "FINE", "SEEN"]
    assert 'figure id="claims"' in page
    assert "not reproduced (1)" in page
    assert 'figure id="claims"' not in report.of_paper(outcome_of(rows[3:]), [])


def test_a_caption_has_the_number_of_the_figure_in_the_source():
    drawing = plot.against_printed([plot.Against(1, 0, "within tolerance")])
    names = {
        "figure-11a": "Buffers.",
        "figure-7-0.2-goodput": "One flow.",
        "figure-3-3": "Figure 3.3: a loop.",
        "alpha": "Reno.",
    }
    page = report.of_paper(outcome_of([]), [Figure(*name, drawing) for name in names.items()])
    captions = re.findall("<figcaption>([^<]+)", page)
    assert captions == ["Figure 11(a): Buffers.", "Figure 7: One flow.", "Figure 3.3: a loop.", "Reno."]


def test_a_papers_report_shows_misses_first_and_all_rows():
    cr02 = load("cr02")
    runs = Runs({at: [run_object(seed=seed) for seed in (1, 2)] for at in grid.points()})
    html = report.of_paper(Outcome(cr02, runs, cr02.judge(cr02.claims(runs, cr02.expected))), [])
    assert html.index("Not reproduced") < html.index("All rows")
    assert html.count("CR02-T1-1-mu") == 1
    assert html.count("CR02-T1-1-p1") == 2
    assert "Simulated, 2 seeds a point" in html
    assert needs_nothing_else(html)


def test_the_headline_and_the_dashed_line_are_of_one_direction_where_flows_go_both_ways():
    both = """version = 1
duration = "20s"
[edge.down]
rate = "2Mbit/s"
[edge.up]
rate = "500kbit/s"
[[flow]]
[[flow]]
towards = "server"
"""
    results = ackclock.run(both, series_interval=0.1)
    page = report.of_runs(results)
    [p95] = results.runs["bottleneck.queue_ms.p95"]
    [told] = re.findall(r"at a p95 queueing delay of ([0-9.,]+) ms", page)
    drawn = set(re.findall(r"p95 ([0-9.,]+) ms", page))
    assert float(told.replace(",", "")) == pytest.approx(p95, rel=1e-3)
    assert [float(text.replace(",", "")) for text in drawn] == [pytest.approx(p95, rel=1e-3)]
