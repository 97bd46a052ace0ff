"""How each row is computed."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ackclock.paper import Claim, Runs
from ackclock.paper.document import number
from ackclock.paper.expected import Expected
from ackclock.paper.measure import all_timeouts, drops
from ackclock.paper.order import above, alike, below, gain
from ackclock.paper.runs import PerSeed, Replaced
from ackclock.papers.ac06 import grid
from ackclock.papers.ac06.grid import BUFFER, CONFIGURATIONS, Control
from ackclock.papers.ac06.measures import ack_gap, delay, goodput, occupancy, overflows

Claims = Iterator[tuple[str, Claim]]
TRACED = 20  # runs of which the occupancy is looked at, TTI by TTI
PAIR = 62.5  # ms, in which the bearer sends two packets, for which there is one ACK
NEGLIGIBLE = 2.0  # %, within which a goodput or a delay counts as equal


def claims(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """Our value of every row that is checked."""
    parts = (of_formula(), table_2(runs), of_table_2(runs), of_parameters(runs), of_buffer(runs), of_start(runs))
    more = (of_drops(runs), of_grid(runs), of_aggressiveness(runs))
    return dict(claim for part in (*parts, *more) for claim in part)


def null_model(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """The rows about the controller, from runs without it. The amplitude (AC06-O7) is read from series and left out."""
    without = Replaced(runs, grid.null_model)
    parts = (table_2(without), of_table_2(without), of_parameters(without), of_start(without), of_drops(without))
    claimed = dict(claim for part in (*parts, of_grid(without)) for claim in part)
    return {row: claim for row, claim in claimed.items() if "-anone-" not in row}


def of_formula() -> Claims:
    """Formula 1 and figure 9."""
    at_20 = [control.delay(20) for control in CONFIGURATIONS]
    yield "AC06-F1", Claim(at_20, kind="computed")
    below_10 = max(control.delay(occupancy) for control in CONFIGURATIONS for occupancy in range(10))
    ordering = below_10 < 240 and min(at_20) >= 3 * PAIR
    note = (
        f"at most {below_10:.0f} ms below 10 packets and at least {min(at_20):.0f} ms at 20; two packets take {PAIR} ms"
    )
    step, line, none = (Control(alpha, 10, 500) for alpha in (0, 1, 1000))
    beyond = range(10, BUFFER + 1)
    holds = (
        all(step.delay(occupancy) == 500 for occupancy in beyond)
        and np.ptp(np.diff([line.delay(occupancy) for occupancy in beyond])) < 1e-9
        and max(none.delay(occupancy) for occupancy in beyond[:-1]) < 1e-6
    )
    yield "AC06-F5-1", Claim(ordering=holds, note="alpha 0, 1 and 1000; minth 10, maxd 500 ms", kind="computed")
    yield "AC06-F2", Claim(ordering=ordering, note=note, kind="computed")


def table_2(runs: Runs, reading: str = grid.AS_JUDGED) -> Claims:
    """Every number of table 2."""
    for flows, control, at in grid.table_2(reading):
        row = f"AC06-T2-{flows}-a{control.alpha:g}" if control else f"AC06-T2-{flows}-anone"
        yield f"{row}-goodput", number(runs(at, goodput))
        yield f"{row}-delay", number(runs(at, delay))


def of_table_2(runs: Runs) -> Claims:
    """Statements of the text about table 2."""
    plain = grid.download(1)
    kbps = {control: gain(_goodput(runs, 1, control), runs(plain, goodput)) for control in CONFIGURATIONS}
    faster = all(above(_goodput(runs, 1, control), runs(plain, goodput)) for control in CONFIGURATIONS)
    later = [control for control in CONFIGURATIONS if above(_delay(runs, 1, control), runs(plain, delay))]
    seen = ", ".join(f"alpha {control.alpha:g} {_mean(percent):+.1f} %" for control, percent in kbps.items())
    note = f"goodput {seen}; delay larger with {', '.join(f'alpha {one.alpha:g}' for one in later) or 'none'}"
    yield "AC06-O1", Claim(ordering=faster and not later, note=note)
    four = grid.download(4)
    change = {control: gain(_goodput(runs, 4, control), runs(four, goodput)) for control in CONFIGURATIONS}
    less = {control: -gain(_delay(runs, 4, control), runs(four, delay)) for control in CONFIGURATIONS}
    small = all(abs(_mean(percent)) < 4 for percent in change.values())
    seen = ", ".join(
        f"alpha {one.alpha:g} {_mean(change[one]):+.1f} % and {_mean(less[one]):.0f} % less" for one in CONFIGURATIONS
    )
    yield "AC06-O2", Claim([min(map(_mean, less.values()))], small, note=f"goodput and delay: {seen}")
    longer = list(grid.with_least_delay())
    apart = [max(abs(_mean(gain(runs(b, of), runs(a, of)))) for a, b in longer) for of in (goodput, delay)]
    note = f"a least delay of 100 ms changes goodput by {apart[0]:.1f} % at most and delay by {apart[1]:.1f} %"
    yield "AC06-O8", Claim(ordering=apart[0] <= 3 and apart[1] <= 10, note=note)


def of_parameters(runs: Runs) -> Claims:
    """Figures 7, 8 and 10: effects of alpha, minth and maxd."""
    plain = grid.download(1, runs=grid.ALPHA_RUNS)
    ends = [at[grid.ALPHAS[-1]] for at in map(grid.by_alpha, grid.ALPHA_LONGEST)]
    equal = all(alike(runs(at, of), runs(plain, of), NEGLIGIBLE) for at in ends for of in (goodput, delay))
    seen = ", ".join(
        f"{_mean(gain(runs(at, goodput), runs(plain, goodput))):+.1f} % and "
        f"{_mean(gain(runs(at, delay), runs(plain, delay))):+.1f} %"
        for at in ends
    )
    yield "AC06-O3", Claim(ordering=equal, note=f"alpha 40, goodput and delay: {seen}")
    curves = [{alpha: runs(at, goodput) for alpha, at in grid.by_alpha(ms).items()} for ms in grid.ALPHA_LONGEST]
    halves = [[alpha for alpha in grid.ALPHAS if alpha < 1], [alpha for alpha in grid.ALPHAS if alpha > 1]]
    sides = [[np.mean([curve[alpha] for alpha in half], axis=0) for curve in curves] for half in halves]
    worse = all(below(large, small) for small, large in zip(*sides, strict=True))
    seen = ", ".join(
        f"maxd {ms} ms: {_mean(small):.0f} and {_mean(large):.0f} kbit/s"
        for ms, small, large in zip(grid.ALPHA_LONGEST, *sides, strict=True)
    )
    yield "AC06-O4", Claim(ordering=worse, note=f"mean below and above alpha 1, {seen}")
    decays, seen_all = True, []
    for flows in grid.FLOWS:
        curve = grid.by_longest(flows, grid.SHOWN_ALPHAS[0], 0)
        first, last = (runs(curve[ms], goodput) for ms in (500, 2000))
        decays = decays and below(last, first)
        seen_all.append(f"{flows} flow(s) {_mean(first):.0f} and {_mean(last):.0f} kbit/s")
    note = f"alpha 0.5, minth 0, maxd 500 and 2000 ms: {', '.join(seen_all)}"
    yield "AC06-O5", Claim(ordering=decays, note=note)


def of_buffer(runs: Runs) -> Claims:
    """Figures 1, 2 and 11: the buffer of the radio link control."""
    buffers = [10, 20, 50, 100]
    falls = {
        f"{name} of {flows} flow(s) from {a} to {b} packets"
        for flows in grid.BUFFER_FLOWS
        for name, of in (("goodput", goodput), ("delay", delay))
        for a, b in pairwise(buffers)
        if below(runs(grid.by_buffer(flows)[b], of), runs(grid.by_buffer(flows)[a], of))
    }
    share = _mean(runs(grid.at_first()[None], overflows))
    note = (
        f"falls: {', '.join(sorted(falls)) or 'none'}; of single downloads {share:.0%} lose several packets and then "
        f"wait for the timer within {grid.AT_FIRST}"
    )
    yield "AC06-O6", Claim(ordering=not falls and share > 0.5, note=note)
    swings = {control: occupancy(grid.download(1, control), TRACED)[1] for control in CONFIGURATIONS}
    calm = swings[CONFIGURATIONS[1]]
    larger = all(above(swings[CONFIGURATIONS[i]], calm) for i in (0, 3))
    seen = ", ".join(f"alpha {control.alpha:g} {_mean(swing):.1f}" for control, swing in swings.items())
    yield "AC06-O7", Claim(ordering=larger, note=f"standard deviation, packets: {seen}")
    lossy, clean = (
        occupancy(grid.download(1, flow__max_window="20p", **grid.both("errors", errors)), TRACED)[0]
        for errors in ({"kind": "rayleigh", "fer": "10%", "doppler": 0.01}, 0)
    )
    note = f"windows of 20 packets: {_mean(clean):.1f} packets without errors, {_mean(lossy):.1f} with"
    yield "AC06-O9", Claim(ordering=above(lossy, clean), note=note)


def of_start(runs: Runs) -> Claims:
    """The first seconds of one download."""
    lost = {control: runs(at, drops) for control, at in grid.at_first().items()}
    fewer = all(_mean(lost[control]) < _mean(lost[None]) for control in CONFIGURATIONS)
    seen = ", ".join(f"alpha {control.alpha:g} {_mean(lost[control]):.2f}" for control in CONFIGURATIONS)
    note = f"drops in {grid.AT_FIRST}: conventional {_mean(lost[None]):.2f}, {seen}"
    yield "AC06-O10", Claim(ordering=fewer, note=note)


def of_drops(runs: Runs) -> Claims:
    """Drops and timers of table 2."""
    traced = [runs(grid.download(1, CONFIGURATIONS[i]), drops) for i in (0, 1, 3)]
    yield "AC06-F11-1", Claim([float(np.median(values)) for values in traced])
    conventional, *controlled = (
        runs(grid.download(1, control), all_timeouts) for control in (None, *CONFIGURATIONS[:2], CONFIGURATIONS[3])
    )
    seen = ", ".join(f"{_mean(values):.2f}" for values in (conventional, *controlled))
    fewer = all(_mean(values) < _mean(conventional) for values in controlled)
    yield "AC06-S3-1", Claim(ordering=fewer, note=f"time-outs, conventional and alpha 0, 0.2, 1: {seen}")


def of_grid(runs: Runs) -> Claims:
    """Number of settings in figures 7 and 8 that are better than no controller."""
    plain = grid.download(1)
    better = [
        above(runs(at, goodput), runs(plain, goodput)) and below(runs(at, delay), runs(plain, delay))
        for at in grid.of_figure(1)
    ]
    share = 100 * float(np.mean(better))
    yield "AC06-F7-1", Claim([share], share > 0, f"{sum(better)} of {len(better)} settings")
    plain = grid.download(4)
    gains = [_mean(gain(runs(at, goodput), runs(plain, goodput))) for at in grid.of_figure(4)]
    note = f"the best of {len(gains)} settings; {sum(more > 5 for more in gains)} gain more than 5 %"
    yield "AC06-F8-1", Claim([max(gains)], note=note)


def of_aggressiveness(runs: Runs) -> Claims:
    """Mean time between ACKs as they leave the edge, one parameter at a time."""
    holds, seen = True, []
    for name, curve in grid.by_aggressiveness():
        gaps = {setting: runs(at, ack_gap) for setting, at in curve.items()}
        holds = holds and all(above(b, a) for a, b in pairwise(gaps.values()))
        seen.append(f"{name} {', '.join(f'{abs(setting):g}: {_mean(ms):.0f}' for setting, ms in gaps.items())}")
    yield "AC06-F78-1", Claim(ordering=holds, note=f"mean time between ACKs, ms, by {'; by '.join(seen)}")


def _goodput(runs: Runs, flows: int, control: Control) -> PerSeed:
    return runs(grid.download(flows, control), goodput)


def _delay(runs: Runs, flows: int, control: Control) -> PerSeed:
    return runs(grid.download(flows, control), delay)


def _mean(values: PerSeed) -> float:
    return float(np.mean(values))
