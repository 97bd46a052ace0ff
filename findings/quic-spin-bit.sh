#!/bin/bash
# Guess:   QUIC stacks turn the spin bit (RFC 9000 section 17.4), on 15 of 16 connections as the RFC allows at most, so an
#          observer reads the round-trip time of nearly every QUIC connection.
# Found:   aioquic spins. quic-go never does: the bit stays 0. Between two stacks the bit turns only if both ends spin.
# Version: aioquic 1.2.0, quic-go 0.65.0.
# Source:  downloads of 400 kB through a proxy on loopback that delays datagrams by 10 ms and counts the bit's changes.
set -euo pipefail
command -v python3 go openssl >/dev/null || { echo "skipped: python3, go and openssl are needed"; exit 77; }
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE 2>/dev/null

cat >spin.py <<'CODE'
"""Proxy: counts changes of the spin bit per connection, in packets from the server, until 8 connections have ended."""
import collections, select, socket, sys, time
front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
front.bind(("127.0.0.1", 0))
print(front.getsockname()[1], flush=True)
waiting, back, of = collections.deque(), {}, {}
seen = {}
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    ready = select.select([front, *back.values()], [], [], 0.001)[0]
    for one in ready:
        data, address = one.recvfrom(65536)
        if one is front:
            if address not in back:
                back[address] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                of[back[address]] = address
                seen[address] = [0, 0, None]
            waiting.append((time.monotonic() + 0.01, back[address], data, ("127.0.0.1", int(sys.argv[1]))))
        else:
            if not data[0] & 0x80:
                packets, changes, last = seen[of[one]]
                value = data[0] >> 5 & 1
                seen[of[one]] = [packets + 1, changes + (last is not None and value != last), value]
            waiting.append((time.monotonic() + 0.01, front, data, of[one]))
    while waiting and waiting[0][0] <= time.monotonic():
        _, through, data, address = waiting.popleft()
        through.sendto(data, address)
# A bit drawn at random changes with every other packet, a spinning bit with every round trip.
kinds = ["still" if changes == 0 else "spins" if changes * 4 < packets else "random" for packets, changes, _ in seen.values() if packets > 100]
print(" ".join(f"{kind} {kinds.count(kind)}" for kind in ("spins", "random", "still") if kind in kinds), flush=True)
CODE

python3 -m venv venv && venv/bin/pip -q install aioquic==1.2.0 2>/dev/null || { echo "skipped: aioquic cannot be had"; exit 77; }
cat >aio.py <<'CODE'
import asyncio, ssl, sys
from aioquic.asyncio import connect, serve
from aioquic.quic.configuration import QuicConfiguration
def stream(reader, writer):
    async def send():
        await reader.read(1)
        writer.write(bytes(400_000))
        writer.write_eof()
    asyncio.ensure_future(send())
async def main():
    if sys.argv[1] == "server":
        settings = QuicConfiguration(is_client=False, alpn_protocols=["f"])
        settings.load_cert_chain("cert.pem", "key.pem")
        await serve("127.0.0.1", int(sys.argv[2]), configuration=settings, stream_handler=stream)
        await asyncio.Future()
    settings = QuicConfiguration(is_client=True, alpn_protocols=["f"], verify_mode=ssl.CERT_NONE, server_name="localhost")
    async with connect("127.0.0.1", int(sys.argv[2]), configuration=settings) as client:
        reader, writer = await client.create_stream()
        writer.write(b"x")
        await reader.read()
asyncio.run(main())
CODE

mkdir go && cat >go/main.go <<'CODE'
package main

import (
	"context"
	"crypto/tls"
	"io"
	"os"

	"github.com/quic-go/quic-go"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	all, address := context.Background(), "127.0.0.1:"+os.Args[2]
	if os.Args[1] == "server" {
		pair := must(tls.LoadX509KeyPair("cert.pem", "key.pem"))
		settings := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"f"}}
		listener := must(quic.ListenAddr(address, settings, nil))
		for {
			connection := must(listener.Accept(all))
			go func() {
				stream, err := connection.AcceptStream(all)
				if err == nil {
					stream.Write(make([]byte, 400_000))
					stream.Close()
				}
			}()
		}
	}
	settings := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"f"}}
	connection := must(quic.DialAddr(all, address, settings, nil))
	stream := must(connection.OpenStreamSync(all))
	must(stream.Write([]byte("x")))
	must(io.Copy(io.Discard, stream))
	connection.CloseWithError(0, "")
}
CODE
(cd go && { go mod init finding && go get github.com/quic-go/quic-go@v0.65.0 && go build -o ../quicgo .; } >/dev/null 2>&1) ||
    { echo "skipped: quic-go cannot be had"; exit 77; }

run() { # NAME COMMAND...: eight downloads through the proxy; prints how many connections spin
    local name=$1 port; shift
    port=$(python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$@" server "$port" 2>/dev/null & local server=$!
    sleep 2
    coproc PROXY { python3 spin.py "$port" 25; }
    local lines=${PROXY[0]} front
    read -r front <&"$lines"
    for _ in 1 2 3 4 5 6 7 8; do timeout 10 "$@" client "$front" 2>/dev/null || true; done
    read -r result <&"$lines"
    kill "$server"; wait 2>/dev/null || true
    echo "$name: $result"
}
run "aioquic 1.2.0" venv/bin/python aio.py; [[ $result == spins* ]] || { echo "changed"; exit 1; }
run "quic-go 0.65.0" ./quicgo; [[ $result == still\ 8 ]] || { echo "changed"; exit 1; }
