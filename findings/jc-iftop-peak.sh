#!/bin/bash
# Guess:   `iftop -t | jc --iftop` keeps the meaning of the columns, and `clients` has every pair of hosts that iftop prints.
# Found:   The peak and cumulative lines of iftop are sent, received and total. jc calls them last_2s, last_10s and last_40s:
#          `peak_rate.last_10s` is what was received. Unless iftop prints ports (-P), `clients` is empty, for valid output.
#          Bits and bytes (-B) get the same keys, so a reader cannot tell them apart.
# Version: jc 1.26.1; output of iftop 1.0pre4.
# Source:  the output below, as iftop prints it for an interface that has sent for 8 s and received nothing.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: python3 is needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" -q install jc==1.26.1 2>/dev/null || { echo "skipped: jc cannot be had"; exit 77; }
cat >"$folder/iftop.txt" <<'OUTPUT'
interface: wire0
IP address is: 10.9.0.1
MAC address is: 02:00:00:00:00:01
Listening on wire0
   # Host name (port/service if enabled)            last 2s   last 10s   last 40s cumulative
--------------------------------------------------------------------------------------------
   1 10.9.0.1                                 =>      966Kb      844Kb      844Kb      844KB
     10.9.0.2                                 <=         0b         0b         0b         0B
--------------------------------------------------------------------------------------------
Total send rate:                                      966Kb      844Kb      844Kb
Total receive rate:                                      0b         0b         0b
Total send and receive rate:                          966Kb      844Kb      844Kb
--------------------------------------------------------------------------------------------
Peak rate (sent/received/total):                      966Kb         0b      966Kb
Cumulative (sent/received/total):                     844KB         0B      844KB
============================================================================================

OUTPUT
cat >"$folder/read.py" <<'CODE'
import sys
import jc
text = open(sys.argv[1]).read()
with_ports = text.replace("10.9.0.1  ", "10.9.0.1:5", 1).replace("10.9.0.2  ", "10.9.0.2:9", 1)
in_bytes = text.replace("Kb", "KB").replace("0b", "0B")
[read], [ports], [bytes_read] = (jc.parse("iftop", one) for one in (text, with_ports, in_bytes))
print("in the output:", *(line for line in text.splitlines() if line.startswith("Peak")))
print("seen: peak_rate", read["peak_rate"])
print("seen: pairs of hosts without ports", len(read["clients"]), "and with ports", len(ports["clients"]))
print("seen: total_send_rate in bits", read["total_send_rate"], "and in bytes", bytes_read["total_send_rate"])
sys.exit(0 if read["peak_rate"] == {"last_2s": 966000, "last_10s": 0, "last_40s": 966000} and read["clients"] == []
         and len(ports["clients"]) == 1 and read["total_send_rate"] == bytes_read["total_send_rate"] else 1)
CODE
"$folder/venv/bin/python" "$folder/read.py" "$folder/iftop.txt" || { echo "changed"; exit 1; }
