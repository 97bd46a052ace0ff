"""`ackclock proxy`: real clients and servers on the loopback interface."""

import contextlib
import http.server
import shutil
import signal
import socket
import subprocess
import threading
import urllib.request

import pytest

SIZE = 300_000


@pytest.fixture
def server():
    """Sends a page and says how it was asked."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = bytes(SIZE)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Asked", self.path)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running.server_address[1]
        running.shutdown()


@pytest.fixture
def proxy():
    command = [shutil.which("ackclock"), "proxy", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        yield started.stderr.readline().split("proxy on ")[1].split(";")[0], started
        started.kill()


def test_a_page_through_http_and_the_summary_at_the_end(server, proxy):
    address, started = proxy
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://{address}"}))
    with opener.open(f"http://127.0.0.1:{server}/page?x") as answer:
        assert (len(answer.read()), answer.headers["X-Asked"]) == (SIZE, "/page?x")
    started.send_signal(signal.SIGINT)
    said, _ = started.communicate(timeout=10)
    assert started.returncode == 0
    assert said.startswith("1 connections to servers, 300")
    assert "0 refused, 0 ended by a reset" in said


@pytest.mark.parametrize("scheme", ["socks5h", "http"])
def test_curl_is_led_through(server, proxy, scheme):
    if shutil.which("curl") is None:
        pytest.skip("curl is missing")
    command = ["curl", "--silent", "--show-error", "--proxytunnel", "--proxy", f"{scheme}://{proxy[0]}"]
    got = subprocess.run([*command, f"http://127.0.0.1:{server}/"], capture_output=True, check=True).stdout
    assert got == bytes(SIZE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "0.0.0.0:0"], "--listen: 0.0.0.0:0 can be reached from other machines: say whose with --allow"),
        (["--listen", "192.0.2.1:80", "--allow", "192.0.2.0/24"], "--listen: 192.0.2.1:80: "),
        (["--allow", "192.0.2.0/33"], "`192.0.2.0/33` is not a network, as 192.0.2.0/24"),
        (["--max-connections", "1"], "--max-connections 1: "),
    ],
)
def test_mistakes_are_told(words, said):
    ended = subprocess.run([shutil.which("ackclock"), "proxy", *words], capture_output=True, text=True, timeout=20)
    assert (ended.returncode, said in ended.stderr) == (2, True), ended.stderr


def test_a_killed_proxy_ends_its_connections_and_a_restart_serves_again(server, proxy):
    address, started = proxy
    host, port = address.split(":")
    with socket.create_server(("127.0.0.1", 0)) as origin, socket.create_connection((host, int(port))) as client:
        client.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % origin.getsockname()[1])
        with origin.accept()[0] as peer:
            peer.sendall(bytes(SIZE))
            assert client.recv(1) == b"H"
            started.kill()
            started.wait()
            assert ends(client)
            assert ends(peer)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    command = [shutil.which("ackclock"), "proxy", "--listen", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as again:
        assert f"proxy on {address};" in again.stderr.readline()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": f"http://{address}"}))
        with opener.open(f"http://127.0.0.1:{server}/") as answer:
            assert len(answer.read()) == SIZE
        again.kill()


def ends(connection: socket.socket) -> bool:
    """Whether a connection ends, by EOF or a reset; one that stays open is a timeout."""
    connection.settimeout(60)
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(65536):
            pass
    return True
