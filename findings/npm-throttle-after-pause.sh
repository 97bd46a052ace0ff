#!/bin/bash
# Guess:   A stream through the npm package throttle with 100 kB/s never passes more than 100 kB in a second.
# Found:   It compares all bytes with all time since it was made, so a pause is made up for: after 6 s in which nothing
#          came, a megabyte begins with 600 kB at once. That includes the time between making the throttle and its first
#          byte. stream-throttle, a token bucket of one second, passes 100 kB at once.
# Version: throttle 1.0.3, stream-throttle 0.1.3.
# Source:  bytes in the 300 ms after 6 s without input.
set -euo pipefail
command -v node npm >/dev/null || { echo "skipped: node and npm are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit throttle@1.0.3 stream-throttle@0.1.3 >/dev/null 2>&1 || { echo "skipped: the packages cannot be had"; exit 77; }
cat >run.js <<'CODE'
const Average = require("throttle");
const { Throttle: Bucket } = require("stream-throttle");
const burst = (stream) => new Promise((done) => {
    let first, bytes = 0;
    stream.on("data", (data) => {
        first ??= Date.now();
        if (Date.now() < first + 300) bytes += data.length;
    });
    setTimeout(() => stream.end(Buffer.alloc(1_000_000)), 6000);
    setTimeout(() => done(bytes), 8000);
});
(async () => {
    const [average, bucket] = await Promise.all([burst(new Average(100_000)), burst(new Bucket({ rate: 100_000 }))]);
    console.log(`seen, in the first 300 ms: throttle ${average / 1000} kB, stream-throttle ${bucket / 1000} kB`);
    process.exit(average > 400_000 && bucket < 250_000 ? 0 : 1);
})();
CODE
node run.js || { echo "changed"; exit 1; }
