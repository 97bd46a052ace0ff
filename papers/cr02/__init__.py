"""CR02: Chan and Ramjee, TCP/IP performance over 3G wireless links with rate and delay variation."""

from ackclock.paper import NullModel, Paper
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
    elsewhere={
        **dict.fromkeys(
            ("CR02-S3-1", "CR02-S3-2", "CR02-S3-3"),
            "an input here: the law of the delay in profile `cdma-1x` is fitted to it, so that it tests nothing",
        ),
        "CR02-S3-10": "an input here: the window of 64 kB is chosen so that nothing is lost, so that it tests nothing",
        "CR02-S5-1": "results that tell the most ACKs held at once are missing",
        "CR02-F15a-0": "an input here: the mean SNR of several users is chosen to give this rate",
        "CR02-F15b-0": "an input here: the mean SNR of several users is chosen to give this rate",
        "CR02-S65-1": "a summary of the curves of figures 14 and 15, which are judged one by one",
        "CR02-S67-3": "a summary of the curves of figure 14, which are judged one by one",
        "CR02-S67-4": "a summary of the curves of figure 15, which are judged one by one",
        "CR02-S67-5": "a summary of the curves of figures 11 to 15, which are judged one by one",
        "CR02-S67-6": "a summary of the curves of figures 11 to 15, which are judged one by one",
    },
)
