# An operator imports a capture of their link, looks at it, and asks which regulator is worth it.
cat > download.toml <<TOML
version = 1
preset = "linux"
duration = "60s"

[edge]
buffer = "300p"
down = { kind = "trace", file = "$SCENARIOS/recordings/synthetic-evdo-driving.down", delay = "30ms" }

[[flow]]
sender = "cubic"
TOML
ackclock run download.toml --pcap capture.pcapng > run.txt
ackclock import capture.pcapng --interface 1 --direction down -o link.csv
ackclock trace info link.csv
ackclock advise link.csv --runs 3
