#!/bin/bash
# Guess:   `PacketSink.arrivals` of ns.py has one time for each packet, and `first_arrival` the time of the first one.
# Found:   With the defaults (rec_waits and rec_arrivals both on) each packet is recorded twice, and `first_arrival` is
#          never set: a rate from the number of arrivals is twice the rate, every second gap between arrivals is zero, and
#          an interval from `first_arrival` starts at zero. With rec_waits=False both are as expected.
# Version: ns.py 0.4.3.
# Source:  five packets, one each second from the third second on, into a sink.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: python3 is needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv" && "$folder/venv/bin/pip" -q install ns.py==0.4.3 2>/dev/null || { echo "skipped: ns.py cannot be had"; exit 77; }
"$folder/venv/bin/python" - <<'CODE'
import sys
import simpy
from ns.packet.packet import Packet
from ns.packet.sink import PacketSink

def recorded(**options):
    environment = simpy.Environment()
    sink = PacketSink(environment, **options)
    def source():
        yield environment.timeout(3)
        for number in range(5):
            sink.put(Packet(environment.now, 1000, number, flow_id=0))
            yield environment.timeout(1)
    environment.process(source())
    environment.run()
    return sink.packets_received[0], sink.arrivals[0], sink.first_arrival[0]
usual, alone = recorded(), recorded(rec_waits=False)
for name, (packets, arrivals, first) in (("defaults", usual), ("rec_waits=False", alone)):
    print(f"seen, {name}: {packets} packets, {len(arrivals)} arrivals {arrivals}, first arrival {first}")
sys.exit(0 if len(usual[1]) == 10 and usual[2] == 0 and len(alone[1]) == 5 and alone[2] == 3 else 1)
CODE
