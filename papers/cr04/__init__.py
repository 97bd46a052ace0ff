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
    elsewhere={
        "CR04-31": "a summary of the curves of figure 7, which are judged one by one",
        "CR04-32": "results that tell the packets beyond the queue (Y) are missing",
        "CR04-33": "scenarios with a file every 80 s are missing",
    },
)
