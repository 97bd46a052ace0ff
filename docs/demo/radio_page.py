#!/usr/bin/env python3
"""Load a web page over an emulated UMTS bearer during a download, without and with a proxy and a box.

Usage: radio_page.py [FOLDER [IMAGES]]. Writes queue.svg, the radio's queue over time, to FOLDER (default: the current
folder). The page has IMAGES images (default: 8). Only root can run the box.
"""

import contextlib
import http.server
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator

ORIGIN, PROXY, REPORTS, METRICS = ("10.9.0.1", 8000), "10.9.0.2:8080", "127.0.0.1:7301", 9102
IMAGES = int(sys.argv[2]) if len(sys.argv) > 2 else 8
IMAGE_BYTES, DOWNLOAD_BYTES = 10_000, 50_000_000

SCENARIO = """version = 1
[edge]
buffer = "100p"
[edge.bearer]
kind = "radio-access"
[edge.bearer.air.down]
kind = "dedicated"
rate = "384kbit/s"
delay = "25ms"
errors = { kind = "rayleigh", fer = "10%", doppler = 0.01 }
[edge.bearer.air.up]
kind = "dedicated"
rate = "64kbit/s"
delay = "25ms"
errors = { kind = "rayleigh", fer = "10%", doppler = 0.01 }
"""

CONFIGURATION = f"""[proxy]
listen = ["{PROXY}"]
allow = ["100.64.0.0/10"]
[proxy.reports]
listen = "{REPORTS}"
keys = "radio.keys"
[relay]
steering = "rnf"
"""

# The download fills the queue for five seconds before the page is loaded.
BEHIND_THE_RADIO = "{box}{download} & download=$!; sleep 5; {page}; kill $download"

# The box is on the interface towards the link. A box regulates only connections that begin after its own start.
BPF = "mount -t bpf -o mode=0700 bpf /sys/fs/bpf"
BOX = f"""{BPF}
ackclock box ackclock0 --act --regulator forecast > box.log & box=$!
until [ -s box.log ] || ! kill -0 $box; do sleep 0.1; done
"""


class Origin(http.server.BaseHTTPRequestHandler):
    """A page with images, and a long download."""

    def do_GET(self) -> None:
        """Answer with the page, an image or the download."""
        if self.path == "/":
            kind, body = "text/html", "".join(f'<img src="/{n}.svg">' for n in range(IMAGES)).encode()
        elif self.path.endswith(".svg"):
            body = f'<svg xmlns="http://www.w3.org/2000/svg"><!--{"x" * IMAGE_BYTES}--></svg>'.encode()
            kind = "image/svg+xml"
        else:
            kind, body = "application/octet-stream", bytes(DOWNLOAD_BYTES)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Print nothing."""


def ip(words: str) -> None:
    """Run the command ip."""
    subprocess.run(["ip", *words.split()], check=True)


def serve_origin() -> None:
    """Serve the page with CUBIC, which most servers use, in a network namespace connected to that of the parent."""
    ip(f"link add core0 type veth peer name core0 netns {os.getppid()}")
    ip(f"addr add {ORIGIN[0]}/24 dev core0")
    ip("link set core0 up")
    server = http.server.ThreadingHTTPServer(ORIGIN, Origin)
    with contextlib.suppress(PermissionError):
        server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    print("ready", flush=True)
    server.serve_forever()


@contextlib.contextmanager
def running(*words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command in the background."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}) as process:
        try:
            yield process
        finally:
            process.terminate()


def page_loader(proxy: str | None) -> str:
    """Shell command that loads the page and its images: Chromium, or curl."""
    url = f"http://{ORIGIN[0]}:{ORIGIN[1]}/"
    way = f"--proxy http://{proxy}" if proxy else f"--noproxy {ORIGIN[0]}"
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        images = " ".join(f"{url}{n}.svg" for n in range(IMAGES))
        return f"curl -s --parallel {way} {url} {images} > page"
    server = f"--proxy-server=http://{proxy}" if proxy else "--no-proxy-server"
    options = "--headless --no-sandbox --disable-gpu --disable-background-networking --user-data-dir=browser"
    return f"{browser} {options} {server} --dump-dom {url} > page 2> browser.log"


def watch_queue(samples: list[tuple[float, float]], stop: threading.Event) -> None:
    """Sample the bytes in the radio's queue."""
    start = time.monotonic()
    while not stop.wait(0.1):
        with contextlib.suppress(OSError):
            page = urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/metrics", timeout=5).read().decode()
            rows = [row for row in page.splitlines() if row.startswith('ackclock_queue_bytes{direction="down"}')]
            samples.extend((time.monotonic() - start, float(row.split()[-1])) for row in rows)


