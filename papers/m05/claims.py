"""How each row with a formula is computed."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from math import e

import numpy as np
from scipy.special import lambertw

from ackclock.models.error_process import Rayleigh
from ackclock.models.feedback_loop import lyapunov_derivative, sampled
from ackclock.models.feedforward_loop import bound, exponent
from ackclock.models.friendliness import CHEBYSHEV, NORMAL, UNIFORM
from ackclock.models.optimal_delays import Optimum, gaussian
from ackclock.paper import Claim
from ackclock.paper.document import number
from ackclock.paper.expected import Expected
from ackclock.papers.m05 import analysis
from ackclock.papers.m05.analysis import EXAMPLES, SIZES, STEPS, TTI, chain, delay, fast_retransmit

REST_SDS = (1.0, 3.0, 5.0, 10.0)  # ms; the source has 3
SIZES_OF_REORDERING = (1, 2, 3, 4)  # frames
Claims = Iterator[tuple[str, Claim]]


def claims(expected: Expected) -> dict[str, Claim]:
    """Our value of every row with a formula."""
    parts = (chapter_3(), tables_4_1_and_4_2(), table_4_3(), figure_4_9(), chapter_5(), table_5_2(), repetition())
    more = (section_4_2(), section_4_4(), section_4_5(), lemma_1())
    return dict(claim for part in (*parts, *more) for claim in part)


def chapter_3() -> Claims:
    """The loops of the proxy."""
    yield "M05-F33-1", Claim([bound(ratio) for ratio in analysis.RATIOS])
    yield "M05-F33-2", number(exponent(e))
    between = np.linspace(1.0, e, 2001)
    yield "M05-P1", number(1 / min(bound(ratio) for ratio in between), "tau* from tau to e tau, by the proven bound")
    yield "M05-P2", number(float(max(map(abs, _lyapunov_differences()))), "in exact fractions")
    # A window 14 packets too large: two samples later the queue is at its reference.
    queues = [queue for queue, _ in sampled(1.0, 6.0, 10.0, 30.0, 5)]
    yield "M05-D1", number(1 + next(k for k in range(len(queues)) if all(queue == 6 for queue in queues[k:])))
    yield "M05-F39-1", number(6.0, "as stated")


def section_4_2() -> Claims:
    """The loops of the power control."""
    levels = analysis.swing(2)
    yield (
        "M05-S42-1",
        number(float(len(levels)), "a still channel, from the rule of the loop; the source says typically"),
    )
    swing = max(levels) - min(levels)
    yield "M05-S42-2", Claim([swing], 2 <= swing <= 3, "from the lowest to the highest level of the swing")
    mean, sd = ([getattr(chain(step), of) for step in STEPS] for of in ("mean_sir", "sd_sir"))
    seen = ", ".join(f"{step:g} dB {a:.2f} ± {b:.2f}" for step, a, b in zip(STEPS, mean, sd, strict=True))
    falls = all(a > b for of in (mean, sd) for a, b in pairwise(of))
    yield "M05-F45-1", Claim(ordering=falls, note=f"mean and deviation of the reference: {seen}")
    yield "M05-S42-3", Claim([rate * TTI / 8 for rate in (64, 384)])


def section_4_4() -> Claims:
    """Delay and reordering by packet size."""
    means, sds = ({step: [getattr(delay(step, n).law, of) for n in SIZES] for step in STEPS} for of in ("mean", "sd"))
    linear = min(float(np.corrcoef(SIZES, of)[0, 1]) for of in means.values())
    slower = all(sd[-1] / sd[0] < mean[-1] / mean[0] for mean, sd in zip(means.values(), sds.values(), strict=True))
    apart = {name: of[STEPS[-1]][-1] / of[STEPS[0]][-1] for name, of in (("mean", means), ("deviation", sds))}
    holds = linear > 0.99 and slower and apart["deviation"] > apart["mean"]
    seen = ", ".join(f"{name} {ratio:.3f}" for name, ratio in apart.items())
    note = f"correlation with n at least {linear:.4f}; steps of 0.02 over 0.2 dB at n = 10: {seen}"
    yield "M05-T41-O1", Claim(ordering=holds, note=note)
    cells = [(step, n) for step in STEPS for n in SIZES_OF_REORDERING]
    above = [cell for cell in cells if fast_retransmit(*cell) > delay(*cell).law.above(3 * cell[1] - 0.5)]
    note = f"n from 1 to {SIZES_OF_REORDERING[-1]}: for more frames P_FR is below the precision of the sum"
    yield "M05-T42-O1", Claim(ordering=not above, note=note)


def section_4_5() -> Claims:
    """The example, and the cost of the delays of section 5.4."""
    yield "M05-S45-5", Claim([of.missing(event) for event in ("FR", "TO") for of in EXAMPLES[::-1]])
    trips = [analysis.REST + delay(0.06, of.frames).law.mean * TTI / 1e3 for of in EXAMPLES[::-1]]
    yield "M05-S45-6", Claim(trips)
    yield "M05-S54-7", number(100 * analysis.optimum().mean_added / 1e3 / trips[0])


def lemma_1() -> Claims:
    """Roots of alpha x = e^x."""
    alphas = np.linspace(1.001 * e, 50, 500)  # at e both roots are 1
    smallest = [-float(lambertw(-1 / alpha).real) for alpha in alphas]
    largest = [-float(lambertw(-1 / alpha, -1).real) for alpha in alphas]
    slack = 1e-9
    holds = all(
        1 / (alpha - 1) <= low + slack and high <= 2 * alpha + slack
        for alpha, low, high in zip(alphas, smallest, largest, strict=True)
    )
    yield "M05-L1", Claim(ordering=holds, note="500 alphas above e, to 50")


def _lyapunov_differences() -> Iterator[Fraction]:
    values = [Fraction(0), Fraction(1, 3), Fraction(5, 2), Fraction(40)]
    gains = [Fraction(1, 7), Fraction(3)]
    for q, w, q_ref, tau in product(values, values, values, values[1:]):
        for b, c in product(gains, gains):
            yield lyapunov_derivative(q, w, b, tau, q_ref, c) + 3 * (q - q_ref) ** 2 * (q + b * tau)


def tables_4_1_and_4_2() -> Claims:
    """Delay and reordering by step and size."""
    yield "M05-F43", number(chain(0.06).coding.operating_point(0.1))
    for step, frames in product(STEPS, SIZES):
        law = delay(step, frames).law
        yield f"M05-T41-{step:g}-{frames}-mean", number(law.mean)
        yield f"M05-T41-{step:g}-{frames}-sd", number(law.sd)
    for frames, step in product((1, 2, 3), STEPS):
        yield f"M05-T42-{frames}-{step:g}", number(100 * fast_retransmit(step, frames))
    yield "M05-O2", Claim([chain(step).repeated(3)[2] for step in STEPS[:2]])
    yield "M05-O3", number(0.0, "by definition: in order no packet leaves before an earlier one")


def table_4_3() -> Claims:
    """Cost of spurious events."""
    rows = {(event, of): [of.degradation(event, step) for step in STEPS] for event in ("FR", "TO") for of in EXAMPLES}
    for (event, of), costs in rows.items():
        for step, cost in zip(STEPS, costs, strict=True):
            yield f"M05-T43-{event}-{of.size}-{step:g}", number(cost)
    yield "M05-O1", Claim(ordering=all(a < b < c for a, b, c in rows.values()))
    yield "M05-S45-1", Claim([of.path.ideal(delay(0.06, of.frames).law.mean * TTI / 1e3) for of in EXAMPLES[::-1]])
    yield "M05-S45-2", number(analysis.AVAILABLE)
    yield "M05-S45-3", number(max(max(costs) for costs in rows.values()))


def figure_4_9() -> Claims:
    """P_TO."""
    for frames, step in product((1, 2), STEPS):
        yield f"M05-F49-{frames}-{step:g}", number(100 * delay(step, frames).law.p_timeout)
    before, after = (100 * delay(0.06, frames).law.p_timeout for frames in (6, 7))
    yield "M05-F49-step", number(before - after)
    everything = [100 * delay(step, frames).law.p_timeout for step, frames in product(STEPS, SIZES)]
    yield "M05-F49-range", Claim((min(everything), max(everything)))


def chapter_5() -> Claims:
    """Table 5.1 and the example of section 5.4."""
    law, found = analysis.law(), analysis.optimum()
    for ms, p in zip(law.delays, law.probabilities, strict=True):
        if ms <= analysis.LONGEST:
            yield f"M05-T51-{ms:g}", number(100 * p)
    yield "M05-S53-1", Claim([law.rto, 100 * law.p_timeout])
    yield "M05-S54-0", number(law.mean)
    yield "M05-S54-1", number(found.held)
    yield "M05-S54-2", Claim(list(found.added[: found.held]))
    yield "M05-S54-3", number(found.mean_added)
    yield "M05-S54-4", number(100 * found.after.p_timeout)
    yield "M05-S55-1", rest_of_path(found)
    yield "M05-S54-5", Claim([100 * NORMAL, 100 * UNIFORM, 100 * CHEBYSHEV])


def rest_of_path(found: Optimum) -> Claim:
    """Section 5.5: P_TO where other delays of the path are normal, below its bound for deviations up to 10 ms."""
    ratios = {}
    for sd in REST_SDS:
        exceeds = gaussian(sd)
        ratios[sd] = found.p_timeout_with(exceeds, sd) / (exceeds(analysis.RHO) + analysis.EPSILON)
    seen = ", ".join(f"{sd:g} ms {ratio:.2f}" for sd, ratio in ratios.items())
    note = f"P_TO over its bound by standard deviation: {seen}"
    return Claim(ordering=max(ratios.values()) <= 1, note=note)


def table_5_2() -> Claims:
    """Throughput before and after."""
    found = analysis.throughput()
    for name, value in found.items():
        yield f"M05-T52-{name}", number(value)
    yield "M05-S54-6", number(100 * (found["optimised"] / found["wireless"] - 1))


def repetition() -> Claims:
    """Section 5.2: when to repeat."""
    best = {name: analysis.best_g(name) for name in analysis.PROCESSES}
    bursts = {name: of.burst for name, of in analysis.PROCESSES.items() if isinstance(of, Rayleigh)}
    soonest = all(best[name] == 1 for name in best if name not in bursts)
    independent = analysis.p_timeout_by_g("independent")
    whichever = max(independent) - min(independent) < 1e-12
    about = all(burst / 2 <= best[name] <= 2 * burst for name, burst in bursts.items())
    seen = "; ".join(
        f"{name}: {g}"
        + (f", bursts of {bursts[name]:.1f}" if name in bursts else "")
        + f", a repetition is damaged with {analysis.damaged_again(name, g):.3f}"
        for name, g in best.items()
    )
    note = f"packets of one frame, the smallest g within 5 % of the least P_TO: {seen}"
    yield "M05-G1", Claim(ordering=soonest and whichever and about, note=note)
