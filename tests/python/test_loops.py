"""Retransmission as feedback, and the loops of the proxy, against simulation and independent computation."""

from fractions import Fraction
from math import cos, e, exp, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import j0

from ackclock.models import delay_equation, feedback_loop, feedforward_loop
from ackclock.models.error_process import Independent, Rayleigh, drawn
from ackclock.models.packet_delay import Scheme, packet_delay
from ackclock.models.power_control import Chain
from ackclock.models.retransmission import by_event, by_formula, delays, judged, packets

RATIOS = (1.05, 1.5, 2.0, 3.0, 5.0)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=80),
    st.integers(1, 9),
)
def test_event_and_formula_agree_frame_by_frame(slots, g):
    arrived = np.cumsum([new for new, _ in slots]).tolist()
    damages = [damage for _, damage in slots]
    ours, theirs = by_event(arrived, damages, g), by_formula(arrived, damages, g)
    assert ours.sent.tolist() == theirs.sent.tolist()
    assert ours.errors.tolist() == theirs.errors.tolist()
    assert ours.output.tolist() == theirs.output.tolist()


def test_a_single_error_stalls_the_output_until_it_is_repeated():
    n, a, g = 30, 5, 4
    damages = [slot == a for slot in range(1, n + 1)]
    course = by_formula([1000] * n, damages, g)
    assert course.sent[a - 1 + g] == course.sent[a - 1] == a
    assert course.output[a - 2 : a + g - 1].tolist() == [a - 1] * (g + 1)
    assert course.output[a + g - 1] == a + g - 1


def test_a_saturated_channel_carries_what_is_not_damaged():
    damages = drawn(Independent(0.1), 50_000, 1)
    course = by_event([10**9] * damages.size, damages.tolist(), 3)
    assert course.output[-1] / damages.size == pytest.approx(0.9, abs=0.005)


def test_packets_far_apart_have_the_delay_of_the_exact_law():
    # With 40 slots to a packet none waits for another: the delay of two frames on the settled channel, plus the slot in
    # which the second is sent. Idle slots move the power control here too, since the errors are drawn for every slot.
    chain, frames = Chain(0.06), 2
    damages = drawn(chain, 400_000, 2)
    arrived = packets(damages.size, frames, 40)
    found = delays(arrived, by_event(arrived.tolist(), damages.tolist(), 3).output) - (frames - 1)
    law = packet_delay(chain, frames, Scheme(3, 30)).law
    for delay, p in zip(law.delays, law.probabilities, strict=True):
        assert (found == delay).mean() == pytest.approx(p, abs=4 * np.sqrt(p / found.size) + 1e-4)


def test_a_drawn_process_has_the_correlations_of_its_chain():
    for process, after in ((Chain(0.2), 0.026), (Independent(0.1), 0.1)):
        errors = drawn(process, 400_000, 3)
        assert errors.mean() == pytest.approx(0.1, abs=0.003)
        assert errors[3:][errors[:-3]].mean() == pytest.approx(after, abs=0.005)


def test_fades_last_as_long_as_faded_envelopes_do():
    # Two complex Gaussian samples of correlation rho; a frame is damaged where the power is below -log(0.9).
    process = Rayleigh(0.1, 0.05)
    random = np.random.default_rng(4)
    rho, n = float(j0(2 * pi * 0.05)), 1_000_000
    first, other = random.normal(size=(2, 2, n))
    second = rho * first + np.sqrt(1 - rho**2) * other
    faded = [(one**2).sum(axis=0) / 2 < -np.log(0.9) for one in (first, second)]
    assert process.ends == pytest.approx((~faded[1])[faded[0]].mean(), abs=0.005)


