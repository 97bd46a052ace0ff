"""A box for many subscribers in two network namespaces; `test_box_many.py` runs it as root of its own.

The box runs here: beside the subscribers (side = "mobile") or beside the server (side = "network"). The other namespace
has the other end of the link. The queue is that of a shaper before the link. Prints one JSON object with what was seen.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

from box_hosts import run, stay_on_one_processor, stream

ROLE, ACKCLOCK, SIDE = sys.argv[1], sys.argv[2], sys.argv[3]
SERVER, PORT, METRICS = "10.78.0.1", 8001, 9178
ACTED_ON, HELD_BACK, STRANGER = "10.78.0.2", "10.78.0.3", "10.78.1.9"
SIZE = 1_500_000
FILE = Path("/run/ackclock/box.toml")
HAS_SERVER = (SIDE == "network") == (ROLE == "main")
HERE = "here0" if ROLE == "main" else "there0"


def fails(*command: str) -> list:
    ended = subprocess.run(command, capture_output=True, text=True)
    return [ended.returncode, ended.stderr]


def send(connection: socket.socket) -> None:
    connection.recv(1)
    connection.sendall(bytes(SIZE))
    connection.close()


def serve() -> None:
    listener = stream()
    listener.bind((SERVER, PORT))
    listener.listen()
    while True:
        threading.Thread(target=send, args=listener.accept()[:1], daemon=True).start()


def download(address: str) -> int:
    with stream() as connection:
        connection.bind((address, 0))
        connection.connect((SERVER, PORT))
        connection.sendall(b"x")
        got = 0
        while data := connection.recv(65536):
            got += len(data)
        return got


def prepare() -> None:
    addresses = [SERVER] if HAS_SERVER else [ACTED_ON, HELD_BACK, STRANGER]
    for address in addresses:
        run("ip", "address", "add", f"{address}/16", "dev", HERE)
    run("ip", "link", "set", HERE, "up")
    if HAS_SERVER:
        run("tc", "qdisc", "add", "dev", HERE, "root", "tbf", "rate", "5mbit", "burst", "10kb", "limit", "1mb")
        threading.Thread(target=serve, daemon=True).start()


def configure(act: bool, more: str = "", interface: str = "here0") -> None:
    FILE.write_text(f"""
[box]
interface = "{interface}"
side = "{SIDE}"
act = {str(act).lower()}
subscribers = ["10.78.0.0/24"]
file = "subscribers.csv"
act_on = ["{ACTED_ON}"]
metrics = "127.0.0.1:{METRICS}"
{more}
[edge]
regulator = "wrs"
buffer = "10p"
""")


def box(verb: str, *more: str) -> str:
    return run(ACKCLOCK, "box", verb, str(FILE), *more)


def counts() -> dict:
    return json.loads(box("status", "--json"))["counts"]


def drive(ask) -> dict:
    """Downloads of each subscriber, with a box that measures, and after a reload with a box that acts on one."""
    FILE.with_name("subscribers.csv").write_text(f"key,name,regulator,buffer\n{HELD_BACK},kitchen,wrd,20p\n")
    configure(act=False)
    command = [ACKCLOCK, "box", str(FILE), "--json"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # The first report comes after a second.
    started.stdout.readline()
    threading.Thread(target=started.stdout.read, daemon=True).start()
    seen: dict = {}
    before = counts()

    def phase(name: str, address: str) -> None:
        nonlocal before
        complete = ask(address) == SIZE
        after = counts()
        seen[name] = {"complete": complete} | {key: after[key] - before[key] for key in after}
        before = after

    for name, address in [("measured", ACTED_ON), ("measured2", HELD_BACK), ("stranger", STRANGER)]:
        phase(name, address)
    time.sleep(1.2)
    seen["top"] = json.loads(box("top", "--json"))
    seen["metrics"] = urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/metrics").read().decode()
    configure(act=True, more="acton = 1")
    seen["unknown_key"] = fails(ACKCLOCK, "box", "reload", str(FILE))
    configure(act=True, more='stale = "9s"')
    box("status")
    seen["reload"] = box("reload")
    phase("acted_on", ACTED_ON)
    phase("held_back", HELD_BACK)
    seen["status"] = box("status")
    configure(act=True, interface="lo")
    seen["other_interface"] = fails(ACKCLOCK, "box", "reload", str(FILE))
    configure(act=True)
    box("stop")
    seen["ended"] = started.wait(10)
    seen["said"] = started.stderr.read()
    seen["left_behind"] = [name for name in os.listdir("/sys/fs/bpf") if name == "ackclock"]
    return seen


def main() -> None:
    stay_on_one_processor()
    other = subprocess.Popen(
        ["unshare", "--net", sys.executable, sys.argv[0], "other", ACKCLOCK, SIDE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(line: str) -> str:
        other.stdin.write(f"{line}\n")
        other.stdin.flush()
        return other.stdout.readline()

    assert other.stdout.readline() == "there\n"
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "here0", "type", "veth", "peer", "name", "there0", "netns", str(other.pid))
    prepare()
    assert ask("prepare") == "ready\n"
    print(json.dumps(drive(download if SIDE == "mobile" else lambda address: int(ask(address)))))
    other.kill()


if ROLE == "main":
    main()
else:
    print("there", flush=True)
    for line in sys.stdin:
        if line == "prepare\n":
            prepare()
            time.sleep(0.3)
            print("ready", flush=True)
        else:
            print(download(line.strip()), flush=True)
