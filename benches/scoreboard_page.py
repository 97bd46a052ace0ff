"""The scoreboard as a page: a figure, a summary in words, and tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from standings import (
    GOODPUT,
    LONGEST_WIRE_MS,
    PACKETS,
    SENDERS,
    TIMES,
    Bounds,
    Standing,
    Verdict,
    beaten,
    is_short,
    places,
    verdicts,
)

from ackclock import plot, report
from ackclock.models.bound import Point
from ackclock.paper import Figure, Table
from ackclock.plot.style import COLOURS

# Families of disciplines by the first word of their name: colour and mark; those of a family are joined by a line.
BLUE, RED, GREEN, PINK, AMBER, LIGHT_BLUE, BLACK = COLOURS
FAMILIES = {
    "drop-tail": ("#777777", "o"),
    "codel": (AMBER, "P"),
    "fq-codel": (AMBER, "X"),
    "pie": (AMBER, "v"),
    "ack-regulator": (PINK, "D"),
    "wrs": (LIGHT_BLUE, "s"),
    "wrd": (BLUE, "^"),
    "wrb": (GREEN, "v"),
    "forecast": (RED, "*"),
    "rnf": (BLACK, "p"),
}
# A fair index; what pages are compared with, and how much longer is not told apart by a histogram.
FAIR, RIVALS, RESOLUTION = 0.95, ("drop-tail 200p", "codel"), 1.02
# What is drawn: the sender, and no goodput below this.
SHOWN, LOWEST = "cubic", 0.4


@dataclass(frozen=True)
class Page:
    """What is on it."""

    found: Sequence[Standing]
    bounds: Bounds
    described: str
    # Packets of a second at the mean rate, by recording.
    seconds: Mapping[str, int]

    def markdown(self) -> str:
        """Words and tables."""
        text = "\n\n".join(self.words()) + "\n"
        for table in self.tables():
            rule = " | ".join(["---"] * table.keys + ["---:"] * (len(table.columns) - table.keys))
            rows = "".join(f"| {' | '.join(map(str, row))} |\n" for row in table.rows)
            text += f"\n### {table.title}\n\n| {' | '.join(table.columns)} |\n| {rule} |\n{rows}"
        return text

    def html(self) -> str:
        """The complete page, self-contained."""
        drawn = [Figure("scoreboard", CAPTION, picture(self.found, self.bounds))]
        return report.page("The scoreboard", self.words(), drawn, list(self.tables()))

    def words(self) -> list[str]:
        """Summary of the goal's tables."""
        met = {name: sum(one.met for one in self.judged(name)) for name in self.disciplines()}
        named = dict.fromkeys([*(name for name in ("forecast",) if name in met), max(met, key=lambda name: met[name])])
        return [GOAL, *(goal(self.found, self.bounds, name) for name in named), self.described]

    def judged(self, discipline: str) -> list[Verdict]:
        """The verdicts of a discipline."""
        return verdicts(self.found, self.bounds, discipline)

    def disciplines(self) -> list[str]:
        """Every discipline, in order."""
        return list(dict.fromkeys(one.discipline for one in self.found))

    def tables(self) -> Iterator[Table]:
        """Goodput and delay by sender and load, the goal, fairness, and short flows."""
        names = self.disciplines()
        yield goals(self.found, self.bounds, names)
        loads = dict.fromkeys((one.load, one.sender) for one in self.found if one.load != "pages")
        for load, sender in loads:
            some = [one for one in self.found if (one.load, one.sender) == (load, sender)]
            downloads = "One download" if load == "1" else f"{load} downloads"
            yield by_place(f"{downloads} of {sender}: goodput % / p95 of the queue, s", some, names, goodput_and_wait)
        if any(one.means["jain"] is not None for one in self.found):
            yield fairness(self.found, names, self.seconds)
        pages = [one for one in self.found if one.load == "pages" and one.means["page_p50_s"] is not None]
        if pages:
            yield short_flows(pages, names)
        for sender in dict.fromkeys(one.sender for one in pages):
            some = [one for one in pages if one.sender == sender]
            title = f"Pages of 60 kB beside a download of {sender}: median / p95, s (pages that came in a run)"
            yield by_place(title, some, names, page_times)


GOAL = (
    "The goal is a download that uses the link almost fully with a short queue: at least 97 % of the link's capacity "
    "at an eighth of drop-tail's p95 queueing delay where the bound allows it, otherwise the bound's goodput at no "
    "more than 1.5 times its p95 queueing delay."
)

CAPTION = (
    "One CUBIC download: goodput against p95 queueing delay. Each mark is a queue discipline or a regulator, a line "
    "joins its buffer sizes. Up and to the left is better. No sender behind the wire that knows the law of these runs "
    "beforehand reaches the grey region; rnf sends from the radio. The dotted line is what the law of the rest of the "
    "recording allows without learning from the run (docs/discussion/bound.md). With one download FQ-CoDel does what "
    "CoDel does: their marks coincide."
)


