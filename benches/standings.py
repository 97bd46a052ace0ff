"""Results of the scoreboard: means over start offsets, and which disciplines meet the goal relative to the bound."""

import hashlib
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from ackclock.models import bound, critical_ratio, order_up_to
from ackclock.models.order_up_to import Ints
from ackclock.results import half_interval

CONFIDENCE = 0.95
NUMBERS = ("goodput", "p95_s", "drops", "timeouts", "jain", "pages", "page_p50_s", "page_p95_s")
# The goal, fixed beforehand: so much goodput at so small a share of the p95 of a drop-tail of 200 packets, or of a
# second where that is more, where the cross-validated bound of the whole recording allows it; elsewhere at most so many
# times the bound's p95 at the same goodput.
GOODPUT, SHARE, TIMES = 0.97, 1 / 8, 1.5
LONGEST_WIRE_MS, SENDERS = 50, ("sack", "cubic")
# Goodputs that count as equal.
POINT = 0.01
# Disciplines without a regulator. They may drop what is queued, which no order of the model can: they are not held to
# the limit.
QUEUES = ("drop-tail", "codel", "fq-codel", "pie")
# Disciplines whose sender stands at the radio. The limit is that of a sender behind the wire.
AT_THE_RADIO = ("rnf",)
# A standing lies beyond the limit only by more than this: the histogram of the queue, and the slots of the model.
RESOLUTION, RESOLUTION_S, RESOLUTION_GOODPUT = 0.03, 0.002, 0.001
# Several downloads wait no longer than so many times as one, or than so many packets of each at the mean rate.
TWICE, PACKETS = 2, 5


@dataclass(frozen=True)
class Standing:
    """A discipline under a sender on a recording behind a wire with a load: means over the runs.

    Attributes:
        means: The mean of each number; None where no run has it.
        halves: Half of its interval; None where fewer than two runs have it.
    """

    discipline: str
    sender: str
    recording: str
    wire_ms: int
    load: str
    runs: int
    means: dict[str, float | None]
    halves: dict[str, float | None]

    def __getitem__(self, number: str) -> float:
        """A mean that must exist."""
        mean = self.means[number]
        assert mean is not None, number
        return mean

    @property
    def place(self) -> tuple[str, str, int, str]:
        """Settings shared with the standings it is compared with."""
        return self.sender, self.recording, self.wire_ms, self.load

    def as_json(self) -> dict[str, Any]:
        """All of it, with names."""
        return asdict(self)


def standings(lines: Sequence[dict[str, Any]]) -> list[Standing]:
    """The standings of all runs, in the order in which the runs came."""
    groups: dict[tuple[str, str, str, int, str], list[dict[str, Any]]] = {}
    for line in lines:
        cell = line["cell"]
        key = (cell["discipline"], cell["sender"], cell["recording"], cell["wire_ms"], cell["load"])
        groups.setdefault(key, []).append(line)
    return [Standing(*key, *counted(runs)) for key, runs in groups.items()]


def counted(runs: Sequence[dict[str, Any]]) -> tuple[int, dict[str, float | None], dict[str, float | None]]:
    """Number of runs, and mean and half interval of each number."""
    return len(runs), *means(runs)


