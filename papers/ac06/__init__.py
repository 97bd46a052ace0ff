"""AC06: Alcaraz and Cerdan, ACK rate control strategy at the link layer to enhance TCP over 3G links."""

from ackclock.paper import InDocument, NullModel, Paper
from ackclock.papers.ac06 import caveats, claims, figures, grid, tables, tried

PAPER = Paper(
    key="ac06",
    title="Alcaraz and Cerdan, ACK rate control strategy at the link layer to enhance TCP over 3G links, 2006",
    points=grid.points,
    claims=claims.claims,
    figures=figures.figures,
    unchecked={
        "AC06-X1": InDocument(
            "contradictory", "two packets of 1500 bytes take 62.5 ms at 384 kbit/s, the source's own rate"
        ),
    },
    tried=tried.TRIED,
    caveats=caveats.CAVEATS,
    conditions=grid.CONDITIONS,
    tables=tables.tables,
    null=NullModel("no controller", claims.null_model),
)
