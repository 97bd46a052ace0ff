"""A document as the package sees it, and the verdict on each of its rows."""

import importlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ackclock.paper import expected, tolerance
from ackclock.paper.expected import Expected, Row
from ackclock.paper.runs import Runs, simulate
from ackclock.paper.tolerance import Held

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


class Verdict(Enum):
    """The verdict on a row."""

    REPRODUCED = "reproduced"
    ORDERING_HOLDS = "ordering-holds"
    NOT_REPRODUCED = "not-reproduced"
    NOT_CHECKED = "not-checked"


COMPUTED = "computed"  # the kind of a row whose value a formula gives
RESTATED = "restated"  # the kind of a row whose printed value is the input or the definition of the formula

HOLDS = (Verdict.REPRODUCED, Verdict.ORDERING_HOLDS)
VERDICT_OF = {
    Held.NUMBER: Verdict.REPRODUCED,
    Held.ORDERING: Verdict.ORDERING_HOLDS,
    Held.NO: Verdict.NOT_REPRODUCED,
    Held.UNJUDGED: Verdict.NOT_CHECKED,
}


@dataclass(frozen=True)
class Claim:
    """Our side of a row.

    Attributes:
        values: One entry for each number that the row states; an entry is a number or one number a seed.
        ordering: Whether the direction or ranking that the row states holds; None where it states none.
        note: What the reader must know of how it was computed.
        reference: What is compared instead of the printed value, where the tolerance says so.
        kind: How our value came about, as `Row.kind` says it; None where it is as the row says.
    """

    values: Sequence[ArrayLike] = ()
    ordering: bool | None = None
    note: str = ""
    reference: str | None = None
    kind: str | None = None

    @cached_property
    def means(self) -> list[float]:
        """Mean over the seeds of each value."""
        return [float(np.mean(array)) for array in self._arrays]

    @cached_property
    def spreads(self) -> list[float]:
        """Standard deviation over the seeds of each value; NaN where there is one number only."""
        return [float(np.std(array, ddof=1)) if array.size > 1 else math.nan for array in self._arrays]

    @cached_property
    def _arrays(self) -> list[NDArray[np.float64]]:
        return [np.atleast_1d(np.asarray(value, dtype=float)) for value in self.values]


def number(value: ArrayLike, note: str = "") -> Claim:
    """A claim of one number."""
    return Claim((value,), note=note)


def formula(value: ArrayLike, note: str = "") -> Claim:
    """A claim of one number that a formula gives, whatever the source did for it."""
    return Claim((value,), note=note, kind=COMPUTED)


@dataclass(frozen=True)
class JudgedRow:
    """A row with our value and the verdict.

    Attributes:
        row: What is printed.
        claim: Our side.
        verdict: The verdict.
        note: What the reader must know.
        unreactive: The verdict with a sender that does not react to loss; None where there is no such run.
    """

    row: Row
    claim: Claim
    verdict: Verdict
    note: str
    unreactive: Verdict | None = None

    @property
    def kind(self) -> str:
        """How our value came about: `sim` by simulation, `computed` by a formula, `restated` by the input of a formula.

        A row without a claim has its own kind.
        """
        return self.claim.kind or self.row.kind

    @property
    def value(self) -> Any:
        """Our value as JSON has it: a number, a list of numbers, true or false, or null."""
        numbers = [mean if math.isfinite(mean) else None for mean in self.claim.means]
        if not numbers:
            return self.claim.ordering
        return numbers[0] if len(numbers) == 1 else numbers

    @property
    def holds(self) -> bool:
        """Whether it was judged and holds, in number or in order."""
        return self.verdict in HOLDS

    def as_json(self) -> dict[str, Any]:
        """The object of one entry of `rows`."""
        return {
            "id": self.row.id,
            "kind": self.kind,
            "value": self.value,
            "expected": self.row.value,
            "tolerance": self.row.tolerance,
            "verdict": self.verdict.value,
            "note": self.note,
            "unreactive": self.unreactive.value if self.unreactive else None,
        }


