#!/bin/bash
# Guess:   `pv -L 100k` between two programs is a link of 100 kB/s: it never passes more, whatever its input does.
# Found:   While its input stalls, pv saves allowance for as long as the pause lasts and then passes it at once: after 5 s
#          without input, 500 kB leave in one burst. An outage that is emulated upstream of pv ends with a burst that no
#          link of this rate can deliver.
# Version: pv 1.6.20 (Debian 12: pv 1.6.20-1).
# Source:  bytes out of `pv -L 100k` within 250 ms of the end of a pause: 1 s for 100 kB, then 5 s of no input.
set -euo pipefail
command -v apt-get dpkg python3 >/dev/null || { echo "skipped: apt-get, dpkg and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq pv=1.6.20-1 >/dev/null 2>&1 || { echo "skipped: pv 1.6.20 cannot be had"; exit 77; }
dpkg -x ./pv_*.deb root
python3 - <<'CODE'
import os, subprocess, sys, threading, time
pipe = subprocess.Popen(["root/usr/bin/pv", "-q", "-L", "100k"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
pieces = []
def read():
    while data := os.read(pipe.stdout.fileno(), 65536):
        pieces.append((time.monotonic(), len(data)))
threading.Thread(target=read).start()
def write(size):
    try:
        pipe.stdin.write(bytes(size))
        pipe.stdin.flush()
    except BrokenPipeError:
        pass
write(100_000)
time.sleep(6)
before = len(pieces)
threading.Thread(target=write, args=(2_000_000,), daemon=True).start()
time.sleep(6)
pipe.kill()
later = pieces[before:]
burst = sum(size for at, size in later if at < later[0][0] + 0.25)
steady = sum(size for at, size in later if later[0][0] + 1 <= at < later[0][0] + 5) / 4
print(f"seen: {burst / 1000:.0f} kB in 250 ms after the pause, {steady / 1000:.0f} kB/s from the second after on")
sys.stdout.flush()
os._exit(0 if burst > 350_000 and steady < 150_000 else 1)
CODE
