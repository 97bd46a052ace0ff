"""L02: Lundsten, Improving 3G performance for the mobile Internet."""

from ackclock.paper import Paper
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
)
