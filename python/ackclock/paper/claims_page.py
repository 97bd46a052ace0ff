"""The claim table of a document: `claims.md` next to its README."""

import math
from collections.abc import Iterable
from pathlib import Path

from ackclock.files import write_text
from ackclock.paper import document
from ackclock.paper.document import Claim, Counts, JudgedRow, Outcome, Table, Verdict, judge_row
from ackclock.paper.expected import Row

NAME = "claims.md"
CAVEATS = "Held, with what the verdict does not show"

MISSES = "Not reproduced or by sign only, and what was tried"

COLUMNS = (
    "id",
    "kind",
    "config",
    "metric",
    "printed",
    "ours",
    "effect",
    "tolerance",
    "verdict",
    "weak",
    "null",
    "note",
)


def write(folder: Path, outcome: Outcome) -> None:
    """Write `claims.md` of a document.

    Raises:
        OSError: naming the file, if it cannot be written.
    """
    write_text(folder / NAME, page(outcome))


def page(outcome: Outcome) -> str:
    """Contents of `claims.md`."""
    key = outcome.paper.key
    written = f"Written by `ackclock paper {key} --update-claims`; `make papers` compares it with a new run."
    return f"# Claims of {key.upper()}\n\n{written}\n\n{claim_table(outcome)}"


def claim_table(outcome: Outcome) -> str:
    """Summary, attempts for each deviation, remarks on rows that hold, and the tables, in Markdown."""
    said = f"\n\n{outcome.paper.conditions}" if outcome.paper.conditions else ""
    misses = "".join(_remark(row, row.note) for row in outcome.misses)
    caveats = "".join(_remark(row, caveat) for row, caveat in outcome.caveats)
    parted = f"{MISSES}:\n\n{misses}\n" if misses else ""
    parted += f"{CAVEATS}:\n\n{caveats}\n" if caveats else ""
    head = _cells(COLUMNS) + "| --- " * len(COLUMNS) + "|\n"
    others = "".join(f"\n{table.title}\n\n{_markdown(table)}" for table in outcome.tables)
    return f"{summary(outcome)}{said}\n\n{parted}{head}" + "".join(map(_line, outcome.rows)) + others


def summary(outcome: Outcome) -> str:
    """Number of rows by kind and verdict."""
    simulated, formulas = _counted(outcome.simulated), _counted(outcome.formulas)
    words = [
        f"{len(outcome.rows)} rows. Simulated, {outcome.runs.seeds}: {simulated}.",
        f"Formulas recomputed: {formulas}.",
        f"Weak, so that they hold whatever happens: {outcome.weak.total}." if outcome.weak.total else "",
        f"Restated, so that they test nothing: {outcome.restated.total}." if outcome.restated.total else "",
        f"Not checked: {outcome.not_checked}.",
        _null(outcome),
    ]
    return " ".join(filter(None, words))


def _null(outcome: Outcome) -> str:
    if outcome.null is None:
        return ""
    held, without = outcome.null
    return (
        f"Of {held} rows that hold and are also judged with the null model, {outcome.paper.null.what}, {without} hold "
        "with it too (column `null`)."
    )


def _counted(counts: Counts) -> str:
    return (
        f"{counts.reproduced} within tolerance, {counts.ordering} by order only, {counts.sign} by sign only, "
        f"{counts.missed} not reproduced"
    )


def effect(judged: JudgedRow) -> str:
    """Our effects divided by the printed ones; empty for a row that prints no comparison."""
    return " / ".join("-" if share is None else f"{share:.2f}" for share in judged.shares)


def ours(judged: JudgedRow) -> str:
    """Our value with its spread over seeds, rounded to significant digits."""
    if not judged.claim.values:
        return {True: "holds", False: "does not hold", None: ""}[judged.claim.ordering]
    pairs = zip(judged.claim.means, judged.claim.spreads, strict=True)
    return " / ".join(with_spread(mean, sd) for mean, sd in pairs)


def held(row: Row, claim: Claim) -> str:
    """Result of a row under other settings: yes, no, `order` or `sign` if only that holds of a number."""
    judged = judge_row(row, claim)
    shown = ours(judged) if claim.values else ""
    by_order = "order" if claim.values else "yes"
    words = {
        Verdict.REPRODUCED: "yes",
        Verdict.ORDERING_HOLDS: by_order,
        Verdict.SIGN_ONLY: "sign",
        Verdict.NOT_REPRODUCED: "no",
    }
    said = words.get(judged.verdict, "")
    return f"{said} ({shown})" if said and shown else said or shown


def printed(row: Row) -> str:
    """The printed value with its unit."""
    return f"{row.value} {row.unit}".strip()


def with_spread(mean: float, spread: float) -> str:
    """A mean rounded according to its spread; four digits without a spread."""
    if math.isnan(mean):
        return "none"
    # The spread of equal numbers is only rounding error.
    if not spread > abs(mean) * 1e-12:
        return f"{mean:.0f}" if abs(mean) >= 10_000 else f"{mean:.4g}"
    decimals = max(0, 1 - math.floor(math.log10(spread)))
    if abs(mean) >= 10_000:
        decimals = 0
    return f"{mean:.{decimals}f} ± {spread:.{decimals}f}"


def _remark(judged: JudgedRow, remark: str) -> str:
    row = judged.row
    return f"- **{row.id}**, {row.metric}: printed {printed(row)}, ours {ours(judged)}. {remark}.\n"


def _line(judged: JudgedRow) -> str:
    row = judged.row
    cells = [
        row.id,
        judged.kind,
        row.config,
        row.metric,
        printed(row),
        ours(judged),
        effect(judged),
        row.tolerance,
        judged.verdict.value,
        judged.weak,
        judged.null.value if judged.null else "",
        judged.claim.note if judged.verdict in document.MISSES else judged.note,
    ]
    return _cells(cells)


def _markdown(table: Table) -> str:
    head = _cells(table.columns) + "| " + "--- | " * (len(table.columns) - 1) + "--- |\n"
    return head + "".join(map(_cells, table.rows))


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
