"""CPU time and memory of `ackclock proxy` beside haproxy, which relays by splice(2), over the loopback interface.

    python benches/proxy_cost.py [ACKCLOCK]

Clients and servers are processes of their own, so that the CPU time is that of the proxy alone. The two proxies take
turns, and the median of the ratios of the pairs is printed: other processes use the machine too. Memory is what 1000
connections have added to the proxy after a download of 1 MB each, all of which waited for their clients at the same
time.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

MB = 1_000_000
BLOCK = bytes(1 << 20)
PAIRS = 5
CONNECTIONS = 1000
HAPROXY = """
global
    nbthread 1
    maxconn 4000
defaults
    mode tcp
    option splice-request
    option splice-response
    timeout connect 5s
    timeout client 300s
    timeout server 300s
listen relay
    bind 127.0.0.1:{port}
    server one 127.0.0.1:{server}
"""


def serve(listener: socket.socket) -> None:
    """Answers each connection: its first 16 bytes say how much is sent to it and read from it; then it stays open."""

    def answer(connection: socket.socket) -> None:
        try:
            asked = connection.recv(16, socket.MSG_WAITALL)
        except ConnectionResetError:  # the probe whether haproxy listens
            return
        reads, sends = (int.from_bytes(asked[at : at + 8], "big") for at in (0, 8))
        receive(connection, reads)
        while sends > 0:
            sends -= connection.send(BLOCK[:sends])
        connection.recv(1)

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def receive(connection: socket.socket, count: int) -> None:
    """Receives a number of bytes."""
    buffer = bytearray(1 << 20)
    while count > 0:
        count -= connection.recv_into(buffer, min(count, len(buffer))) or count


class Proxy:
    """A running proxy."""

    def __init__(self, process: subprocess.Popen[str], address: tuple[str, int], request: bytes) -> None:
        self.pid, self.address, self.request = process.pid, address, request

    def cpu(self) -> float:
        """CPU time so far, s."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Memory of its own, bytes."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("Private_", "Swap:")))

    def connect(self) -> socket.socket:
        """A connection to the server through the proxy."""
        connection = socket.create_connection(self.address)
        if self.request:
            connection.sendall(self.request)
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                answer += connection.recv(1)
        return connection

    def transfer(self, sends: int, reads: int) -> None:
        """Transfers a number of bytes through a new connection."""
        with self.connect() as connection:
            connection.sendall(sends.to_bytes(8, "big") + reads.to_bytes(8, "big"))
            while sends > 0:
                sends -= connection.send(BLOCK[:sends])
            receive(connection, reads)

    def memory_after_use(self) -> float:
        """Bytes that each of many connections has added, once each has had its download."""
        before = self.memory()
        connections = [self.connect() for _ in range(CONNECTIONS)]
        for one in connections:
            one.sendall((0).to_bytes(8, "big") + MB.to_bytes(8, "big"))
        time.sleep(2)
        for one in connections:
            receive(one, MB)
        time.sleep(1)
        grown = self.memory() - before
        for one in connections:
            one.close()
        return grown / CONNECTIONS


@contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A program that ends with the block."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def ackclock(command: str, server: int) -> Iterator[Proxy]:
    """An `ackclock proxy` before a server on this port."""
    with started([command, "proxy", "--listen", "127.0.0.1:0"]) as process:
        assert process.stderr is not None
        host, port = process.stderr.readline().split("proxy on ")[1].split(";")[0].rsplit(":", 1)
        request = f"CONNECT 127.0.0.1:{server} HTTP/1.1\r\n\r\n".encode()
        yield Proxy(process, (host, int(port)), request)


@contextmanager
def haproxy(server: int) -> Iterator[Proxy]:
    """A haproxy before a server on this port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as file:
        file.write(HAPROXY.format(port=port, server=server))
        file.flush()
        with started(["haproxy", "-db", "-f", file.name]) as process:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
            yield Proxy(process, ("127.0.0.1", port), b"")


def cost(proxy: Proxy, streams: int, sends: int, reads: int) -> float:
    """CPU seconds a GB."""
    before = proxy.cpu()
    clients = [threading.Thread(target=proxy.transfer, args=(sends, reads)) for _ in range(streams)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return (proxy.cpu() - before) / (streams * (sends + reads) / 1e9)


def main() -> None:
    """Measure and print."""
    command = sys.argv[1] if len(sys.argv) > 1 else "ackclock"
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    port = listener.getsockname()[1]
    if (child := os.fork()) == 0:
        serve(listener)
    listener.close()
    try:
        with ExitStack() as stack:
            ours, theirs = stack.enter_context(ackclock(command, port)), stack.enter_context(haproxy(port))
            for name, streams, sends, reads in (
                ("one download", 1, 0, 1500 * MB),
                ("one upload", 1, 1500 * MB, 0),
                ("16 downloads", 16, 0, 100 * MB),
            ):
                pairs = [[cost(each, streams, sends, reads) for each in (ours, theirs)] for _ in range(PAIRS)]
                a, b = (statistics.median(pair[at] for pair in pairs) for at in (0, 1))
                ratio = statistics.median(a / b for a, b in pairs)
                print(f"{name}: {a:.3f} and {b:.3f} CPU s a GB, ratio {ratio:.2f}", flush=True)
        grown = []
        for start in (ackclock(command, port), haproxy(port)):
            with start as proxy:
                grown.append(proxy.memory_after_use())
        print(
            f"memory a connection after use: {grown[0]:.0f} and {grown[1]:.0f} bytes, ratio {grown[0] / grown[1]:.2f}"
        )
    finally:
        os.kill(child, 9)


if __name__ == "__main__":
    main()
