"""Optimal artificial delays: global, against a solver and the source's enumeration; laws from wherever they come."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from ackclock.models.degradation import Path, after_fast_retransmit, after_timeout, deficit, degradation
from ackclock.models.delay_law import DelayLaw
from ackclock.models.friendliness import uniform_reach
from ackclock.models.law_source import law_of
from ackclock.models.optimal_delays import gaussian, least_margin, optimal_delays
from ackclock.papers.m05 import analysis
from test_command import command

# Table 5.1 as printed; it sums to 99.96 %.
PRINTED = DelayLaw([0, 40, 60, 100, 120, 160, 180], [0.8064, 0.088, 0.093, 0.006, 0.006, 0.0003, 0.0003])


def enumerated(law: DelayLaw, k: int, c: float) -> float:
    """The least mean added by the source's own way: 3^k sets of bounds, the others by Lagrange's condition."""
    d, p = np.array(law.delays), np.array(law.probabilities)
    S = 16 * np.diag(p[:k]) - 17 * np.outer(p[:k], p[:k])
    b = 2 * p[:k] * (16 * d[:k] + c - 17 * law.mean)
    a = 16 * law.sd**2 - (c - law.mean) ** 2
    m = d[k] - d[:k]
    best = np.inf
    for kinds in product((0, 1, 2), repeat=k):
        free = np.array([kind == 2 for kind in kinds])
        x = np.where(np.array(kinds) == 1, m, 0.0)
        if not free.any():
            continue
        h = b[free] + 2 * (S @ x)[free]
        inverse = np.linalg.inv(S[np.ix_(free, free)])
        u, v = inverse @ p[:k][free] / 2, -inverse @ h / 2
        base, line = x.copy(), np.zeros(k)
        base[free], line[free] = v, u
        # a + b (base + t line) + (base + t line) S (base + t line) = 0
        roots = np.roots([line @ S @ line, 2 * base @ S @ line + b @ line, base @ S @ base + b @ base + a])
        for t in roots[np.isreal(roots)].real:
            delta = base + t * line
            if ((delta >= -1e-9) & (delta <= m + 1e-9)).all() and law.mean + p[:k] @ delta <= c + 1e-9:
                best = min(best, p[:k] @ delta)
    return float(best)


def solved(law: DelayLaw, k: int, c: float, starts: int) -> float:
    """The least mean added that a local solver finds from many starting points."""
    d, p = np.array(law.delays), np.array(law.probabilities)
    m = d[k] - d[:k]

    def timer(delta):
        x = d + np.concatenate([delta, np.zeros(len(d) - k)])
        mean = p @ x
        return mean + 4 * np.sqrt(p @ (x - mean) ** 2) - c

    best = np.inf
    random = np.random.default_rng(1)
    for _ in range(starts):
        found = optimize.minimize(
            lambda delta: p[:k] @ delta,
            random.uniform(0, 1, k) * m,
            jac=lambda _: p[:k],
            bounds=[(0, one) for one in m],
            constraints={"type": "eq", "fun": timer},
            method="SLSQP",
        )
        if found.success and abs(timer(found.x)) < 1e-5:
            best = min(best, found.fun)
    return float(best)


@st.composite
def laws(draw, least: int, most: int) -> DelayLaw:
    n = draw(st.integers(least, most))
    gaps = draw(st.lists(st.floats(1, 50), min_size=n, max_size=n))
    weights = np.array(draw(st.lists(st.floats(0.01, 1), min_size=n, max_size=n)))
    # Later delays are rarer, as on a link.
    falling = weights * 0.3 ** np.arange(n)
    return DelayLaw(list(np.cumsum(gaps) - gaps[0]), list(falling / falling.sum()))


@given(laws(4, 6), st.floats(1e-4, 0.02), st.floats(0, 0.9))
@settings(deadline=None)
def test_the_optimum_is_that_of_all_sets_of_bounds(law, epsilon, share):
    assume(law.p_timeout > epsilon)
    k = optimal_k(law, epsilon)
    rho = share * (law.delays[k + 1] - law.delays[k]) if k + 1 < len(law.delays) else share * 10
    try:
        found = optimal_delays(law, epsilon, rho)
    except ValueError:
        assert enumerated(law, k, law.delays[k] + rho) == np.inf
        return
    assert found.held == k
    assert found.mean_added == pytest.approx(enumerated(law, k, law.delays[k] + rho), rel=1e-6, abs=1e-7)
    assert found.after.rto == pytest.approx(law.delays[k] + rho, rel=1e-7)
    assert found.after.p_timeout <= epsilon
    inside = [
        0 < added < law.delays[k] - d - 1e-7 and added > 1e-7
        for d, added in zip(law.delays[:k], found.added[:k], strict=True)
    ]
    assert sum(inside) <= 1


def optimal_k(law: DelayLaw, epsilon: float) -> int:
    """The smallest k with p_(k+2) + p_(k+3) + .. <= epsilon, delays counted from 1."""
    return next(k for k in range(len(law.delays)) if sum(law.probabilities[k + 1 :]) <= epsilon)


def test_a_solver_from_many_points_finds_nothing_better():
    for law in (analysis.law(), PRINTED):
        found = optimal_delays(law, 0.001, 10)
        assert solved(law, 4, 130, 40) == pytest.approx(found.mean_added, abs=1e-4)


def test_the_example_of_section_5_4():
    found = analysis.optimum()
    assert found.held == 4
    assert found.added[:5] == pytest.approx([0, 0, 25.96, 20, 0], abs=0.005)
    assert found.mean_added == pytest.approx(2.546, abs=5e-4)
    assert found.after.rto == pytest.approx(130)
    # The printed law, whose rest of 0.04 % is put to the first delay.
    assert optimal_delays(PRINTED, 0.001, 10).added[2] == pytest.approx(26.43, abs=0.02)


def test_the_longest_delays_need_not_be_those_that_are_held_to_the_end():
    law = DelayLaw([0, 25, 50, 75, 150], [0.92, 0.06, 0.015, 0.004, 0.001])
    found = optimal_delays(law, 0.002, 10)
    assert found.added == pytest.approx([0, 50, 3.606, 0, 0], abs=1e-3)
    assert found.mean_added == pytest.approx(enumerated(law, 3, 85), abs=1e-9)
    assert found.mean_added == pytest.approx(solved(law, 3, 85, 60), abs=1e-4)


def test_ten_and_twenty_delays_are_no_matter():
    n = 22
    p = 0.5 ** np.arange(1, n + 1)
    law = DelayLaw([20.0 * i for i in range(n)], list(p / p.sum()))
    for epsilon, k in ((2.0**-12, 10), (2.0**-17, 15)):
        # Beyond k + 1 delays there is 2^-(k+1), less what the law lacks of 1.
        found = optimal_delays(law, epsilon, 5)
        assert found.held in (k, k + 1)
        assert found.after.p_timeout <= epsilon
    p = 0.7 ** np.arange(40)
    with pytest.raises(ValueError, match="25 delays would be held, more than 20"):
        optimal_delays(DelayLaw([20.0 * i for i in range(40)], list(p / p.sum())), 1e-4, 5)


def test_a_law_that_is_friendly_is_left_alone():
    found = optimal_delays(DelayLaw([0, 10], [0.5, 0.5]), 0.001, 5)
    assert (found.held, list(found.added), found.mean_added) == (0, [0.0, 0.0], 0.0)


@pytest.mark.parametrize(
    ("epsilon", "rho", "message"),
    [
        (0.0, 10, "epsilon: 0.0 is not above 0 and below 1"),
        (0.001, -1, "rho: -1 is not 0 or above"),
        (0.001, 40, "rho: 40 is not below 40, the way to the next delay"),
    ],
)
def test_what_cannot_be_is_told(epsilon, rho, message):
    with pytest.raises(ValueError, match=message):
        optimal_delays(analysis.law(), epsilon, rho)


def test_delays_of_the_rest_of_the_path_keep_the_bound():
    found = analysis.optimum()
    after = found.after
    random = np.random.default_rng(5)
    for sd in (1.0, 4.0, 8.0):
        exact = found.p_timeout_with(gaussian(sd), sd)
        # The source's bound, which the sum sharpens.
        assert exact <= stats.norm.sf(10 / sd) + 0.001
        x = random.choice(after.delays, p=np.array(after.probabilities) / sum(after.probabilities), size=400_000)
        v = random.normal(0, sd, x.size)
        timer = after.mean + 4 * np.hypot(after.sd, sd)
        assert (x + v > timer).mean() == pytest.approx(exact, abs=4 * np.sqrt(exact / x.size))
    # A uniform V of +- 9 ms never reaches the margin of 10 ms.
    half = 9.0
    uniform = found.p_timeout_with(lambda v: float(np.clip((half - v) / (2 * half), 0, 1)), half / 3**0.5)
    assert uniform <= 0.001


def test_the_least_margin_is_the_first_that_suffices():
    found = least_margin(analysis.law(), 0.001, 0.002, 4.0)
    assert found.p_timeout_with(gaussian(4.0), 4.0) <= 0.002
    # The margins are hundredths of the 40 ms to the next delay.
    before = optimal_delays(analysis.law(), 0.001, found.timer - 120 - 0.4)
    assert before.p_timeout_with(gaussian(4.0), 4.0) > 0.002
    with pytest.raises(ValueError, match="target: 1e-05 is below"):
        least_margin(analysis.law(), 0.001, 1e-5, 4.0)


def test_uniform_and_normal_laws_are_friendly():
    quantiles = (np.arange(100_000) + 0.5) / 100_000
    uniform = law_from(3 + 4 * quantiles)
    assert uniform.p_timeout == 0
    assert uniform.rto - 7 == pytest.approx(uniform_reach(3, 7), abs=1e-3)
    normal = law_from(100 + stats.norm.ppf(quantiles))
    assert normal.p_timeout == pytest.approx(stats.norm.sf(4), abs=2e-5)


def law_from(samples) -> DelayLaw:
    return DelayLaw(samples.tolist(), [1 / samples.size] * samples.size)


def law(path, **changed) -> DelayLaw:
    return law_of(str(path), **{"step": 0.06, "frames": 2, "column": "", "grid": 0.0, **changed})


def test_laws_come_from_texts_tables_models_series_and_recordings(tmp_path, monkeypatch, capsys):
    assert law("0:0.5, 20:0.5").rto == pytest.approx(10 + 40)
    table = tmp_path / "law.csv"
    table.write_text("delay_ms,probability\n0,0.5\n20,0.5\n")
    assert list(law(table).delays) == [0, 20]
    assert command(monkeypatch, "model", "packet-delay", "2", "--json") == 0
    printed = tmp_path / "law.json"
    printed.write_text(capsys.readouterr().out)
    assert law(printed).mean == pytest.approx(law("channel").mean)
    series = tmp_path / "run.csv"
    series.write_text("t_s,flow0.rtt_ms,flow1.rtt_ms\n0,,7\n1,100,7\n2,300,7\n")
    assert list(law(series, column="flow0.rtt_ms").delays) == [100, 300]
    with pytest.raises(ValueError, match=r"run\.csv: --column must name one of its columns: t_s, flow0\.rtt_ms"):
        law(series)
    recording = tmp_path / "x.down"
    recording.write_text("0\n5\n5\n30\n")
    assert list(law(recording).delays) == [0, 5, 25]
    assert list(law(recording, grid=20.0).delays) == [0, 20, 40]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "--column must name one of its columns: a, b"),
        ("{}", "no law in it"),
        ('{"flows": []}\n{"flows": []}\n', "results of a run hold no samples: take its --series or its --pcap"),
        ("1\nx\n", "'x' is not a number"),
        ("delay_ms,probability\n0,0.5\n", "the probabilities sum to 0.5"),
        ("5\n", "no samples in it"),
    ],
)
def test_a_file_that_holds_no_law_is_named(tmp_path, text, message):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"^{path}: ") as error:
        law(path)
    assert message in str(error.value)


def test_what_was_added_can_be_read_again(tmp_path, monkeypatch, capsys):
    assert command(monkeypatch, "model", "optimal-delays", "channel", "--json") == 0
    path = tmp_path / "after.json"
    path.write_text(capsys.readouterr().out)
    result = json.loads(path.read_text())["result"]
    assert result["after"][0]["rto_ms"] == pytest.approx(130)


def test_windows_recover_as_the_source_works_out():
    # Section 4.5: 2, 3, 4 and 4 to 7 packets after a fast retransmit, 1 to 4 and 1, 2, 4 to 7 after a time-out.
    assert after_fast_retransmit(5) == [2, 3, 4]
    assert after_fast_retransmit(8) == [4, 5, 6, 7]
    assert after_timeout(5) == [1, 2, 3, 4]
    assert after_timeout(8) == [1, 2, 4, 5, 6, 7]
    assert [deficit(after_timeout(w), w) for w in (5, 8)] == [10, 23]


@pytest.mark.parametrize(("window", "every"), [(5, 400), (8, 117)])
def test_the_degradation_is_that_of_cycles_played_out(window, every):
    # An event every `every` packets: recovery, then full windows for the rest of them.
    recovery = after_timeout(window)
    trips = len(recovery) + (every - sum(recovery)) / window
    lost = 1 - every / trips / window
    assert degradation(deficit(recovery, window), 1 / every) == pytest.approx(lost, rel=1e-12)
    assert Path(window).after_timeouts(0.01, 1 / every) == pytest.approx(Path(window).ideal(0.01) * (1 - lost))
