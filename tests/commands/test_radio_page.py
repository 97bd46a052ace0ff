"""The example of a page over UMTS runs without and with proxy and box, and draws its picture."""

import os
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "docs" / "demo" / "radio_page.py"


def test_the_page_is_loaded_without_and_with_proxy_and_box(tmp_path):
    namespace = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-n", "ip", "link", "set", "lo", "up"]
    if shutil.which("curl") is None or subprocess.run(namespace, capture_output=True).returncode != 0:
        pytest.skip("needs curl and a network namespace of its own")
    # Chromium is not found here, so that curl loads the page.
    programs = tmp_path / "programs"
    programs.mkdir()
    for program in ("ackclock", "curl", "ip", "mount", "sh", "sleep", "date", "unshare"):
        (programs / program).symlink_to(shutil.which(program))
    environment = {**os.environ, "PATH": str(programs)}
    command = [sys.executable, str(SCRIPT), str(tmp_path), "1"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert ended.returncode == 0, ended.stderr
    first, *rest = [line.split(":")[0] for line in ended.stdout.splitlines()]
    if first == "skipped":
        first, *rest = rest
    else:
        assert rest.pop() == "past the proxy, with box"
    assert [first, *rest] == ["without proxy", "with proxy", "past the proxy"]
    picture = xml.etree.ElementTree.parse(tmp_path / "queue.svg").getroot()
    drawn = picture.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(drawn) == len(ended.stdout.splitlines()) - ended.stdout.startswith("skipped")
    assert all(len(line.get("points").split()) > 10 for line in drawn)
