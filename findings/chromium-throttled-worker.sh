#!/bin/bash
# Guess:   Network.emulateNetworkConditions of a page in Chromium, as Puppeteer's page.emulateNetworkConditions sends it,
#          limits what the page loads: 200 kB take 2 s at 100 kB/s.
# Found:   It limits the page and not its workers: the same fetch in a dedicated worker has the speed of the real network.
#          Players and uploaders that fetch in a worker are tested without the throttle, and no number shows it. The
#          worker's own session refuses the command ("Not supported").
# Version: Chromium, version printed (seen with 156), puppeteer-core 23.11.1.
# Source:  a fetch of 200 kB from a server on loopback, in the page and in its worker.
set -euo pipefail
command -v chromium node npm >/dev/null || { echo "skipped: chromium, node and npm are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit puppeteer-core@23.11.1 >/dev/null 2>&1 || { echo "skipped: puppeteer-core cannot be had"; exit 77; }
cat >run.js <<'CODE'
const http = require("http"), puppeteer = require("puppeteer-core");
const worker = `onmessage = async ({ data }) => {
    const start = performance.now();
    await (await fetch(data)).arrayBuffer();
    postMessage(performance.now() - start);
};`;
const kinds = { "/favicon.ico": ["image/png", ""], "/": ["text/html", "<!DOCTYPE html>"], "/worker.js": ["text/javascript", worker] };
const server = http.createServer((request, response) => {
    const [kind, body] = kinds[request.url] ?? ["application/octet-stream", Buffer.alloc(200_000)];
    response.setHeader("Content-Type", kind);
    response.end(body);
});
server.listen(0, "127.0.0.1", async () => {
    const browser = await puppeteer.launch({ executablePath: process.argv[2], userDataDir: "profile", args: ["--no-sandbox", "--headless=new", "--disable-gpu", "--no-proxy-server"] });
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    const conditions = { latency: 0, download: 100_000, upload: 100_000 };
    await page.emulateNetworkConditions(conditions);
    const inPage = await page.evaluate(async () => {
        const start = performance.now();
        await (await fetch("/1")).arrayBuffer();
        return performance.now() - start;
    });
    await page.evaluate(() => { window.worker = new Worker("/worker.js"); });
    const fetchInWorker = (address) => page.evaluate((address) => new Promise((done) => {
        window.worker.onmessage = ({ data }) => done(data);
        window.worker.postMessage(address);
    }), address);
    const inWorker = await fetchInWorker("/2");
    const session = page.workers()[0].client;
    await session.send("Network.enable");
    const own = await session.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: 100_000, uploadThroughput: 100_000 })
        .then(() => "accepted", (error) => error.originalMessage);
    console.log(await browser.version());
    console.log(`seen, 200 kB at 100 kB/s: page ${Math.round(inPage)} ms, worker ${Math.round(inWorker)} ms, throttle of the worker: ${own}`);
    await browser.close();
    process.exit(inPage > 1500 && inWorker < 700 && own === "Not supported" ? 0 : 1);
});
CODE
timeout 60 node run.js "$(command -v chromium)" 2>&1 || { echo "changed"; exit 1; }
