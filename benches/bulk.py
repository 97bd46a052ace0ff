"""A bulk download between two network namespaces, with the kernel's TCP set up as the simulator's preset `linux` is.

    bulk.py send CONTROL SACK          serves one download after the other, by this congestion control
    bulk.py take ADDRESS SECONDS       takes one for so long

Both set what the kernel keeps for each network namespace, so they need root; nothing outside the namespace changes.
"""

import socket
import sys
import time
from pathlib import Path

PORT = 5001
CHUNK = 1 << 16
# Nothing of one run may be remembered in the next, and the largest window is that of the preset.
SETTINGS = {
    "tcp_no_metrics_save": "1",
    "tcp_timestamps": "1",
    "tcp_window_scaling": "1",
    "tcp_ecn": "0",
    "tcp_mtu_probing": "0",
    "tcp_rmem": "4096 131072 12582912",
    "tcp_wmem": "4096 16384 12582912",
}


def main() -> None:
    """Be one end."""
    match sys.argv[1:]:
        case ["send", control, sack]:
            configure(tcp_sack=sack)
            send(control)
        case ["take", address, seconds]:
            configure()
            take(address, float(seconds))
        case _:
            sys.exit(__doc__)


def configure(**more: str) -> None:
    """Set the namespace up."""
    for name, value in {**SETTINGS, **more}.items():
        Path("/proc/sys/net/ipv4", name).write_text(value)


def send(control: str) -> None:
    """Send to whoever comes, without end."""
    with socket.create_server(("", PORT)) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        while True:
            peer, _ = server.accept()
            with peer:
                chosen = peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
                if chosen != control:
                    sys.exit(f"the kernel sends by {chosen}, not by {control}")
                flood(peer)


def flood(peer: socket.socket) -> None:
    """Send until the peer has had enough."""
    try:
        while True:
            peer.sendall(bytes(CHUNK))
    except (ConnectionResetError, BrokenPipeError):
        pass


def take(address: str, seconds: float) -> None:
    """Read for so long, from the first SYN on."""
    until = time.monotonic() + seconds
    with connect(address, until) as peer:
        while (left := until - time.monotonic()) > 0:
            peer.settimeout(left)
            try:
                if not peer.recv(CHUNK):
                    sys.exit("the sender has hung up")
            except TimeoutError:
                return


def connect(address: str, until: float) -> socket.socket:
    """The server may be a little later than we."""
    while True:
        try:
            return socket.create_connection((address, PORT), timeout=until - time.monotonic())
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


if __name__ == "__main__":
    main()
