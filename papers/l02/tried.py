"""What was tried for the rows that are not reproduced."""

TRIED: dict[str, str] = {
    "L02-W-1": (
        "A round trip takes 309 ms here: 270 ms of wire and radio, TTIs, and the packet itself. 25 packets of 576 "
        "bytes "
        "fill 300 ms at this speed; 26 would fill it all"
    ),
    "L02-T14-1": (
        "No reading of TCP in the table below gives more than 335, none of what waits for TTIs more than 349. What "
        "the table asks for is longer repetitions: after 140 ms, instead of the 60 that the source states for a TTI "
        "of 20 ms whatever it holds, the rows come near in their order, but not in size, and tables 8 and 15 do not. "
        "A timer that runs from the sending of a segment, without a minimum and in ticks of 10 ms, gave 361 to 442, "
        "and 722, 233, 196 and 21 for the four rows with repetitions after 140 ms; table 3 was then 408 to 586, where "
        "the source has 239 (all with a guard against a second halving)"
    ),
    "L02-T14-3": ("As L02-T14-1: one repetition more than its neighbours does not hold a packet back for three others"),
    "L02-T14-4": ("As L02-T14-1: here TCP takes no notice of the radio at all"),
    "L02-F20-1": (
        "In sequence nothing but a time-out would reduce a window, and there is none, so that every sender does what "
        "Reno does. ns-2 starts its timer again at each ACK that advances, in every version that was looked at, and "
        "so is it here. Then a time-out needs ACKs to be silent for longer than a round trip of 300 ms: five "
        "repetitions of one block in a row, which happens to 4 of 400 000 blocks. Tried: every reading of TCP and of "
        "the radio in the tables below; everything that waits for TTIs, and repetitions after 80 to 140 ms, each "
        "without a minimum of the timer; ticks of 500 ms; the timer set before or after the round-trip time is "
        "updated (equal). A timer that runs from the sending of the oldest segment, which is not in ns-2, calls "
        "time-outs forth only without a minimum and in ticks of 10 ms: table 15 is then 49 to 130 (printed 305), "
        "Westwood 35 to 38 (120), Eifel 31 (50), and table 8 49 to 294 (53); but the second row of table 8 is 19 to "
        "24 (12.6), and table 3 408 to 506 (239). In ticks of 100 ms, or with a minimum of 1 s, it gives a time-out "
        "or two in a download of 16 MB"
    ),
    "L02-F20-2": ("As L02-F20-1"),
    "L02-F20-4": ("As L02-F20-1: Reno, Westwood and Eifel are one and the same"),
    "L02-O5": ("At 64 kbit/s and 576 bytes three fast retransmits in 28 000 packets; at the other two none"),
    "L02-O7": ("As L02-F20-1"),
    "L02-O8": ("As L02-F20-1"),
    "L02-O9": (
        "What the radio repeats is 11.1 %, what arrives twice 4 %; the rest is the window. With a guard against a "
        "second halving in a window 2 % arrive twice"
    ),
    "L02-O20": (
        "Judged over the download of table 3, 384 kbit/s and 576 bytes, whose window of 25 packets does not fill the "
        "radio when the round trip grows. Without errors 2.3 % at a sixth of the rate; at 384 kbit/s and 1500 bytes "
        "without errors 0.003 and 0.006 %"
    ),
    "L02-T14-2": ("The order holds with a tenth of the printed size. As L02-T14-1"),
    "L02-T15-1": ("The order holds with a tenth of the printed size: the source has time-outs. As L02-F20-1"),
    "L02-T11-5": ("Over twenty runs the mean is 2 % with a deviation of 16, so that not even its sign can be told"),
}