def test_repeating_soonest_is_best_where_errors_repel_and_worst_within_a_fade():
    power = drawn(Chain(0.06), 100_000, 5)
    fades = drawn(Rayleigh(0.1, 0.05), 100_000, 5)
    one, three, late = (judged(packets(100_000, 2, 10), power, g).p_timeout for g in (1, 3, 6))
    assert one < three < late
    within, beyond = (judged(packets(100_000, 1, 10), fades, g).p_timeout for g in (2, 12))
    assert beyond < within


@pytest.mark.parametrize(
    ("ratio", "exact", "proven"),
    [(1.0, 0.318, 0.265), (1.5, 0.598, 0.376), (2.5, 0.944, 0.339), (e, 1.0, 0.322), (4.0, 0.357, 0.238)],
)
def test_exponents_of_figure_3_3(ratio, exact, proven):
    assert feedforward_loop.exponent(ratio) == pytest.approx(exact, abs=6e-4)
    assert feedforward_loop.bound(ratio) == pytest.approx(proven, abs=6e-4)


def test_the_exponent_is_the_rightmost_root_and_the_bound_stays_below():
    random = np.random.default_rng(1)
    for ratio in (1.2, 2.0, 3.5, 8.0):
        roots = []
        for x, y in random.uniform((-3, 0), (0.5, 8), (200, 2)):
            found = optimize.root(
                lambda s, a: [(z := complex(*s) + np.exp(-complex(*s)) / a).real, z.imag],
                (x, y),
                args=(ratio,),
            )
            if found.success and max(map(abs, found.fun)) < 1e-9:
                roots.append(found.x[0])
        assert -max(roots) == pytest.approx(feedforward_loop.exponent(ratio), abs=1e-6)
    for ratio in np.linspace(1, 12, 300):
        assert feedforward_loop.bound(ratio) <= feedforward_loop.exponent(ratio)


def test_the_bound_is_the_smallest_root():
    for ratio in np.linspace(1, e, 40):
        x = feedforward_loop.bound(ratio)
        below = np.linspace(0, x - 1e-9, 200)
        assert (ratio * below < np.cos(np.exp(below) / ratio)).all()
        assert ratio * x == pytest.approx(cos(exp(x) / ratio), abs=1e-10)
        assert 1 / x < 4


@pytest.mark.parametrize("ratio", [1.5, 2.0])
def test_the_simulated_queue_settles_as_the_exponent_says(ratio):
    time, queue = feedforward_loop.simulated(ratio, 1.02, 40.0)
    far = np.abs(queue - 1)
    peaks = [i for i in range(1, far.size - 1) if far[i - 1] < far[i] >= far[i + 1] and 1e-10 < far[i] < 1e-3]
    measured = np.log(far[peaks[0]] / far[peaks[-1]]) / (time[peaks[-1]] - time[peaks[0]])
    assert measured == pytest.approx(feedforward_loop.exponent(ratio), rel=0.005)


def test_a_delay_equation_is_solved_to_the_square_of_the_step():
    # x' = -x(t - 1), x = 1 before: x = 1 - t up to 1, then 1 - t + (t - 1)^2 / 2.
    time, x = delay_equation.solve(lambda _, late: -late, [1.0], 1.0, 2.0, steps=100)
    exact = np.where(time <= 1, 1 - time, 1 - time + (time - 1) ** 2 / 2)
    assert np.abs(x[:, 0] - exact).max() < 1e-4
    with pytest.raises(ValueError, match="steps, more than"):
        delay_equation.solve(lambda _, late: -late, [1.0], 1e-9, 2.0)


