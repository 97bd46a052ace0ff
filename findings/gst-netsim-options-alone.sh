#!/bin/bash
# Guess:   In GStreamer, `netsim max-kbps=1000` is a link of 1 Mbit/s that queues what exceeds it, and
#          `netsim min-delay=3000 max-delay=3000` is one with a delay of 3 s.
# Found:   Neither does anything alone. The bucket of max-kbps is unlimited by default; max-bucket-size=100 makes it limit,
#          and then what exceeds the rate is dropped and not delayed. delay-probability is 0 by default, so no buffer is
#          delayed before it is set to 1.
# Version: GStreamer 1.22.0 (Debian 12: gstreamer1.0-plugins-bad 1.22.0; prints the versions of its packages).
# Source:  2 s of 10 Mbit/s through the element, and the time to the first byte.
set -euo pipefail
command -v apt-get dpkg python3 >/dev/null || { echo "skipped: apt-get, dpkg and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq gstreamer1.0-plugins-bad gstreamer1.0-tools libgstreamer1.0-0 libglib2.0-0 libunwind8 libdw1 libelf1 >/dev/null 2>&1 ||
    { echo "skipped: GStreamer cannot be had"; exit 77; }
for package in ./*.deb; do dpkg -x "$package" root; done
libraries=$(dirname "$(find "$folder/root" -name libgstreamer-1.0.so.0)")
mkdir plugins
cp "$libraries/gstreamer-1.0/libgstnetsim.so" "$libraries/gstreamer-1.0/libgstcoreelements.so" plugins
export LD_LIBRARY_PATH=$libraries GST_PLUGIN_PATH=$folder/plugins GST_PLUGIN_SYSTEM_PATH=$folder/plugins GST_REGISTRY=$folder/registry
root/usr/bin/gst-launch-1.0 -q fakesrc num-buffers=1 ! netsim ! fakesink 2>/dev/null || { echo "skipped: GStreamer cannot be run"; exit 77; }
ls gstreamer1.0-*.deb
python3 - <<'CODE'
import subprocess, sys, time
def pipeline(gap, seconds, options):
    line = f"fakesrc num-buffers={seconds * 1_000_000 // gap} sizetype=fixed sizemax=1250 ! identity sleep-time={gap} ! netsim {options} ! fdsink fd=1"
    return subprocess.Popen(["root/usr/bin/gst-launch-1.0", "-q", *line.split()], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
def passed(options):
    start = time.monotonic()
    size = len(pipeline(1000, 2, options).communicate()[0])
    return size, size * 8 / 1e6 / (time.monotonic() - start)
def first_byte(options):
    start = time.monotonic()
    running = pipeline(50_000, 8, options)
    running.stdout.read(1)
    seconds = time.monotonic() - start
    running.kill()
    running.wait()
    return seconds
alone, rate = passed("max-kbps=1000")
bucket, limited = passed("max-kbps=1000 max-bucket-size=100")
ignored, delayed = first_byte("min-delay=3000 max-delay=3000"), first_byte("min-delay=3000 max-delay=3000 delay-probability=1")
print(f"seen: max-kbps=1000: {alone} of 2500000 bytes at {rate:.1f} Mbit/s, with max-bucket-size=100: {bucket} bytes at {limited:.1f} Mbit/s")
print(f"seen: delay of 3 s: first byte after {ignored:.1f} s, with delay-probability=1 after {delayed:.1f} s")
sys.exit(0 if alone == 2_500_000 and rate > 2 and bucket < 1_250_000 and ignored < 2.5 and delayed > 3 else 1)
CODE
