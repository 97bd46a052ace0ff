#!/bin/bash
# Guess:   `curl --limit-rate 100k` takes 100 kB/s on average, whatever the network offers.
# Found:   curl 7.88 reads as long as the socket has data before it looks at the limit: from a fast, near server 400 kB
#          come at once, at more than ten times the limit. A limit that is tried on loopback or between namespaces limits
#          nothing, while over a long path it works. libcurl 8.23 keeps it in both.
# Version: curl 7.88.1 (Debian 12; prints the version of its package), libcurl 8.23.0 (in pycurl 7.49.0).
# Source:  downloads of 400 kB from a server on loopback that sends all of it at once.
set -euo pipefail
command -v apt-get dpkg python3 >/dev/null || { echo "skipped: apt-get, dpkg and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq curl libcurl4 >/dev/null 2>&1 || { echo "skipped: curl cannot be had"; exit 77; }
for package in ./*.deb; do dpkg -x "$package" root; done
LD_LIBRARY_PATH=$(dirname "$(find "$folder/root" -name libcurl.so.4)")
export LD_LIBRARY_PATH
case $(root/usr/bin/curl --version 2>/dev/null | head -n 1) in
    "curl 7.88.1 "*"libcurl/7.88.1 "*) ls curl_*.deb ;;
    *) echo "skipped: curl 7.88.1 cannot be run"; exit 77 ;;
esac
python3 -m venv venv && venv/bin/pip -q install --only-binary :all: pycurl==7.49.0 2>/dev/null || { echo "skipped: pycurl cannot be had"; exit 77; }
cat >serve.py <<'CODE'
import socket, threading
def serve(peer):
    peer.recv(65536)
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 400000\r\n\r\n" + bytes(400_000))
    peer.recv(1)
    peer.close()
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_000_000)
listener.bind(("127.0.0.1", 0))
listener.listen()
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
CODE
cat >recent.py <<'CODE'
import sys, time, pycurl
transfer = pycurl.Curl()
transfer.setopt(pycurl.URL, sys.argv[1])
transfer.setopt(pycurl.PROXY, "")
transfer.setopt(pycurl.MAX_RECV_SPEED_LARGE, 100 * 1024)
transfer.setopt(pycurl.WRITEFUNCTION, lambda data: None)
start = time.monotonic()
transfer.perform()
print(round(400_000 / (time.monotonic() - start)))
CODE
python3 serve.py >port &
until [ -s port ]; do sleep 0.1; done
url=http://127.0.0.1:$(cat port)/
fastest=0
for _ in 1 2 3 4 5; do
    rate=$(root/usr/bin/curl -q -s --noproxy '*' --max-time 10 --limit-rate 100k -o /dev/null -w '%{speed_download}' "$url" || true)
    [ "${rate%.*}" -le "$fastest" ] || fastest=${rate%.*}
done
recent=$(env -u LD_LIBRARY_PATH venv/bin/python recent.py "$url")
echo "seen, at a limit of 100 kB/s: curl 7.88.1 up to $((fastest / 1000)) kB/s, libcurl 8.23.0 $((recent / 1000)) kB/s"
[ "$fastest" -gt 1000000 ] && [ "$recent" -lt 150000 ] || { echo "changed"; exit 1; }