def load(download_by: str | None, page_by: str | None, box: str) -> tuple[float, list[tuple[float, float]]]:
    """Load the page behind the radio; seconds that the page took, and the queue over time."""
    options = f"--proxy http://{download_by}" if download_by else f"--noproxy {ORIGIN[0]}"
    download = f"curl -s {options} -o /dev/null http://{ORIGIN[0]}:{ORIGIN[1]}/download"
    page = f"date +%s.%N > begin; {page_loader(page_by)}; date +%s.%N > end"
    command = ["ackclock", "link", "--scenario", "umts.toml", "--metrics", str(METRICS), "--radio-reports", REPORTS]
    command += ["--report-key", "radio.keys", "--report-user", "100.64.0.2", "--", "sh", "-c"]
    samples: list[tuple[float, float]] = []
    stop = threading.Event()
    watcher = threading.Thread(target=watch_queue, args=(samples, stop))
    watcher.start()
    subprocess.run([*command, BEHIND_THE_RADIO.format(box=box, download=download, page=page)], check=False)
    stop.set()
    watcher.join()
    if pathlib.Path("page").read_text().count("svg") < IMAGES:
        sys.exit("the page is not complete")
    return float(pathlib.Path("end").read_text()) - float(pathlib.Path("begin").read_text()), samples


def draw(runs: dict[str, list[tuple[float, float]]]) -> str:
    """Draw the queue over time as SVG, one line a run."""
    longest = max(at for samples in runs.values() for at, _ in samples)
    highest = max(length for samples in runs.values() for _, length in samples)
    picture = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 320" font-family="sans-serif" font-size="13">']
    picture += ['<rect width="700" height="320" fill="white"/><path d="M60 20V270H680" fill="none" stroke="black"/>']
    picture += [f'<text x="10" y="15">queue, kB</text><text x="10" y="34">{highest / 1000:.0f}</text>']
    picture += [f'<text x="630" y="290">{longest:.0f} s</text><text x="56" y="290">0</text>']
    colors = ("#c0392b", "#2471a3", "#b7950b", "#1e8449")
    for row, (color, (name, samples)) in enumerate(zip(colors, runs.items(), strict=False)):
        points = " ".join(f"{60 + 620 * at / longest:.1f},{270 - 240 * size / highest:.1f}" for at, size in samples)
        picture.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        picture.append(f'<text x="{60 + 160 * row}" y="310" fill="{color}">{name}</text>')
    return "\n".join([*picture, "</svg>\n"])


def cases() -> dict[str, tuple[str | None, str | None, str]]:
    """By name: the proxies of download and page, and the commands that start a box."""
    found: dict[str, tuple[str | None, str | None, str]] = {
        "without proxy": (None, None, ""),
        "with proxy": (PROXY, PROXY, ""),
        "past the proxy": (None, PROXY, ""),
    }
    checks = ["unshare", "--mount", "sh", "-c", f"{BPF} && ackclock box check lo --for 0s"]
    if subprocess.run(checks, capture_output=True, check=False).returncode == 0:
        found["past the proxy, with box"] = (None, PROXY, BOX)
    else:
        print("skipped: the box, which needs root and Linux 6.6: `ackclock box check lo` says what is missing")
    return found


def main() -> None:
    """Run all cases in a network namespace of their own, with the server in another one."""
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    script = [sys.executable, str(pathlib.Path(__file__).resolve()), str(folder), str(IMAGES)]
    match os.environ.get("RADIO_PAGE"):
        case None:
            options = ["-n"] if os.geteuid() == 0 else ["-r", "-n"]
            os.execvpe("unshare", ["unshare", *options, *script], {**os.environ, "RADIO_PAGE": "machine"})
        case "origin":
            serve_origin()
    ip("link set lo up")
    with tempfile.TemporaryDirectory() as work, running("unshare", "-n", *script, RADIO_PAGE="origin") as origin:
        if not origin.stdout or origin.stdout.readline() != "ready\n":
            sys.exit("the server has not started")
        ip("addr add 10.9.0.2/24 dev core0")
        ip("link set core0 up")
        os.chdir(work)
        pathlib.Path("umts.toml").write_text(SCENARIO)
        pathlib.Path("proxy.toml").write_text(CONFIGURATION)
        pathlib.Path("radio.keys").touch(mode=0o600)
        pathlib.Path("radio.keys").write_text(f"1 {secrets.token_hex(32)} 100.64.0.0/10\n")
        runs = {}
        with running("ackclock", "proxy", "proxy.toml"):
            for name, case in cases().items():
                seconds, runs[name] = load(*case)
                lengths = sorted(length for _, length in runs[name])
                p95 = lengths[len(lengths) * 95 // 100] / 1000
                print(f"{name}: page in {seconds:.1f} s, p95 of the queue {p95:.0f} kB")
        (folder / "queue.svg").write_text(draw(runs))
        os.chdir(folder)


if __name__ == "__main__":
    main()