@given(*(st.fractions(0, 50) for _ in range(3)), *(st.fractions(Fraction(1, 50), 50) for _ in range(3)))
def test_the_derivative_of_lyapunovs_function_is_that_of_proposition_2(q, w, q_ref, b, tau, c):
    derivative = feedback_loop.lyapunov_derivative(q, w, b, tau, q_ref, c)
    assert derivative == -3 * (q - q_ref) ** 2 * (q + b * tau)
    # Beside the chain rule in the function: V along a short step, whose rest falls with its square.
    value = feedback_loop.lyapunov(q, w, b, tau, q_ref, c)
    u, v = q - q_ref, w - b * tau - q_ref
    by_q, by_w = v - u, -c * (tau + q_ref / b) * u - c / b * u**2
    step = Fraction(1, 10**12)
    ahead = feedback_loop.lyapunov(q + step * by_q, w + step * by_w, b, tau, q_ref, c)
    behind = feedback_loop.lyapunov(q - step * by_q, w - step * by_w, b, tau, q_ref, c)
    # Of a polynomial of degree 3 the central difference is off by step^2 V''' / 6 only.
    assert abs((ahead - behind) / (2 * step) - derivative) <= step**2 * abs(by_q) ** 3
    assert value >= 0


@pytest.mark.parametrize(("ratio", "critical"), list(zip(RATIOS, (0.577, 0.733, 0.810, 0.879, 0.930), strict=True)))
def test_the_critical_gain_is_where_the_rightmost_pole_crosses(ratio, critical):
    found = feedback_loop.critical_gain(ratio)
    assert found == pytest.approx(critical, abs=6e-4)
    assert feedback_loop.exponent(ratio, found) == pytest.approx(0, abs=1e-9)
    assert feedback_loop.exponent(ratio, 0.9 * found) > 0 > feedback_loop.exponent(ratio, 1.1 * found)
    margins = feedback_loop.margins(ratio, found)
    assert margins["phase_margin_degrees"] == pytest.approx(0, abs=1e-9)
    assert margins["gain_margin"] == pytest.approx(1, abs=1e-9)
    # The safe gain keeps a factor of nearly two for the smallest ratio.
    assert found / feedback_loop.SAFE > 1.9


@pytest.mark.parametrize(("part", "grows"), [(0.8, False), (1.2, True)])
def test_the_simulated_loop_dies_away_below_the_critical_gain_and_swings_above(part, grows):
    gain = part * feedback_loop.critical_gain(2.0)
    _, states = feedback_loop.simulated(2.0, gain, (1.02, 2.0), 150.0, steps=100)
    early, late = np.ptp(states[:2000, 0]), np.ptp(states[-2000:, 0])
    assert bool(late > early) is grows
    assert (states >= 0).all()


def test_a_margin_of_the_delay_is_what_the_loop_bears():
    # c' tau = g and ratio a, the delay of the loop made longer by the margin m: in units of the longer delay the gain
    # is g (1 + m), and tau* is a / (1 + m).
    ratio, gain = 2.0, 0.3
    margin = feedback_loop.margins(ratio, gain)["delay_margin"]
    longer = 1 + margin
    assert feedback_loop.critical_gain(ratio / longer) == pytest.approx(gain * longer, rel=1e-9)


def test_sampled_once_a_second_the_queue_is_right_after_two_samples():
    queues = [queue for queue, _ in feedback_loop.sampled(1.0, 6.0, 10.0, 30.0, 5)]
    assert queues == [20, 6, 6, 6, 6]
    slower = [queue for queue, _ in feedback_loop.sampled(0.5, 6.0, 10.0, 30.0, 5)]
    assert slower == [20, 13, 9.5, 7.75, 6.875]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("feedforward-loop 0 10", "tau: 0.0 is not above 0"),
        ("feedback-loop 0 0.17 6", "gain: 0.0 is not above 0"),
        ("retransmission 4 --period 4", "period: 4 is not above 4.4"),
        ("retransmission 2 --errors rayleigh --doppler 2", "doppler: 2.0 is not from 0.0001 to 0.3"),
        ("retransmission 2 --slots 0", "slots: 0 is not from 1 to 1e+08"),
    ],
)
def test_arguments_that_cannot_be_are_told(monkeypatch, capsys, line, message):
    from test_command import command

    assert command(monkeypatch, "model", *line.split()) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"ackclock: {message}")
