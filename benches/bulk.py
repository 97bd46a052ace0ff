"""A bulk download between two network namespaces, with the kernel's TCP set up as the simulator's preset `linux` is.

    bulk.py send CONTROL SACK          serves one download after the other, by this congestion control
    bulk.py take ADDRESS SECONDS BEGIN takes one for so long, from when the link has run for BEGIN seconds; prints when

Both set what the kernel keeps for each network namespace, so they need root; nothing outside the namespace changes.
"""

import json
import socket
import subprocess
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
        case ["take", address, seconds, begin]:
            configure()
            began = link_began()
            time.sleep(max(0.0, began + float(begin) - time.monotonic()))
            print(json.dumps({"begins_s": time.monotonic() - began}), flush=True)
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


def link_began() -> float:
    """When the link around us began, by the clock that waits here: the quickest of several answers tells best."""
    answers = []
    for _ in range(5):
        asked = time.monotonic()
        shown = subprocess.run(["ackclock", "link", "show"], capture_output=True, check=True).stdout
        answered = time.monotonic()
        began = (asked + answered) / 2 - json.loads(shown)["duration_s"]
        answers.append((answered - asked, began))
    return min(answers)[1]


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
