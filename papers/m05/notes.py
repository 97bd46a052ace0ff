"""What must be known of the rows that a formula gives."""

CONDITIONS = (
    "Where the source is silent: slots that a packet does not need carry other frames, T contains the mean "
    "retransmission delay, Q is the tail of the normal law."
)
TRIED: dict[str, str] = {
    "M05-G1": (
        "'About' is taken as a factor of two. With power control the soonest repetition is best, with independent "
        "errors all are equal, with slow fading (f_D T = 0.01) the best lies at one and a half bursts; with fast "
        "fading (0.1) it lies at three bursts of 1.6 slots, and everything later is as good. What the source expects, "
        "that errors so far apart are no longer correlated, holds where errors come in bursts and P_TO is the measure. "
        "By the mean delay the soonest is best with every process"
    ),
}
CAVEATS: dict[str, str] = {
    "M05-T42-1-0.2": "The source prints 0.24; the sum over all sequences of 20 frames gives 0.26 too",
    "M05-T43-FR-960-0.2": "Follows from the 0.24 of table 4.2",
}
