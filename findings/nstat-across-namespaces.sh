#!/bin/bash
# Guess:   nstat in a new network namespace shows the counters of this namespace.
# Found:   It shows the difference to its history file, which is one per user, not per namespace: what nstat showed before in
#          another namespace is subtracted. After 3 datagrams in the first namespace and nstat there, 9 in the second
#          are shown as 6. A file of its own (NSTAT_HISTORY) or `nstat -a` is needed for each namespace.
# Version: iproute2 6.1.
# Source:  datagrams in three namespaces; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip nstat python3 unshare >/dev/null ||
    { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export NSTAT_HISTORY=$folder/history # stands for the user's file, which is left alone
cat >"$folder/datagrams.py" <<'CODE'
import socket, sys
receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
receiver.bind(("127.0.0.1", 0))
for _ in range(int(sys.argv[1])):
    sender.sendto(b"", receiver.getsockname())
CODE
namespace() { # DATAGRAMS [NSTAT OPTIONS]: how many of them nstat shows in a new namespace
    unshare -n bash -c "ip link set lo up; python3 '$folder/datagrams.py' $1; nstat ${2:-} UdpOutDatagrams" | awk '/^Udp/ {print $2}'
}
first=$(namespace 3) second=$(namespace 9) absolute=$(namespace 9 -a)
echo "seen with $(nstat -V 2>&1), datagrams sent and shown in new namespaces:"
echo "first: 3 sent, nstat shows $first; second: 9 sent, nstat shows $second; third: 9 sent, nstat -a shows $absolute"
[ "$first" = 3 ] && [ "$second" = 6 ] && [ "$absolute" = 9 ] || { echo "changed"; exit 1; }
