# An engineer loads a page of a local server over a 3G link, interrupts the link, and keeps it as a scenario.
python3 -m http.server 0 --bind 127.0.0.1 > server.log 2>&1 &
server=$!
trap 'kill $server' EXIT
until grep -q "port [0-9]" server.log; do sleep 0.1; done
port=$(grep -o "port [0-9]*" server.log | head -1 | cut -d' ' -f2)
head -c 100000 /dev/zero > page.bin
ackclock link --check > check.txt && echo "check: ok"
ackclock link --profile 3g --forward "$port" --jitter 20ms -- \
    curl -sS -o got.bin -w 'status %{http_code}, %{size_download} bytes\n' "http://localhost:$port/page.bin"
cmp page.bin got.bin && echo "page: equal"
ackclock link 1mbit 4mbit --rtt 100ms --closed -- sh -c 'ackclock link outage 300ms && echo "outage: over"'
ackclock link --profile 3g --jitter 20ms --generate > link.toml
ackclock run link.toml --set duration=10s
