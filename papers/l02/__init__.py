"""L02: Lundsten, Improving 3G performance for the mobile Internet."""

from ackclock.paper import InDocument, NullModel, Paper
from ackclock.papers.l02 import caveats, claims, figures, grid, tables, tried

PAPER = Paper(
    key="l02",
    title="Lundsten, Improving 3G performance for the mobile Internet, KTH 2002",
    points=grid.points,
    claims=claims.claims,
    figures=figures.figures,
    tried=tried.TRIED,
    caveats=caveats.CAVEATS,
    conditions=grid.CONDITIONS,
    tables=tables.tables,
    null=NullModel("a sender that does not react to loss", claims.unreactive),
    unchecked={
        "L02-T4-1": InDocument(
            "contradictory", "183.18 follows from an increase of 215 %, and table 3 prints 239 in the same row"
        ),
        "L02-O14": InDocument(
            "contradictory", "10 % of blocks fail, so after n repetitions 10^-(n+1) are missing; the print says 10^-n"
        ),
        "L02-O18": InDocument("no number", "a guideline of who helps against what, without settings"),
    },
)
