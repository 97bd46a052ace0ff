"""What was tried for the rows that are not reproduced. All rows of a figure are judged with the same reading of it."""

TRIED: dict[str, str] = {
    "CR04-16": (
        "The static window does not gain, the dynamic one is as good as WRB. Windows and counts of packets on the "
        "air exactly as printed, written on duplicates as well, change nothing (WRD over DT at 1e-3 / 3e-3 +6 / +4 "
        "% against +6 / +5 %; Doppler 5 Hz +12 / +7 %); at 1e-2 all lie within 3 %. With mean SNR 2.3 dB WRS is 6 "
        "to 8 % below DT and WRD 13 to 27 % above. With a wire of 170 ms one way instead of 1 ms it is as printed up "
        "to a loss of 1e-3 (AR +1 %, WRB +2 %, WRD -3 %, WRS -22 %), but at 3e-3 WRB is below DT as well (-3 %), and "
        "the setup states 1 ms. A loss on the wire empties no account of WRD, and nothing in its rules makes it lose "
        "more than DT, which loses packets to its full queue besides"
    ),
    "CR04-23": (
        "54 % asks that short flows lose packets under PF/FIFO: 36 % comes out where the flows of a user share 20 "
        "packets, one drop-tail queue without a favour, and the first timeout is 6 s (last column of the last table). "
        "But then PF/SFP is 15 % faster up to 50 KB too, which CR04-17 says it is not, and strict priority helps short "
        "flows (CR04-19). Of a thousand combinations of buffer, sharing, regulator, sender, initial window, timer, "
        "averaging, classification, connections, load, begin of files, transport and Doppler frequency none holds "
        "this row together with CR04-17"
    ),
}
