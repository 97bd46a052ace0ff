"""What was tried for the rows that are not reproduced. All rows of a figure are judged with the same reading of it."""

TRIED: dict[str, str] = {
    "CR04-06": (
        "AR is above WRD at small buffers and WRB best, as printed. Weighed by round trip times WRD has the most of "
        "all five at 3 and 5 packets; from 10 on DT has, whose queue runs empty after each loss, and WRS comes "
        "second. Of the schemes that fill the link, AR, WRD and WRB as this row was judged before, WRD has the most "
        "at every buffer; but WRS fills it too"
    ),
    "CR04-07": (
        "As CR04-06: the gap between AR and WRD is wider with eight users and WRB best, as printed, and WRD has the "
        "most goodput a round trip time at 3 packets, DT from 5 on"
    ),
    "CR04-10": (
        "AR is above DT at every wire, by the more the shorter the wire but for one rise: the gain grows up to 70 ms "
        "of the axis and falls from there. Judged by two ends, 2 and 200 ms, as before, it degrades. At 800 ms, 400 "
        "ms one way, 0.6 % over forty seeds (standard error 0.3) and 0.5 % over another forty; at 5 and 10 Hz and "
        "over the other cells forty seeds do not tell (-0.2 to +0.4 %), so that at that end the row is within what "
        "the source leaves open. From 30 Hz on AR is above at every wire, and the more the longer it is. Read one way "
        "the row holds at 11 Hz and at no other frequency"
    ),
    "CR04-16": (
        "The static window does not gain, the dynamic one is as good as WRB. Counts of packets on the air exactly as "
        "printed change nothing (WRD over DT at 1e-3 / 3e-3 +5 / +4 % either way; Doppler 5 Hz +10 / +8 %); at 1e-2 "
        "all lie within 3 %. With mean SNR 2.3 dB WRS is 9 to 10 % below DT and WRD 6 to 12 % above. With a wire of "
        "170 ms one way instead of 1 ms it is as printed up to a loss of 1e-3 (AR +2 %, WRB +1 %, WRD -4 %, WRS -23 "
        "%), but at 3e-3 WRB is below DT as well (-2 %), and the setup states 1 ms. A loss on the wire empties no "
        "account of WRD, and nothing in its rules makes it lose more than DT, which loses packets to its full queue "
        "besides"
    ),
    "CR04-19": (
        "With pages of user 1 and files of the others strict priority is the best for pages (up to 15 KB a quarter "
        "below PF/FIFO) and the worst for files alone: the pages of one user do not load the cell so that short flows "
        "of four users wait for each other. With pages and files of all users, found by searching, it is the worst at "
        "every size (last table)"
    ),
    "CR04-21": (
        "A user with pages alone has few long flows that short ones could pass: the gain of PF/SFP is below 2 % up to "
        "15 KB and none above. It is always better where all users have pages"
    ),
    "CR04-23": (
        "Under the heavy load of table I it is 22 %, 30 % where all users have -4 dB. The interval of 80 s alone, with "
        "files that begin as under the medium load or all at once, makes it 23 %; pages at -4 dB 20 %, pages of all "
        "users 4 %. What follows was tried under the medium load. "
        "54 % asks that short flows lose packets under PF/FIFO: 38 % comes out where all users have pages, the flows "
        "of a user share 20 packets, one drop-tail queue without a favour, and the first timeout is 6 s (last column "
        "of the last table). But then PF/SFP is 16 % faster up to 50 KB too, which CR04-17 says it is not, and strict "
        "priority helps short flows (CR04-19). The reading found by searching gives 16 %. Of a thousand combinations "
        "of buffer, sharing, regulator, sender, initial window, timer, averaging, classification, connections, load, "
        "begin of files, transport and Doppler frequency, tried where packets share slots, none holds this row "
        "together with CR04-17"
    ),
    "CR04-27": (
        "Round robin alone is as the slide says: latency of short flows is a third to twice higher than under "
        "PF/FIFO. With users whose next packet is of a short flow first it is 3 to 10 % lower, since pages of one "
        "user then wait for no file; files are 10 to 23 % slower under both"
    ),
    "CR04-29": (
        "PF-SP costs files 2 to 8 %, PF-RP less than 1 %, which forty seeds do not tell from none. The users get what "
        "they ask for under every scheme, a load below the capacity, so that Jain's index of what they got is the "
        "same. A cell with downloads without end has no such limit, and the slide does not say that it had them"
    ),
    "CR04-34": (
        "Nearly all follow a timer that expired for nothing: what is then sent again finds the buffer full of "
        "packets that "
        "the radio repeats. Without a regulator the same runs drop 10 to 25 packets on average. New data within the "
        "advertised window does not overflow the buffer, unless the least window of two packets is advertised while "
        "acknowledged packets still fill it"
    ),
    "CR04-33": (
        "Rows 17 and 22 hold under the heavy load. The gain of PF/SFP, below 1 % up to 15 KB where all users have "
        "-4 dB, is not told by forty seeds (rows 20 and 21)"
    ),
}
