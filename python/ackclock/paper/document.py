"""Documents, and the verdicts on their rows."""

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


SIMULATED = "sim"  # kind of a row whose value comes from the simulator
COMPUTED = "computed"  # kind of a row whose value comes from a formula
RESTATED = "restated"  # kind of a row whose printed value is the formula's input or definition

HOLDS = (Verdict.REPRODUCED, Verdict.ORDERING_HOLDS)
VERDICT_OF = {
    Held.NUMBER: Verdict.REPRODUCED,
    Held.ORDERING: Verdict.ORDERING_HOLDS,
    Held.NO: Verdict.NOT_REPRODUCED,
    Held.UNJUDGED: Verdict.NOT_CHECKED,
}


@dataclass(frozen=True)
class Claim:
    """Our result for a row.

    Attributes:
        values: One entry per number of the row; an entry is a number, or one number per seed.
        ordering: Whether the row's direction or ranking holds; None if it has none.
        note: Remark on how it was computed.
        reference: Value to compare instead of the printed one, if the tolerance says so.
        kind: Origin of our value, like `Row.kind`; None if it equals the row's.
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
        """Standard deviation over the seeds of each value; NaN for a single number."""
        return [float(np.std(array, ddof=1)) if array.size > 1 else math.nan for array in self._arrays]

    @cached_property
    def _arrays(self) -> list[NDArray[np.float64]]:
        return [np.atleast_1d(np.asarray(value, dtype=float)) for value in self.values]


def number(value: ArrayLike, note: str = "") -> Claim:
    """A claim of one number."""
    return Claim((value,), note=note)


def formula(value: ArrayLike, note: str = "") -> Claim:
    """A claim of one number computed by a formula, whatever the source used."""
    return Claim((value,), note=note, kind=COMPUTED)


@dataclass(frozen=True)
class JudgedRow:
    """A row with our value and the verdict.

    Attributes:
        row: The printed row.
        claim: Our result.
        verdict: The verdict.
        note: Remark for the reader.
        unreactive: The verdict with a sender that does not react to loss; None without such a run.
    """

    row: Row
    claim: Claim
    verdict: Verdict
    note: str
    unreactive: Verdict | None = None

    @property
    def kind(self) -> str:
        """Origin of our value: `sim` (simulation), `computed` (formula), or `restated` (input of a formula).

        A row without a claim keeps its own kind.
        """
        return self.claim.kind or self.row.kind

    @property
    def value(self) -> Any:
        """Our value for JSON: a number, a list of numbers, true or false, or null."""
        numbers = [mean if math.isfinite(mean) else None for mean in self.claim.means]
        if not numbers:
            return self.claim.ordering
        return numbers[0] if len(numbers) == 1 else numbers

    @property
    def holds(self) -> bool:
        """Whether it was judged and holds, by number or by order."""
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
    """A figure: file name without extension, caption, and plot."""

    name: str
    caption: str
    drawing: "Drawing"


@dataclass(frozen=True)
class Table:
    """A table; its first `keys` columns identify the row."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: int = 1


@dataclass(frozen=True)
class Paper:
    """A source document.

    Attributes:
        key: Name of the folder.
        title: Authors, title, year.
        points: The scenario texts to run.
        claims: Our values by row id.
        figures: Plots the figures.
        elsewhere: Row id, or its first parts -> why such rows are not checked.
        tried: Row id -> attempts for a row that is not reproduced.
        caveats: Row id -> deviations that the verdict of a row that holds does not show.
        conditions: Our settings that no source states, printed with all results.
        tables: Additional tables, such as the same claims under other settings.
        restated: Ids of rows whose printed value is the input or the definition of our formula.
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
        """Folder of its files."""
        return folder(self.key)

    @cached_property
    def expected(self) -> Expected:
        """Its printed values."""
        return expected.read(self.folder / "expected.csv")

    def reproduce(self, seeds: int | None = None, out: Path | None = None) -> "Outcome":
        """Run and judge everything.

        Args:
            seeds: Runs per point, overriding the scenarios'.
            out: File for the JSON lines of the runs, from which an interrupted call continues.
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
        excuse = next((why for start, why in self.elsewhere.items() if f"{row.id}-".startswith(f"{start}-")), None)
        if excuse is None and row.kind == "measured" and claim is None:
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
    """Number of judged rows of one kind by verdict."""

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
    """Results of reproducing a document."""

    paper: Paper
    runs: Runs
    rows: list[JudgedRow]

    def as_json(self) -> dict[str, Any]:
        """The object printed by `ackclock paper KEY --json`."""
        kinds = {"simulated": self.simulated, "formulas": self.formulas, "restated": self.restated}
        counts = {name: of_kind.as_json() for name, of_kind in kinds.items()}
        return {"paper": self.paper.key, "counts": counts, "rows": [row.as_json() for row in self.rows]}

    @cached_property
    def tables(self) -> list[Table]:
        """The document's tables."""
        return list(self.paper.tables(self.runs, self.paper.expected))

    @property
    def simulated(self) -> Counts:
        """Verdicts of rows whose value is simulated."""
        return Counts.of(row for row in self.rows if row.kind not in (COMPUTED, RESTATED))

    @property
    def formulas(self) -> Counts:
        """Verdicts of rows whose value is computed from formulas."""
        return Counts.of(row for row in self.rows if row.kind == COMPUTED)

    @property
    def restated(self) -> Counts:
        """Verdicts of rows that repeat the input or the definition of a formula."""
        return Counts.of(row for row in self.rows if row.kind == RESTATED)

    @property
    def unreactive(self) -> tuple[int, int] | None:
        """Of the rows also simulated with a sender that ignores loss: how many hold, and how many hold with it too."""
        held = [row for row in self.rows if row.unreactive is not None and row.holds]
        return (len(held), sum(row.unreactive in HOLDS for row in held)) if held else None

    @property
    def not_checked(self) -> int:
        """Number of rows that are shown but not judged."""
        return sum(row.verdict is Verdict.NOT_CHECKED for row in self.rows)

    @property
    def misses(self) -> list[JudgedRow]:
        """The rows that are not reproduced."""
        return [row for row in self.rows if row.verdict is Verdict.NOT_REPRODUCED]

    @property
    def caveats(self) -> list[tuple[JudgedRow, str]]:
        """Rows that hold, with the deviations that their verdicts do not show."""
        caveats = self.paper.caveats
        return [(row, caveats[row.row.id]) for row in self.rows if row.row.id in caveats and row.holds]


def folder(key: str) -> Path:
    """The folder of a document."""
    return Path(str(files("ackclock") / "papers" / key))


def keys() -> list[str]:
    """Keys of all documents."""
    return sorted(path.parent.name for path in folder("").glob("*/expected.csv"))


def load(key: str) -> Paper:
    """A document by its key.

    Raises:
        ValueError: naming the known documents.
    """
    if key not in keys():
        raise ValueError(f"no paper {key!r}; there are: {', '.join(keys())}")
    paper = importlib.import_module(f"ackclock.papers.{key}").PAPER
    assert isinstance(paper, Paper), f"ackclock.papers.{key} defines PAPER"
    return paper