@dataclass(frozen=True)
class Figure:
    """A drawn figure: file name without ending, caption, and the drawing."""

    name: str
    caption: str
    drawing: "Drawing"


@dataclass(frozen=True)
class Table:
    """A table beside the figures; its first `keys` columns name the row."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: int = 1


@dataclass(frozen=True)
class Paper:
    """A source document.

    Attributes:
        key: Name of its folder.
        title: Authors, title, year.
        points: The scenario texts to run.
        claims: Our values by row id.
        figures: Draws the figures.
        elsewhere: Start of an id -> why such rows are not checked.
        tried: Row id -> what was tried for a row that is not reproduced.
        caveats: Row id -> what the verdict of a row that holds does not show, such as a size that is far off.
        conditions: Settings of ours that no source states, told wherever the numbers are.
        tables: Tables of what no row asks for, such as the same claims under other settings.
        restated: Ids of rows whose printed value is the input or the definition of the formula that gives ours.
        unreactive: Our values by row id with a sender that does not react to loss: a row that holds with it shows the
            radio and not TCP.
    """

    key: str
    title: str
    points: Callable[[], Iterable[str]]
    claims: Callable[[Runs, Expected], Mapping[str, Claim]]
    figures: Callable[[Runs], Iterator[Figure]]
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    tried: Mapping[str, str] = field(default_factory=dict)
    caveats: Mapping[str, str] = field(default_factory=dict)
    conditions: str = ""
    tables: Callable[[Runs, Expected], Iterable[Table]] = lambda runs, expected: ()
    restated: Collection[str] = ()
    unreactive: Callable[[Runs, Expected], Mapping[str, Claim]] = lambda runs, expected: {}

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return folder(self.key)

    @cached_property
    def expected(self) -> Expected:
        """Its printed values."""
        return expected.read(self.folder / "expected.csv")

    def reproduce(self, seeds: int | None = None, out: Path | None = None) -> "Outcome":
        """Run and judge everything.

        Args:
            seeds: Runs a point instead of the scenarios' own number.
            out: File for the JSON lines of the runs; an interrupted rerun goes on from it.
        """
        runs = simulate(self.points(), seeds=seeds, title=self.key, out=out)
        claims, unreactive = self.claims(runs, self.expected), self.unreactive(runs, self.expected)
        return Outcome(self, runs, self.judge(claims, unreactive))

    def judge(self, claims: Mapping[str, Claim], unreactive: Mapping[str, Claim] | None = None) -> list[JudgedRow]:
        """Judge every row, also with the claims of a sender that does not react to loss.

        Raises:
            ValueError: if a claim names no row, or a row that must be checked has no claim.
        """
        if strangers := claims.keys() - self.expected.keys():
            raise ValueError(f"{self.key}: claims without a row: {', '.join(sorted(strangers))}")
        if strangers := set(self.restated) - self.expected.keys():
            raise ValueError(f"{self.key}: restated without a row: {', '.join(sorted(strangers))}")
        judged = [self._judged(row, claims.get(row.id)) for row in self.expected.values()]
        without = unreactive or {}
        return [
            replace(one, unreactive=judge_row(one.row, without[one.row.id]).verdict) if one.row.id in without else one
            for one in judged
        ]

    def _judged(self, row: Row, claim: Claim | None) -> JudgedRow:
        if claim and row.id in self.restated:
            claim = replace(claim, kind=RESTATED)
        excuse = next((why for start, why in self.elsewhere.items() if row.id.startswith(start)), None)
        if row.kind == "measured" and claim is None:
            excuse = "field measurement"
        if excuse is not None:
            return JudgedRow(row, Claim(), Verdict.NOT_CHECKED, excuse)
        judged = judge_row(row, claim)
        if judged.verdict is Verdict.NOT_REPRODUCED and row.id in self.tried:
            note = "; ".join(filter(None, (judged.note, self.tried[row.id])))
            return JudgedRow(row, judged.claim, judged.verdict, note)
        return judged


def judge_row(row: Row, claim: Claim | None) -> JudgedRow:
    """The verdict on one row.

    Raises:
        ValueError: naming the row, if it needs a claim and has none, or its texts cannot be read.
    """
    claimed = claim or Claim()
    printed = claimed.reference or row.value
    try:
        held = tolerance.judge(row.tolerance, printed, claimed.means, claimed.ordering)
    except ValueError as error:
        raise ValueError(f"row {row.id}: {error}") from None
    return JudgedRow(row, claimed, VERDICT_OF[held], claimed.note)


@dataclass(frozen=True)
class Counts:
    """How many judged rows of one kind have which verdict."""

    reproduced: int
    ordering: int
    missed: int

    @classmethod
    def of(cls, rows: Iterable[JudgedRow]) -> "Counts":
        """Count the verdicts of rows."""
        verdicts = Counter(row.verdict for row in rows)
        return cls(verdicts[Verdict.REPRODUCED], verdicts[Verdict.ORDERING_HOLDS], verdicts[Verdict.NOT_REPRODUCED])

    def as_json(self) -> dict[str, int]:
        """The object of one kind in `counts`."""
        return {"reproduced": self.reproduced, "ordering": self.ordering, "not": self.missed}


@dataclass(frozen=True)
class Outcome:
    """A document rerun."""

    paper: Paper
    runs: Runs
    rows: list[JudgedRow]

    def as_json(self) -> dict[str, Any]:
        """The object that `ackclock paper KEY --json` prints."""
        kinds = {"simulated": self.simulated, "formulas": self.formulas, "restated": self.restated}
        counts = {name: of_kind.as_json() for name, of_kind in kinds.items()}
        return {"paper": self.paper.key, "counts": counts, "rows": [row.as_json() for row in self.rows]}

    @cached_property
    def tables(self) -> list[Table]:
        """The document's tables."""
        return list(self.paper.tables(self.runs, self.paper.expected))

    @property
    def simulated(self) -> Counts:
        """Verdicts of the rows whose value comes out of simulations."""
        return Counts.of(row for row in self.rows if row.kind not in (COMPUTED, RESTATED))

    @property
    def formulas(self) -> Counts:
        """Verdicts of the rows that are formulas computed again."""
        return Counts.of(row for row in self.rows if row.kind == COMPUTED)

    @property
    def restated(self) -> Counts:
        """Verdicts of the rows that repeat the input or the definition of a formula."""
        return Counts.of(row for row in self.rows if row.kind == RESTATED)

    @property
    def unreactive(self) -> tuple[int, int] | None:
        """How many rows hold that are also simulated with a sender that does not react to loss, and with it too."""
        held = [row for row in self.rows if row.unreactive is not None and row.holds]
        return (len(held), sum(row.unreactive in HOLDS for row in held)) if held else None

    @property
    def not_checked(self) -> int:
        """How many rows are shown and not judged."""
        return sum(row.verdict is Verdict.NOT_CHECKED for row in self.rows)

    @property
    def misses(self) -> list[JudgedRow]:
        """The rows that are not reproduced."""
        return [row for row in self.rows if row.verdict is Verdict.NOT_REPRODUCED]

    @property
    def caveats(self) -> list[tuple[JudgedRow, str]]:
        """The rows that hold, each with what its verdict does not show."""
        caveats = self.paper.caveats
        return [(row, caveats[row.row.id]) for row in self.rows if row.row.id in caveats and row.holds]


def folder(key: str) -> Path:
    """The folder of a document."""
    return Path(str(files("ackclock") / "papers" / key))


def keys() -> list[str]:
    """The documents there are."""
    return sorted(path.parent.name for path in folder("").glob("*/expected.csv"))


def load(key: str) -> Paper:
    """A document by its key.

    Raises:
        ValueError: naming the documents there are.
    """
    if key not in keys():
        raise ValueError(f"no paper {key!r}; there are: {', '.join(keys())}")
    paper = importlib.import_module(f"ackclock.papers.{key}").PAPER
    assert isinstance(paper, Paper), f"ackclock.papers.{key} defines PAPER"
    return paper
