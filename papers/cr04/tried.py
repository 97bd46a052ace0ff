"""What was tried for the rows that are not reproduced. All rows of a figure are judged with the same reading of it."""

TRIED: dict[str, str] = {
    "CR04-16": (
        "The static window does not gain, the dynamic one is as good as WRB. Counts of packets on the air exactly as "
        "printed change nothing (WRD over DT at 1e-3 / 3e-3 +5 / +4 % either way; Doppler 5 Hz +10 / +8 %); at 1e-2 "
        "all lie within 3 %. With mean SNR 2.3 dB WRS is 9 to 10 % below DT and WRD 6 to 12 % above. With a wire of "
        "170 ms one way instead of 1 ms it is as printed up to a loss of 1e-3 (AR +2 %, WRB +1 %, WRD -4 %, WRS -23 "
        "%), but at 3e-3 WRB is below DT as well (-2 %), and the setup states 1 ms. A loss on the wire empties no "
        "account of WRD, and nothing in its rules makes it lose more than DT, which loses packets to its full queue "
        "besides"
    ),
    "CR04-23": (
        "54 % asks that short flows lose packets under PF/FIFO: 38 % comes out where the flows of a user share 20 "
        "packets, one drop-tail queue without a favour, and the first timeout is 6 s (last column of the last table). "
        "But then PF/SFP is 15 % faster up to 50 KB too, which CR04-17 says it is not, and strict priority helps short "
        "flows (CR04-19). Of a thousand combinations of buffer, sharing, regulator, sender, initial window, timer, "
        "averaging, classification, connections, load, begin of files, transport and Doppler frequency, tried where "
        "packets share slots, none holds this row together with CR04-17"
    ),
}
