#!/bin/bash
# Guess:   `ffmpeg -re` sends a transport stream of constant rate (-muxrate) over UDP evenly at that rate, 20 ms of it in
#          20 ms.
# Found:   -re paces the frames that are read and nothing paces the datagrams: half a second of the stream leaves at
#          once at the start, then the packets of each frame. A queue or a policer sized for the stream's rate drops
#          datagrams of every start. The option `bitrate` of the UDP URL paces datagrams.
# Version: ffmpeg of imageio-ffmpeg 0.8.1 (prints its version; seen with 9.0.2).
# Source:  datagrams of a stream of 2 Mbit/s on loopback in its first 100 ms, by the kernel's time of receipt.
set -euo pipefail
command -v python3 >/dev/null || { echo "skipped: python3 is needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv && venv/bin/pip -q install --only-binary :all: imageio-ffmpeg==0.8.1 2>/dev/null || { echo "skipped: imageio-ffmpeg cannot be had"; exit 77; }
venv/bin/python - <<'CODE'
import socket, struct, subprocess, sys
from imageio_ffmpeg import get_ffmpeg_exe
ffmpeg = [get_ffmpeg_exe(), "-loglevel", "error", "-nostdin"]
print(subprocess.run([ffmpeg[0], "-version"], capture_output=True, text=True).stdout.split("\n")[0][:50])
subprocess.run([*ffmpeg, "-f", "lavfi", "-i", "testsrc=size=640x360:rate=25:duration=4", "-c:v", "mpeg2video", "-b:v", "1500k",
                "-maxrate", "1500k", "-bufsize", "1500k", "-f", "mpegts", "-muxrate", "2000000", "in.ts"], check=True)
SO_TIMESTAMPNS = 35
def first_100_ms(options):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 200_000)
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    receiver.bind(("127.0.0.1", 0))
    receiver.settimeout(8)
    url = f"udp://127.0.0.1:{receiver.getsockname()[1]}?pkt_size=1316{options}"
    sender = subprocess.Popen([*ffmpeg, "-re", "-i", "in.ts", "-c", "copy", "-f", "mpegts", "-muxrate", "2000000", url])
    times = []
    while not times or times[-1] < times[0] + 1:
        _, ancillary, _, _ = receiver.recvmsg(2000, 100)
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
        times.append(seconds + nanoseconds / 1e9)
    sender.kill()
    sender.wait()
    return sum(time < times[0] + 0.1 for time in times)
usual, paced = first_100_ms(""), first_100_ms("&bitrate=2500000&burst_bits=15000")
print(f"seen, in the first 100 ms: {usual} datagrams by -re alone, {paced} with bitrate=2500000; 2 Mbit/s are 19")
sys.exit(0 if usual > 60 and paced < 45 else 1)
CODE
