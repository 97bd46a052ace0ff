"""Points compared run by run, and distributions over runs."""

import numpy as np
import pytest

from ackclock import plot
from ackclock.results import Results
from conftest import run_object, swept_objects


def runs(regulator: str, goodputs: list[float], first_seed: int = 1, **point: str) -> list[dict]:
    return [
        run_object(goodput, seed=first_seed + i, point={"edge.regulator": regulator, **point})
        for i, goodput in enumerate(goodputs)
    ]


def test_what_runs_share_cancels_in_their_differences():
    # Run by run 1, 2 and 3 more than 100, 200 and 300: 2 +- 4.3027 / sqrt(3), 1 % of 200.
    results = Results(runs("none", [100, 200, 300]) + runs("wrd", [101, 202, 303]))
    row = results.paired("wire_goodput_bps", by="edge.regulator", baseline="none").loc["wrd"]
    assert row[["mean_difference", "n", "baseline", "relative"]].tolist() == pytest.approx([2, 3, 200, 0.01])
    assert row["high"] - row["mean_difference"] == pytest.approx(4.3027 / np.sqrt(3), abs=1e-4)
    assert row["mean_difference"] - row["low"] == pytest.approx(4.3027 / np.sqrt(3), abs=1e-4)


def test_pairs_are_of_the_same_seed_whatever_their_order():
    results = Results(runs("none", [100, 200, 300]) + runs("wrd", [101, 202, 303])[::-1])
    row = results.paired("wire_goodput_bps", by="edge.regulator", baseline="none").loc["wrd"]
    assert row["mean_difference"] == pytest.approx(2)


def test_the_other_keys_are_equal_in_a_pair():
    small, large = {"edge.buffer": "4p"}, {"edge.buffer": "9p"}
    results = Results(
        runs("none", [100] * 3, **small)
        + runs("wrd", [110] * 3, **small)
        + runs("none", [500] * 3, **large)
        + runs("wrd", [520] * 3, **large)
    )
    table = results.paired("wire_goodput_bps", by="edge.regulator", baseline="none")
    assert table["mean_difference"].to_dict() == {("wrd", "4p"): 10, ("wrd", "9p"): 20}


@pytest.mark.parametrize("goodputs", [[110, 230], [110, 110, 110]])
def test_two_runs_and_equal_runs_show_no_interval(goodputs):
    results = Results(runs("none", [100] * len(goodputs)) + runs("wrd", goodputs))
    row = results.paired("wire_goodput_bps", by="edge.regulator", baseline="none").loc["wrd"]
    assert np.isnan(row["low"])
    assert np.isnan(row["high"])
    assert row["mean_difference"] == pytest.approx(np.mean(goodputs) - 100)


def test_a_column_of_the_link_can_be_paired():
    table = Results(swept_objects()).paired("bottleneck.queue_ms.p95", by="flow.sender", baseline="reno")
    assert table["mean_difference"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("results", "by", "baseline", "message"),
    [
        (runs("none", [1, 2]) + runs("wrd", [1, 2]), "edge.regulatr", "none", "did you mean edge.regulator"),
        (runs("none", [1, 2]) + runs("wrd", [1, 2]), "edge.regulator", "nne", "did you mean none"),
        (runs("none", [1, 2]) + runs("wrd", [1, 2], 7), "edge.regulator", "none", "no run shares its seed"),
    ],
)
def test_pairs_that_there_are_not_are_told(results, by, baseline, message):
    with pytest.raises(ValueError, match=message):
        Results(results).paired(by=by, baseline=baseline)


def test_the_plot_shows_each_difference_in_percent_of_the_baseline():
    results = Results(runs("none", [100, 200, 300]) + runs("wrd", [101, 202, 303]) + runs("wrb", [150, 250, 350]))
    (axes,) = plot.paired(results, "wire_goodput_bps", by="edge.regulator", baseline="none").axes
    assert [bar.lines[0].get_xdata()[0] for bar in axes.containers] == pytest.approx([1, 25])
    assert [text.get_text() for text in axes.get_yticklabels()] == ["wrd", "wrb"]
    assert axes.get_xlabel().endswith("difference to none (%)")


def test_a_distribution_rises_by_one_run_at_each_value():
    results = Results(runs("none", [300, 100, 200, 400]))
    (axes,) = plot.cdf(results, "wire_goodput_bps", by="edge.regulator").axes
    x, y = axes.lines[0].get_data()
    assert x.tolist() == [100, 100, 200, 200, 300, 300, 400, 400]
    assert y.tolist() == [0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1]
    assert axes.get_ylabel() == "share of runs"


def test_a_distribution_is_of_packets_where_they_were_measured():
    objects = runs("none", [300, 100])
    (axes,) = plot.cdf(Results(objects)).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("rtt_ms.mean", "share of runs")
    for run, rtts in zip(objects, ([10, 20], [30, 40]), strict=True):
        run["flows"][0]["rtt_ms"] = {**run["flows"][0]["rtt_ms"], "cdf": rtts}
    (axes,) = plot.cdf(Results(objects)).axes
    assert axes.lines[0].get_xdata().tolist() == [10, 10, 20, 20, 30, 30, 40, 40]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("rtt_ms", "share of samples")
    assert Results(objects).quantiles(q=[0.5]).loc["none"].tolist() == [25]


def test_a_distribution_is_drawn_in_axes_of_the_caller():
    from matplotlib.figure import Figure

    mine = Figure()
    assert plot.cdf(Results(swept_objects()), ax=mine.subplots()) is mine
    assert len(mine.axes[0].lines) == 6


def test_quantiles_are_those_of_the_runs_of_a_point():
    table = Results(runs("none", [100, 200, 300]) + runs("wrd", [1, 2, 3])).quantiles("wire_goodput_bps", q=[0.5, 1])
    assert table.loc["none"].tolist() == [200, 300]
    assert table.loc["wrd"].tolist() == [2, 3]
    with pytest.raises(ValueError, match="not all from 0 to 1"):
        Results(swept_objects()).quantiles(q=[50])


def test_results_draw_the_series_of_one_run(series):
    results = Results([run_object(), run_object(seed=2)], [series, series])
    assert len(plot.over_time(results, run=1).axes) == 3
    with pytest.raises(ValueError, match="run: 2 is none of the 2"):
        plot.over_time(results, run=2)
    with pytest.raises(ValueError, match="series_interval"):
        plot.over_time(Results([run_object()]))
