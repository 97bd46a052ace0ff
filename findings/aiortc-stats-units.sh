#!/bin/bash
# Guess:   The statistics of aiortc have the names of W3C's webrtc-stats and so its units: `fractionLost` from 0 to 1 and
#          `jitter` in seconds, like `roundTripTime`.
# Found:   Only `roundTripTime` is in seconds. `fractionLost` is the byte of the RTCP report, in units of 1/256, and
#          `jitter` is in units of the RTP clock (1/48000 s for Opus, 1/90000 s for video): a script written for a browser
#          reads a loss of 50 % as 12800 %, and 1 ms of jitter as 48 s.
# Version: aiortc 1.16.0.
# Source:  two peers in one process over a loopback that drops every second RTP packet; needs root.
set -euo pipefail
[ "$(id -u)" = 0 ] && command -v ip nft python3 unshare >/dev/null || { echo "skipped: root, iproute2, nftables and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv && venv/bin/pip -q install aiortc==1.16.0 2>/dev/null || { echo "skipped: aiortc cannot be had"; exit 77; }
# RTP has version 2 and here a payload type below 72; RTCP, DTLS and STUN pass.
cat >drop.nft <<'RULES'
table ip finding {
    chain in {
        type filter hook prerouting priority raw - 500;
        ip protocol udp @th,64,2 2 @th,73,7 != 72-79 numgen inc mod 2 0 drop
    }
}
RULES
cat >peers.py <<'CODE'
import asyncio, sys
from aiortc import RTCPeerConnection
from aiortc.mediastreams import AudioStreamTrack
async def main():
    caller, called = RTCPeerConnection(), RTCPeerConnection()
    async def drain(track):
        while True:
            await track.recv()
    called.on("track", lambda track: asyncio.ensure_future(drain(track)))
    sender = caller.addTrack(AudioStreamTrack())
    await caller.setLocalDescription(await caller.createOffer())
    await called.setRemoteDescription(caller.localDescription)
    await called.setLocalDescription(await called.createAnswer())
    await caller.setRemoteDescription(called.localDescription)
    await asyncio.sleep(12)
    report = [one for one in (await sender.getStats()).values() if one.type == "remote-inbound-rtp"][0]
    print(f"seen: fractionLost {report.fractionLost}, jitter {report.jitter}, roundTripTime {report.roundTripTime}", flush=True)
    await caller.close()
    await called.close()
    return 80 < report.fractionLost < 180 and report.jitter >= 1 and isinstance(report.jitter, int)
sys.exit(0 if asyncio.run(main()) else 1)
CODE
cat >inside.sh <<'CODE'
ip link set lo up
ip address add 10.0.0.1/32 dev lo
nft -f drop.nft
exec venv/bin/python peers.py
CODE
timeout 60 unshare -n bash inside.sh 2>/dev/null || { echo "changed"; exit 1; }
