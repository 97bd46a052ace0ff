"""The recipes of the how-to pages about browsers, containers and HTTP/3, where their programs are installed."""

import http.server
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from functools import partial

import pytest

PAGE = "<!doctype html><title>bad network</title><p id=said></p><script>said.textContent = 6 * 7</script>"


def run(*words, cwd, seconds=240, **env):
    return subprocess.run(
        words, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=seconds, check=False
    )


@pytest.fixture
def links():
    """Skips where no links can be made."""
    checked = subprocess.run(["ackclock", "link", "--check"], capture_output=True, text=True, check=False)
    if checked.returncode != 0:
        pytest.skip(f"no links here: {checked.stdout.splitlines()[-1]}")


@pytest.fixture
def site(tmp_path):
    """A server of this machine with a page of 100 kB: its port."""
    (tmp_path / "index.html").write_text(PAGE + f"<!-- {'x' * 100_000} -->")
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_chromium_loads_a_page_behind_3g(links, site, tmp_path):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    quiet = ["--disable-background-networking", "--disable-component-update", f"--user-data-dir={tmp_path}/profile"]
    link = ["ackclock", "link", "--profile", "3g", "--forward", str(site), "--json", "--"]
    ran = run(*link, chromium, *options, *quiet, "--dump-dom", f"http://localhost:{site}/", cwd=tmp_path)
    assert '<p id="said">42</p>' in ran.stdout, ran.stderr
    flows = json.loads(ran.stdout.splitlines()[-1])["flows"]
    assert sum(flow["delivered_bytes"] for flow in flows) > 100_000


