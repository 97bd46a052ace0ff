"""How each row is computed, from the simulations or by formula.

Formulas take their inputs from the printed tables, so that they are judged independently of
the simulator.
"""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from itertools import pairwise
from math import sqrt

import numpy as np

from ackclock import run
from ackclock.models import capacity, cycles, effective_delay, pftk, poisson_sde, rayleigh
from ackclock.paper import Claim, Runs, Table, measure, rlc
from ackclock.paper.claims_page import held
from ackclock.paper.document import SIMULATED, formula, number
from ackclock.paper.expected import Expected
from ackclock.paper.measure import aggregate, fairness, goodput, timed_rtt
from ackclock.paper.order import above, below, gain
from ackclock.paper.runs import PerSeed, Replaced
from ackclock.papers.cr02 import grid

Claims = Iterator[tuple[str, Claim]]

DURATION = 3600.0  # seconds of every simulation
KBIT = 8.0  # kbit in a packet of 1000 bytes
PLANNED = 600.0  # kbit/s, the mean rate with which section 6.4 plans

# SNR in dB that each rate of table 4 needs, from the table of the source's reference [6].
SNR_OF_RATE = {
    "38.4": -12.5, "76.8": -9.5, "102.6": -8.5, "153.6": -6.5, "204.8": -5.7, "307.2": -4.0,
    "614.4": -1.0, "921.6": 1.3, "1228.8": 3.0, "1843.2": 7.2, "2457.6": 9.5,
}  # fmt: skip

# The delay of each direction of the profile `cdma-1x`: jitter, ms, and jumps, ms, with their probabilities.
JITTER_MEAN, JITTER_SD = 5.25, 3.0
JUMPS = {0.0: 0.875, 58.0: 0.11, 350.0: 0.014, 850.0: 0.001}
PING_LEAST = 2 * 45 + 84 * 8 / 8 + 84 * 8 / 140  # ms: propagation, and 84 bytes at 8 and 140 kbit/s

READ_OF_RUN: dict[str, measure.Measure] = {
    "pkts": measure.packets,
    "TD": measure.fast_retransmits,
    "TO": measure.timeouts,
    "T0": measure.mean_rto,
    "rtt": timed_rtt,
    "p1": measure.p1,
    "p2": measure.p2,
    "p3": measure.p3,
    "Wf": measure.loss_window,
    "rate": goodput,
}


