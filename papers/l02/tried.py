"""What was tried for the rows that are not reproduced."""

TRIED: dict[str, str] = {
    "L02-T3-2": (
        "20 to 21 without limited transmit, 28 to 30 where reports or repetitions wait for TTIs (and the first row"
        " is then 277 to 286)"
    ),
    "L02-T14-1": (
        "348 with repetitions after 80 ms; no reading of TCP or of the radio in the tables below gives more than 340"
    ),
    "L02-T14-3": ("As L02-T14-1"),
    "L02-T14-4": ("As L02-T14-1: here TCP takes no notice of the radio at all"),
    "L02-F20-1": (
        "In sequence nothing but a time-out would reduce a window, and there is none, so that every sender does "
        "what Reno does. Tried: every reading of TCP in the table below, repetitions after 60 and 80 ms, delivery,"
        " status and repetitions that wait for TTIs, a minimum of 1 s, of 200 ms and none, ticks of 10 and 100 ms."
        " A timer that runs from the sending of a segment, and not from the last ACK, was not tried"
    ),
    "L02-F20-2": ("As L02-F20-1"),
    "L02-F20-4": ("As L02-F20-1: Reno, Westwood and Eifel are one and the same"),
    "L02-O5": ("At 64 kbit/s and 576 bytes three fast retransmits in 28 000 packets; at the other two none"),
    "L02-O7": ("As L02-F20-1"),
    "L02-O8": ("As L02-F20-1"),
    "L02-O9": (
        "What the radio repeats is 11.1 %, what arrives twice 2 %; the rest is the window. Without limited "
        "transmit 4 % arrive twice"
    ),
}
