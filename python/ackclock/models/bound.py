"""The least delay at a utilisation for a controller that knows a link's statistics but not its future.

## Source
Our own. The rule is the critical ratio of the newsvendor problem (Arrow, Harris and Marschak, Econometrica 1951) in
each state of a demand process with states; the value of an order is counted in packets and lateness.

## What it does
A controller orders packets for a link (`order_up_to`), which arrive R = 2 x wire later. Let N(t, t+x) be the packets
that the link can send in the x after t. The k-th packet ordered at t is useful if N(t, t+R) >= k, because without it
the link would idle, and late if N(t, t+R+d) < k, because it is queued longer than d. So the controller orders up to the
largest k with

    P(N(t, t+R) >= k | state) >= price x P(N(t, t+R+d) < k | state)

where the state is what could be sent in one, two or three windows of the last 20 ms to 2 s, in bins. Sweeping states,
d and the price gives points (utilisation, p95 queueing delay). A curve shows, for each utilisation,
the least p95 of the points that reach it. There are three curves:

- `known`, the limit: probabilities of the recording itself, and the best controller in hindsight of all that are tried,
  those of the other curves included. So no other curve is below it.
- `crossed`: probabilities and controller learnt on one half of the recording and applied to the other, both ways. Its
  distance from `known` is the value of knowing the probabilities in advance. It is not a limit: a regulator learns
  while it runs, and may have less delay.
- `constant`: one number for all states, the best in hindsight: the best that a fixed buffer can achieve.

For downloads (`of_downloads`) each curve is a mean over runs from several start offsets of a recording, each with a
source that starts with ten packets and sends two for each that has left. `known` uses the best controller of each run
separately; `crossed` learns probabilities and controller from the rest of the recording.

## Differences from the source
No packet is lost, and there is no start except for downloads: no TCP, equal packets, and a wired path without a
queue. `known` knows the recording's own probabilities, so it is optimistic. It is not a theorem: another view of the
past may predict better than the windows that are tried. `tests/python/test_scoreboard.py` and the scoreboard itself
check that no regulator has less delay.

## Validation
Links of constant rate and of independent slots against closed forms (tests/python/test_bound.py). For EV-DO and LTE of
mahimahi compared with another program: docs/discussion/bound.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from ackclock import _core
from ackclock.files import in_unicode
from ackclock.models.answer import Answer
from ackclock.models.critical_ratio import CONSTANTS, CONTROLLERS, ByState, constants, learnt
from ackclock.models.order_up_to import Ints, Link, Played, play
from ackclock.progress import Progress, bar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXAMPLES = (
    "scenarios/recordings/synthetic-evdo-walking.down --wire 20ms",
    "scenarios/recordings/synthetic-evdo-walking.down --wire 20ms --download 20s",
)

# Bits of a packet, seconds of a slot.
PACKET_BITS, SLOT_S = 12_000, 0.001
# Utilisations for which a controller is chosen on the half that it has learnt from.
CHOSEN_FOR = (*(half / 200 for half in range(80, 200)), 0.999, 1.0)
WIRES_S = (0.001, 1.0)
# Default number of start offsets of downloads.
PLACES = 3
# Minimum size of a half to learn from, in slots and in packets.
SHORTEST, FEWEST = 10_000, 1000
# Minimum size of a run for percentiles.
FEWEST_IN_RUN = 100


class Point(NamedTuple):
    """Performance of a controller: utilisation of the link, and p95 queueing delay, s."""

    utilisation: float
    p95_s: float


@dataclass(frozen=True)
class Bound:
    """The three curves of a recording, each as its best points by utilisation.

    Attributes:
        known: The limit: probabilities known, and the best of all controllers in hindsight.
        crossed: Cross-validated: probabilities and controller come from another part of the recording.
        constant: One number for all states, the best in hindsight.
    """

    known: list[Point]
    crossed: list[Point]
    constant: list[Point]


@dataclass(frozen=True)
class Downloads:
    """Runs over a recording: the duration of each, s, and the number of equally spaced start offsets."""

    lasts_s: float
    places: int


def of(file: Path, wire_s: float, progress: Progress | None = None, downloads: Downloads | None = None) -> Bound:
    """The bound of a recording behind a wired path of `wire_s` seconds each way, or of downloads over it.

    Raises:
        ValueError: if `file` is not a recording or too short, or `wire_s` is not in `WIRES_S`.
        OSError: if it cannot be read.
    """
    try:
        slots = opportunities(file)
        if downloads is None:
            return of_link(slots, wire_s, progress)
        return of_downloads(slots, wire_s, downloads, progress)
    except TooShortError as error:
        raise ValueError(f"{file}: {error}") from None


def opportunities(file: Path) -> Ints:
    """Packets of 1500 bytes that a recording could send in each slot."""
    recorded = _core.trace(in_unicode(file), interval=SLOT_S)
    # The rounding error of millions of floats is below a millionth of a packet.
    packets = np.floor(np.cumsum(recorded["rate"]) * SLOT_S / PACKET_BITS + 1e-6)
    return np.diff(packets, prepend=0).astype(np.int32)


def of_link(slots: Ints, wire_s: float, progress: Progress | None = None) -> Bound:
    """The bound of a link that could send `slots[i]` packets in millisecond i; errors as for `of`."""
    lead = _lead(wire_s)
    whole, first, second = (Link(part) for part in (slots, *np.array_split(slots, 2)))
    if not all(_is_enough(half, lead) for half in (first, second)):
        raise TooShortError(f"a bound needs {SHORTEST * SLOT_S:g} s in each half, and {FEWEST} packets in them")
    games = (
        play(whole, lead, constants(whole, lead)),
        play(whole, lead, list(learnt(whole, lead))),
        *(play(half, lead, list(learnt(learnt_on, lead))) for learnt_on in (first, second) for half in (first, second)),
    )
    constant, known, first_own, first_judged, second_judged, second_own = _watched(games, progress)
    by_first, by_second = chosen(first_own, first_judged), chosen(second_own, second_judged)
    crossed = [one + other for one, other in zip(by_first, by_second, strict=True)]
    found = [list(map(point_of, played)) for played in (known, crossed, constant)]
    return Bound(frontier(chain(*found)), frontier(found[1]), frontier(found[2]))


def chosen(own: Sequence[Played], judged: Sequence[Played]) -> list[Played]:
    """For each of `CHOSEN_FOR`: performance elsewhere of the controller with the least p95 on its own half."""
    points = [point_of(one) for one in own]

    def best(utilisation: float) -> int:
        enough = [place for place, point in enumerate(points) if point.utilisation >= utilisation]
        most = max(range(len(points)), key=lambda place: points[place].utilisation)
        return min(enough, key=lambda place: points[place].p95_s, default=most)

    return [judged[best(utilisation)] for utilisation in CHOSEN_FOR]


class TooShortError(ValueError):
    """A recording is too short to learn from."""


def _is_enough(part: Link, lead: int, fewest: int = FEWEST) -> bool:
    # Packets sent before the first order arrives do not count.
    counted = part.slots[part.times[0] + lead :] if len(part.times) else part.times
    return len(part.slots) >= SHORTEST and int(counted.sum()) >= fewest


def _watched(games: Sequence[Iterator[Played]], progress: Progress | None) -> list[list[Played]]:
    total = CONSTANTS + (len(games) - 1) * CONTROLLERS
    played: list[list[Played]] = []
    for game in games:
        played.append([])
        for one in game:
            played[-1].append(one)
            if progress is not None:
                progress(sum(map(len, played)), total)
    return played


def of_downloads(slots: Ints, wire_s: float, runs: Downloads, progress: Progress | None = None) -> Bound:
    """The bound of downloads over a link: means over the runs; errors as for `of`.

    Raises:
        ValueError: if the runs leave too little of the recording to learn from.
    """
    lead, lasts = _lead(wire_s), round(runs.lasts_s / SLOT_S)
    curves: list[list[list[Point]]] = [[], [], []]
    fixed = constants(Link(slots), lead)
    for place in range(runs.places):
        begin = round(place / runs.places * len(slots))
        run = Link(slots.take(range(begin, begin + lasts), mode="wrap"))
        rest = slots.take(range(begin + lasts, begin + len(slots)), mode="wrap")
        if lasts >= len(slots) or not (_is_enough(run, 2 * lead, FEWEST_IN_RUN) and _is_enough(Link(rest), 2 * lead)):
            raise TooShortError(
                f"a bound needs {SHORTEST * SLOT_S:g} s and {FEWEST_IN_RUN} packets in a run, and {FEWEST} beside it"
            )
        for curve, points in zip(curves, _of_run(run, rest, lead, fixed), strict=True):
            curve.append(points)
        if progress is not None:
            progress(place + 1, runs.places)
    limits, *others = curves
    crossed, constant = (frontier(map(_mean, zip(*curve, strict=True))) for curve in others)
    return Bound(means(limits), crossed, constant)


def means(runs: Sequence[Sequence[Point]]) -> list[Point]:
    """The best means of one point per run, chosen separately for each run."""
    sums = [Point(0.0, 0.0)]
    for points in runs:
        sums = frontier(
            Point(one.utilisation + other.utilisation, one.p95_s + other.p95_s) for one in sums for other in points
        )
    return [Point(one.utilisation / len(runs), one.p95_s / len(runs)) for one in sums]


def _of_run(run: Link, rest: Ints, lead: int, fixed: Sequence[ByState]) -> tuple[list[Point], list[Point], list[Point]]:
    """Points of a run: of the limit, then one for each of `CHOSEN_FOR`, and of each of `fixed`."""

    def points(controllers: Sequence[ByState]) -> list[Played]:
        return list(play(run, lead, controllers, download=True))

    beside = Link(rest)
    others = list(learnt(beside, lead))
    own, judged = list(play(beside, lead, others, download=True)), points(others)
    crossed, constant = (list(map(point_of, played)) for played in (chosen(own, judged), points(fixed)))
    known = map(point_of, points(list(learnt(run, lead))))
    return frontier(chain(known, map(point_of, judged), constant)), crossed, constant


def _mean(points: Sequence[Point]) -> Point:
    """Mean of utilisation and of delay."""
    return Point(fmean(one.utilisation for one in points), fmean(one.p95_s for one in points))


def _lead(wire_s: float) -> int:
    """Slots from an order to the arrival of its packets."""
    if not WIRES_S[0] <= wire_s <= WIRES_S[1]:
        raise ValueError(f"wire: {wire_s:g} s is not from {WIRES_S[0]:g} to {WIRES_S[1]:g} s")
    return round(2 * wire_s / SLOT_S)


def frontier(points: Iterable[Point]) -> list[Point]:
    """The points that no other beats in both values, by utilisation."""
    best: list[Point] = []
    for point in sorted(points, key=lambda one: (-one.utilisation, one.p95_s)):
        if not best or point.p95_s < best[-1].p95_s:
            best.append(point)
    return best[::-1]


def point_of(played: Played) -> Point:
    """Utilisation and p95 queueing delay of a controller."""
    p95 = float(np.percentile(played.waits, 95)) if len(played.waits) else 0.0
    return Point(played.sent / played.possible, p95 * SLOT_S)


def at(curve: Sequence[Point], utilisation: float) -> float | None:
    """The least p95 at a utilisation or above, s; None if no point reaches it."""
    return min((point.p95_s for point in curve if point.utilisation >= utilisation), default=None)


# Utilisations of the table in percent, and the smallest one in the plot.
ASKED, LEAST_SHOWN = (80, 90, 95, 97, 98, 99), 0.5


def model(
    recording: Annotated[Path, "Recording of mahimahi, a CSV of rates, or a built-in one: synthetic:lte-driving."],
    wire: Annotated[str, "One-way delay between source and queue, as 20ms; 1ms to 1s."] = "20ms",
    beside: Annotated[Path | None, "Lines of `run`, `compare` or `sweep --json`: points of the picture."] = None,
    download: Annotated[str | None, "Downloads that last so long and begin at three places, as 60s."] = None,
) -> Answer:
    """The answer of `ackclock model bound`."""
    points = {} if beside is None else runs(beside)
    asked = None if download is None else Downloads(_seconds("download", download), PLACES)
    with bar(f"bound of {recording.name}") as progress:
        found = of(recording, _seconds("wire", wire), progress, asked)
    curves = {"best_constant_ms": found.constant, "law_known_ms": found.known, "cross_validated_ms": found.crossed}
    rows = [
        {"utilisation_percent": percent} | {name: _milliseconds(curve, percent) for name, curve in curves.items()}
        for percent in ASKED
    ]
    return Answer(
        {"least_p95_of_the_queue": rows},
        draw=lambda: picture(found, points, f"{recording.name}, {wire} of wire each way"),
    )


def _seconds(name: str, time: str) -> float:
    from ackclock.axis import numbers

    known = numbers(["1s", time])
    if known is None:
        raise ValueError(f"{name}: {time} is no time such as 20ms or 0.1s")
    return known[1]


def _milliseconds(curve: Sequence[Point], percent: int) -> float | None:
    least = at(curve, percent / 100)
    return None if least is None else 1000 * least


def runs(file: Path) -> dict[str, list[Point]]:
    """Performance of runs, by regulator and queue.

    Raises:
        ValueError: if a line of `file` is not the object of a run.
    """
    points: dict[str, list[Point]] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            run = json.loads(line)
            sent = sum(flow["wire_goodput_bps"] for flow in run["flows"]) / run["bottleneck"]["capacity_bps"]
            point = Point(sent, run["bottleneck"]["queue_ms"]["p95"] / 1000)
            swept = run.get("point", {})
        except (ValueError, TypeError, KeyError, ZeroDivisionError):
            raise ValueError(f"{file}:{number}: no run of flows over a link, as `--json` prints it") from None
        label = ", ".join(str(swept[key]) for key in ("edge.regulator", "edge.queue") if key in swept)
        points.setdefault(label or "run", []).append(point)
    return points


def picture(found: Bound, points: Mapping[str, Sequence[Point]], title: str = "") -> Figure:
    """Plot of p95 queueing delay over utilisation: curves as lines, runs as marks."""
    from ackclock import plot
    from ackclock.axis import legend_above, write_out

    with plot.panel("share of the link used (%)", "95th percentile of the wait in the queue (s)", title) as (
        figure,
        axes,
    ):
        curves = (("best constant", found.constant, ":"), ("cross-validated", found.crossed, "-"))
        for label, curve, style in (*curves, ("law known", found.known, "--")):
            shown = [point for point in curve if point.utilisation >= LEAST_SHOWN]
            axes.plot(*_axes(shown), color="#000000", linestyle=style, linewidth=1.4, label=label)
        for index, (label, reached) in enumerate(points.items()):
            colour, marker = plot.COLOURS[index % 6], plot.MARKERS[index % len(plot.MARKERS)]
            axes.plot(*_axes(reached), marker, color=colour, label=label)
        axes.set_yscale("log")
        write_out(axes.yaxis)
        legend_above(figure)
    return figure


def _axes(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    # Zero cannot be shown on a logarithmic axis; a slot is the resolution.
    return [100 * one.utilisation for one in points], [max(one.p95_s, SLOT_S) for one in points]