def claims(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """Our value of every row that is checked."""
    parts = (
        measured_link(expected),
        measured_file(runs),
        pings(),
        held_acks(),
        section_4(runs, expected),
        table_4(),
        models_of_table_2(expected),
        simulated(runs, expected),
    )
    return dict(claim for part in parts for claim in part)


def null_model(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """The simulated rows with senders of a constant window and no regulator."""
    replaced = simulated(Replaced(runs, grid.null_model), expected)
    return {row: claim for row, claim in replaced if expected[row].kind == SIMULATED and claim.kind is None}


def simulated(runs: Runs, expected: Expected) -> Claims:
    """Rows of the simulations over variable links and cells."""
    parts = (
        table_1(runs),
        table_2(runs, expected),
        table_3(runs),
        figure_11(runs),
        figure_12(runs),
        figure_13(runs),
        figure_14(runs),
        figure_14b(runs),
        figure_15(runs),
        section_6(runs),
        planned(runs),
        users_at_one_snr(runs),
        summary(runs),
        over_rlc(runs),
    )
    yield from (claim for part in parts for claim in part)


def measured_link(expected: Expected) -> Claims:
    """Section 3: consequences of the measured throughput and delay."""
    throughput = expected.number("CR02-S3-4")  # kbit/s
    payload = 1448 * 8 / 1000  # kbit
    ping_s = 0.215  # the mean of CR02-S3-3
    yield "CR02-S3-5", number(1000 * payload / throughput)
    yield "CR02-S3-6", number(2 * 1000 * payload / throughput, "two packets an ACK")
    yield "CR02-S3-11", number(30 * payload / throughput)
    yield "CR02-S3-9", number((ping_s + payload / throughput) * throughput / 8)


def measured_file(runs: Runs) -> Claims:
    """Section 3: a file over the link whose delays are fitted to the pings of the same section."""
    read = {
        "CR02-S3-4": (measure.payload_rate, "payload"),
        "CR02-S3-7": (measure.ack_gaps_below(50), "at the server"),
        "CR02-S3-8": (measure.highest_rtt, "99th percentile, a lower bound of the maximum"),
    }
    for row, (of, note) in read.items():
        yield row, Claim((runs(grid.MEASURED, of),), note=note, kind=SIMULATED)
    over_bdp = 60 / (135e3 * 0.215 / 8 / 1000)  # packets of 1000 bytes
    yield "CR02-S3-10", Claim((runs(grid.MEASURED, measure.drops), over_bdp))


def pings() -> Claims:
    """Section 3: round-trip times of pings over the two laws of the delay, each as its equally likely values."""
    jitter = JITTER_MEAN + sqrt(3) * JITTER_SD * (np.arange(0.5, 40) / 20 - 1)
    one_way = np.add.outer(jitter, np.array(list(JUMPS)))
    shares = np.full((jitter.size, len(JUMPS)), 1 / jitter.size) * np.array(list(JUMPS.values()))
    both = np.add.outer(one_way.ravel(), one_way.ravel()) + PING_LEAST
    weights = np.multiply.outer(shares.ravel(), shares.ravel())
    yield "CR02-S3-1", formula(float(weights[both < 200].sum()))
    yield "CR02-S3-2", formula(float(weights[both > 500].sum()))
    yield "CR02-S3-3", Claim((both.min(), float((both * weights).sum()), both.max()), kind="computed")


def held_acks() -> Claims:
    """Section 5: ACKs that the regulator holds at once, looked at twenty times a second in one run of each delay."""
    most = {x: _most_held(grid.FIG11A["Reno+AR"][x]) for x in grid.FIG11A["Reno+AR"]}
    seen = ", ".join(f"e({x}) {held:.0f}" for x, held in most.items())
    yield "CR02-S5-1", number(max(most.values()), f"most ACKs held: {seen}")


@cache
def _most_held(at: str) -> float:
    return float(np.nanmax(run(at, set={"runs": 1, "duration": "600s"}, series_interval=0.05).series[0]["held_acks"]))


def table_1(runs: Runs) -> Claims:
    """Parameters of the nine items."""
    for item, at in grid.TABLE1.items():
        for column in ("pkts", "TD", "TO", "T0", "rtt", "p1", "p2", "Wf"):
            yield f"CR02-T1-{item}-{column}", number(runs(at, READ_OF_RUN[column]))
        mu = _service_rate(item)
        yield f"CR02-T1-{item}-mu", number(mu)
        yield f"CR02-T1-{item}-That", formula(_minimum_rtt(item, mu), "from the delay law without overtaking")


def table_2(runs: Runs, expected: Expected) -> Claims:
    """Goodput of the nine items by simulation and by the three models."""
    for item, at in grid.TABLE1.items():
        row = f"CR02-T2-{item}"
        printed_goodput = expected.number(f"{row}-sim")
        yield f"{row}-sim", number(runs(at, goodput))
        for name, kbps in modelled(expected, item).items():
            yield f"{row}-{name}", number(kbps)
            yield f"{row}-acc{name}", number(accuracy(kbps, printed_goodput))


def section_4(runs: Runs, expected: Expected) -> Claims:
    """Statements of the text about the model and table 1."""
    accuracies = [
        accuracy(modelled(expected, item)["m3"], expected.number(f"CR02-T2-{item}-sim")) for item in grid.ITEMS
    ]
    yield "CR02-S4-1", number(min(accuracies), "the worst item")
    p1 = [_mean(runs(grid.TABLE1[item], measure.p1)) for item in (1, 2, 3, 4)]
    p3 = [_mean(runs(grid.TABLE1[item], measure.p3)) for item in (1, 2, 3, 4)]
    holds = _falls(p1) and _falls(p3[::-1])
    seen = f"p1 {', '.join(f'{p:.3f}' for p in p1)}; p3 {', '.join(f'{p:.3f}' for p in p3)}"
    yield "CR02-S4-2", Claim(ordering=holds, note=seen)
    rates = {i: [cycle.rate for cycle in cycles.loss_cycles(observed(expected, i))] for i in grid.ITEMS}
    # Item 1 halves exactly to the pipe's size: its single-loss cycle has no epoch A and thus no rate.
    ranked = [_falls(rate) for rate in rates.values() if not np.isnan(rate).any()]
    yield "CR02-S4-3", Claim(ordering=all(ranked), note=f"{sum(ranked)} of the {len(ranked)} items with an epoch A1")


def models_of_table_2(expected: Expected) -> Claims:
    """Statements of section 4 about models 1 and 2."""
    kbps = {item: expected.number(f"CR02-T2-{item}-sim") for item in grid.ITEMS}
    over = {item: 100 * (modelled(expected, item)["m1"] / kbps[item] - 1) for item in grid.ITEMS}
    seen = ", ".join(f"{percent:+.1f} %" for percent in over.values())
    yield "CR02-S4-4", Claim(ordering=min(over.values()) > 0, note=f"items 1 to 9: {seen}", kind="computed")
    exact = {item: accuracy(modelled(expected, item)["m2"], kbps[item]) for item in grid.ITEMS}
    seen = ", ".join(f"{share:.3f}" for share in exact.values())
    falls = all(exact[i + 1] < exact[i] for first, last in ((1, 4), (5, 7)) for i in range(first, last))
    yield "CR02-S4-5", Claim(ordering=falls, note=f"items 1 to 9: {seen}", kind="computed")


def over_rlc(runs: Runs) -> Claims:
    """Section 5: the Ack Regulator above a radio link control, that of the preset `ac06`."""
    seen, holds = [], True
    for buffer, (plain, regulated) in rlc.by_buffer("none", "ack-regulator").items():
        fewer = below(runs(regulated, measure.drops), runs(plain, measure.drops))
        slower = below(runs(regulated, goodput), runs(plain, goodput))
        holds = holds and fewer and not slower
        lost, kbps = ([_mean(runs(at, of)) for at in (plain, regulated)] for of in (measure.drops, goodput))
        seen.append(f"B {buffer} {lost[0]:.1f} and {lost[1]:.1f} drops, {kbps[0]:.0f} and {kbps[1]:.0f} kbit/s")
    yield "CR02-S5-2", Claim(ordering=holds, note=f"without and with it: {'; '.join(seen)}")


def table_3(runs: Runs) -> Claims:
    """The four variants at e(100)."""
    for variant, at in grid.TABLE3.items():
        for column in ("rate", "TD", "TO", "p1", "p2", "p3", "Wf"):
            yield f"CR02-T3-{variant}-{column}", number(runs(at, READ_OF_RUN[column]))


def figure_11(runs: Runs) -> Claims:
    """Variable delay."""
    kbps = {v: {x: runs(at, goodput) for x, at in curve.items()} for v, curve in grid.FIG11A.items()}
    drop = {v: 100 * (1 - curve[100] / curve[20]) for v, curve in kbps.items()}
    yield "CR02-F11a-1", number(drop["Reno"])
    yield "CR02-F11a-2", number(drop["Sack"])
    yield "CR02-F11a-3", Claim((drop["Reno+AR"], drop["Sack+AR"]), note="Reno+AR / Sack+AR")
    yield "CR02-F11a-4", number(gain(kbps["Reno+AR"][100], kbps["Reno"][100]))
    yield "CR02-F11a-5", number(gain(kbps["Sack+AR"][100], kbps["Sack"][100]))
    apart = [gain(kbps["Sack+AR"][x], kbps["Reno+AR"][x]) for x in kbps["Reno"]]
    yield "CR02-F11a-6", number(_farthest(apart), "Sack+AR over Reno+AR where they differ most")

    yield from other_laws(runs)

    kbps = {v: {b: runs(at, goodput) for b, at in curve.items()} for v, curve in grid.FIG11B.items()}
    yield "CR02-F11b-1", number(kbps["Reno+AR"][5], "Reno+AR")
    yield "CR02-F11b-2", number(gain(kbps["Reno+AR"][4], kbps["Reno"][4]))
    yield "CR02-F11b-3", number(gain(kbps["Sack+AR"][4], kbps["Sack"][4]))
    yield "CR02-F11b-4", number(gain(kbps["Reno+AR"][20], kbps["Reno"][20]))
    yield "CR02-F11b-5", number(gain(kbps["Sack+AR"][20], kbps["Sack"][20]))


def other_laws(runs: Runs) -> Claims:
    """Other delay distributions with the mean and standard deviation of the exponential one."""
    points = {"e": grid.TABLE3, **grid.FIG11_LAWS}
    kbps = {law: {v: runs(at, goodput) for v, at in of.items()} for law, of in points.items()}
    gains = {law: [gain(of[f"{base}+AR"], of[base]) for base in ("Reno", "Sack")] for law, of in kbps.items()}
    as_exponential = {**dict.fromkeys(grid.LAWS, "e"), "p": "e(10)"}
    holds = all(
        above(ours, np.zeros(1)) == above(theirs, np.zeros(1))
        and abs(_mean(ours) - _mean(theirs)) <= abs(_mean(theirs)) / 3
        for law, exponential in as_exponential.items()
        for ours, theirs in zip(gains[law], gains[exponential], strict=True)
    )
    seen = ", ".join(f"{law} {' / '.join(f'{_mean(over):.1f}' for over in of)} %" for law, of in gains.items())
    yield "CR02-F11a-7", Claim(ordering=holds, note=f"AR over Reno / over Sack: {seen}; p is compared with e(10)")


def figure_12(runs: Runs) -> Claims:
    """Variable rate."""
    kbps = {v: {sd: runs(at, goodput) for sd, at in curve.items()} for v, curve in grid.FIG12A.items()}
    gains = {base: [gain(kbps[f"{base}+AR"][sd], kbps[base][sd]) for sd in kbps[base]] for base in ("Reno", "Sack")}
    yield "CR02-F12a-1", number(max(gains["Reno"], key=_mean))
    yield "CR02-F12a-2", number(_farthest(gains["Sack"]), "where they differ most")
    shares = [
        curve[sd] / capacity.uniform(grid.MEAN_RATE, sd) for v, curve in kbps.items() if v != "Reno" for sd in curve
    ]
    yield "CR02-F12a-3", number(min(shares, key=_mean), "least share of capacity of Sack, Reno+AR and Sack+AR")
    wide = {v: {sd: runs(at, goodput) for sd, at in curve.items()} for v, curve in grid.FIG12_LOGNORMAL.items()}
    holds = all(below(wide["Sack"][sd], wide["Sack+AR"][sd]) for sd in wide["Sack"])
    seen = ", ".join(
        f"{_mean(gain(wide['Sack'][sd], wide['Sack+AR'][sd])):+.1f} % at ln(200, {sd})" for sd in wide["Sack"]
    )
    yield "CR02-F12a-4", Claim(ordering=holds, note=f"Sack beside Sack+AR {seen}")
    at_5 = {v: runs(curve[5], goodput) for v, curve in grid.FIG12B.items()}
    over_sack = gain(at_5["Sack+AR"], at_5["Sack"])
    yield "CR02-F12b-1", Claim((over_sack,), ordering=_mean(over_sack) > 0, note="rate u(200, 50)")


def figure_13(runs: Runs) -> Claims:
    """Variable rate and delay."""
    kbps = {v: {b: runs(at, goodput) for b, at in curve.items()} for v, curve in grid.FIG13.items()}
    yield "CR02-F13a-0", number(capacity.uniform(grid.MEAN_RATE, 50))
    yield "CR02-F13a-1", number(kbps["Reno"][6] / kbps["Reno+AR"][6])
    yield "CR02-F13a-2", number(gain(kbps["Reno+AR"][18], kbps["Reno"][18]))
    below = [100 * (1 - kbps["Sack"][b] / kbps["Sack+AR"][b]) for b in range(7, 18)]
    yield "CR02-F13a-3", Claim((min(below, key=_mean), max(below, key=_mean)), note="least / greatest of B 7..17")

    rtt = {v: {b: runs(at, timed_rtt) for b, at in curve.items()} for v, curve in grid.FIG13.items()}
    yield "CR02-F13b-1", number(gain(rtt["Sack+AR"][9], rtt["Sack"][9]))
    yield "CR02-F13b-2", number(gain(rtt["Sack+AR"][18], rtt["Sack"][18]))
    # 15 % above Sack is what the source itself prints for B 9, where "comparable" ends.
    ranked = all(_mean(rtt["Reno"][b]) < _mean(rtt["Sack"][b]) for b in rtt["Reno"])
    excess = max(_mean(gain(rtt["Sack+AR"][b], rtt["Sack"][b])) for b in rtt["Sack"] if b < 9)
    note = f"below B 9 AR is at most {excess:.0f} % above Sack"
    yield "CR02-F13b-3", Claim(ordering=ranked and excess < 15, note=note)


def table_4() -> Claims:
    """Share of time of each rate at the mean SNR of section 6.4."""
    shares = rayleigh.shares(list(SNR_OF_RATE.values()), grid.SNR)
    for rate, share in zip(SNR_OF_RATE, shares, strict=True):
        yield f"CR02-T4-{rate}", formula(share, f"Rayleigh fading, mean SNR {grid.SNR} dB")
    yield "CR02-T4-sum", number(sum(shares))


def figure_14(runs: Runs, doppler: float = grid.DOPPLER) -> Claims:
    """One user of a cell."""
    kbps = _curves(runs, grid.fig14(doppler))
    for row, base, most in (("CR02-F14a-1", "Reno", 40), ("CR02-F14a-2", "Sack", 20)):
        buffers = [b for b in kbps[base] if b <= most]
        holds = all(above(kbps[f"{base}+AR"][b], kbps[base][b]) for b in buffers)
        gains = [gain(kbps[f"{base}+AR"][b], kbps[base][b]) for b in buffers]
        least, greatest = min(gains, key=_mean), max(gains, key=_mean)
        yield row, Claim((least, greatest), ordering=holds, note=f"least / greatest of B {buffers[0]} to {buffers[-1]}")


def figure_14b(runs: Runs, doppler: float = grid.DOPPLER) -> Claims:
    """Round-trip times of one user. "Near" is 15 % as in figure 13(b) at one BDP, with its tolerance of 8."""
    rtt = _curves(runs, grid.fig14(doppler), timed_rtt)
    bdp, most = grid.BDP[1], max(rtt["Reno"])
    pairs = [(rtt[f"{base}+AR"], rtt[base]) for base in ("Reno", "Sack")]
    excess = max(_mean(gain(ours[b], base[b])) for ours, base in pairs for b in base if b <= bdp)
    faster = all(above(ours[most] - ours[bdp], base[most] - base[bdp]) for ours, base in pairs)
    seen = ", ".join(f"{v} {_mean(of[most] - of[bdp]):.0f} ms" for v, of in rtt.items())
    note = f"AR is at most {excess:.0f} % above up to B {bdp}; from there to B {most} round trip times rise by: {seen}"
    yield "CR02-F14b-1", Claim(ordering=excess < 15 + 8 and faster, note=note)


def figure_15(runs: Runs, doppler: float = grid.DOPPLER) -> Claims:
    """Four and eight users of a cell in total."""
    families = [grid.fig15(users, doppler) for users in (4, 8)]
    four, eight = (_curves(runs, family, aggregate) for family in families)
    one = _curves(runs, grid.fig14(doppler))
    over = {n: gain(of["Sack+AR"][grid.BDP[n]], of["Sack"][grid.BDP[n]]) for n, of in ((1, one), (4, four), (8, eight))}
    seen = ", ".join(f"{n} at B {grid.BDP[n]} {_mean(percent):.1f} %" for n, percent in over.items())
    yield "CR02-F15-5", Claim(ordering=above(over[4], over[1]) and above(over[8], over[4]), note=f"users: {seen}")
    yield "CR02-F15a-1", number(gain(four["Sack+AR"][5], four["Sack"][5]))
    yield "CR02-F15a-2", number(gain(four["Reno+AR"][5], four["Reno"][5]))
    yield "CR02-F15b-1", Claim([gain(eight[f"{base}+AR"][3], eight[base][3]) for base in ("Reno", "Sack")])
    needed = {(n, v): buffer for n, kbps in ((4, four), (8, eight)) for v, buffer in _enough(kbps).items()}
    ratios = [needed[n, base] / needed[n, f"{base}+AR"] for n in (4, 8) for base in ("Reno", "Sack")]
    seen = ", ".join(f"{n} users {v} {buffer:.1f}" for (n, v), buffer in needed.items())
    note = f"least of four; packets for 95 % of the capacity: {seen}"
    yield "CR02-F15-3", Claim((min(ratios),), note=note)
    jain = [runs(at, fairness) for family in families for curve in family.values() for at in curve.values()]
    yield "CR02-F15-4", number(min(jain, key=_mean), "least of all points")


def section_6(runs: Runs) -> Claims:
    """Sections 6.6 and 6.7: wired latency, alpha, summary."""
    for row, variant in (("CR02-S66-1", "Reno"), ("CR02-S66-2", "Reno+AR")):
        kbps = {delay: runs(at, goodput) for delay, at in grid.WIRED[variant].items()}
        yield row, number(100 * (1 - kbps[100] / kbps[20]), "200 kbit/s, 350 + e(50) ms, B 10, latency one way")

    by_alpha = {a: {b: _mean(runs(at, goodput)) for b, at in curve.items()} for a, curve in grid.ALPHA.items()}
    enough = {a: min(b for b in curve if curve[b] >= 0.97 * max(curve.values())) for a, curve in by_alpha.items()}
    seen = ", ".join(f"alpha {a}: B {enough[a]}" for a in (1, 2, 3))
    holds = enough[1] >= enough[2] >= enough[3] and enough[1] > enough[3]
    yield "CR02-S66-3", Claim(ordering=holds, note=f"least buffer with 97 % of the maximum: {seen}")
    large = [b for b in by_alpha[4] if b > 15]
    seen = ", ".join(f"B {b}: {by_alpha[4][b]:.1f} / {by_alpha[2][b]:.1f}" for b in large)
    holds = all(by_alpha[4][b] < by_alpha[2][b] for b in large)
    yield "CR02-S66-4", Claim(ordering=holds, note=f"alpha 4 / alpha 2 in kbit/s: {seen}")

    by_rtt = {a: _over([runs(at, timed_rtt) for at in curve.values()]) for a, curve in grid.ALPHA.items()}
    seen = ", ".join(f"alpha {a} {_mean(ms):.0f} ms" for a, ms in by_rtt.items())
    holds = all(above(by_rtt[b], by_rtt[a]) for a, b in pairwise(by_rtt))
    yield "CR02-S66-5", Claim(ordering=holds, note=f"mean over the buffers of the sweep: {seen}")

    kbps_13 = {v: {b: runs(at, goodput) for b, at in curve.items()} for v, curve in grid.FIG13.items()}
    best = [
        max((gain(kbps_13[f"{base}+AR"][b], kbps_13[base][b]) for b in kbps_13[base]), key=_mean)
        for base in ("Reno", "Sack")
    ]
    yield "CR02-S67-1", Claim(best, note="greatest of B 6..20")

    up = gain(*(runs(grid.upload(regulator), goodput) for regulator in ("ack-regulator", "none")))
    down = gain(*(runs(grid.variable_rate(variant, 50), goodput) for variant in ("Reno+AR", "Reno")))
    seen = f"gain at the mobile {_mean(up):.1f} %, at the edge {_mean(down):.1f} %"
    yield "CR02-S67-8", Claim(ordering=_mean(up) > 0 and _mean(down) > 0, note=seen)


def planned(runs: Runs) -> Claims:
    """Sections 6.4 and 6.5: the mean rates with which the buffers are planned, as the largest goodputs of a user."""
    families = {1: grid.fig14(), 4: grid.fig15(4), 8: grid.fig15(8)}
    best = {users: _per_user(_curves(runs, family, aggregate), users) for users, family in families.items()}
    bdp = PLANNED * 0.2 / KBIT
    yield "CR02-F14a-3", Claim((best[1], bdp), note=f"{PLANNED:.0f} kbit/s for 200 ms, in packets")
    yield "CR02-F15a-0", number(best[4])
    yield "CR02-F15b-0", number(best[8])


def users_at_one_snr(runs: Runs) -> Claims:
    """Section 6.5: the total of 1, 4 and 8 users of the same SNR, with the largest buffers drawn."""
    total = {n: {v: runs(at, aggregate) for v, at in grid.at_one_snr(n).items()} for n in (1, 4, 8)}
    holds = all(above(total[b][v], total[a][v]) for a, b in pairwise(total) for v in grid.VARIANTS)
    seen = ", ".join(f"{v} {' / '.join(f'{_mean(of[v]):.0f}' for of in total.values())}" for v in grid.VARIANTS)
    yield "CR02-S65-1", Claim(ordering=holds, note=f"kbit/s of 1 / 4 / 8 users: {seen}")


def summary(runs: Runs) -> Claims:
    """Section 6.7: gains over all figures."""
    one, four, eight = (_curves(runs, of, aggregate) for of in (grid.fig14(), grid.fig15(4), grid.fig15(8)))
    figures = {
        "11(a)": _curves(runs, grid.FIG11A),
        "11(b)": _curves(runs, grid.FIG11B),
        "12(a)": _curves(runs, grid.FIG12A),
        "12(b)": _curves(runs, grid.FIG12B),
        "13": _curves(runs, grid.FIG13),
        "14": one,
        "15(a)": four,
        "15(b)": eight,
    }
    gains = {
        (name, base): {x: gain(of[f"{base}+AR"][x], of[base][x]) for x in of[base]}
        for name, of in figures.items()
        for base in ("Reno", "Sack")
    }
    over = [[gains["14", base][b] for b in one[base] if b <= most] for base, most in (("Reno", 40), ("Sack", 20))]
    ends = [end(of, key=_mean) for of in over for end in (min, max)]
    yield "CR02-S67-3", Claim(ends, note="one user; B up to 40 over Reno and up to 20 over Sack")
    yield "CR02-S67-4", Claim([gains["15(a)", "Reno"][5], gains["15(b)", "Reno"][3]], note="one BDP for each user")
    largest = {key: max(of.values(), key=_mean) for key, of in gains.items()}
    where = max(largest, key=lambda key: _mean(largest[key]))
    yield "CR02-S67-2", number(largest[where], f"figure {where[0]}, over {where[1]}")
    apart = {(name, x): gain(of["Sack+AR"][x], of["Reno+AR"][x]) for name, of in figures.items() for x in of["Reno"]}
    name, x = max(apart, key=lambda key: abs(_mean(apart[key])))
    near = sum(abs(_mean(percent)) <= 3 for percent in apart.values())
    yield "CR02-S67-5", number(apart[name, x], f"figure {name} at {x}; {near} of {len(apart)} points within 3 %")
    by_buffer = {key: of for key, of in gains.items() if key[0] not in ("11(a)", "12(a)")}
    falls = {
        key: above(of[min(of)], of[max(of)]) and not any(above(b, a) for a, b in pairwise(of.values()))
        for key, of in by_buffer.items()
    }
    failed = ", ".join(f"figure {name} over {base}" for (name, base), holds in falls.items() if not holds) or "none"
    note = f"{sum(falls.values())} of {len(falls)} curves; not so: {failed}"
    yield "CR02-S67-6", Claim(ordering=all(falls.values()), note=note)


def tables(runs: Runs, expected: Expected) -> Iterator[Table]:
    """Rows of the cell that hold at each Doppler frequency."""
    columns = [dict([*figure_14(runs, at), *figure_14b(runs, at), *figure_15(runs, at)]) for at in grid.DOPPLERS]
    rows = [[name, expected[name].metric, *(held(expected[name], of[name]) for of in columns)] for name in columns[0]]
    head = ["row", "statement", *(f"{at} Hz" for at in grid.DOPPLERS)]
    title = f"What holds at which Doppler frequency in figures 14 and 15 ({grid.places()})"
    yield Table(title, head, rows, 2)


def modelled(expected: Expected, item: int) -> dict[str, float]:
    """Throughput in kbit/s by the three models from the printed parameters of an item."""
    column = partial(_printed, expected, item)
    td, to, rtt = column("TD"), column("TO"), column("rtt") / 1000
    losses = pftk.Losses(p=(td + to) / column("pkts"), rtt=rtt, t0=column("T0"))
    swapped = poisson_sde.throughput(td / DURATION, to / DURATION, rtt, poisson_sde.Rates.PRINTED)
    return {
        "m1": KBIT * pftk.full(losses),
        "m2": KBIT * swapped,
        "m3": KBIT * cycles.throughput(observed(expected, item), column("p1"), column("p2")),
    }


def observed(expected: Expected, item: int) -> cycles.Path:
    """The printed parameters of an item for model 3."""
    column = partial(_printed, expected, item)
    mu = column("mu")
    # The source omits the transmission time for items 5-7, but its results include it.
    T = grid.DELAY / 1000 + 1 / mu if item in (5, 6, 7) else column("That") / 1000
    return cycles.Path(mu=mu, T=T, B=grid.BUFFER, wf=column("Wf"), t0=column("T0"))


def accuracy(model: float, simulated: float) -> float:
    """The source's accuracy: one minus the relative error."""
    return 1 - abs(model - simulated) / simulated


def _printed(expected: Expected, item: int, column: str) -> float:
    return expected.number(f"CR02-T1-{item}-{column}")


def _service_rate(item: int) -> float:
    sd, _x = grid.ITEMS[item]
    return capacity.uniform(grid.MEAN_RATE, sd) / KBIT


def _minimum_rtt(item: int, mu: float) -> float:
    """Fixed delay, mean effective delay and one transmission, ms."""
    sd, x = grid.ITEMS[item]
    if x == 0:
        return grid.DELAY + 1000 / mu
    # The rate distribution as 40 equally likely values; more change the result by less than 0.1 %.
    rates = grid.MEAN_RATE + sd * sqrt(3) * (np.arange(0.5, 40) / 20 - 1)
    effective = effective_delay.exponential(x / 1000, KBIT / rates if sd else 1 / mu)
    return grid.DELAY - x + 1000 * effective + 1000 / mu


def _curves(
    runs: Runs, family: Mapping[str, grid.Curve], read: measure.Measure = goodput
) -> dict[str, dict[int, PerSeed]]:
    return {v: {b: runs(at, read) for b, at in curve.items()} for v, curve in family.items()}


def _enough(kbps: Mapping[str, Mapping[int, PerSeed]]) -> dict[str, float]:
    """The buffer with which each reaches 95 % of the largest goodput, interpolated linearly."""
    means = {v: [_mean(values) for values in curve.values()] for v, curve in kbps.items()}
    wanted = 0.95 * max(map(max, means.values()))
    return {v: float(np.interp(wanted, means[v], list(kbps[v]))) for v in kbps}


def _per_user(kbps: Mapping[str, Mapping[int, PerSeed]], users: int) -> PerSeed:
    """The largest goodput of a user over all schemes and buffers, kbit/s."""
    best: PerSeed = max((values for curve in kbps.values() for values in curve.values()), key=_mean) / users
    return best


def _over(values: list[PerSeed]) -> PerSeed:
    """Mean over the points of a curve, seed by seed."""
    mean: PerSeed = np.mean(values, axis=0)
    return mean


def _mean(values: PerSeed) -> float:
    return float(np.mean(values))


def _farthest(arrays: list[PerSeed]) -> PerSeed:
    return max(arrays, key=lambda array: abs(_mean(array)))


def _falls(numbers: list[float]) -> bool:
    return all(a > b for a, b in pairwise(numbers))
