# A researcher sweeps, is interrupted, goes on, looks into one run, and compares an idea of their own.
cat > buffers.toml <<'TOML'
version = 1
preset = "linux"
duration = "2min"
runs = 20

[edge]
buffer = "20p"
down = { kind = "variable", rate = "ln(4Mbit/s, 2Mbit/s)", delay = "20ms", redraw = "interval(100ms)" }

[[flow]]
sender = "cubic"

[sweep]
"edge.buffer" = ["10p", "20p", "40p", "80p"]
TOML
ackclock sweep buffers.toml --out rows.jsonl > /dev/null &
sweep=$!
until [ -s rows.jsonl.partial ]; do kill -0 $sweep; done
kill -9 $sweep
wait $sweep || true
echo "interrupted: $([ -e rows.jsonl ] && echo complete || echo partial)"
ackclock sweep buffers.toml --out rows.jsonl
echo "rows: $(wc -l < rows.jsonl)"
ackclock run --from rows.jsonl#17 --pcap run.pcapng --json > again.json
python3 - << 'PYTHON'
import json

kept = json.loads(open("rows.jsonl").read().splitlines()[16])
again = json.loads(open("again.json").read())
print("run 17 repeated:", kept["flows"] == again["flows"])
PYTHON
echo "capture: $(head -c 4 run.pcapng | od -An -tx1)"
cat > idea.py << 'PYTHON'
import ackclock
from ackclock import plot


@ackclock.regulator("half")
class Half(ackclock.Regulator):
    """Offers half of the receiver's window."""

    def on_ack(self, now, ack, queue):
        ack.advertise((ack.window or 0) // 2)
        return ack


if __name__ == "__main__":
    ackclock.check(Half, scenarios=5)
    results = ackclock.compare("buffers.toml", regulators=["none", "half"], runs=4, duration=20)
    print(results.paired(by="edge.regulator", baseline="none").shape)
    plot.save(plot.paired(results, by="edge.regulator", baseline="none"), "paired.svg")
PYTHON
python3 idea.py
echo "figure: $(head -c 5 paired.svg)"
