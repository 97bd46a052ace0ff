"""The radio access chain: our own claims about the preset hsdpa, its flow control and its regulators."""

from ackclock.paper import Missing, NullModel, Paper
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
    unchecked={
        "CHAIN-5": Missing(
            "result",
            r"right.?edge",
            "results do not count right edges; the tests of hand-over do, over every regulator",
        ),
        "CHAIN-8": Missing(
            "result",
            r"added.?delay",
            "results do not hold the added delay; in the test of the link, the median over 20 seeds is 1.04 with "
            "`over` = 20,000 packets",
        ),
    },
)
