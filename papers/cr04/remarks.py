"""Rows 26 to 30: what the slides remark beside their figures, over the judged cell.

Remarks about short flows name no load, so that they are judged under the medium and the heavy one.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from ackclock.paper import Claim, Runs
from ackclock.paper.measure import Measure, aggregate, fairness, file_rate, goodput
from ackclock.paper.order import above, below, gain
from ackclock.paper.runs import PerSeed
from ackclock.papers.cr04 import grid
from ackclock.papers.cr04.sizes import SHORT

Claims = Iterator[tuple[str, Claim]]

FILES = file_rate(200_001)  # goodput of long flows: files of 1 MB, beside which web objects are shorter


def claims(runs: Runs) -> Claims:
    """Our value of each row."""
    yield "CR04-26", larger_buffers(runs)
    yield "CR04-27", without_diversity(runs)
    yield "CR04-28", more_users(runs)
    yield "CR04-29", long_flows(runs)
    yield "CR04-30", saturated(runs)


def larger_buffers(runs: Runs) -> Claim:
    """What a larger buffer gives where the wire is longer than the buffer is deep."""
    points = grid.JUDGED.by_delay_and_buffer()
    kbps = {
        b: {name: {d: runs(at, goodput) for d, at in curve.items()} for name, curve in of.items()}
        for b, of in points.items()
    }
    gains = all(
        above(kbps[larger][name][d], kbps[smaller][name][d])
        for name in ("AR", "WRD", "WRB")
        for smaller, larger in pairwise(kbps)
        for d in grid.FAR
    )
    most = kbps[max(kbps)]
    recovered = not any(below(most[name][d], most["DT"][d]) for name in ("WRD", "WRB") for d in grid.FAR)
    seen = "; ".join(
        f"B {b}: " + ", ".join(f"{name} {_over_dt(of, name)} %" for name in ("AR", "WRD", "WRB"))
        for b, of in kbps.items()
    )
    wires = ", ".join(f"{2 * d} ms" for d in grid.FAR)
    note = (
        f"each gains by every step of the buffer: {_said(gains)}; at B {max(kbps)} none below DT: {_said(recovered)}; "
        f"over DT of the same buffer at round trips of {wires}: {seen}"
    )
    return Claim(ordering=gains and recovered, note=note)


def without_diversity(runs: Runs) -> Claim:
    """Short flows first without knowledge of the channels, beside PF/FIFO."""
    blind = ("RR/SFP", "RR-SP/SFP")
    latency, rate = (_by_case(runs, ("PF/FIFO", *blind), measure) for measure in (SHORT, FILES))
    none = not any(
        below(latency[case][name], latency[case]["PF/FIFO"]) or above(rate[case][name], rate[case]["PF/FIFO"])
        for case in latency
        for name in blind
    )
    seen = "; ".join(
        f"{case}: "
        + ", ".join(
            f"{name} latency {_change(latency[case], name)} %, files {_change(rate[case], name)} %" for name in blind
        )
        for case in latency
    )
    return Claim(ordering=none, note=f"up to 15 KB, and goodput of files of 1 MB, beside PF/FIFO: {seen}")


def more_users(runs: Runs) -> Claim:
    """What PF-RP/SFP takes off the latency of short flows as users become more, mean of both cases."""
    seen, rises = [], True
    for load, channel in grid.LOADS.items():
        gains = {
            case: {n: -gain(runs(at["PF-RP/SFP"], SHORT), runs(at["PF/FIFO"], SHORT)) for n, at in users.items()}
            for case, users in ((case, channel.by_users(case)) for case in grid.BASE_SNRS)
        }
        mean = {n: np.mean([of[n] for of in gains.values()], axis=0) for n in next(iter(gains.values()))}
        rises = rises and all(above(mean[b], mean[a]) for a, b in pairwise(mean))
        shown = "; ".join(
            f"{case} {', '.join(f'{n} users {np.mean(percent):.1f} %' for n, percent in of.items())}"
            for case, of in {"mean": mean, **gains}.items()
        )
        seen.append(f"{load} load: {shown}")
    return Claim(ordering=rises, note=f"up to 15 KB, {'; '.join(seen)}")


def long_flows(runs: Runs) -> Claim:
    """What the preference for short flows costs long ones, and how evenly."""
    ranked = ("PF/SFP", "PF-RP/SFP", "PF-SP/SFP")
    rate, jain = (_by_case(runs, ranked, measure) for measure in (FILES, fairness))
    falls = {
        name: all(above(of[case][a], of[case][b]) for case in of for a, b in pairwise(ranked))
        for name, of in (("goodput", rate), ("Jain index", jain))
    }
    seen = "; ".join(
        f"{case}: "
        + ", ".join(
            f"{name} {np.mean(rate[case][name]):.0f} kbit/s, {np.mean(jain[case][name]):.3f}" for name in ranked
        )
        for case in rate
    )
    told = ", ".join(f"{name} {_said(holds)}" for name, holds in falls.items())
    return Claim(ordering=all(falls.values()), note=f"in this order: {told}; files of 1 MB and Jain index, {seen}")


def saturated(runs: Runs) -> Claim:
    """Schedulers of four downloads without end."""
    points = grid.JUDGED.saturated()
    total, jain = ({name: runs(at, measure) for name, at in points.items()} for measure in (aggregate, fairness))
    ranked = all(above(total[a], total[b]) for a, b in pairwise(points))
    lowest = all(below(jain["max-rate"], jain[name]) for name in points if name != "max-rate")
    seen = ", ".join(f"{name} {np.mean(total[name]):.0f} kbit/s, {np.mean(jain[name]):.3f}" for name in points)
    return Claim(ordering=ranked and lowest, note=f"buffer {grid.BUFFER} packets each, total and Jain index: {seen}")


def _by_case(runs: Runs, schemes: tuple[str, ...], measure: Measure) -> dict[str, dict[str, PerSeed]]:
    return {
        f"{load} load, {case} SNR": {name: runs(at, measure) for name, at in channel.by_scheme(case, schemes).items()}
        for load, channel in grid.LOADS.items()
        for case in grid.BASE_SNRS
    }


def _over_dt(of: Mapping[str, Mapping[float, PerSeed]], name: str) -> str:
    return " / ".join(f"{np.mean(gain(of[name][d], of['DT'][d])):+.0f}" for d in grid.FAR)


def _change(of: Mapping[str, PerSeed], name: str) -> str:
    return f"{np.mean(gain(of[name], of['PF/FIFO'])):+.1f}"


def _said(holds: bool) -> str:
    return "yes" if holds else "no"
