"""The analytical models against the printed tables and against independent recomputation."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from ackclock.models import bounded_pareto, capacity, cycles, effective_delay, pftk, poisson_sde, rayleigh, saw_tooth
from ackclock.paper import load
from ackclock.papers.cr02 import claims

ITEMS = range(1, 10)
EXPECTED = load("cr02").expected


def printed(item: int, name: str) -> float:
    return EXPECTED.number(f"CR02-T1-{item}-{name}")


def test_the_saw_tooth_fills_a_constant_link():
    # Item 1: the window falls from 22 to 11 = mu*T, so that the pipe never runs dry: throughput = mu.
    assert saw_tooth.loss_window(25, 0.44, 10) == pytest.approx(22)
    assert saw_tooth.throughput(25, 0.44, 10) == pytest.approx(25)


def test_the_saw_tooth_without_a_buffer_wastes_about_a_quarter():
    # B = 0 and a large pipe w: the window goes linearly from w/2 to w, mean 3/4 of the pipe.
    assert saw_tooth.throughput(1000, 1.0, 0) / 1000 == pytest.approx(0.75, abs=0.001)


@pytest.mark.parametrize("item", ITEMS)
def test_model_1_prints_table_2(item):
    assert claims.modelled(EXPECTED, item)["m1"] == pytest.approx(EXPECTED.number(f"CR02-T2-{item}-m1"), abs=0.15)


@pytest.mark.parametrize("item", ITEMS)
def test_model_2_with_the_rates_interchanged_prints_table_2(item):
    assert claims.modelled(EXPECTED, item)["m2"] == pytest.approx(EXPECTED.number(f"CR02-T2-{item}-m2"), abs=0.1)


# Independent recomputation of the correct formula from table 1's TD, TO and rtt, kbit/s.
CORRECT_SDE = {1: 376.5, 2: 343.3, 3: 316.9, 4: 220.8, 5: 340.7, 6: 299.3, 7: 250.7, 8: 275.7, 9: 212.1}


@pytest.mark.parametrize("item", ITEMS)
def test_model_2_as_derived_lies_far_above_the_link(item):
    td, to, rtt = printed(item, "TD") / 3600, printed(item, "TO") / 3600, printed(item, "rtt") / 1000
    assert 8 * poisson_sde.throughput(td, to, rtt) == pytest.approx(CORRECT_SDE[item], abs=0.1)


# Independent recomputation of model 3 from table 1, kbit/s: slow start counted as W03 packets, and as printed.
MODEL_3 = {
    1: (199.7, 199.8),
    2: (185.6, 185.7),
    3: (180.6, 180.7),
    4: (137.6, 138.2),
    5: (181.3, 181.3),
    6: (165.5, 165.7),
    7: (137.5, 138.0),
    8: (160.8, 161.0),
    9: (126.0, 126.5),
}


@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("slow_start", cycles.SlowStart)
def test_model_3_in_both_readings_of_the_slow_start(item, slow_start):
    path = claims.observed(EXPECTED, item)
    kbps = 8 * cycles.throughput(path, printed(item, "p1"), printed(item, "p2"), slow_start)
    fluid, literal = MODEL_3[item]
    assert kbps == pytest.approx(fluid if slow_start is cycles.SlowStart.FLUID else literal, abs=0.06)


def test_model_3_with_single_losses_only_is_the_saw_tooth():
    path = cycles.Path(mu=25, T=0.44, B=10, wf=22, t0=1)
    assert cycles.throughput(path, p1=1, p2=0) == pytest.approx(saw_tooth.throughput(25, 0.44, 10))


def test_pftk_follows_the_inverse_square_root_law_for_rare_losses():
    # For p -> 0 both forms tend to sqrt(3/(2 b p))/RTT; at p = 1e-8 the rest is below 1 %.
    losses = pftk.Losses(p=1e-8, rtt=0.5, t0=2.0)
    law = math.sqrt(1.5 / 1e-8) / 0.5
    assert pftk.full(losses) == pytest.approx(law, rel=0.01)
    assert pftk.simplified(losses) == pytest.approx(law, rel=0.01)


def test_pftk_keeps_to_the_window_limit():
    # A loss in ten million packets: the window stands at its limit of 10 packets in 0.5 s.
    losses = pftk.Losses(p=1e-7, rtt=0.5, t0=2.0)
    assert pftk.full(losses, w_max=10) == pytest.approx(20, rel=0.01)
    assert pftk.simplified(losses, w_max=10) == 20


@pytest.mark.parametrize(("sd", "mu"), [(20, 24.74), (50, 23.34), (75, 20.93)])
def test_a_rate_drawn_for_every_packet_serves_at_its_harmonic_mean(sd, mu):
    low, high = capacity.uniform_bounds(200, sd)
    assert capacity.uniform(200, sd) / 8 == pytest.approx(mu, rel=0.002)  # printed in table 1
    assert capacity.harmonic(stats.uniform(low, high - low)) == pytest.approx(capacity.uniform(200, sd))


def test_a_rate_redrawn_in_time_serves_at_its_arithmetic_mean():
    low, high = capacity.uniform_bounds(200, 75)
    assert capacity.of(stats.uniform(low, high - low), "time") == pytest.approx(200)


def test_a_rate_law_that_reaches_zero_is_refused():
    with pytest.raises(ValueError, match="must be above 0"):
        capacity.uniform(100, 60)


# The effective mean of e(x) at 40 ms spacing, ms, found by simulation of the no-overtaking rule.
@pytest.mark.parametrize(("mean", "effective"), [(20, 21.5), (50, 68.9), (100, 179.0)])
def test_packets_wait_behind_slow_predecessors(mean, effective):
    assert 1000 * effective_delay.exponential(mean / 1000, 0.040) == pytest.approx(effective, rel=0.005)


def test_packets_far_apart_keep_their_own_delay():
    assert effective_delay.exponential(0.020, 10.0) == pytest.approx(0.020, rel=1e-4)


def test_a_bounded_pareto_law_has_the_mean_that_was_asked_for():
    # CR04 table I: mean 12, shape 1.2, at most 200. The mean again, from the density a k^a x^(-a-1) / (1 - (k/H)^a).
    a, H = 1.2, 200
    k = bounded_pareto.minimum(12, a, H)
    assert k == pytest.approx(3.591, abs=0.001)
    norm = a * k**a / (1 - (k / H) ** a)
    assert integrate.quad(lambda x: x * norm * x ** (-a - 1), k, H)[0] == pytest.approx(12)


def test_rates_of_a_fading_channel_come_as_often_as_its_power_allows():
    # Mean SNR 0 dB: exp(-1) of the time above 0 dB, exp(-2) above 3.01 dB.
    low, high = rayleigh.shares([0.0, 10 * math.log10(2)], 0.0)
    assert low == pytest.approx(math.exp(-1) - math.exp(-2))
    assert high == pytest.approx(math.exp(-2))


LINK = {"mu": 25, "T": 0.44, "B": 10}
OBSERVED = {**LINK, "wf": 22, "t0": 1}
LOSSES = {"p": 0.01, "rtt": 0.6, "t0": 1.5}
MU, T, B = (f"{name}: .* is not " for name in ("^mu", r"^T \(minimum RTT\)", r"^B \(buffer\)"))


@pytest.mark.parametrize(
    ("formula", "arguments", "message"),
    [
        (saw_tooth.throughput, {**LINK, "mu": 0}, MU + "above 0"),
        (saw_tooth.throughput, {**LINK, "mu": -1}, MU + "above 0"),
        (saw_tooth.throughput, {**LINK, "mu": math.inf}, MU + "above 0"),
        (saw_tooth.throughput, {**LINK, "T": math.nan}, T + "above 0"),
        (saw_tooth.throughput, {**LINK, "B": -1}, B + "0 or above"),
        (cycles.Path, {**OBSERVED, "mu": 0}, MU + "above 0"),
        (cycles.Path, {**OBSERVED, "B": math.nan}, B + "0 or above"),
        (cycles.Path, {**OBSERVED, "wf": 0}, "^wf: 0 is not above 0"),
        (cycles.Path, {**OBSERVED, "t0": -1}, "^t0: -1 is not above 0"),
        (pftk.Losses, {**LOSSES, "p": 0}, "^p: 0 is not above 0 and below 1"),
        (pftk.Losses, {**LOSSES, "p": 1}, "^p: 1 is not above 0 and below 1"),
        (pftk.Losses, {**LOSSES, "p": math.nan}, "^p: nan is not above 0 and below 1"),
        (pftk.Losses, {**LOSSES, "rtt": 0}, "^rtt: 0 is not above 0"),
        (pftk.Losses, {**LOSSES, "t0": math.inf}, "^t0: inf is not above 0"),
        (pftk.Losses, {**LOSSES, "b": 0}, "^b: 0 is not 1 or above"),
        (poisson_sde.throughput, {"td_rate": 0, "to_rate": 0, "rtt": 1}, r"^td_rate \+ to_rate: 0 is not above 0"),
        (poisson_sde.throughput, {"td_rate": -1, "to_rate": 2, "rtt": 1}, "^td_rate: -1 is not 0 or above"),
        (poisson_sde.throughput, {"td_rate": 1, "to_rate": 0, "rtt": 0}, "^rtt: 0 is not above 0"),
        (capacity.uniform, {"mean": math.nan, "sd": 1}, "^mean: nan is not above 0"),
        (capacity.uniform, {"mean": 0, "sd": 0}, "^mean: 0 is not above 0"),
        (capacity.uniform, {"mean": 1, "sd": -1}, "^sd: -1 is not 0 or above"),
    ],
)
def test_arguments_that_no_path_has_are_named(formula, arguments, message):
    with pytest.raises(ValueError, match=message):
        formula(**arguments)


@pytest.mark.parametrize("formula", [pftk.full, pftk.simplified])
@pytest.mark.parametrize("w_max", [0, -5, math.nan])
def test_a_window_limit_below_a_packet_is_named(formula, w_max):
    with pytest.raises(ValueError, match=f"^w_max: {w_max} is not 1 or above"):
        formula(pftk.Losses(**LOSSES), w_max)


@pytest.mark.parametrize(("p1", "p2", "name"), [(1, 2, "p2"), (-0.1, 0.5, "p1"), (0.6, 0.6, r"p1 \+ p2")])
def test_shares_of_cycles_are_shares(p1, p2, name):
    with pytest.raises(ValueError, match=f"^{name}: .* is not from 0 to 1"):
        cycles.throughput(cycles.Path(**OBSERVED), p1, p2)


@pytest.mark.parametrize("p", [1e-17, 1e-300])
def test_pftk_of_hardly_a_loss_stands_at_the_window_limit(p):
    losses = pftk.Losses(p=p, rtt=0.5, t0=2.0)
    assert pftk.full(losses, w_max=10) == pytest.approx(20)
    # Without a limit both forms keep to the inverse square root law.
    assert pftk.full(losses) == pytest.approx(math.sqrt(1.5) / math.sqrt(p) / 0.5)


def test_a_rate_that_hardly_varies_serves_at_its_mean():
    assert capacity.uniform(200, 1e-30) == pytest.approx(200)


def test_a_bounded_pareto_law_of_shape_1_is_the_limit():
    # E[X] = k H / (H - k) * ln(H / k) for the density k H / ((H - k) x^2).
    assert bounded_pareto.mean(1, 1, 100) == pytest.approx(100 / 99 * math.log(100))
    assert bounded_pareto.mean(1, 1 + 1e-9, 100) == pytest.approx(100 / 99 * math.log(100))


@pytest.mark.parametrize(("wanted", "shape", "largest"), [(1, 0.5, 1e6), (12, 400, 200), (1e-10, 1.5, 1e10)])
def test_a_bounded_pareto_law_has_its_mean_far_from_the_usual(wanted, shape, largest):
    k = bounded_pareto.minimum(wanted, shape, largest)
    assert bounded_pareto.mean(k, shape, largest) == pytest.approx(wanted)


def test_a_mean_next_to_the_largest_value_has_its_minimum_there():
    wanted = math.nextafter(200, 0)
    assert bounded_pareto.minimum(wanted, 1.2, 200) == wanted


PARETO = {"wanted": 12, "shape": 1.2, "largest": 200}
PIPE = {"mu": 25, "T": 0.44}


@pytest.mark.parametrize(
    ("formula", "arguments", "message"),
    [
        (bounded_pareto.minimum, {**PARETO, "wanted": 0}, "^wanted: 0 is not above 0"),
        (bounded_pareto.minimum, {**PARETO, "wanted": 200}, "^wanted: 200 is not below 200, the largest value"),
        (bounded_pareto.minimum, {**PARETO, "shape": -1}, "^shape: -1 is not above 0"),
        (bounded_pareto.minimum, {**PARETO, "largest": math.inf}, "^largest: inf is not above 0"),
        # As the shape goes to 0 the mean goes to H / ln(H / k), here 1000 / ln(1e18) = 24.1.
        (bounded_pareto.minimum, {"wanted": 24, "shape": 1e-9, "largest": 1000}, "^wanted: 24 is not above 24.1"),
        (bounded_pareto.mean, {"minimum": math.nan, "shape": 1.2, "largest": 200}, "^minimum: nan is not above 0"),
        (bounded_pareto.mean, {"minimum": 300, "shape": 1.2, "largest": 200}, "^minimum: 300 is not below 200"),
        (effective_delay.exponential, {"mean": 0, "gap": 1}, "^mean: 0 is not above 0"),
        (effective_delay.exponential, {"mean": 1, "gap": math.nan}, "^gap: nan is not above 0"),
        (effective_delay.exponential, {"mean": 1, "gap": [1, -1]}, "^gap: -1.0 is not above 0"),
        (effective_delay.exponential, {"mean": 1, "gap": []}, "^gap: there is none"),
        (effective_delay.exponential, {"mean": 1, "gap": 0.004}, "^gap: 0.004 is not at least 0.005, a 200th"),
        (rayleigh.shares, {"needed": [0, math.nan], "mean_snr": 0}, "^needed: nan is not from -150 to 150 dB"),
        (rayleigh.shares, {"needed": [0], "mean_snr": -4000}, "^mean_snr: -4000 is not from -150 to 150 dB"),
        (rayleigh.shares, {"needed": [3, 1], "mean_snr": 0}, "^needed: 1 is below 3, which stands before it"),
        (saw_tooth.growth_below_pipe, {**PIPE, "w0": -1}, "^w0: -1 is not 0 or above"),
        (saw_tooth.growth_below_pipe, {**PIPE, "w0": 1, "T": 0}, T + "above 0"),
        (saw_tooth.growth_above_pipe, {**PIPE, "w_loss": math.inf}, "^w_loss: inf is not 0 or above"),
        (saw_tooth.growth_above_pipe, {**PIPE, "w_loss": 22, "mu": 0}, MU + "above 0"),
        (capacity.of, {"law": stats.uniform(1, 2), "redraw": "day"}, "^redraw: day is none of packet, time"),
        (capacity.harmonic, {"law": stats.uniform(-1, 2)}, "^law: its rates are from -1 to 1; a rate must be above 0"),
        (capacity.harmonic, {"law": stats.uniform(0, 1)}, "^law: the mean of 1/R is not finite"),
        (capacity.arithmetic, {"law": stats.pareto(0.9)}, "^law: the mean of R is not finite"),
        (capacity.arithmetic, {"law": stats.uniform(5, 0)}, "^law: its rates are from nan to nan"),
    ],
)
def test_arguments_that_no_law_or_window_has_are_named(formula, arguments, message):
    with pytest.raises(ValueError, match=message):
        formula(**arguments)


def test_a_rate_law_that_begins_at_zero_may_have_a_harmonic_mean():
    # Gamma of shape 3 and scale 1: E[1/R] = 1 / (3 - 1).
    assert capacity.harmonic(stats.gamma(3)) == pytest.approx(2)


def test_a_gap_of_a_200th_of_the_mean_is_computed_well():
    # The product over k of 1 - exp(-(x + k g)), integrated from its logarithm in steps of 0.001.
    x = np.arange(0.0005, 40, 0.001)
    logarithm = sum(np.log(-np.expm1(-(x + k / 200))) for k in range(8000))
    assert effective_delay.exponential(1, 1 / 200) == pytest.approx(float(np.sum(-np.expm1(logarithm))) / 1000)


def test_rates_that_need_the_same_are_told_by_the_last():
    assert rayleigh.shares([0, 0], 0) == [0, pytest.approx(math.exp(-1))]
