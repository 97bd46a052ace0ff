"""A download through a box on a loopback or a TUN device; `test_box.py` runs it as root of namespaces of its own.

Prints one JSON object: whether the download was complete, and the box's counters.
"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading

DEVICE, BOX = sys.argv[1], sys.argv[2:]
SIZE = 4_000_000
TUNSETIFF, IFF_TUN_WITHOUT_HEADER = 0x400454CA, 0x1001
SERVER, MOBILE = ("127.0.0.1", "127.0.0.1") if DEVICE == "lo" else ("10.77.0.1", "10.77.0.2")


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def tun(name: str, address: str, peer: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN_WITHOUT_HEADER))
    run("ip", "address", "add", address, "peer", peer, "dev", name)
    run("ip", "link", "set", name, "up")
    return device


def pump(read, write) -> None:
    while packet := read(65536):
        write(packet)


def join(device: int, other: socket.socket) -> None:
    """Passes packets between a TUN device and the other namespace."""
    pumps = [
        (lambda size: os.read(device, size), other.send),
        (other.recv, lambda packet: os.write(device, packet)),
    ]
    for ends in pumps:
        threading.Thread(target=pump, args=ends, daemon=True).start()


def serve(device: str) -> None:
    run("tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", "20mbit", "burst", "10kb", "limit", "1mb")
    listener = socket.create_server((SERVER, 8001))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    print("ready", flush=True)
    connection, _ = listener.accept()
    connection.sendall(bytes(SIZE))
    connection.close()
    # A TUN device goes with its process, with what it has not sent.
    threading.Event().wait()


def download() -> bool:
    got = 0
    with socket.create_connection((SERVER, 8001), timeout=60) as connection:
        while data := connection.recv(65536):
            got += len(data)
    return got == SIZE


def start_server() -> subprocess.Popen:
    """Starts the server: in this namespace for the loopback device, in another one for TUN."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    away = [] if DEVICE == "lo" else ["unshare", "--net"]
    command = [*away, sys.executable, sys.argv[0], DEVICE, "serve", str(there.fileno())]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=[there.fileno()])
    if DEVICE == "lo":
        run("ip", "link", "set", "lo", "mtu", "1500")
    else:
        join(tun(DEVICE, MOBILE, SERVER), here)
    assert server.stdout.readline() == "ready\n"
    return server


def main() -> None:
    server = start_server()
    command = [*BOX, DEVICE, "--act", "--regulator", "wrs", "--json"]
    box = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        # The first report comes after a second.
        assert box.stdout.readline()
        threading.Thread(target=box.stdout.read, daemon=True).start()
        downloaded = download()
        status = json.loads(run(*BOX, "status", DEVICE, "--json"))
        run(*BOX, "stop", DEVICE)
        print(json.dumps({"downloaded": downloaded, "counts": status["counts"], "ended": box.wait(10)}))
    finally:
        server.kill()
        box.kill()


if BOX[0] == "serve":
    if DEVICE != "lo":
        join(tun("server0", SERVER, MOBILE), socket.socket(fileno=int(BOX[1])))
    serve("lo" if DEVICE == "lo" else "server0")
else:
    main()
