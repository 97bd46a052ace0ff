"""Output of reproducing a document: rows, figures and report in a folder, and a summary on the terminal."""

import json
import sys
from pathlib import Path

from ackclock import plot
from ackclock.files import write_text
from ackclock.paper import claims_page
from ackclock.paper.document import Outcome, Verdict

COLOUR = {
    Verdict.REPRODUCED: "green",
    Verdict.ORDERING_HOLDS: "green",
    Verdict.SIGN_ONLY: "yellow",
    Verdict.NOT_REPRODUCED: "red",
    Verdict.NOT_CHECKED: "dim",
}


def write(outcome: Outcome, folder: Path) -> None:
    """Write `rows.json`, `figures/*.svg`, `figures/*.png` and `report.html`."""
    from ackclock import report

    write_text(folder / "rows.json", json.dumps(outcome.as_json()) + "\n")
    figures = list(outcome.paper.figures(outcome.runs))
    for figure in figures:
        for ending in ("svg", "png"):
            plot.save(figure.drawing, folder / "figures" / f"{figure.name}.{ending}")
    write_text(folder / "report.html", report.of_paper(outcome, figures))


def show(outcome: Outcome) -> None:
    """Print every judged row and the summary."""
    from rich.console import Console
    from rich.table import Table

    table = Table(
        "row", "kind", "metric", "printed", "ours", "effect", "tolerance", "verdict", title=outcome.paper.title
    )
    for judged in outcome.rows:
        if judged.verdict is Verdict.NOT_CHECKED:
            continue
        colour = COLOUR[judged.verdict]
        row = judged.row
        verdict = f"[{colour}]{judged.verdict.value}[/]" + (f", weak: {judged.weak}" if judged.weak else "")
        table.add_row(
            row.id,
            judged.kind,
            row.metric,
            claims_page.printed(row),
            claims_page.ours(judged),
            claims_page.effect(judged),
            row.tolerance,
            verdict,
        )
    # A pipe has no width: rows must not be wrapped or cut.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(table)
    console.print(claims_page.summary(outcome))
    if outcome.paper.conditions:
        console.print(outcome.paper.conditions)
