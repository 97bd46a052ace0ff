#!/bin/bash
# Guess:   A toxiproxy with the toxics `bandwidth` and `latency` behaves like a slow link to its upstream: connections
#          share the rate, and connecting and closing take the latency as data does.
# Found:   Every connection has the whole rate: four connections at 100 kB/s have 400 kB/s. Connecting takes no time,
#          because the proxy accepts at once, and the close of a connection is delayed less than data: with 500 ms both
#          ways, the answer to a request takes 1 s, and a close in answer to it 0.5 s.
# Version: toxiproxy 2.12.0.
# Source:  uploads of 300 kB and a close through the proxy, on loopback.
set -euo pipefail
command -v go python3 >/dev/null || { echo "skipped: go and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH=$folder/path GOCACHE=$folder/cache
GOBIN=$folder go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0 2>/dev/null ||
    { echo "skipped: toxiproxy 2.12.0 cannot be had"; exit 77; }
./server -port 8474 >/dev/null 2>&1 &
sleep 1
python3 - <<'CODE'
import json, socket, sys, threading, time, urllib.request
def post(path, **body):
    request = urllib.request.Request("http://127.0.0.1:8474" + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request).read()
def toxic(proxy, kind, stream, **attributes):
    post(f"/proxies/{proxy}/toxics", name=kind + stream, type=kind, stream=stream, attributes=attributes)
def serve(listener, answer):
    def one(peer):
        if answer:
            peer.sendall(peer.recv(1))
        while peer.recv(65536):
            pass
        peer.close()
    while True:
        threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()
def proxy(name, port, answer=False):
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener, answer), daemon=True).start()
    post("/proxies", name=name, listen=f"127.0.0.1:{port}", upstream=f"127.0.0.1:{listener.getsockname()[1]}", enabled=True)
    return "127.0.0.1", port
def seconds(action):
    start = time.monotonic()
    result = action()
    return result, time.monotonic() - start
slow = proxy("slow", 7010)
toxic("slow", "bandwidth", "upstream", rate=100)
def upload():
    with socket.create_connection(slow) as peer:
        peer.sendall(bytes(300_000))
        peer.shutdown(socket.SHUT_WR)
        peer.recv(1)
def uploads(count):
    threads = [threading.Thread(target=upload) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
rates = [300 * count / seconds(lambda: uploads(count))[1] for count in (1, 4)]
far = {answer: proxy(f"far{answer}", 7011 + answer, answer) for answer in (False, True)}
for answer in far:
    toxic(f"far{answer}", "latency", "upstream", latency=500)
    toxic(f"far{answer}", "latency", "downstream", latency=500)
peer, connect = seconds(lambda: socket.create_connection(far[True]))
peer.send(b"x")
_, reply = seconds(lambda: peer.recv(1))
closing = socket.create_connection(far[False])
closing.send(b"x")
closing.shutdown(socket.SHUT_WR)
_, close = seconds(lambda: closing.recv(1))
print(f"seen: bandwidth 100 kB/s: one connection {rates[0]:.0f} kB/s, four {rates[1]:.0f} kB/s in all")
print(f"seen: latency 500 ms both ways: connect {connect:.3f} s, answer {reply:.2f} s, close {close:.2f} s")
sys.exit(0 if rates[0] < 130 and rates[1] > 300 and connect < 0.4 and reply > 0.95 and close < 0.9 else 1)
CODE
