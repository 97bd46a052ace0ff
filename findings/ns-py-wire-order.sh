#!/bin/bash
# Guess:   A `Wire` of ns.py with random delays delays each packet by its own draw, so a packet with a short delay
#          overtakes one with a long delay, and the mean delay is that of the distribution.
# Found:   A wire keeps the order: a packet waits until its predecessor has left. There is no reordering, and with a packet
#          each ms and delays of 0 to 100 ms (mean 50 ms) the mean delay is above 85 ms.
# Version: ns.py 0.4.3.
# Source:  10000 packets over one wire.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: python3 is needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" -q install ns.py==0.4.3 2>/dev/null || { echo "skipped: ns.py cannot be had"; exit 77; }
"$folder/venv/bin/python" - <<'CODE'
import random, sys
import simpy
from ns.packet.packet import Packet
from ns.port.wire import Wire

random.seed(1)
environment = simpy.Environment()
delays, order = [], []
class Sink:
    def put(self, packet):
        delays.append(environment.now - packet.time)
        order.append(packet.packet_id)
wire = Wire(environment, lambda: random.uniform(0, 0.1))
wire.out = Sink()
def source():
    for number in range(10_000):
        wire.put(Packet(environment.now, 1000, number))
        yield environment.timeout(0.001)
environment.process(source())
environment.run()
mean = sum(delays) / len(delays)
reordered = sum(later < earlier for earlier, later in zip(order, order[1:]))
print(f"seen: mean delay {1000 * mean:.1f} ms, {reordered} of {len(order)} packets reordered")
sys.exit(0 if mean > 0.08 and reordered == 0 else 1)
CODE
