"""CR04: Chan and Ramjee, Improving TCP/IP performance over third generation wireless networks."""

from ackclock.paper import NullModel, Paper
from ackclock.papers.cr04 import caveats, claims, figures, grid, tried

PAPER = Paper(
    key="cr04",
    title="Chan and Ramjee, Improving TCP/IP performance over third generation wireless networks, INFOCOM 2004",
    points=grid.points,
    claims=claims.claims,
    figures=figures.figures,
    tried=tried.TRIED,
    caveats=caveats.CAVEATS,
    conditions=grid.CONDITIONS,
    tables=claims.tables,
    null=NullModel("no regulator and a round-robin scheduler", claims.null_model),
)
