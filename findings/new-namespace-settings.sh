#!/bin/bash
# Guess:   A network namespace that is made inside a tuned one (`unshare -n`, `ip netns add` in a lab script) starts with its
#          TCP settings, as a child process starts with the limits and the environment of its parent.
# Found:   None is inherited from the namespace that makes it: buffers, congestion control, tcp_slow_start_after_idle and
#          tcp_ecn are what they would be in a namespace made outside. A script that tunes once and then makes its hosts
#          measures untuned hosts.
# Version: Linux 6.18.
# Source:  settings of new namespaces, one made inside a tuned one and one outside; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v unshare >/dev/null || { echo "skipped: root and unshare are needed"; exit 77; }
grep -qw cubic /proc/sys/net/ipv4/tcp_available_congestion_control || { echo "skipped: the kernel lacks CUBIC"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
export show='cd /proc/sys/net/ipv4; echo $(cat tcp_rmem tcp_wmem tcp_congestion_control tcp_slow_start_after_idle tcp_ecn)'
tuned='cd /proc/sys/net/ipv4
    echo "4096 50000 60000" >tcp_rmem
    echo "4096 20000 70000" >tcp_wmem
    [ "$(cat tcp_congestion_control)" = reno ] && echo cubic >tcp_congestion_control || echo reno >tcp_congestion_control
    echo 0 >tcp_slow_start_after_idle
    echo 1 >tcp_ecn'
outside=$(unshare -n bash -c "$show")
parent=$(unshare -n bash -c "$tuned; $show")
inside=$(unshare -n bash -c "$tuned; cd /; unshare -n bash -c \"\$show\"")
echo "seen on Linux $(uname -r), tcp_rmem, tcp_wmem, tcp_congestion_control, tcp_slow_start_after_idle, tcp_ecn:"
echo "tuned namespace: $parent"
echo "new namespace made in it: $inside"
echo "new namespace made outside: $outside"
read -r -a of_parent <<<"$parent"
read -r -a of_inside <<<"$inside"
inherited=0
for setting in 1 2 4 5 6 7 8; do [ "${of_parent[setting]}" != "${of_inside[setting]}" ] || inherited=$((inherited + 1)); done
[ "$inside" = "$outside" ] && [ "$inherited" = 0 ] || { echo "changed"; exit 1; }
