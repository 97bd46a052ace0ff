"""CR02: Chan and Ramjee, TCP/IP performance over 3G wireless links with rate and delay variation."""

from ackclock.paper import Paper
from ackclock.papers.cr02 import caveats, claims, figures, grid, tried

PAPER = Paper(
    key="cr02",
    title="Chan and Ramjee, TCP/IP performance over 3G wireless links with rate and delay variation, MobiCom 2002",
    points=grid.points,
    claims=claims.claims,
    figures=figures.figures,
    tried=tried.TRIED,
    caveats=caveats.CAVEATS,
    conditions=grid.CONDITIONS,
    tables=claims.tables,
)
