#!/bin/bash
# Guess:   `wget --limit-rate=100k` over many files takes 100 kB/s on average, whatever their sizes.
# Found:   The limit starts anew with each file, and a sleep that would be shorter than 200 ms is left out: files below
#          20 kB are never slowed down. 60 files of 10 kB (600 kB) come within a fraction of a second, one file of 600 kB
#          takes 6 s: `wget -r --limit-rate` does not protect a slow link from a page of small objects.
# Version: GNU Wget 1.21.3 (Debian 12; prints the version of its package).
# Source:  downloads from a server on loopback, over one connection.
set -euo pipefail
command -v apt-get dpkg python3 >/dev/null || { echo "skipped: apt-get, dpkg and python3 are needed"; exit 77; }
sed -n '/^# Guess/,/^# Version/s/^# //p' "$0"
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq wget libpcre2-8-0 >/dev/null 2>&1 || { echo "skipped: wget cannot be had"; exit 77; }
for package in ./*.deb; do dpkg -x "$package" root; done
LD_LIBRARY_PATH=$(dirname "$(find "$folder/root" -name 'libpcre2-8.so.0')")
export LD_LIBRARY_PATH
root/usr/bin/wget --version >/dev/null 2>&1 || { echo "skipped: a library of wget is missing"; exit 77; }
root/usr/bin/wget --version | head -n 1
ls wget_*.deb
cat >serve.py <<'CODE'
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 20
    def do_GET(self):
        size = int(self.path.split("/")[1])
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(bytes(size))
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
CODE
python3 serve.py >port &
until [ -s port ]; do sleep 0.1; done
base=http://127.0.0.1:$(cat port)
tenths() {
    local start
    start=$(date +%s%N)
    root/usr/bin/wget -q --no-config --no-proxy --limit-rate=100k -O /dev/null "$@"
    echo $((($(date +%s%N) - start) / 100000000))
}
mapfile -t small < <(for number in $(seq 60); do echo "$base/10000/$number"; done)
many=$(tenths "${small[@]}")
one=$(tenths "$base/600000")
echo "seen: 600 kB at 100 kB/s: 60 files $((many / 10)).$((many % 10)) s, one file $((one / 10)).$((one % 10)) s"
[ "$many" -lt 30 ] && [ "$one" -gt 45 ] || { echo "changed"; exit 1; }
