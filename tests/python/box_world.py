"""A server, a slow link and a mobile's router in two network namespaces; `test_box.py` runs it as root of its own.

Prints one JSON object: what the connections got, and what right edges a capture between box and server shows.
"""

import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from box_hosts import SO_RCVBUFFORCE, Capture, Edges, run, stay_on_one_processor, stream

SERVER, ROUTER = "10.77.0.1", "10.77.0.2"
DOWNLOAD, ECHO, COUNT = 8001, 8002, 8003
ACKCLOCK = sys.argv[2]


def accept(port: int, answer) -> None:
    with stream() as listener:
        listener.bind((SERVER, port))
        listener.listen(1024)
        while True:
            threading.Thread(target=answer, args=listener.accept()[:1], daemon=True).start()


def send_file(connection: socket.socket) -> None:
    wanted = int(connection.makefile().readline())
    connection.sendall(bytes(wanted))
    connection.close()


def echo(connection: socket.socket) -> None:
    while data := connection.recv(4096):
        connection.sendall(data)
    connection.close()


def count(datagrams: list) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        listener.bind((SERVER, COUNT))
        while True:
            datagrams.append(struct.unpack("!I", listener.recv(2000)[:4])[0])


def sniff(edges: Edges) -> None:
    frames = Capture("server0", only_tcp=True)
    while frame := frames.next(None):
        edges.see(*frame)


def serve() -> None:
    """The server: sends what a first line asks for, echoes, counts datagrams; ends at the end of standard input."""
    edges, datagrams = Edges(ROUTER), []
    tasks = [(sniff, (edges,)), (accept, (DOWNLOAD, send_file)), (accept, (ECHO, echo)), (count, (datagrams,))]
    for target, args in tasks:
        threading.Thread(target=target, args=args, daemon=True).start()
    time.sleep(0.3)
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps({"left": edges.left, "acks": edges.acks, "datagrams": datagrams}), flush=True)
    os._exit(0)


def download(size: int) -> int:
    with stream() as connection:
        connection.connect((SERVER, DOWNLOAD))
        connection.sendall(b"%d\n" % size)
        got = 0
        while data := connection.recv(65536):
            got += len(data)
        return got


def echoes(stop: threading.Event, outcome: dict) -> None:
    """Short connections, one after the other; each gets back what it sent."""
    outcome.update(connections=0, broken=0)
    while not stop.is_set():
        text = os.urandom(300)
        try:
            with stream() as connection:
                connection.settimeout(20)
                connection.connect((SERVER, ECHO))
                connection.sendall(text)
                connection.shutdown(socket.SHUT_WR)
                got = b""
                while data := connection.recv(4096):
                    got += data
            outcome["broken"] += got != text
        except OSError:
            outcome["broken"] += 1
        outcome["connections"] += 1


def datagrams(stop: threading.Event, outcome: dict) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        number = 0
        while not stop.is_set():
            for _ in range(20):
                sender.sendto(struct.pack("!I", number) + bytes(96), (SERVER, COUNT))
                number += 1
            time.sleep(0.005)
        outcome["datagrams"] = number


def box(*more: str) -> subprocess.Popen:
    started = subprocess.Popen(
        [ACKCLOCK, "box", "radio0", "--act", "--regulator", sys.argv[3], "--json", *more],
        stdout=subprocess.PIPE,
        text=True,
    )
    # The first report comes after a second.
    started.stdout.readline()
    threading.Thread(target=started.stdout.read, daemon=True).start()
    return started


def trouble(outcome: dict, bulk: threading.Thread) -> None:
    """A box that is killed, started again, stopped, continued and ended while connections run."""
    status = lambda: json.loads(run(ACKCLOCK, "box", "status", "radio0", "--json"))  # noqa: E731
    first = box()
    bulk.start()
    time.sleep(1)
    outcome["second_start"] = subprocess.run([ACKCLOCK, "box", "radio0"], capture_output=True, text=True).returncode
    first.kill()
    first.wait()
    outcome["killed"] = status()["running"]
    before = status()["counts"]["clipped"]
    time.sleep(1)
    outcome["clipped_without_a_process"] = status()["counts"]["clipped"] - before
    second = box()
    outcome["restarted"] = status()["running"] == second.pid
    second.send_signal(signal.SIGSTOP)
    time.sleep(6)
    outcome["stale"] = status()["counts"]["stale"]
    second.send_signal(signal.SIGCONT)
    time.sleep(1)
    outcome["counts"] = status()["counts"]
    run(ACKCLOCK, "box", "stop", "radio0")
    outcome["ended"] = second.wait(10)


def main() -> None:
    stay_on_one_processor()
    # The other namespace is that of the server.
    server = subprocess.Popen(
        ["unshare", "--net", sys.executable, sys.argv[0], "serve-when-told", ACKCLOCK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout.readline() == "there\n"
    run("ip", "link", "add", "radio0", "type", "veth", "peer", "name", "server0", "netns", str(server.pid))
    run("ip", "address", "add", f"{ROUTER}/24", "dev", "radio0")
    run("ip", "link", "set", "radio0", "up")
    # The kernel itself drops packets for milliseconds while this queue discipline is added.
    if sys.argv[4:] == ["clsact"]:
        run("tc", "qdisc", "add", "dev", "radio0", "clsact")
    server.stdin.write("go\n")
    server.stdin.flush()
    assert server.stdout.readline() == "ready\n"
    outcome: dict = {}
    stop, small, sent = threading.Event(), {}, {}
    beside = [
        threading.Thread(target=echoes, args=(stop, small)),
        threading.Thread(target=datagrams, args=(stop, sent)),
    ]
    size = 9_000_000
    bulk = threading.Thread(target=lambda: outcome.update(downloaded=download(size) == size))
    for thread in beside:
        thread.start()
    trouble(outcome, bulk)
    bulk.join()
    stop.set()
    for thread in beside:
        thread.join()
    time.sleep(0.5)
    # The interface goes with the server.
    needs = json.loads(run(ACKCLOCK, "box", "check", "radio0", "--for", "0s", "--json"))["needs"]
    hook = next(need["found"] for need in needs if need["what"] == "hook of the interface")
    qdiscs = [qdisc["kind"] for qdisc in json.loads(run("tc", "-json", "qdisc", "show", "dev", "radio0"))]
    server.stdin.close()
    seen = json.loads(server.stdout.readline())
    numbers = seen.pop("datagrams")
    outcome |= (
        small
        | seen
        | {
            "datagrams_lost": sent["datagrams"] - len(numbers),
            "datagrams_out_of_order": sum(later < earlier for earlier, later in itertools.pairwise(numbers)),
            "left_behind": [name for name in os.listdir("/sys/fs/bpf") if name == "ackclock"],
            "hook": hook,
            "qdiscs": qdiscs,
        }
    )
    print(json.dumps(outcome))


if sys.argv[1] == "serve-when-told":
    print("there", flush=True)
    sys.stdin.readline()
    run("ip", "address", "add", f"{SERVER}/24", "dev", "server0")
    run("ip", "link", "set", "server0", "up")
    run("tc", "qdisc", "add", "dev", "server0", "root", "tbf", "rate", "5mbit", "burst", "10kb", "limit", "1mb")
    serve()
else:
    main()
