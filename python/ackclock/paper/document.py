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

from ackclock.paper import effect, expected, tolerance
from ackclock.paper.expected import Expected, Row
from ackclock.paper.runs import Runs, simulate
from ackclock.paper.tolerance import Held
from ackclock.paper.unchecked import Reason
from ackclock.paper.weakness import weakness

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


class Verdict(Enum):
    """The verdict on a row."""

    REPRODUCED = "reproduced"
    ORDERING_HOLDS = "ordering-holds"
    SIGN_ONLY = "sign-only"
    NOT_REPRODUCED = "not-reproduced"
    NOT_CHECKED = "not-checked"


SIMULATED = "sim"  # kind of a row whose value comes from the simulator
COMPUTED = "computed"  # kind of a row whose value comes from a formula
RESTATED = "restated"  # kind of a row whose printed value is the formula's input or definition

HOLDS = (Verdict.REPRODUCED, Verdict.ORDERING_HOLDS)
MISSES = (Verdict.SIGN_ONLY, Verdict.NOT_REPRODUCED)
VERDICT_OF = {
    Held.NUMBER: Verdict.REPRODUCED,
    Held.ORDERING: Verdict.ORDERING_HOLDS,
    Held.SIGN: Verdict.SIGN_ONLY,
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
        return [float(np.mean(array)) for array in self.arrays]

    @cached_property
    def spreads(self) -> list[float]:
        """Standard deviation over the seeds of each value; NaN for a single number."""
        return [float(np.std(array, ddof=1)) if array.size > 1 else math.nan for array in self.arrays]

    @cached_property
    def arrays(self) -> list[NDArray[np.float64]]:
        """Each value as numbers by seed."""
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
        shares: Our effects divided by the printed ones; None for numbers that compare nothing.
        weak: Why a row that holds would hold whatever happens (see `weakness`); empty if it is not weak.
        null: The verdict with the null model; None for rows that the null model does not touch.
    """

    row: Row
    claim: Claim
    verdict: Verdict
    note: str
    shares: Sequence[float | None] = ()
    weak: str = ""
    null: Verdict | None = None

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
            "effect": [share if share is None or math.isfinite(share) else None for share in self.shares],
            "weak": self.weak or None,
            "null_model": self.null.value if self.null else None,
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
class NullModel:
    """A model without the mechanism that a document is about. A row that holds with it does not show the mechanism.

    Attributes:
        what: Its name, to follow `also hold with`.
        claims: Our values by row id with it, for the rows that it touches.
    """

    what: str
    claims: Callable[[Runs, Expected], Mapping[str, Claim]]


@dataclass(frozen=True)
class Paper:
    """A source document.

    Attributes:
        key: Name of the folder.
        title: Authors, title, year.
        points: The scenario texts to run.
        claims: Our values by row id.
        figures: Plots the figures.
        unchecked: Row id, or its first parts -> why such rows are not judged.
        tried: Row id -> attempts for a row that is not reproduced.
        caveats: Row id -> deviations that the verdict of a row that holds does not show.
        conditions: Our settings that no source states, printed with all results.
        tables: Additional tables, such as the same claims under other settings.
        restated: Ids of rows whose printed value is the input of our simulation or formula, or its definition.
        null: The document without its mechanism.
    """

    key: str
    title: str
    points: Callable[[], Iterable[str]]
    claims: Callable[[Runs, Expected], Mapping[str, Claim]]
    figures: Callable[[Runs], Iterator[Figure]]
    unchecked: Mapping[str, Reason] = field(default_factory=dict)
    tried: Mapping[str, str] = field(default_factory=dict)
    caveats: Mapping[str, str] = field(default_factory=dict)
    conditions: str = ""
    tables: Callable[[Runs, Expected], Iterable[Table]] = lambda runs, expected: ()
    restated: Collection[str] = ()
    null: NullModel = NullModel("", lambda runs, expected: {})

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
        claims, null = self.claims(runs, self.expected), self.null.claims(runs, self.expected)
        return Outcome(self, runs, self.judge(claims, null))

    def judge(self, claims: Mapping[str, Claim], null: Mapping[str, Claim] | None = None) -> list[JudgedRow]:
        """Judge every row, also with the claims of the null model.

        Raises:
            ValueError: if a claim names no row, or a row that must be checked has no claim.
        """
        if strangers := claims.keys() - self.expected.keys():
            raise ValueError(f"{self.key}: claims without a row: {', '.join(sorted(strangers))}")
        if strangers := set(self.restated) - self.expected.keys():
            raise ValueError(f"{self.key}: restated without a row: {', '.join(sorted(strangers))}")
        judged = [self._judged(row, claims.get(row.id)) for row in self.expected.values()]
        without = null or {}
        return [
            replace(one, null=judge_row(one.row, without[one.row.id]).verdict) if one.row.id in without else one
            for one in judged
        ]

    def _judged(self, row: Row, claim: Claim | None) -> JudgedRow:
        if claim and row.id in self.restated:
            claim = replace(claim, kind=RESTATED)
        reason = next((why for start, why in self.unchecked.items() if f"{row.id}-".startswith(f"{start}-")), None)
        if reason is not None:
            return JudgedRow(row, claim or Claim(), Verdict.NOT_CHECKED, str(reason))
        judged = judge_row(row, claim)
        if judged.verdict in MISSES and row.id in self.tried:
            return replace(judged, note="; ".join(filter(None, (judged.note, self.tried[row.id]))))
        return judged


def judge_row(row: Row, claim: Claim | None) -> JudgedRow:
    """The verdict on one row.

    Raises:
        ValueError: naming the row, if it needs a claim and has none, or its texts cannot be read.
    """
    claimed = claim or Claim()
    printed = claimed.reference or row.value
    try:
        effects = effect.effects(row.neutral, printed, len(claimed.values)) if claimed.values else []
        # The order of a comparison is the sign of its effect, unless the row asks for another one.
        is_signed = any(effects) and not tolerance.states_bound(printed)
        ordering = True if claimed.ordering is None and is_signed else claimed.ordering
        held = tolerance.judge(row.tolerance, printed, claimed.means, ordering)
        if any(effects) and held is not Held.UNJUDGED and claimed.ordering is not False:
            held = effect.judge(effects, claimed.arrays, held, row.tolerance)
        verdict = VERDICT_OF[held]
        weak = weakness(row.tolerance, printed, row.neutral, effects, claimed.arrays) if verdict in HOLDS else ""
    except ValueError as error:
        raise ValueError(f"row {row.id}: {error}") from None
    shares = [None if of is None else of.share(mean) for of, mean in zip(effects, claimed.means, strict=True)]
    return JudgedRow(row, claimed, verdict, claimed.note, shares if any(effects) else (), weak)


@dataclass(frozen=True)
class Counts:
    """Number of judged rows of one kind by verdict."""

    reproduced: int
    ordering: int
    sign: int
    missed: int

    @classmethod
    def of(cls, rows: Iterable[JudgedRow]) -> "Counts":
        """Count the verdicts of rows."""
        verdicts = Counter(row.verdict for row in rows)
        columns = (Verdict.REPRODUCED, Verdict.ORDERING_HOLDS, Verdict.SIGN_ONLY, Verdict.NOT_REPRODUCED)
        return cls(*(verdicts[one] for one in columns))

    @property
    def total(self) -> int:
        """Number of judged rows."""
        return self.reproduced + self.ordering + self.sign + self.missed

    def as_json(self) -> dict[str, int]:
        """The object of one kind in `counts`."""
        return {"reproduced": self.reproduced, "ordering": self.ordering, "sign": self.sign, "not": self.missed}


@dataclass(frozen=True)
class Outcome:
    """Results of reproducing a document."""

    paper: Paper
    runs: Runs
    rows: list[JudgedRow]

    def as_json(self) -> dict[str, Any]:
        """The object printed by `ackclock paper KEY --json`."""
        kinds = {
            "simulated": self.simulated,
            "formulas": self.formulas,
            "restated": self.restated,
            "weak": self.weak,
        }
        counts = {name: of_kind.as_json() for name, of_kind in kinds.items()}
        return {"paper": self.paper.key, "counts": counts, "rows": [row.as_json() for row in self.rows]}

    @cached_property
    def tables(self) -> list[Table]:
        """The document's tables."""
        return list(self.paper.tables(self.runs, self.paper.expected))

    @property
    def simulated(self) -> Counts:
        """Verdicts of rows whose value is simulated, without weak ones."""
        return Counts.of(row for row in self.rows if row.kind not in (COMPUTED, RESTATED) and not row.weak)

    @property
    def formulas(self) -> Counts:
        """Verdicts of rows whose value is computed from formulas, without weak ones."""
        return Counts.of(row for row in self.rows if row.kind == COMPUTED and not row.weak)

    @property
    def restated(self) -> Counts:
        """Verdicts of rows that repeat the input or the definition of a formula."""
        return Counts.of(row for row in self.rows if row.kind == RESTATED)

    @property
    def weak(self) -> Counts:
        """Verdicts of rows that would hold whatever happens, simulated or by formula."""
        return Counts.of(row for row in self.rows if row.weak and row.kind != RESTATED)

    @property
    def null(self) -> tuple[int, int] | None:
        """Number of rows that hold, are not weak and are judged with the null model; and of those that hold with it."""
        judged = [
            row for row in self.rows if row.null is not None and row.holds and not row.weak and row.kind != RESTATED
        ]
        return (len(judged), sum(row.null in HOLDS for row in judged)) if judged else None

    @property
    def not_checked(self) -> int:
        """Number of rows that are shown but not judged."""
        return sum(row.verdict is Verdict.NOT_CHECKED for row in self.rows)

    @property
    def misses(self) -> list[JudgedRow]:
        """The rows that are not reproduced, or of which the sign alone holds."""
        return [row for row in self.rows if row.verdict in MISSES]

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
