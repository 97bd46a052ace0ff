"""What was tried for the rows that are not reproduced. The readings of README.md stay: no setting is chosen by row."""

TRIED: dict[str, str] = {
    "CR04-09": (
        "A window of B falls below DT with SACK as soon as the wire has any length; it is the losses of Reno that let"
        " it win: with Reno the static window is ahead by 33 % at 1 ms and falls behind at 99 ms one way, with "
        "Doppler 10 Hz between 40 and 70 ms. With SACK and Doppler 3 Hz it is 2 % behind at 1 ms, with 2 Hz 1 % "
        "ahead. The setting states SACK"
    ),
    "CR04-16": (
        "The static window does fall below DT, the dynamic one does not: up to 1e-3 it is as good as WRB, at 1e-2 all"
        " lie within 5 %. Counting the packets on the air as printed changes nothing (673 and 525 kbit/s at 1e-3 and "
        "3e-3, 675 and 526 with the exact count). Here losses come singly; the source may have had a congested queue,"
        " which loses several of a burst"
    ),
    "CR04-19": (
        "Strict priority costs the files (35 % more than PF/FIFO) but short flows gain by it. With the heavy load of "
        "table I it is the worst at every size (12.6 s against 11.0 s of PF/FIFO up to 5 KB), but then PF/SFP is no "
        "better than PF/FIFO. With web pages of user 1 alone it is the best of all below 15 KB"
    ),
    "CR04-23": (
        "Users of the same SNR 15 %. With a queue of 500 packets, which never overflows, 29 % where SNRs differ and "
        "36 % where they do not; PF/SFP then helps sizes above 15 KB as well, against what figure 14 shows. Heavy "
        "load 10 %; with the same SNR and web pages of user 1 alone besides, 20 %"
    ),
}
