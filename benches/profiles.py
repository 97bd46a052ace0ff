"""Rate and round-trip time of each profile without random delays, on real packets: `python benches/profiles.py`.

A server at the far end of `ackclock link --profile NAME` echoes five small packets and then floods the link with UDP.
The rate is counted between the first and the last arrival, IP headers included. The smallest round-trip time is
printed without the transmission times of its packets.
"""

import json
import subprocess
import sys

PAYLOAD = 1200
SMALL = 56
HEADERS = 28
SERVER = f"""
import os, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 5005))
while True:
    data, peer = s.recvfrom(100)
    if data == b"flood":
        break
    s.sendto(data, peer)
rate, started, sent = float(os.environ["RATE"]), time.monotonic(), 0
while (now := time.monotonic()) < started + 8:
    while sent * {8 * (PAYLOAD + HEADERS)} < 1.2 * rate * (now - started) + 80000:
        s.sendto(bytes({PAYLOAD}), peer)
        sent += 1
    time.sleep(0.002)
"""
CLIENT = f"""
import os, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
s.connect((os.environ["ACKCLOCK_BASE"], 5005))
s.settimeout(5)
rtts = []
for _ in range(5):
    begun = time.monotonic()
    s.send(bytes({SMALL}))
    s.recv(2000)
    rtts.append(time.monotonic() - begun)
s.send(b"flood")
times = []
try:
    while True:
        s.recv(2000)
        times.append(time.monotonic())
except TimeoutError:
    pass
print({8 * (PAYLOAD + HEADERS)} * (len(times) - 1) / (times[-1] - times[0]), min(rtts))
"""


def measured(name: str, rate: float) -> tuple[float, float]:
    """Rate in bit/s and round-trip time in seconds behind a profile."""
    server = f"RATE={rate} {sys.executable} -c '{SERVER}'"
    words = ["ackclock", "link", "--profile", name, "--server", server, "--", sys.executable, "-c", CLIENT]
    run = subprocess.run(words, check=True, capture_output=True, text=True, timeout=300)
    told, rtt = run.stdout.split()
    return float(told), float(rtt)


def main() -> None:
    """Print a line for each profile."""
    listed = subprocess.run(["ackclock", "list", "profiles", "--json"], check=True, capture_output=True, text=True)
    for profile in json.loads(listed.stdout):
        if profile["rtt_ms"] is None or "recording" in (profile["fitted"] or ""):
            continue
        down, up = profile["down_bps"], profile["up_bps"]
        rate, rtt = measured(profile["name"], down)
        sending = 8 * (SMALL + HEADERS) * (1 / down + 1 / up)
        excess = 1e3 * (rtt - sending) - profile["rtt_ms"]
        print(f"{profile['name']:8} rate {100 * rate / down - 100:+.2f} %, RTT {excess:+.2f} ms", flush=True)


if __name__ == "__main__":
    main()
