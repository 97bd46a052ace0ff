"""CR02: Chan and Ramjee, TCP/IP performance over 3G wireless links with rate and delay variation."""

from ackclock.paper import InDocument, NullModel, Paper
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
    null=NullModel("senders of a constant window and no regulator", claims.null_model),
    restated=("CR02-S3-1", "CR02-S3-2", "CR02-S3-3", "CR02-S3-10", "CR02-F15a-0", "CR02-F15b-0"),
    unchecked={
        f"CR02-T1-{item}-That": InDocument(
            "contradictory", "400 ms leaves the transmission out, and the printed models of the item contain it"
        )
        for item in (5, 6, 7)
    },
)
