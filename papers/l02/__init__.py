"""L02: Lundsten, Improving 3G performance for the mobile Internet."""

from ackclock.paper import NullModel, Paper
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
    elsewhere={
        "L02-O14": "results that count the repetitions of a block are missing",
        "L02-F13-1": "results that tell the mean window of a flow are missing",
        "L02-O18": "no one link shows the 24 cells: each asks for a pair of scenarios that differ in one piece",
        "L02-O19": "an HSDPA bearer with a radio link control above the cell is missing",
    },
)