def goal(found: Sequence[Standing], bounds: Bounds, discipline: str) -> str:
    """How often a discipline meets the goal, in two sentences."""
    judged, of_runs = (verdicts(found, bounds, discipline, kind) for kind in ("whole", "runs"))
    worse = list(beaten(found, discipline))
    all_of = sum(one.discipline == discipline for one in found)
    return (
        f"{discipline} meets the goal in {sum(one.met for one in judged)} of {len(judged)} places of one download over "
        "wires of 1 to 50 ms, by the definition fixed beforehand (the cross-validated bound of the whole recording); "
        f"by the limit of the same runs, with the law known, in {sum(one.met for one in of_runs)}. In "
        f"{all_of - len(worse)} of all {all_of} places nothing else has less delay within a point of its goodput."
    )


def goals(found: Sequence[Standing], bounds: Bounds, names: Sequence[str]) -> Table:
    """How often each discipline meets the goal, and each half of it."""
    columns = [
        "discipline",
        "places",
        "goal met",
        f"{100 * GOODPUT:.0f} % at 1/8 of drop-tail",
        "of where that is possible",
        f"within {TIMES:g} x the bound",
        "by the limit of the same runs: goal met",
        "possible",
        f"within {TIMES:g} x",
        "p95 over the bound's: median",
        "goodput %: mean",
        "page beside it: median / p95, s (pages)",
        "nothing better within a point",
    ]
    rows = []
    for name in names:
        judged, of_runs = (verdicts(found, bounds, name, kind) for kind in ("whole", "runs"))
        if not judged:
            continue
        own = [one for one in found if one.discipline == name]
        undefeated = len(own) - len(list(beaten(found, name)))
        rows.append(
            [
                name,
                str(len(judged)),
                str(sum(one.met for one in judged)),
                str(sum(one.by_share for one in judged)),
                str(sum(one.is_possible for one in judged)),
                str(sum(one.by_bound for one in judged)),
                str(sum(one.met for one in of_runs)),
                str(sum(one.is_possible for one in of_runs)),
                str(sum(one.by_bound for one in of_runs)),
                over_bound(judged),
                f"{100 * fmean(one.standing['goodput'] for one in judged):.1f}",
                pages_beside(own),
                f"{undefeated} of {len(own)}",
            ]
        )
    return Table("The goal: one download of SACK or CUBIC, wires of 1 to 50 ms", columns, rows, 1)


def pages_beside(own: Sequence[Standing]) -> str:
    """Page times beside a download of what the goal is judged by, in the mean over the places."""
    some = [one for one in own if one.load == "pages" and one.sender in SENDERS and one.wire_ms <= LONGEST_WIRE_MS]
    means = [[one.means[number] for one in some] for number in ("page_p50_s", "page_p95_s", "pages")]
    there = [[mean for mean in column if mean is not None] for column in means]
    if not all(there):
        return "-"
    median, late, pages = (fmean(column) for column in there)
    return f"{median:.2f} / {late:.2f} ({pages:.0f})"


def over_bound(judged: Sequence[Verdict]) -> str:
    """The median of how many times the bound's p95 a discipline has, where the bound has its goodput."""
    times = sorted(one.standing["p95_s"] / one.bound_s for one in judged if one.bound_s)
    return f"{times[len(times) // 2]:.1f}" if times else "-"


def by_place(title: str, found: Sequence[Standing], names: Sequence[str], cell: Callable[[Standing], str]) -> Table:
    """One row per discipline, one column per recording and wired path."""
    there = {(one.discipline, one.recording, one.wire_ms): one for one in found}
    columns = list(dict.fromkeys((one.recording, one.wire_ms) for one in found))
    rows = [
        [name, *(cell(there[name, *column]) if (name, *column) in there else "-" for column in columns)]
        for name in names
    ]
    return Table(title, ["discipline", *(f"{short(name)}, {wire} ms" for name, wire in columns)], rows, 1)


def short(recording: str) -> str:
    """Short name of a recording for headings."""
    return recording.removesuffix(".json").replace("-driving", "").replace("-report", "")[:28]


def goodput_and_wait(one: Standing) -> str:
    """Both, with the half interval of the goodput where there is one."""
    half = one.halves["goodput"]
    spread = "" if half is None else f" ± {100 * half:.1f}"
    return f"{100 * one['goodput']:.1f}{spread} / {one['p95_s']:.2f}"


def page_times(one: Standing) -> str:
    """Median and 95th percentile, and how many pages came in a run: those that took longest have not come."""
    return f"{one['page_p50_s']:.2f} / {one['page_p95_s']:.2f} ({one['pages']:.0f})"


