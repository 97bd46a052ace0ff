#!/bin/bash
# Guess:   It does not matter on which host a token bucket filter (tc-tbf) of 4 Mbit/s stands: on the sender's own
#          interface it is the same bottleneck as in a router, with the same RTT and the same windows.
# Found:   On the sender's own interface TCP small queues keep most data in the socket until the filter has sent something.
#          Segments are stamped when they leave the socket, so the receiver measures a shorter RTT and grows its window
#          less: after 6 s of CUBIC the advertised window is about half of that behind a router with the same filter.
# Version: Linux 6.18; any kernel with TCP small queues (3.6 and later) is expected to do the same.
# Source:  the two downloads below, in network namespaces; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v tc ip python3 unshare >/dev/null || { echo "skipped: root, iproute2 and python3 are needed"; exit 77; }
[ "${1:-}" = inside ] || exec unshare -n -m "$0" inside
folder=$(mktemp -d)
trap 'for host in server router client; do ip netns del "finding-$host" 2>/dev/null || true; done; rm -rf "$folder"' EXIT
mount -t tmpfs none /run
cat >"$folder/server.py" <<'CODE'
import socket, struct, threading, time
TCP_INFO, TCP_CONGESTION, SND_WND = 11, 13, 228
listener = socket.socket()
listener.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
listener.bind(("10.1.0.1", 5001))
listener.listen()
peer, _ = listener.accept()
def show():
    print(struct.unpack_from("I", peer.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256), SND_WND)[0], flush=True)
threading.Timer(6, show).start()
end = time.monotonic() + 6.5
while time.monotonic() < end:
    peer.sendall(bytes(65536))
CODE
cat >"$folder/client.py" <<'CODE'
import socket, time
for _ in range(100):
    try:
        peer = socket.create_connection(("10.1.0.1", 5001))
        break
    except OSError:
        time.sleep(0.1)
while peer.recv(1 << 18):
    pass
CODE
window() { # HOST DEVICE: window that the client advertises after 6 s, with the filter at this device
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
    tc -n "finding-$1" qdisc add dev "$2" root tbf rate 4mbit burst 3000 limit 1500000
    ip netns exec finding-server python3 "$folder/server.py" >"$folder/seen" & local server=$!
    ip netns exec finding-client python3 "$folder/client.py" || true
    wait "$server" || true
    for host in server router client; do ip netns del "finding-$host"; done
    cat "$folder/seen"
}
own=$(window server wire0)
router=$(window router wire2)
echo "Linux $(uname -r), CUBIC, window advertised after 6 s over 4 Mbit/s"
echo "filter on the sender's own interface: $own bytes"
echo "filter in a router: $router bytes"
[ $((own * 3)) -lt $((router * 2)) ] || { echo "changed"; exit 1; }
