#!/bin/bash
# Guess:   A download by Node's http2 module over a long path is as fast as with curl or Go; at most, `initialWindowSize`
#          has to be raised for it.
# Found:   The server may send 65535 bytes in each RTT, for all streams of a session together: 640 kB/s at 100 ms. The
#          setting `initialWindowSize` raises only the window of the streams and alone changes nothing; the session also
#          needs setLocalWindowSize. A measurement of a path with it measures this window.
# Version: Node.js, version printed (seen with 20.20); h2 4.4.1 (Python) at the server.
# Source:  bytes that a server may send in answer to a request before it must wait for WINDOW_UPDATE, on loopback.
set -euo pipefail
command -v node python3 >/dev/null || { echo "skipped: node and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv && venv/bin/pip -q install h2==4.4.1 2>/dev/null || { echo "skipped: h2 cannot be had"; exit 77; }
echo "Node.js $(node --version)"
cat >serve.py <<'CODE'
import socket
import h2.config, h2.connection, h2.events
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    peer, _ = listener.accept()
    state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    state.initiate_connection()
    peer.sendall(state.data_to_send())
    asked, pinged = [], False
    # The answer to a ping comes after everything that the client sent with its two requests.
    while len(asked) < 2 or not pinged:
        for event in state.receive_data(peer.recv(65536)):
            if isinstance(event, h2.events.RequestReceived):
                asked.append(event.stream_id)
                if len(asked) == 2:
                    state.ping(b"finished")
            pinged = pinged or isinstance(event, h2.events.PingAckReceived)
        peer.sendall(state.data_to_send())
    sent = 0
    for stream in asked:
        state.send_headers(stream, [(":status", "200")])
        while (size := min(16384, state.local_flow_control_window(stream))) > 0 and sent < 4_000_000:
            state.send_data(stream, bytes(size))
            sent += size
    print(sent, flush=True)
    peer.close()
CODE
cat >fetch.js <<'CODE'
const [port, stream, session] = process.argv.slice(2).map(Number);
const client = require("http2").connect(`http://127.0.0.1:${port}`, stream ? { settings: { initialWindowSize: stream } } : {});
client.on("connect", () => { if (session) client.setLocalWindowSize(session); });
client.on("error", () => {});
client.on("close", () => process.exit());
for (let number = 0; number < 2; ++number) client.request({ ":path": "/" }).on("error", () => {}).end();
CODE
venv/bin/python serve.py >seen &
until [ -s seen ]; do sleep 0.1; done
port=$(head -n 1 seen)
for windows in "0 0" "2000000 0" "2000000 2000000"; do timeout 20 node fetch.js "$port" $windows; done
{ read -r _; read -r usual; read -r stream; read -r both; } <seen
echo "seen, two requests: $usual bytes by default, $stream with initialWindowSize, $both also with setLocalWindowSize"
[ "$usual" = 65535 ] && [ "$stream" = 65535 ] && [ "$both" -ge 2000000 ] || { echo "changed"; exit 1; }
