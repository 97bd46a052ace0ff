# An operator imports a measurement of their link, looks at it, and compares regulators on it.
python3 - << 'PYTHON'
import json

rates = [20, 35, 12, 4, 1, 8, 30, 42, 25, 16, 9, 3]
intervals = [
    {"sum": {"start": second, "end": second + 1, "seconds": 1, "bytes": rate * 125_000, "bits_per_second": rate * 1e6}}
    for second, rate in enumerate(rates)
]
start = {"test_start": {"protocol": "TCP", "reverse": 1}}
json.dump({"start": start, "intervals": intervals, "end": {}}, open("iperf3.json", "w"))
PYTHON
ackclock import iperf3.json -o link.csv
ackclock trace info link.csv
cat > link.toml <<'TOML'
version = 1
preset = "linux"
duration = "60s"

[path]
delay = "20ms"

[edge]
buffer = "1000p"
down = { kind = "trace", file = "link.csv", delay = "20ms" }

[[flow]]
sender = "cubic"
TOML
ackclock compare link.toml --regulators none,forecast
