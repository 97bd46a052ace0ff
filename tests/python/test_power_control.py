"""The power-controlled channel: frame errors, outer loop, delay of packets, against independent computation."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from ackclock.models.delay_law import DelayLaw
from ackclock.models.frame_errors import Coding
from ackclock.models.packet_delay import Scheme, packet_delay, spurious_fast_retransmit
from ackclock.models.power_control import Chain

STEPS = (0.2, 0.06, 0.02)


def test_a_frame_is_damaged_where_one_of_its_bits_is():
    # Directly from the formula, with SciPy's normal tail: beta = ln(10)/10, a = 4, sigma = 1.
    beta = np.log(10) / 10
    for sir in (-3.0, 0.0, 2.759, 6.0):
        bit = stats.norm.sf(np.sqrt(2 * 4 * np.exp(beta * sir + beta**2 / 2)))
        assert Coding().damaged(sir) == pytest.approx(1 - (1 - bit) ** 2560, rel=1e-9)
    assert Coding().operating_point(0.1) == pytest.approx(2.759, abs=5e-4)


@pytest.mark.parametrize(("step", "mean", "sd"), [(0.2, 3.182, 0.824), (0.06, 2.874, 0.408), (0.02, 2.796, 0.228)])
def test_the_stationary_law_is_what_the_chain_settles_to(step, mean, sd):
    chain = Chain(step)
    law = np.full(chain.states, 1 / chain.states)
    for _ in range(4000):
        law = np.sum(chain.split(law), axis=0)
    # The chain alternates between classes of its states (every cycle is a multiple of K + 1): averaged over ten frames.
    settled = np.zeros(chain.states)
    for _ in range(10):
        settled += law / 10
        law = np.sum(chain.split(law), axis=0)
    assert np.allclose(settled, chain.start, atol=1e-9)
    # One frame in K + 1 is damaged: ups and downs balance.
    assert chain.error_rate == pytest.approx(0.1, abs=1e-12)
    assert (chain.mean_sir, chain.sd_sir) == (pytest.approx(mean, abs=5e-4), pytest.approx(sd, abs=5e-4))


@pytest.mark.parametrize("step", STEPS)
def test_rare_states_of_the_stationary_law_are_as_precise_as_common_ones(step):
    chain = Chain(step)
    assert chain.start.min() > 0
    law = np.sum(chain.split(chain.start), axis=0)
    assert law == pytest.approx(chain.start, rel=1e-9, abs=0)


def test_nobody_falls_below_a_state_that_always_loses():
    # Below -18 dB a bit is wrong with more than 0.3: no frame of 2560 bits arrives.
    chain = Chain(0.2, lowest=-24.0, span=30.0)
    lost = chain.damaged == 1
    assert lost.sum() > 20
    assert chain.start[lost][:-1].max() < 1e-100
    assert chain.error_rate == pytest.approx(0.1, abs=1e-12)


@pytest.mark.parametrize("step", STEPS)
def test_sequences_of_errors_have_the_probability_of_the_sum_over_first_states(step):
    chain = Chain(step)
    f, pi = chain.damaged, chain.start

    def f_at(k: int) -> float:
        return 1.0 if k < 1 else 0.0 if k > chain.states else f[k - 1]

    def printed(errors) -> float:
        total = 0.0
        for i in range(1, chain.states + 1):
            p = pi[i - 1]
            for t, e in enumerate(errors, start=1):
                at = f_at(i + 1 - t + (chain.up + 1) * sum(errors[: t - 1]))
                p *= at if e else 1 - at
            total += p
        return total

    for errors in ((0,), (1,), (1, 0, 0, 1), (0, 1, 1, 0, 0, 0, 1)):
        assert chain.probability(errors) == pytest.approx(printed(errors), abs=1e-14)
    assert sum(chain.probability(errors) for errors in product((0, 1), repeat=8)) == pytest.approx(1, abs=1e-12)


def courses(chain: Chain, length: int, least: float):
    """Every sequence of errors of a length whose probability is not below `least`, with it."""
    layer = [((), chain.start)]
    for _ in range(length):
        layer = [
            ((*errors, e), law)
            for errors, before in layer
            for e, law in enumerate(chain.split(before))
            if law.sum() >= least
        ]
    return [(errors, float(law.sum())) for errors, law in layer]


def completions(errors, packets: int, frames: int) -> list[int | None]:
    """The slot in which each packet is complete; repetitions come three slots later, before new frames."""
    again: dict[int, int] = {}
    waiting = list(range(packets * frames))
    left, done = [frames] * packets, [None] * packets
    for slot, damaged in enumerate(errors, start=1):
        frame = again.pop(slot) if slot in again else waiting.pop(0) if waiting else None
        if frame is None:
            continue
        if damaged:
            again[slot + 3] = frame
        else:
            left[frame // frames] -= 1
            if left[frame // frames] == 0:
                done[frame // frames] = slot
    return done


@pytest.mark.parametrize(("step", "frames"), [(0.2, 1), (0.06, 2), (0.02, 3)])
def test_delays_are_those_of_all_sequences_of_twenty_frames(step, frames):
    chain = Chain(step)
    found = packet_delay(chain, frames)
    delays: dict[int, float] = {}
    known = 0.0
    for errors, p in courses(chain, 20, 1e-8):
        (slot,) = completions(errors, 1, frames)
        known += p
        if slot is not None:
            delays[slot - frames] = delays.get(slot - frames, 0.0) + p
    missing = 1 - known
    assert missing < 1e-3
    for delay, p in zip(found.law.delays, found.law.probabilities, strict=True):
        if delay <= 9:
            assert delays[delay] <= p + 1e-12
            assert p <= delays[delay] + missing


@pytest.mark.parametrize(("step", "printed"), [(0.2, 0.260), (0.06, 0.630), (0.02, 0.790)])
def test_a_spurious_fast_retransmit_is_the_first_of_four_packets_complete_last(step, printed):
    chain = Chain(step)
    last, known = 0.0, 0.0
    for errors, p in courses(chain, 20, 1e-7):
        first, *others = completions(errors, 4, 1)
        known += p
        if first is not None and all(slot is not None and slot < first for slot in others):
            last += p
    assert last <= spurious_fast_retransmit(chain, 1) <= last + 1 - known
    assert 100 * spurious_fast_retransmit(chain, 1) == pytest.approx(printed, abs=6e-4)


# Sums over the sequences of 20 frames, as the source has them; with more frames a packet they miss delays beyond.
@pytest.mark.parametrize(
    ("frames", "step", "mean", "sd", "p_timeout"),
    [
        (1, 0.2, 0.308, 0.936, 0.260),
        (2, 0.06, 0.529, 1.155, 0.681),
        (7, 0.06, 1.071, 1.270, 0.217),
        (4, 0.02, 0.757, 1.279, 1.050),
    ],
)
def test_delays_of_table_4_1(frames, step, mean, sd, p_timeout):
    law = packet_delay(Chain(step), frames).law
    cut = 6e-4
    assert (law.mean, law.sd) == (pytest.approx(mean, abs=cut), pytest.approx(sd, abs=cut))
    assert 100 * law.p_timeout == pytest.approx(p_timeout, abs=cut)


def test_a_frame_is_given_up_after_its_last_repetition():
    class Broken:
        start = np.ones(1)

        def split(self, law):
            return 0.5 * law, 0.5 * law

    # One frame, repeated twice: lost where all three transmissions fail; delays 0, 3, 6 with 4 : 2 : 1.
    found = packet_delay(Broken(), 1, Scheme(rounds=2))
    assert found.lost == 0.125
    assert list(found.law.delays) == [0, 3, 6]
    assert found.law.probabilities == pytest.approx([4 / 7, 2 / 7, 1 / 7])


@pytest.mark.parametrize(
    ("delays", "probabilities", "message"),
    [
        ([0, 20], [0.5, 0.6], "the probabilities sum to 1.1, not to 1"),
        ([0, 20], [1.2, -0.2], "the probability 1.2 of the delay 0 is not from 0 to 1"),
        ([20, 0], [0.5, 0.5], "the delay 0 is not above 20, which stands before it"),
        ([-1, 0], [0.5, 0.5], "the delay -1 is not 0 or above"),
        ([0], [0.5, 0.5], "1 delays with 2 probabilities"),
        ([float("nan")], [1.0], "the delay nan is not 0 or above"),
    ],
)
def test_a_law_that_is_none_says_where(delays, probabilities, message):
    with pytest.raises(ValueError, match="law: ") as error:
        DelayLaw(delays, probabilities)
    assert message in str(error.value)
