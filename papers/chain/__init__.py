"""The radio access chain: our own claims about the preset hsdpa, its flow control and its regulators."""

from ackclock.paper import NullModel, Paper
from ackclock.papers.chain import claims

PAPER = Paper(
    key="chain",
    title="The radio access chain from controller to terminal, our own claims",
    points=claims.points,
    claims=claims.claims,
    figures=lambda runs: iter(()),
    tried=claims.TRIED,
    conditions=claims.CONDITIONS,
    null=NullModel("no flow control, no regulator and no reports", claims.null_model),
    elsewhere={
        "CHAIN-5": "results do not count right edges and held ACKs; the tests of hand-over do, over every regulator",
        "CHAIN-8": (
            "results do not hold the added delay; in the test of the link, the median over 20 seeds is 1.04 with "
            "`over` = 20,000 packets"
        ),
    },
)
