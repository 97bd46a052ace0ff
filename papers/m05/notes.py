"""What must be known of the rows that a formula gives."""

CONDITIONS = (
    "Where the source is silent: slots that a packet does not need carry other frames, T contains the mean "
    "retransmission delay, Q is the tail of the normal law."
)
TRIED: dict[str, str] = {
    "M05-S42-1": (
        "One bit of feedback and a delay of two samples make a period of 6 over a still channel whatever the step; a "
        "period below 5 needs a delay of one sample, which gives 2. The source says typically, and cites another "
        "paper for it"
    ),
    "M05-G1": (
        "'About the burst length' is taken as a factor of two, and fast fading does not keep to it: the best lies at "
        "three bursts of 1.6 slots, and everything later is as good. The words of the source are others: where the "
        "original and its repetition are hardly correlated. So it is: a repetition is damaged with the probability "
        "that stands beside, and 0.1 is that of any frame; only with slow fading, where the best is a dip that comes "
        "from where the timer falls, is it above. The mean delay is least at g = 1 with every process"
    ),
}
CAVEATS: dict[str, str] = {
    "M05-T42-1-0.2": "The source prints 0.24; the sum over all sequences of 20 frames gives 0.26 too",
    "M05-T43-FR-960-0.2": "Follows from the 0.24 of table 4.2",
}
RESTATED = (
    "M05-F33-1",  # no number in the figure: read from the formula
    "M05-F39-1",
    "M05-F43",  # no number in the figure: read from the formula
    *(f"M05-F49-{frames}-{step}" for frames in (1, 2) for step in ("0.2", "0.06", "0.02")),  # Table 4.3 solved for P_TO
    "M05-O2",
    "M05-O3",
    "M05-S45-2",
    "M05-T52-available",
    "M05-S42-3",
)
