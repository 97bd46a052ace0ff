"""What the verdict of a row that holds does not show."""

CAVEATS: dict[str, str] = {
    "CR02-S3-8": (
        "The source states a bound and no size: its window of about 30 packets is sent in 2.6 s, ours of 44 in 3.8 s"
    ),
    "CR02-F12b-1": (
        "The order holds and the size does not: where rates are drawn for each packet, SACK stays within 2.3 % of the "
        "Ack Regulator at every deviation of figure 12(a) (CR02-F12a-2). 40 % is near what figure 11 prints over Reno"
    ),
    "CR02-F14a-1": (
        "The order holds at every buffer, the sizes are larger than printed: at B 5 the gain is more than twice the "
        "largest that is printed. Faster fades come nearer (4 to 31 % at 120 Hz), and with them figure 15 is missed"
    ),
    "CR02-F14a-2": (
        "The order holds at every buffer up to 20, the sizes are larger than printed; at 120 Hz they are as printed "
        "(1.9 to 17 %), and with that figure 15 is missed"
    ),
    "CR02-F14b-1": (
        "AR costs up to 18 % over Reno at one BDP; near is what figure 13(b) prints there, 15 % over Sack, with the "
        "tolerance of its row (8 points). Held against 15 % it would not hold"
    ),
    "CR02-S66-1": (
        "Within the tolerance of a few percent, and the order of the two is the reverse of the printed one: printed "
        "Reno loses less than Reno+AR, ours more"
    ),
    "CR02-S66-2": "See CR02-S66-1: the order of the two is reversed",
}
