#!/bin/bash
# Guess:   Linux starts a second connection to the same host with the RTT and the slow-start threshold of the first
#          (tcp_metrics, net.ipv4.tcp_no_metrics_save = 0).
# Found:   It takes the RTT only for the first retransmission timeout, three times the cached RTT, until the first
#          round trip of data is measured; srtt starts from the handshake. The threshold is not kept:
#          net.ipv4.tcp_no_ssthresh_metrics_save is 1 by default. With 0, the threshold is kept.
# Version: Linux 6.18; the second setting exists since 5.6.
# Source:  Documentation/networking/ip-sysctl.rst, and the connections below over a filter in a router; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v tc ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ -e /proc/sys/net/ipv4/tcp_no_ssthresh_metrics_save ] || { echo "skipped: the kernel lacks the setting"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n -m "$0" inside
folder=$(mktemp -d)
trap 'for host in server router client; do ip netns del "finding-$host" 2>/dev/null || true; done; rm -rf "$folder"' EXIT
mount -t tmpfs none /run
cat >"$folder/server.py" <<'CODE'
import socket, struct, sys
TCP_INFO, TCP_CONGESTION = 11, 13
listener = socket.socket()
listener.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
listener.bind(("10.1.0.1", 5001))
listener.listen()
for _ in range(2):
    peer, _ = listener.accept()
    fields = struct.unpack_from("24I", peer.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256), 8)
    sys.stdout.write(f"rto {fields[0] // 1000} ssthresh {'none' if fields[17] >= 2**31 - 1 else 'kept'} ")
    peer.sendall(bytes(1_000_000))
    peer.shutdown(socket.SHUT_WR)
    peer.recv(1)
    peer.close()
CODE
cat >"$folder/client.py" <<'CODE'
import socket, time
for _ in range(2):
    for _ in range(100):
        try:
            peer = socket.create_connection(("10.1.0.1", 5001))
            break
        except OSError:
            time.sleep(0.1)
    while peer.recv(1 << 18):
        pass
    peer.close()
    time.sleep(0.5)
CODE
pair() { # SETTING: RTO and threshold at the start of two connections, one after the other
    for host in server router client; do ip netns add "finding-$host"; done
    ip link add dev wire0 netns finding-server type veth peer name wire1 netns finding-router
    ip link add dev wire2 netns finding-router type veth peer name wire3 netns finding-client
    ip -n finding-server addr add 10.1.0.1/24 dev wire0
    ip -n finding-router addr add 10.1.0.254/24 dev wire1
    ip -n finding-router addr add 10.2.0.254/24 dev wire2
    ip -n finding-client addr add 10.2.0.1/24 dev wire3
    ip -n finding-server link set wire0 up; ip -n finding-router link set wire1 up
    ip -n finding-router link set wire2 up; ip -n finding-client link set wire3 up
    ip -n finding-server route add default via 10.1.0.254
    ip -n finding-client route add default via 10.2.0.254
    ip netns exec finding-router sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
    ip netns exec finding-server sh -c "echo 0 >/proc/sys/net/ipv4/tcp_no_metrics_save; $1"
    # 50 packets wait at most: the first connection ends with a threshold.
    tc -n finding-router qdisc add dev wire2 root tbf rate 4mbit burst 3000 limit 75000
    ip netns exec finding-server python3 "$folder/server.py" >"$folder/seen" & local server=$!
    ip netns exec finding-client python3 "$folder/client.py" || true
    wait "$server" || true
    for host in server router client; do ip netns del "finding-$host"; done
    cat "$folder/seen"
}
default=$(pair true)
kept=$(pair "echo 0 >/proc/sys/net/ipv4/tcp_no_ssthresh_metrics_save")
echo "Linux $(uname -r), two connections one after the other, state at the start of each"
echo "by default: $default"
echo "tcp_no_ssthresh_metrics_save = 0: $kept"
read -r _ first _ threshold _ second _ later <<<"$default"
[ "$threshold$later" = nonenone ] && [ "$second" -gt $((first * 5 / 4)) ] && [[ $kept == *"ssthresh kept"* ]] ||
    { echo "changed"; exit 1; }
