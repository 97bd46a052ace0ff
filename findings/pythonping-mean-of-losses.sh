#!/bin/bash
# Guess:   `rtt_avg_ms` of pythonping is the mean RTT of the answered requests, as that of ping(8).
# Found:   A lost request counts as an RTT of one timeout. On a path with an RTT below 1 ms and 50 % loss, the mean is
#          500 ms with a timeout of 1 s. `rtt_max_ms` is that timeout, too.
# Version: pythonping 1.1.4.
# Source:  ten requests on loopback, of which every second one is dropped; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip nft python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2, nftables and python3 are needed"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" -q install pythonping==1.1.4 2>/dev/null ||
    { echo "skipped: pythonping cannot be had"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
cat >"$folder/drop.nft" <<'RULES'
table ip finding {
    chain in {
        type filter hook input priority 0;
        icmp type echo-request numgen inc mod 2 0 drop
    }
}
RULES
cat >"$folder/ping.py" <<'CODE'
import sys
from pythonping import ping
answers = ping("127.0.0.1", count=10, timeout=1, interval=0)
answered = [one.time_elapsed_ms for one in answers if one.success]
mean = sum(answered) / len(answered)
print(f"seen: {len(answered)} of 10 answered, mean RTT of these {mean:.2f} ms; rtt_avg_ms {answers.rtt_avg_ms}, rtt_max_ms {answers.rtt_max_ms}")
sys.exit(0 if len(answered) == 5 and mean < 100 and answers.rtt_avg_ms > 450 else 1)
CODE
unshare -n bash -c "ip link set lo up; nft -f '$folder/drop.nft'; '$folder/venv/bin/python' '$folder/ping.py'" || { echo "changed"; exit 1; }
