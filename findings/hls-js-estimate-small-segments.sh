#!/bin/bash
# Guess:   `hls.bandwidthEstimate` of hls.js approaches the rate at which segments come, on fast links as on slow ones.
# Found:   A download that takes less than 50 ms counts as 50 ms, so the estimate is bounded by the size of the segments:
#          with parts of 50 kB, as in low-latency streams, it is at most 8 Mbit/s on a link of any rate. In a lab on
#          loopback or a LAN the player stays at low levels and reports a slow link.
# Version: hls.js 1.5.20.
# Source:  segments of three sizes at 100 Mbit/s, given to the estimator of the default AbrController.
set -euo pipefail
command -v node npm >/dev/null || { echo "skipped: node and npm are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit hls.js@1.5.20 >/dev/null 2>&1 || { echo "skipped: hls.js cannot be had"; exit 77; }
cat >run.js <<'CODE'
globalThis.self = globalThis;
const Hls = require("hls.js");
const estimate = (bytes) => {
    const controller = new Hls.DefaultConfig.abrController({ config: Hls.DefaultConfig, on() {}, off() {} });
    for (let number = 0; number < 50; ++number) controller.bwEstimator.sample(bytes * 8 / 100_000, bytes);
    return controller.bwEstimator.getEstimate() / 1e6;
};
const [small, middle, large] = [50_000, 200_000, 2_000_000].map(estimate);
console.log(`seen, at 100 Mbit/s: ${small.toFixed(1)} Mbit/s from segments of 50 kB, ${middle.toFixed(1)} from 200 kB, ${large.toFixed(1)} from 2 MB`);
process.exit(small < 9 && middle < 35 && large > 95 ? 0 : 1);
CODE
node run.js 2>&1 || { echo "changed"; exit 1; }
