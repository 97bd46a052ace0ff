#!/bin/bash
# Guess:   A latency of 500 ms in Chromium's network throttling (Network.emulateNetworkConditions, as used by DevTools,
#          Puppeteer and Playwright scripts) acts like the RTT of a link: a TCP handshake costs one, a request costs one on
#          top of the server's time, each message of a WebSocket is delayed, and Resource Timing shows it.
# Found:   It is a minimum time of each request, whether its connection is new or not. The time that the server takes is
#          included: a request that the server answers after 400 ms takes 500 ms, not 900. Messages of an open WebSocket
#          are not delayed. Resource Timing has `responseStart` without the latency, so a time to first byte computed
#          from it is that of the real network; only `responseEnd` has it.
# Version: Chromium, version printed (seen with 156), puppeteer-core 23.11.1, ws 8.18.0.
# Source:  requests to a server on loopback, with a latency of 500 ms.
set -euo pipefail
command -v chromium node npm >/dev/null || { echo "skipped: chromium, node and npm are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit puppeteer-core@23.11.1 ws@8.18.0 >/dev/null 2>&1 || { echo "skipped: the packages cannot be had"; exit 77; }
cat >run.js <<'CODE'
const http = require("http"), puppeteer = require("puppeteer-core"), { WebSocketServer } = require("ws");
let connections = 0;
const server = http.createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://localhost");
    response.setHeader("Content-Type", pathname === "/" ? "text/html" : "text/plain");
    if (!searchParams.has("keep")) response.setHeader("Connection", "close");
    setTimeout(() => response.end("x"), Number(searchParams.get("wait")));
});
server.on("connection", () => { ++connections; });
new WebSocketServer({ server }).on("connection", (socket) => socket.on("message", (data) => socket.send(data)));
server.listen(0, "127.0.0.1", async () => {
    const browser = await puppeteer.launch({ executablePath: process.argv[2], userDataDir: "profile", args: ["--no-sandbox", "--headless=new", "--disable-gpu", "--no-proxy-server"] });
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    const session = await page.createCDPSession();
    await session.send("Network.enable");
    await session.send("Network.emulateNetworkConditions", { offline: false, latency: 500, downloadThroughput: -1, uploadThroughput: -1 });
    const request = (address) => page.evaluate(async (address) => {
        const start = performance.now();
        await (await fetch(address)).text();
        const total = performance.now() - start;
        await new Promise((done) => setTimeout(done, 100));
        const { connectStart, connectEnd, requestStart, responseStart, responseEnd } = performance.getEntriesByType("resource").pop();
        return { total: Math.round(total), connect: Math.round(connectEnd - connectStart), first: Math.round(responseStart - requestStart), last: Math.round(responseEnd - requestStart) };
    }, address);
    await request("/a");
    const before = connections, fresh = await request("/b?keep"), opened = connections - before;
    const reused = await request("/c?keep"), slow = await request("/d?keep&wait=400");
    const echo = await page.evaluate(async () => {
        const socket = new WebSocket(location.href.replace("http", "ws"));
        await new Promise((done) => { socket.onopen = done; });
        let least = Infinity;
        for (let number = 0; number < 5; ++number) {
            const start = performance.now();
            socket.send("x");
            await new Promise((done) => { socket.onmessage = done; });
            least = Math.min(least, performance.now() - start);
        }
        return Math.round(least);
    });
    console.log(await browser.version());
    console.log(`seen: ${opened} new connection: ${fresh.total} ms (connect ${fresh.connect} ms), kept connection: ${reused.total} ms, server takes 400 ms: ${slow.total} ms`);
    console.log(`seen: Resource Timing: first byte after ${reused.first} ms, last after ${reused.last} ms; echo of a WebSocket ${echo} ms`);
    await browser.close();
    process.exit(opened === 1 && fresh.total < 900 && fresh.connect < 250 && slow.total >= 490 && slow.total < 800 && reused.first < 250 && reused.last >= 490 && echo < 250 ? 0 : 1);
});
CODE
timeout 60 node run.js "$(command -v chromium)" 2>&1 || { echo "changed"; exit 1; }