def test_playwright_changes_the_network_during_a_test(links, site, tmp_path):
    chromium, node = shutil.which("chromium"), shutil.which("node")
    if chromium is None or node is None:
        pytest.skip("chromium or node is not installed")
    playwright = run(node, "-p", "require.resolve('@playwright/test/cli')", cwd=tmp_path)
    if playwright.returncode != 0:
        pytest.skip("@playwright/test is not installed")
    (tmp_path / "playwright.config.js").write_text(
        textwrap.dedent(f"""
        module.exports = {{ timeout: 120000, use: {{ baseURL: "http://localhost:{site}", launchOptions: {{
          executablePath: {json.dumps(chromium)},
          args: ["--no-sandbox", "--disable-background-networking", "--disable-component-update"] }} }} }};
        """)
    )
    (tmp_path / "page.spec.js").write_text(
        textwrap.dedent("""
        const { test, expect } = require("@playwright/test");
        test("the page loads before and after a change of the link", async ({ page }) => {
          await page.goto("/");
          const answer = await fetch(process.env.ACKCLOCK_CONTROL + "/link", {
            method: "PATCH",
            headers: { Authorization: `Bearer ${process.env.ACKCLOCK_TOKEN}`, "Content-Type": "application/json" },
            body: JSON.stringify({ down: { rate: "4mbit" } }),
          });
          expect(answer.status).toBe(200);
          await page.reload();
          await expect(page.locator("#said")).toHaveText("42");
        });
        """)
    )
    link = ["ackclock", "link", "--profile", "3g", "--forward", str(site), "--control", "0", "--"]
    ran = run(*link, node, playwright.stdout.strip(), "test", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr


CONTAINER = [
    "--rm",
    "--cap-add",
    "SYS_ADMIN",
    "--cap-add",
    "NET_ADMIN",
    "--device",
    "/dev/net/tun",
    "--security-opt",
    "apparmor=unconfined",
]


def test_a_link_runs_in_a_container_of_podman(tmp_path):
    podman, ackclock = shutil.which("podman"), shutil.which("ackclock")
    if podman is None or ackclock is None:
        pytest.skip("podman or ackclock is not installed")
    # The container shows this machine's files, so no image is needed; what it changes is discarded.
    start = [podman, "run", *CONTAINER, "--network", "none", "--rootfs", "/:O"]
    if (trial := run(*start, "true", cwd=tmp_path)).returncode != 0:
        pytest.skip(f"podman runs no containers here: {trial.stderr.strip().splitlines()[-1]}")
    ran = run(*start, ackclock, "link", "1mbit", "1mbit", "--closed", "--", "echo", "made", cwd=tmp_path)
    assert ran.stdout == "made\n", ran.stderr


def test_a_link_runs_in_a_container_of_docker(tmp_path):
    docker, ackclock = shutil.which("docker"), shutil.which("ackclock")
    if docker is None or ackclock is None:
        pytest.skip("docker or ackclock is not installed")
    image = "debian:stable-slim"
    if (known := run(docker, "image", "inspect", image, cwd=tmp_path)).returncode != 0:
        pytest.skip(f"docker has no {image} here: {known.stderr.strip().splitlines()[-1]}")
    start = [docker, "run", *CONTAINER, "--volume", f"{ackclock}:/usr/bin/ackclock:ro", image]
    ran = run(*start, "ackclock", "link", "1mbit", "1mbit", "--closed", "--", "echo", "made", cwd=tmp_path)
    assert ran.stdout == "made\n", ran.stderr


HTTP3_SERVER = """
import asyncio, sys
from aioquic.asyncio import serve
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

class Server(QuicConnectionProtocol):
    http = None

    def quic_event_received(self, event):
        self.http = self.http or H3Connection(self._quic)
        for one in self.http.handle_event(event):
            if isinstance(one, HeadersReceived):
                self.http.send_headers(one.stream_id, [(b":status", b"200")])
                self.http.send_data(one.stream_id, bytes(500_000), end_stream=True)
                self.transmit()

async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain("certificate.pem", "key.pem")
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Server)
    print(server._transport.get_extra_info("sockname")[1], flush=True)
    await asyncio.Future()

asyncio.run(main())
"""

HTTP3_CLIENT = """
import asyncio, ssl, sys
from aioquic.asyncio import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived
from aioquic.quic.configuration import QuicConfiguration

class Client(QuicConnectionProtocol):
    http, total = None, 0

    def quic_event_received(self, event):
        for one in self.http.handle_event(event) if self.http else []:
            if isinstance(one, DataReceived):
                self.total += len(one.data)
                if one.stream_ended:
                    self.done.set_result(self.total)

async def main():
    configuration = QuicConfiguration(alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
    async with connect("127.0.0.1", int(sys.argv[1]), configuration=configuration, create_protocol=Client) as client:
        client.http, client.done = H3Connection(client._quic), asyncio.get_running_loop().create_future()
        stream = client._quic.get_next_available_stream_id()
        names = {b":method": b"GET", b":scheme": b"https", b":authority": b"localhost", b":path": b"/"}
        client.http.send_headers(stream, list(names.items()), end_stream=True)
        client.transmit()
        print(await client.done)

asyncio.run(main())
"""


@pytest.mark.parametrize("options", ["", "--mtu 1280"])
def test_http3_crosses_a_link_to_a_server_of_this_machine(links, tmp_path, options):
    openssl = shutil.which("openssl")
    if importlib.util.find_spec("aioquic") is None or openssl is None:
        pytest.skip("aioquic or openssl is not installed")
    made = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -subj /CN=localhost -days 2"
    assert run(openssl, *made.split(), cwd=tmp_path).returncode == 0
    (tmp_path / "server.py").write_text(HTTP3_SERVER)
    (tmp_path / "client.py").write_text(HTTP3_CLIENT)
    with subprocess.Popen([sys.executable, "server.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = server.stdout.readline().strip()
            link = f"ackclock link 2mbit 8mbit --delay 20ms {options} --forward {port} --json --".split()
            ran = run(*link, sys.executable, "client.py", port, cwd=tmp_path)
        finally:
            server.kill()
    assert ran.stdout.splitlines()[:1] == ["500000"], ran.stderr
    results = json.loads(ran.stdout.splitlines()[-1])
    assert results["bottleneck"]["delivered_bytes"] > 500_000
