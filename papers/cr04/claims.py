"""How each row is computed. Rows judged over one channel can be computed over any other: `tables` does."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ackclock.models import bounded_pareto
from ackclock.paper import Claim, Runs, Table, rlc
from ackclock.paper.claims_page import held, with_spread
from ackclock.paper.document import number
from ackclock.paper.expected import Expected
from ackclock.paper.measure import Measure, aggregate, all_timeouts, drops, goodput, mean_rtt
from ackclock.paper.order import above, alike, below, gain, leads
from ackclock.paper.runs import PerSeed, Replaced
from ackclock.papers.cr04 import grid, remarks
from ackclock.papers.cr04.sizes import ABOVE_15_KB, BELOW_15_KB, SHORT, SIZES, WEB_SIZES

PIPE = 10  # packets on the way outside the queue, Y of the slides: 400 kbit/s for 200 ms
Claims = Iterator[tuple[str, Claim]]
Curves = Mapping[str, Mapping[float, PerSeed]]


@dataclass(frozen=True)
class Axis:
    """An interpretation of figure 9's axis: one-way or round-trip delay of the wired path."""

    name: str
    trips: int  # ways of the wire in a millisecond of the axis

    def one_way(self, ms: float) -> float:
        """One-way delay at a number of the axis."""
        return ms / self.trips


ONE_WAY = Axis("one way", 1)
ROUND_TRIP = Axis("round trip", 2)  # as the figure's axis is titled
AXES = (ONE_WAY, ROUND_TRIP)