def means(runs: Sequence[dict[str, Any]]) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Mean and half interval of each number."""
    found: dict[str, float | None] = {}
    halves: dict[str, float | None] = {}
    for number in NUMBERS:
        values = [run[number] for run in runs if run[number] is not None]
        found[number] = fmean(values) if values else None
        halves[number] = half_interval(values, CONFIDENCE) if len(values) > 1 else None
    return found, halves


# `whole`: the cross-validated bound of the whole recording, by which the goal was defined. `runs`: the limit of the
# same runs, with the law known: the same seconds of the recording, and a source that starts as TCP does.
Kind = Literal["whole", "runs"]


class Bounds:
    """The bounds of recordings, kept in a folder until the model that computes them changes."""

    def __init__(self, folder: Path) -> None:
        model = "".join(inspect.getsource(module) for module in (bound, critical_ratio, order_up_to))
        self.folder = folder / hashlib.sha256(model.encode()).hexdigest()[:12]
        self.known: dict[tuple[Kind, str, int], bound.Bound] = {}

    def learn(self, recording: str, slots: Ints, wire_ms: int, runs: bound.Downloads) -> None:
        """Compute the bounds of a recording and of runs over it, or read them; where it is too short there are none."""
        wire_s = wire_ms / 1000
        self._learn("whole", recording, wire_ms, lambda: bound.of_link(slots, wire_s))
        self.learn_runs(recording, slots, wire_ms, runs)

    def learn_runs(self, recording: str, slots: Ints, wire_ms: int, runs: bound.Downloads) -> None:
        """Compute the limit of runs over a recording, or read it."""
        self._learn("runs", recording, wire_ms, lambda: bound.of_downloads(slots, wire_ms / 1000, runs), str(runs))

    def _learn(
        self, kind: Kind, recording: str, wire_ms: int, compute: Callable[[], bound.Bound], of: str = ""
    ) -> None:
        kept = self.folder / f"{recording}-{wire_ms}-{kind}{hashlib.sha256(of.encode()).hexdigest()[:8]}.json"
        if not kept.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                found = compute()
            except bound.TooShortError:
                return
            kept.write_text(json.dumps(asdict(found)) + "\n")
        curves = json.loads(kept.read_text())
        self.known[kind, recording, wire_ms] = bound.Bound(
            **{name: [bound.Point(*point) for point in points] for name, points in curves.items()}
        )

    def of(self, recording: str, wire_ms: int, kind: Kind = "whole") -> bound.Bound | None:
        """The bound; None where there is none."""
        return self.known.get((kind, recording, wire_ms))

    def curve(self, standing: Standing, kind: Kind) -> list[bound.Point]:
        """The curve by which a standing is judged; empty where there is none."""
        found = self.of(standing.recording, standing.wire_ms, kind)
        if found is None:
            return []
        return found.crossed if kind == "whole" else found.known

    def at(self, standing: Standing, goodput: float, kind: Kind) -> float | None:
        """Least p95 of the curve at a goodput, s; None beyond its end."""
        return bound.at(self.curve(standing, kind), goodput)

    def near(self, standing: Standing, kind: Kind) -> float | None:
        """Least p95 at the goodput of a standing, or at the end of the curve if that is less; None without a curve."""
        curve = self.curve(standing, kind)
        return self.at(standing, min(standing["goodput"], curve[-1].utilisation), kind) if curve else None


@dataclass(frozen=True)
class Verdict:
    """Whether a standing meets the goal, and what it was measured with.

    Attributes:
        reference_s: The p95 of the drop-tail that it is measured by.
        least_s: The bound's p95 at the goodput of the goal; None where the bound has not so much.
        bound_s: The bound's p95 at the goodput of the standing, or at the most that the bound has; None without one.
    """

    standing: Standing
    reference_s: float
    least_s: float | None
    bound_s: float | None

    @property
    def is_possible(self) -> bool:
        """Whether the bound allows enough goodput at a small share of drop-tail's p95."""
        return self.least_s is not None and self.least_s <= SHARE * self.reference_s

    @property
    def by_share(self) -> bool:
        """Whether it has that."""
        return self.standing["goodput"] >= GOODPUT and self.standing["p95_s"] <= SHARE * self.reference_s

    @property
    def by_bound(self) -> bool:
        """Whether its p95 is near the bound's at the same goodput."""
        return self.bound_s is not None and self.standing["p95_s"] <= TIMES * self.bound_s

    @property
    def met(self) -> bool:
        """Whether it meets the goal."""
        return self.by_share if self.is_possible else self.by_bound


def verdicts(found: Sequence[Standing], bounds: Bounds, discipline: str, kind: Kind = "whole") -> list[Verdict]:
    """The goal for one download of SACK or CUBIC over wires of 1 to 50 ms."""
    by_place = places(found)
    return [
        Verdict(one, reference(by_place[one.place]), bounds.at(one, GOODPUT, kind), bounds.near(one, kind))
        for one in found
        if one.discipline == discipline and one.load == "1" and one.sender in SENDERS and one.wire_ms <= LONGEST_WIRE_MS
    ]


def beyond(found: Sequence[Standing], bounds: Bounds) -> Iterator[Standing]:
    """Standings of regulators with one download that lie beyond the limit of the same runs, which then is none."""
    for one in found:
        is_held = one.load == "1" and one.discipline.split()[0] not in QUEUES + AT_THE_RADIO
        curve = bounds.curve(one, "runs") if is_held else []
        least = bound.at(curve, one["goodput"] - RESOLUTION_GOODPUT)
        if curve and (least is None or one["p95_s"] < (1 - RESOLUTION) * least - RESOLUTION_S):
            yield one


def places(found: Sequence[Standing]) -> dict[tuple[str, str, int, str], dict[str, Standing]]:
    """All disciplines of each place."""
    groups: dict[tuple[str, str, int, str], dict[str, Standing]] = {}
    for one in found:
        groups.setdefault(one.place, {})[one.discipline] = one
    return groups


def reference(there: dict[str, Standing]) -> float:
    """The p95 of a drop-tail of 200 packets, or of a second at the mean rate where that is more: the longer of both."""
    return max(there[name]["p95_s"] for name in ("drop-tail 200p", "drop-tail 1 s"))


def beaten(found: Sequence[Standing], discipline: str) -> Iterator[tuple[Standing, Standing]]:
    """Standings of a discipline, each with another that has less p95 at a goodput at most one point lower."""
    for there in places(found).values():
        one = there.get(discipline)
        if one is None:
            continue
        rivals = [
            other for name, other in there.items() if name != discipline and not _are_both_forecast(name, discipline)
        ]
        near = [other for other in rivals if other["goodput"] >= one["goodput"] - POINT]
        better = min(near, key=lambda other: other["p95_s"], default=one)
        if better["p95_s"] < one["p95_s"]:
            yield one, better


def _are_both_forecast(*names: str) -> bool:
    """Whether all are the same regulator before another queue: it is no rival of itself."""
    return all(name.split()[0] == "forecast" for name in names)


def is_short(several: Standing, one: Standing, second_p: int) -> bool:
    """Whether several downloads have an acceptable p95 relative to `one`, over a link with this packet rate."""
    return several["p95_s"] <= max(TWICE * one["p95_s"], PACKETS * int(several.load) / second_p)