def fairness(found: Sequence[Standing], names: Sequence[str], seconds: Mapping[str, int]) -> Table:
    """Several downloads: Jain's index, and whether the queue stays within twice that of one or a few packets each."""
    there = {(one.discipline, *one.place): one for one in found}
    columns, rows = ["discipline"], []
    loads = [load for load in dict.fromkeys(one.load for one in found) if load not in {"1", "pages"}]
    for load in loads:
        columns += [
            f"{load} downloads: Jain mean / least",
            f">= {FAIR}",
            f"p95 within twice one's, or {PACKETS} packets each",
        ]
    for name in names:
        row = [name]
        for load in loads:
            own = [one for one in found if (one.discipline, one.load) == (name, load)]
            alone = [there.get((name, one.sender, one.recording, one.wire_ms, "1")) for one in own]
            short = [
                is_short(one, one_alone, seconds[one.recording])
                for one, one_alone in zip(own, alone, strict=True)
                if one_alone
            ]
            jain = [one["jain"] for one in own]
            row += [
                f"{fmean(jain):.3f} / {min(jain):.2f}",
                f"{sum(one >= FAIR for one in jain)} of {len(jain)}",
                f"{sum(short)} of {len(short)}",
            ]
        rows.append(row)
    return Table("Several downloads", columns, rows, 1)


def short_flows(found: Sequence[Standing], names: Sequence[str]) -> Table:
    """In how many places pages take no longer than under drop-tail or CoDel, whichever is faster; and how many come."""
    rows = []
    by_place = places(found)
    for name in names:
        own = [one for one in found if one.discipline == name and all(rival in by_place[one.place] for rival in RIVALS)]
        row = [name]
        for number in ("page_p50_s", "page_p95_s"):
            best = [min(by_place[one.place][rival][number] for rival in RIVALS) for one in own]
            held = sum(one[number] <= RESOLUTION * least for one, least in zip(own, best, strict=True))
            row.append(f"{held} of {len(own)}")
        rows.append([*row, f"{fmean(one['pages'] for one in own):.0f}" if own else "-"])
    title = f"Pages of 60 kB beside a download: no slower than the faster of {' and '.join(RIVALS)}"
    return Table(title, ["discipline", "median", "p95", "pages that came in a run"], rows, 1)


def picture(found: Sequence[Standing], bounds: Bounds) -> Drawing:
    """A panel a recording and wire: goodput over p95, every discipline, and the bound."""
    some = [one for one in found if one.sender == SHOWN and one.load == "1"]
    recordings = list(dict.fromkeys(one.recording for one in some))
    wires = sorted({one.wire_ms for one in some})
    with mpl.rc_context(plot.STYLE):
        figure = Drawing(figsize=(4 * max(1, len(wires)), 3.4 * max(1, len(recordings)) + 0.8), layout="constrained")
        grid = figure.subplots(max(1, len(recordings)), max(1, len(wires)), squeeze=False, sharey=True)
        for row, recording in zip(grid, recordings, strict=False):
            for axes, wire in zip(row, wires, strict=True):
                panel(axes, [one for one in some if (one.recording, one.wire_ms) == (recording, wire)], bounds)
                axes.set_title(f"{short(recording)}, {wire} ms one way", fontsize=10)
            row[0].set_ylabel("goodput, % of the link")
        for axes in grid[-1]:
            axes.set_xlabel("p95 queueing delay, s")
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=max(3, int(2.4 * len(wires))), fontsize=10)
    return figure


def panel(axes: Axes, there: Sequence[Standing], bounds: Bounds) -> None:
    """One recording and wire."""
    waits = [max(one["p95_s"], 1e-3) for one in there]
    left = min(waits, default=1e-3) / 3
    found = bounds.of(there[0].recording, there[0].wire_ms, "runs") if there else None
    if found is not None:
        (xs, ys), learnt = (drawn(curve) for curve in (found.known, found.crossed))
        left = min([left, *(x / 2 for x in xs)])
        axes.fill_betweenx([0, *ys, 100], left, [xs[0], *xs, xs[-1] * 30], color="#000000", alpha=0.08, linewidth=0)
        axes.plot(xs, ys, color="#000000", linewidth=1.2, label="limit")
        axes.plot(*learnt, color="#000000", linestyle=":", linewidth=1.2, label="cross-validated")
    for family, (colour, marker) in FAMILIES.items():
        own = sorted((one for one in there if one.discipline.split()[0] == family), key=lambda one: one["p95_s"])
        if not own:
            continue
        size = 15 if marker == "*" else 6
        axes.plot(
            [max(one["p95_s"], 1e-3) for one in own],
            [100 * one["goodput"] for one in own],
            color=colour,
            marker=marker,
            markersize=size,
            linewidth=0.8,
            label=family,
            zorder=3 if marker == "*" else 2,
        )
    axes.set_xscale("log")
    axes.set_xlim(left, max(waits, default=1.0) * 1.5)
    axes.set_ylim(100 * LOWEST, 101)
    axes.xaxis.set_major_formatter("{x:g}")


def drawn(curve: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Delays in s and utilisations in % of the part of a curve that is shown."""
    shown = [point for point in curve if point.utilisation >= LOWEST] or curve[-1:]
    return [max(one.p95_s, 1e-3) for one in shown], [100 * one.utilisation for one in shown]