def claims(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """Our value of every row that is checked."""
    return {**over_loads(runs), **dict(of_no_channel(runs))}


def over_loads(runs: Runs) -> dict[str, Claim]:
    """The judged channel, with statements that name no load under the medium and the heavy one."""
    of = {load: At(runs, channel) for load, channel in grid.LOADS.items()}
    judged = of[grid.MEDIUM]
    parts = (judged.static_and_dynamic(), general(of), remarks.claims(runs))
    return {**judged.claims(ROUND_TRIP), **dict(claim for part in parts for claim in part)}


def general(of: Mapping[str, "At"]) -> Claims:
    """Rows 21 to 24 and 33: an order holds under both loads; a size is that of each."""
    alone = {load: dict(at.figures_14_and_15()) for load, at in of.items()}
    holds = all(rows["CR04-21"].ordering for rows in alone.values())
    seen = "; ".join(f"{load} load: {rows['CR04-21'].note}" for load, rows in alone.items())
    yield "CR04-21", Claim(ordering=holds, note=seen)
    regrets = {load: at.regrets() for load, at in of.items()}
    most = {name: max(regret[name] for regret in regrets.values()) for name in grid.JUDGED_SCHEMES}
    seen = "; ".join(
        f"{load} load: {', '.join(f'{name} {percent:.0f} %' for name, percent in regret.items())}"
        for load, regret in regrets.items()
    )
    holds = min(most, key=lambda name: most[name]) == "PF-RP/SFP"
    yield "CR04-22", Claim(ordering=holds, note=f"farthest from the best scheme over sizes and both cases, {seen}")
    short = {load: rows["CR04-23"] for load, rows in alone.items()}
    seen = "; ".join(f"{load} load: {claim.note}" for load, claim in short.items())
    yield "CR04-23", Claim([claim.arrays[0] for claim in short.values()], note=seen)
    largest = max((rows["CR04-24"].arrays[0] for rows in alone.values()), key=_mean)
    yield "CR04-24", number(largest, "greatest of PF-RP/SFP over sizes, cases and loads")
    heavy = alone[grid.HEAVY]
    ordered = {row: bool(heavy[row].ordering) for row in ("CR04-17", "CR04-20", "CR04-21", "CR04-22")}
    seen = ", ".join(f"{row} {_said(holds)}" for row, holds in ordered.items())
    yield "CR04-33", Claim(ordering=all(ordered.values()), note=f"{seen}; {heavy['CR04-17'].note}")


def null_model(runs: Runs, expected: Expected) -> dict[str, Claim]:
    """The rows without regulators and with a scheduler that is round robin."""
    return over_loads(Replaced(runs, grid.null_model))


def of_no_channel(runs: Runs) -> Claims:
    """Rows that do not depend on the Doppler frequency."""
    yield "CR04-bp", number(bounded_pareto.minimum(12, 1.2, 200))
    one, several = (
        [np.concatenate([runs(at, of) for at in _regulated(users)]) for of in (drops, all_timeouts)]
        for users in ((1,), (4, 8))
    )
    unasked = (several[1] > 0) & (several[0] > 0)
    note = (
        f"the most of {one[0].size} runs of one user (figures 7 and 9, every Doppler frequency), with timeouts in "
        f"{(one[1] > 0).sum()}; of {several[0].size} runs of several users {(several[0] > 0).sum()} drop, up to "
        f"{several[0].max():.0f} packets, and in {unasked.sum()} of these a timer has expired: the source then repeats "
        "what nobody asked for"
    )
    yield "CR04-inv", number(one[0].max(), note)
    yield "CR04-34", over_rlc(runs)


def over_rlc(runs: Runs) -> Claim:
    """The Window Regulators above a radio link control, which keeps a packet until it is acknowledged."""
    points = [at for of in rlc.by_buffer("wrs", "wrd", "wrb").values() for at in of]
    lost, expired = (np.concatenate([runs(at, of) for at in points]) for of in (drops, all_timeouts))
    asked = (lost > 0) & (expired == 0)
    note = (
        f"the most of {lost.size} runs over the bearer of the preset ac06 with {', '.join(map(str, rlc.BUFFERS))} "
        f"packets "
        f"of buffer; {(lost > 0).sum()} drop, in {asked.sum()} of these no timer expires"
    )
    return number(lost.max(), note)


def _regulated(users: tuple[int, ...]) -> Iterator[str]:
    """The points of figures 7 to 9 with this number of users under a Window Regulator."""
    for channel in grid.FASTER:
        alone = [channel.by_buffer(), channel.by_delay()]
        for family in alone if users == (1,) else map(channel.shared, users):
            for name in ("WRS", "WRD", "WRB"):
                yield from family[name].values()


@dataclass(frozen=True)
class At:
    """The rows over one channel."""

    runs: Runs
    channel: grid.Channel

    def claims(self, axis: Axis) -> dict[str, Claim]:
        """Every row that depends on it."""
        return {**self.long_flows(axis), **self.short_flows(axis)}

    def long_flows(self, axis: Axis) -> dict[str, Claim]:
        """Figures 7 to 10."""
        parts = (self.figure_7(), self.figure_8(), self.figure_9(axis), self.figure_10())
        return dict(claim for part in parts for claim in part)

    def figure_7(self) -> Claims:
        """One user, over the buffer."""
        kbps = self.by_buffer
        over_dt = {b: gain(kbps["WRB"][b], kbps["DT"][b]) for b in grid.BUFFERS}
        seen = ", ".join(f"B {b} {over_dt[b].mean():.0f} %" for b in grid.BUFFERS)
        yield "CR04-01", number(over_dt[5], f"at B 5, half of the BDP; {seen}")
        holds = all(leads(kbps["WRB"][b], [kbps[name][b] for name in kbps]) for b in grid.BUFFERS)
        yield "CR04-02", Claim(ordering=holds, note="at every B, or within 1 % where another fills the link too")
        ranked = {b: all(above(kbps["AR"][b], kbps[name][b]) for name in ("WRS", "DT")) for b in grid.BUFFERS}
        seen = ", ".join(str(b) for b, holds in ranked.items() if holds) or "none"
        yield (
            "CR04-03",
            Claim(ordering=all(ranked[b] for b in (5, 10, 15, 20)), note=f"B up to 20; it is so at B {seen}"),
        )
        best = {b: np.max([kbps[name][b] for name in kbps], axis=0) for b in grid.BUFFERS}
        shares = [kbps["WRD"][b] / best[b] for b in grid.BUFFERS if b > 15]
        yield "CR04-04", number(min(shares, key=_mean), "least share of the best")
        reno = self._read(self.channel.by_buffer("reno"))
        better = {name: gain(_over(kbps[name]), _over(reno[name])) for name in kbps}
        holds = bool(above(better["DT"], np.zeros(1)) and all(_mean(percent) > -1 for percent in better.values()))
        seen = ", ".join(f"{name} {_mean(percent):+.1f} %" for name, percent in better.items())
        yield "CR04-05", Claim(ordering=holds, note=f"mean over B: {seen}")
        most = max(over_dt.values(), key=_mean)
        yield "CR04-25", number(most, "greatest of B 5 to 40")

    def static_and_dynamic(self) -> Claims:
        """Rows 31 and 32: windows of WRS beside those of WRD and WRB."""
        kbps = self.by_buffer
        lower = [b for b in grid.BUFFERS if below(kbps["WRD"][b], kbps["WRS"][b])]
        seen = ", ".join(f"B {b} {_mean(gain(kbps['WRD'][b], kbps['WRS'][b])):+.1f} %" for b in grid.BUFFERS)
        yield "CR04-31", Claim(ordering=not lower, note=f"WRD over WRS: {seen}")
        scarce = [b for b in grid.BUFFERS if b <= PIPE + 1]
        idle = {b: gain(kbps["WRB"][b], kbps["WRS"][b]) for b in scarce}
        seen = ", ".join(f"B {b} {_mean(percent):.1f} %" for b, percent in idle.items())
        holds = all(above(percent, np.zeros(1)) for percent in idle.values())
        yield "CR04-32", Claim(ordering=holds, note=f"Y of {PIPE} packets; what WRB gains in idle times of WRS: {seen}")

    def figure_8(self) -> Claims:
        """Four and eight users, over the buffer of each."""
        four, eight = self.shared(4), self.shared(8)
        scarce = grid.SHARED_BUFFERS[:2]
        gaps = {n: {b: gain(of["AR"][b], of["WRD"][b]) for b in scarce} for n, of in ((4, four), (8, eight))}
        for row, n, of in (("CR04-06", 4, four), ("CR04-07", 8, eight)):
            first = all(above(of["AR"][b], of["WRD"][b]) for b in scarce)
            best = all(leads(of["WRB"][b], [of[name][b] for name in of]) for b in grid.SHARED_BUFFERS)
            weighed = self._best_for_its_rtt(n)
            ratio = set(weighed.values()) == {"WRD"}
            wider = n == 4 or all(above(gaps[8][b], gaps[4][b]) for b in scarce)
            seen = ", ".join(f"B {b} {_mean(gaps[n][b]):+.1f} %" for b in scarce)
            of_rtt = ", ".join(f"B {b} {name or 'none alone'}" for b, name in weighed.items())
            note = (
                f"AR over WRD {_said(first)}, at {seen}; WRB best: {_said(best)}; "
                f"most goodput a round trip time of all five: {of_rtt}"
            )
            yield row, Claim(ordering=first and best and ratio and wider, note=note)
        single = self.by_buffer
        both = [b for b in grid.SHARED_BUFFERS if b in single["DT"]]
        holds = all(above(of[name][b], single[name][b]) for of in (four, eight) for name in of for b in both)
        yield "CR04-08", Claim(ordering=holds, note=f"every scheme at B {', '.join(map(str, both))}")

    def _best_for_its_rtt(self, users: int) -> dict[int, str | None]:
        """The scheme with the most goodput per round-trip time from the BDP on; None if there is none."""
        kbps, rtt = self.shared(users), self.shared(users, mean_rtt)
        best: dict[int, str | None] = {}
        for b in (5, 10, 20):
            ratio = {name: kbps[name][b] / rtt[name][b] for name in kbps}
            first = max(ratio, key=lambda name: _mean(ratio[name]))
            best[b] = first if all(above(ratio[first], ratio[name]) for name in ratio if name != first) else None
        return best

    def figure_9(self, axis: Axis) -> Claims:
        """One user, over the delay of the wired path; row numbers are those of the figure's axis."""
        kbps = self.by_delay

        def upto(ms: float) -> list[float]:
            return [d for d in grid.ONE_WAY if d <= axis.one_way(ms)]

        crossing = axis.trips * _crossing(kbps["WRS"], kbps["DT"])
        near = f"{_mean(gain(kbps['WRS'][1], kbps['DT'][1])):+.0f} % at the shortest wire"
        yield "CR04-09", number(crossing, f"{axis.name}; WRS over DT {near}")
        yield "CR04-10", self._ack_regulator_over(axis)
        robust = all(above(kbps["WRD"][d], kbps["DT"][d]) for d in upto(200))
        at = axis.one_way(200)
        over = {name: gain(kbps[name][at], kbps["DT"][at]) for name in ("WRD", "WRB")}
        yield "CR04-11", Claim(ordering=robust, note=f"{axis.name}; WRD over DT at 200 ms {_mean(over['WRD']):+.0f} %")
        yield "CR04-12", number(over["WRB"], axis.name)
        longest = [d for d in grid.ONE_WAY if d > axis.one_way(400)]
        holds = all(below(kbps[name][d], kbps["DT"][d]) for name in ("WRD", "WRB") for d in longest)
        seen = ", ".join(
            f"{axis.trips * d:g} ms {_mean(gain(kbps['WRB'][d], kbps['DT'][d])):+.0f} % (WRB)" for d in longest
        )
        yield "CR04-13", Claim(ordering=holds, note=f"{axis.name}; beside DT {seen}")

    def _ack_regulator_over(self, axis: Axis) -> Claim:
        """AR compared with DT: better at every delay, and by less and less from 40 to 100 ms of the axis."""
        kbps = self.by_delay
        over = {d: gain(kbps["AR"][d], kbps["DT"][d]) for d in grid.ONE_WAY}
        ahead = all(above(kbps["AR"][d], kbps["DT"][d]) for d in grid.ONE_WAY if d <= grid.LONGEST)
        near = max(d for d in grid.ONE_WAY if d <= axis.one_way(40))
        asked = [d for d in grid.ONE_WAY if near <= d <= axis.one_way(100)]
        degrades = all(below(over[b], over[a]) for a, b in pairwise(asked))
        seen = ", ".join(f"{axis.trips * d:g} ms {_with_spread(percent)} %" for d, percent in over.items())
        said = f"gain falls from 40 to 100 ms: {_said(degrades)}; above DT at every wire: {_said(ahead)}"
        return Claim(ordering=ahead and degrades, note=f"{axis.name}; {said}; AR over DT at {seen}")

    def figure_10(self) -> Claims:
        """One user, over the loss ratio of the radio or the wired path."""
        radio, wire = (self._read(self.channel.by_loss(where)) for where in (grid.RADIO, grid.WIRE))
        least = min(_mean(radio[name][1e-4] / radio[name][0.0]) for name in ("AR", "WRD", "WRB"))
        worse = all(below(radio[name][1e-2], radio[name][1e-3]) for name in ("AR", "WRD", "WRB"))
        spread = {p: _spread([_mean(radio[name][p]) for name in radio]) for p in (1e-2, 3e-2, 1e-1)}
        fine = least > 0.9 and worse and all(spread[p] < 10 for p in (3e-2, 1e-1))
        seen = ", ".join(f"{p:g} {percent:.0f} %" for p, percent in spread.items())
        note = f"at 1e-4 at least {100 * least:.0f} % of what there is without loss; all five lie within: {seen}"
        yield "CR04-14", Claim(ordering=fine, note=note)
        holds = all(above(wire[name][p], wire["DT"][p]) for name in ("AR", "WRB") for p in (1e-4, 3e-4))
        yield "CR04-15", Claim(ordering=holds, note=_beside(wire, (1e-4, 3e-4)))
        some = (1e-3, 3e-3)
        lower = all(below(wire[name][p], wire["DT"][p]) for name in ("WRD", "WRS") for p in some)
        kept = not any(below(wire[name][p], wire["DT"][p]) for name in ("AR", "WRB") for p in some)
        yield "CR04-16", Claim(ordering=lower and kept, note=_beside(wire, some))

    def short_flows(self, _: Axis) -> dict[str, Claim]:
        """Figures 14 and 15, whose axis is not the wired path's delay."""
        return dict(self.figures_14_and_15())

    def figures_14_and_15(self) -> Claims:
        """Figures 14 and 15: latency of transfers; `mixed` has users of different SNR, `equal` of the same."""
        mixed, equal = self.latencies("different"), self.latencies("same")
        sfp = mixed["PF/SFP"], mixed["PF/FIFO"]
        holds = all(below(sfp[0][size], sfp[1][size]) for size in BELOW_15_KB)
        holds = holds and all(alike(sfp[0][size], sfp[1][size], 5) for size in ABOVE_15_KB)
        yield "CR04-17", Claim(ordering=holds, note=f"PF/SFP beside PF/FIFO: {_by_size(*sfp)}")
        gains = {name: -gain(mixed[name]["short"], mixed["PF/SFP"]["short"]) for name in ("PF-SP/SFP", "PF-RP/SFP")}
        holds = all(below(mixed[name]["short"], mixed["PF/SFP"]["short"]) for name in gains)
        seen = ", ".join(f"{name} {_mean(percent):.1f} % less" for name, percent in gains.items())
        yield "CR04-18", Claim(ordering=holds, note=f"up to 15 KB, beside PF/SFP: {seen}")
        others = [name for name in equal if name != "PF-SP/SFP"]
        worst = {s: all(above(equal["PF-SP/SFP"][s], equal[name][s]) for name in others) for s in SIZES}
        seen = ", ".join(size for size, holds in worst.items() if holds) or "no size"
        yield "CR04-19", Claim(ordering=all(worst.values()), note=f"PF-SP is worst at {seen}")
        holds = all(below(equal[name]["short"], equal["PF/FIFO"]["short"]) for name in ("PF/SFP", "PF-RP/SFP"))
        yield (
            "CR04-20",
            Claim(ordering=holds, note=f"up to 15 KB; PF-RP: {_by_size(equal['PF-RP/SFP'], equal['PF/FIFO'])}"),
        )
        pairs = [(of["PF/SFP"], of["PF/FIFO"]) for of in (mixed, equal)]
        always = all(_mean(a[size]) < _mean(b[size]) for a, b in pairs for size in WEB_SIZES)
        holds = always and all(below(a["short"], b["short"]) for a, b in pairs)
        yield "CR04-21", Claim(ordering=holds, note=f"at every size of web objects; same SNR: {_by_size(*pairs[1])}")
        regret = self.regrets()
        seen = ", ".join(f"{name} {percent:.0f} %" for name, percent in regret.items())
        holds = min(regret, key=lambda name: regret[name]) == "PF-RP/SFP"
        yield "CR04-22", Claim(ordering=holds, note=f"farthest from the best scheme over sizes and both cases: {seen}")
        less = {s: -gain(of["PF-RP/SFP"][s], of["PF/FIFO"][s]) for of in (mixed, equal) for s in SIZES}
        short = [-gain(of["PF-RP/SFP"]["short"], of["PF/FIFO"]["short"]) for of in (mixed, equal)]
        seen = f"up to 15 KB, mean of both cases: different SNR {_mean(short[0]):.0f} %, same {_mean(short[1]):.0f} %"
        yield "CR04-23", number(np.mean(short, axis=0), seen)
        yield "CR04-24", number(max(less.values(), key=_mean), "greatest of PF-RP/SFP over the sizes")

    def regrets(self) -> dict[str, float]:
        """How far each scheme is from the best one where it is farthest, over sizes and both cases, %."""
        cases = [self.latencies(users) for users in grid.BASE_SNRS]
        return {name: max(_regret(of, name) for of in cases) for name in grid.JUDGED_SCHEMES}

    @cached_property
    def by_buffer(self) -> Curves:
        """Goodput of one user with SACK."""
        return self._read(self.channel.by_buffer())

    @cached_property
    def by_delay(self) -> Curves:
        """Goodput of one user over the one-way delay of the wired path."""
        return self._read(self.channel.by_delay())

    def shared(self, users: int, measure: Measure = aggregate) -> Curves:
        """All users together."""
        return self._read(self.channel.shared(users), measure)

    def latencies(self, users: str) -> dict[str, dict[str, PerSeed]]:
        """Mean latency by scheme and size, and of all short transfers."""
        measures = {**SIZES, "short": SHORT}
        points = self.channel.by_scheme(users)
        return {name: {size: self.runs(at, of) for size, of in measures.items()} for name, at in points.items()}

    def _read(self, family: grid.Family, measure: Measure = goodput) -> Curves:
        return {name: {x: self.runs(at, measure) for x, at in curve.items()} for name, curve in family.items()}


def tables(runs: Runs, expected: Expected) -> Iterator[Table]:
    """Rows that hold over each channel; figure 9 with both interpretations of its axis."""
    cell = grid.places()
    yield _table(
        f"What holds at which Doppler frequency ({grid.JUDGED.snr:g} dB in figures 7 to 10; {cell})",
        expected,
        {f"{channel.doppler} Hz": At(runs, channel).claims for channel in grid.FASTER},
    )
    yield _table(
        f"What holds over which cell in figures 7 to 10 (as judged: {grid.JUDGED.told()}, {cell})",
        expected,
        {name: At(runs, channel).long_flows for name, channel in grid.OTHER_CELLS.items()},
    )
    yield _table(
        "What holds with which reading of the traffic of figures 14 and 15 "
        f"(as judged: Doppler {grid.JUDGED.doppler:g} Hz, {cell})",
        expected,
        {channel.reading: At(runs, channel).short_flows for channel in grid.READ},
    )


def _table(title: str, expected: Expected, columns: Mapping[str, Callable[[Axis], dict[str, Claim]]]) -> Table:
    claimed = {axis: [claims(axis) for claims in columns.values()] for axis in AXES}
    lines = []
    for name in claimed[ROUND_TRIP][0]:
        axes = AXES if "CR04-09" <= name <= "CR04-13" else AXES[1:]
        for axis in axes:
            said = f"{expected[name].metric}, {axis.name}" if len(axes) > 1 else expected[name].metric
            lines.append([name, said, *(held(expected[name], of[name]) for of in claimed[axis])])
    return Table(title, ["row", "statement", *columns], lines, 2)


def _crossing(curve: Mapping[float, PerSeed], base: Mapping[float, PerSeed]) -> float:
    """Where the mean of a curve falls below another's, interpolated linearly; 0 if it begins below."""
    excess = [(x, _mean(curve[x] - base[x])) for x in curve]
    if excess[0][1] <= 0:
        return 0.0
    for (x, here), (following, there) in pairwise(excess):
        if there <= 0:
            return x + (following - x) * here / (here - there)
    return float("nan")


def _regret(of: Mapping[str, Mapping[str, PerSeed]], name: str) -> float:
    """Largest excess latency of a scheme over the best one, over all sizes, percent."""
    return max(100 * (_mean(of[name][size]) / min(_mean(of[other][size]) for other in of) - 1) for size in SIZES)


def _beside(kbps: Curves, losses: tuple[float, ...]) -> str:
    """All schemes compared with DT."""
    at = (
        ", ".join(f"{name} {_mean(gain(kbps[name][p], kbps['DT'][p])):+.0f} %" for name in kbps if name != "DT")
        for p in losses
    )
    return "; ".join(f"beside DT at {p:g}: {seen}" for p, seen in zip(losses, at, strict=True))


def _by_size(these: Mapping[str, PerSeed], base: Mapping[str, PerSeed]) -> str:
    return ", ".join(f"{size} {_mean(gain(these[size], base[size])):+.1f} %" for size in SIZES)


def _over(curve: Mapping[float, PerSeed]) -> PerSeed:
    """Mean over the curve, seed by seed."""
    mean: PerSeed = np.mean(list(curve.values()), axis=0)
    return mean


def _spread(means: list[float]) -> float:
    """Excess of the largest over the smallest, percent."""
    return 100 * (max(means) / min(means) - 1)


def _mean(values: PerSeed) -> float:
    return float(np.mean(values))


def _with_spread(values: PerSeed) -> str:
    shown = number(values)
    return with_spread(shown.means[0], shown.spreads[0])


def _said(holds: bool) -> str:
    return "yes" if holds else "no"
