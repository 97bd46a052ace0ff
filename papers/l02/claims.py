"""How each row is computed."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np

from ackclock import run
from ackclock.paper import Claim, Runs
from ackclock.paper.document import formula, number
from ackclock.paper.expected import Expected
from ackclock.paper.order import above, below
from ackclock.paper.runs import PerSeed, Replaced
from ackclock.papers.l02 import grid
from ackclock.papers.l02.grid import LARGE_FILES, Download
from ackclock.papers.l02.measures import decrease, fast_retransmits, increase, repeated, speed, timeouts

Claims = Iterator[tuple[str, Claim]]
FLOOR = 100 * (1 / 0.9 - 1)  # %, what the blocks cost that are sent again
OPTIMUM = 11.1  # %, as printed


def claims(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """Our value of every row that is checked."""
    parts = (table_4(expected), large_files(runs), figure_20(runs), small_files(runs), of_large_files(runs))
    more = (of_orders(runs), of_timeouts(runs), of_small_files(runs), of_the_radio(runs, expected), of_delays(runs))
    return dict(claim for part in (*parts, *more, of_hsdpa(runs), of_windows()) for claim in part)


def unreactive(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """The simulated rows with a sender that does not react to loss: those that still hold show the radio, not TCP."""
    without = Replaced(runs, grid.without_reaction)
    parts = (large_files(without), figure_20(without), small_files(without), of_large_files(without))
    more = (of_orders(without), of_timeouts(without), of_small_files(without))
    return dict(claim for part in (*parts, *more) for claim in part)


def of_the_radio(runs: Runs, expected: Expected) -> Claims:
    """Windows that fill the radio, blocks relative to packets, and which mechanism helps where."""
    clean = [speed(runs, Download(cell).without_errors()) / cell.kbps for cell in grid.CELLS]
    yield "L02-W-1", number(clean[0])
    yield "L02-W-2", Claim(clean[1:])
    printed = [[expected.number(f"L02-T10-{n}-{error}") for error in (0, 10)] for n in range(2, 7)]
    yield "L02-O13", Claim([100 * (a / b - 1) for a, b in printed], kind="computed")
    pairs = [(f"L02-T3-{n}", f"L02-T14-{n}") for n in range(1, 7)] + [
        (f"L02-T8-{n}", f"L02-T15-{n}") for n in (1, 2, 3)
    ]
    worse = [a for a, b in pairs if above(increase(runs, LARGE_FILES[a]), increase(runs, LARGE_FILES[b]))]
    yield "L02-O16", Claim(ordering=not worse, note=f"worse with a PDU of a TTI: {', '.join(worse) or 'none'}")
    reno = [_mean(increase(runs, LARGE_FILES[f"L02-T3-{n}"])) for n in (1, 2, 3)]
    gains = {
        name: [a - _mean(increase(runs, LARGE_FILES[f"L02-T{table}-{n}"])) for n, a in enumerate(reno, 1)]
        for table, name in ((5, "Eifel"), (6, "Westwood"))
    }
    seen = "; ".join(f"{name} {', '.join(f'{gain:.1f}' for gain in of)} points" for name, of in gains.items())
    holds = all(int(np.argmax(of)) == int(np.argmax(reno)) for of in gains.values())
    yield "L02-O17", Claim(ordering=holds, note=seen)


def of_delays(runs: Runs) -> Claims:
    """Split TCP by the delay of the radio, and slow uplinks."""
    increases = {ms: increase(runs, at) for ms, at in grid.split_by_delay().items()}
    seen = ", ".join(f"{ms} ms {_mean(values):.1f} %" for ms, values in increases.items())
    rises = all(_mean(a) <= _mean(b) for a, b in pairwise(increases.values()))
    yield "L02-O15", Claim(ordering=rises, note=seen)
    plain, *slow = grid.slow_uplinks()
    yield "L02-O20", Claim([_mean(100 * (1 - speed(runs, at) / speed(runs, plain))) for at in slow])


def of_hsdpa(runs: Runs) -> Claims:
    """Section 3.1.6: the cost of block errors where HARQ repeats them."""
    clean, lossy = (runs(grid.over_hsdpa(error), lambda one: one["flows"][0]["completion_s"]) for error in (0.0, 0.1))
    cost = 100 * (lossy / clean.mean() - 1)
    theirs = increase(runs, LARGE_FILES["L02-T3-2"])
    note = f"{_mean(cost):.1f} % over HSDPA, {_mean(theirs):.1f} % at 384/1500"
    yield "L02-O19", Claim(ordering=below(cost, theirs), note=note)


def of_windows() -> Claims:
    """Figures 13 to 16: congestion windows of Reno by speed and packet, in one run each."""
    shares = {cell.name: _mean_window(Download(cell).point()) / cell.window for cell in grid.FASTER}
    values = list(shares.values())
    seen = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
    holds = all(a < b for a, b in pairwise(values)) and values[-1] > 0.99
    yield "L02-F13-1", Claim(ordering=holds, note=f"mean window over the largest: {seen}")


@cache
def _mean_window(at: str) -> float:
    """Mean congestion window up to the advertised one, packets, once the window has been opened."""
    series = run(at, set={"runs": 1}, series_interval=0.1).series[0]
    window = np.minimum(series["cwnd/0"], series["advertised/0"])
    return float(np.nanmean(window[series["time"] > 10]))


def table_4(expected: Expected) -> Claims:
    """Table 3 as printed, minus the radio's retransmissions."""
    for n in range(1, 5):
        printed = expected.number(f"L02-T3-{n}") / 100
        yield f"L02-T4-{n}", formula(100 * ((1 + printed) * 0.9 - 1))
    yield "L02-O4", formula(FLOOR)
    # RFC 3390.
    yield "L02-IW", Claim([min(4 * mss, max(2 * mss, 4380)) // mss for mss in (536, 1460)], kind="computed")


def large_files(runs: Runs) -> Claims:
    """Tables 3, 5 to 8, 14 and 15."""
    ours = {row: increase(runs, download) for row, download in LARGE_FILES.items()}
    orders = {
        "L02-T8-1": _mean(ours["L02-T8-1"]) > 1.5 * _mean(ours["L02-T8-2"])
        and _mean(ours["L02-T8-1"]) < _mean(ours["L02-T3-1"]),
        **{f"L02-T14-{n}": _mean(ours[f"L02-T14-{n}"]) > 1.5 * _mean(ours[f"L02-T3-{n}"]) for n in range(1, 5)},
        "L02-T15-1": _mean(ours["L02-T15-1"]) > 1.5 * _mean(ours["L02-T15-2"])
        and _mean(ours["L02-T15-1"]) < _mean(ours["L02-T14-1"]),
        "L02-T6-1": _mean(ours["L02-T6-1"]) <= 90,
    }
    for row, values in ours.items():
        if not row.startswith("L02-F20"):
            yield row, Claim((values,), orders.get(row))


def figure_20(runs: Runs) -> Claims:
    """The worst case with small PDUs delivered in order."""
    westwood, eifel, split = (increase(runs, LARGE_FILES[f"L02-F20-{n}"]) for n in (1, 2, 3))
    reno = increase(runs, LARGE_FILES["L02-T15-1"])
    yield "L02-F20-1", Claim((westwood,), below(westwood, reno) and above(westwood, eifel))
    yield "L02-F20-2", Claim((eifel,), below(eifel, westwood) and above(eifel, split))
    yield "L02-F20-3", Claim((split,), below(split, eifel))
    row = (split, eifel, westwood, reno)
    seen = ", ".join(f"{_mean(values):.1f} %" for values in row)
    yield "L02-F20-4", Claim(ordering=all(below(a, b) for a, b in pairwise(row)), note=f"in this order {seen}")


def small_files(runs: Runs) -> Claims:
    """Tables 9 to 13."""
    for n, cell in enumerate(grid.CELLS, 1):
        yield f"L02-T9-{n}", number(increase(runs, Download(cell, 100_000)))
    for row, download in grid.FILES.items():
        yield row, number(speed(runs, download))
    for row, larger, smaller in grid.windows():
        gain = decrease(runs, larger, smaller)
        yield row, Claim((gain,), _mean(gain) > 0)


def of_large_files(runs: Runs) -> Claims:
    """Statements of the text about senders under reordering."""
    reno, eifel, westwood, split = (increase(runs, LARGE_FILES[f"L02-T{n}-1"]) for n in (3, 5, 6, 7))
    near = [_mean(eifel), _mean(westwood)]
    holds = max(near) < 0.5 * _mean(reno) and max(near) < _mean(split) < _mean(reno)
    seen = ", ".join(
        f"{name} {_mean(of):.0f} %"
        for name, of in (("Reno", reno), ("Split", split), ("Westwood", westwood), ("Eifel", eifel))
    )
    yield "L02-O1", Claim(ordering=holds, note=seen)
    halved = {
        cell.name: sum(_mean(runs(Download(cell).point(), of)) for of in (fast_retransmits, timeouts))
        for cell in grid.CELLS[3:]
    }
    seen = ", ".join(f"{name} {count:.1f}" for name, count in halved.items())
    yield "L02-O5", Claim(ordering=not any(halved.values()), note=f"reductions: {seen}")
    shares, seen_all = [], []
    for table, name in ((5, "Eifel"), (6, "Westwood")):
        download = LARGE_FILES[f"L02-T{table}-1"]
        above_floor = _mean(increase(runs, download)) - OPTIMUM
        twice = _mean(runs(download.point(), repeated))
        shares.append(twice / above_floor)
        seen_all.append(f"{name} {twice:.1f} of {above_floor:.1f} %")
    yield "L02-O9", Claim(ordering=min(shares) > 0.5, note=f"segments sent twice: {', '.join(seen_all)}")


def of_orders(runs: Runs) -> Claims:
    """Statements of the text about in-order delivery and packets."""
    pairs = [(f"L02-T8-{n}", f"L02-T3-{n}") for n in (1, 2, 3)] + [
        (f"L02-T15-{n}", f"L02-T14-{n}") for n in (1, 2, 3, 4)
    ]
    # If TCP does not notice the radio's errors, both are equal.
    worse = [a for a, b in pairs if above(increase(runs, LARGE_FILES[a]), increase(runs, LARGE_FILES[b]))]
    packets = [(f"L02-T{table}-{n + 1}", f"L02-T{table}-{n}") for table in (3, 14, 15) for n in (1, 3)]
    slower = [a for a, b in packets if above(increase(runs, LARGE_FILES[a]), increase(runs, LARGE_FILES[b]))]
    note = f"worse in sequence: {', '.join(worse) or 'none'}; larger packets worse: {', '.join(slower) or 'none'}"
    yield "L02-O2", Claim(ordering=not worse and not slower, note=note)
    ordered, split = (increase(runs, LARGE_FILES[row]) for row in ("L02-T8-1", "L02-T7-1"))
    yield "L02-O10", Claim(ordering=below(ordered, split), note=f"{_mean(ordered):.1f} and {_mean(split):.1f} %")


def of_timeouts(runs: Runs) -> Claims:
    """Statements of the text about in-order delivery and timers."""
    ordered = [LARGE_FILES["L02-T8-1"], LARGE_FILES["L02-T15-1"]]
    yield "L02-O6", number(max(_mean(runs(download.point(), fast_retransmits)) for download in ordered))
    counts = {cell.name: _mean(runs(replace(ordered[1], cell=cell).point(), timeouts)) for cell in grid.CELLS}
    seen = ", ".join(f"{name} {count:.1f}" for name, count in counts.items())
    most = counts[grid.WORST.name]
    holds = most > 0 and most == max(counts.values())
    yield "L02-O7", Claim(ordering=holds, note=f"timers that expired, blocks of 40 bytes: {seen}")
    split = _mean(runs(LARGE_FILES["L02-F20-3"].point(), timeouts))
    holds = most > 0 and split <= most / 10
    yield "L02-O8", Claim(ordering=holds, note=f"Split {split:.1f}, Reno {most:.1f}")


def of_small_files(runs: Runs) -> Claims:
    """Statements of the text about files."""
    clean = speed(runs, grid.FILES["L02-T10-2-0"])
    yield "L02-O3", number(clean, f"384/1500; 384/576 {_mean(speed(runs, grid.FILES['L02-T10-1-0'])):.0f} kbit/s")
    gains = [_mean(decrease(runs, of[3], of[1])) for of in grid.clean_windows().values()]
    seen = ", ".join(f"{size // 1000} kB {gain:.1f} %" for size, gain in zip(grid.SMALL, gains, strict=True))
    yield "L02-O11", Claim(ordering=all(a > b for a, b in pairwise(gains)), note=seen)
    by_window = {cell: [Download(cell, 100_000, initial=initial) for initial in (1, 3, 4)] for cell in grid.FASTER}
    steps = {
        cell: (decrease(runs, three, one), decrease(runs, four, three))
        for cell, (one, three, four) in by_window.items()
    }
    seen = ", ".join(f"{cell.name} {_mean(a):.1f} and {_mean(b):.1f} %" for cell, (a, b) in steps.items())
    yield "L02-O12", Claim(ordering=all(_mean(b) < _mean(a) for a, b in steps.values()), note=seen)


def _mean(values: PerSeed) -> float:
    return float(np.mean(values))
