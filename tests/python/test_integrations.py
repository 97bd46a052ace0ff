"""The packages in `integrations/`, where Node, Playwright and Testcontainers are installed."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

INTEGRATIONS = Path(__file__).parents[2] / "integrations"
PYTHON = INTEGRATIONS / "testcontainers-python" / "src"
LINK = ["ackclock", "link", "1mbit", "8mbit", "--closed", "--control", "0", "--"]


@pytest.fixture
def links():
    """Skips where no links can be made."""
    checked = subprocess.run(["ackclock", "link", "--check"], capture_output=True, text=True, check=False)
    if checked.returncode != 0:
        pytest.skip(f"no links here: {checked.stdout.splitlines()[-1]}")


def node(*modules: str) -> str:
    """Node, where it and its modules are installed."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("node is not installed")
    for module in modules:
        found = subprocess.run([program, "-e", f"require('{module}')"], capture_output=True, check=False)
        if found.returncode != 0:
            pytest.skip(f"{module} is not installed, or not for this version of Node")
    return program


def run(*words, cwd=None, **env):
    return subprocess.run(
        words, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, timeout=240, check=False
    )


def test_python_changes_the_link_and_gets_the_conditions_in_force(links):
    script = textwrap.dedent("""
        from ackclock_testcontainers import Link
        link = Link()
        print(link.set(down={"rate": "2mbit"})["down"]["rate"], link.conditions()["up"]["rate"])
        print(link.fault("cut=up", only=["tcp:9"], lasts="1min")[0]["only"], link.mend())
        print(link.outage("50ms", direction="down")["outage"].keys(), link.results()["bottleneck"]["drops"])
        try:
            link.set(down={"rate": "fast"})
        except RuntimeError as error:
            print("PATCH /link: " in str(error) and "fast" in str(error))
    """)
    ran = run(*LINK, sys.executable, "-c", script, PYTHONPATH=str(PYTHON))
    assert ran.stdout == "2Mbit/s 1Mbit/s\n['tcp:9'] []\ndict_keys(['down']) 0\nTrue\n", ran.stderr


def test_a_container_runs_its_command_behind_the_link():
    pytest.importorskip("testcontainers")
    import docker

    sys.path.insert(0, str(PYTHON))
    try:
        from ackclock_testcontainers import LinkContainer
    finally:
        sys.path.remove(str(PYTHON))
    try:
        docker.from_env().close()
    except docker.errors.DockerException:
        pytest.skip("no container engine runs here")
    container = LinkContainer("image", command="./api --port 8080", publish=8080, options=["1mbit", "8mbit"])
    words = "ackclock link 1mbit 8mbit --publish 0.0.0.0:8080 --control 8474 -- ./api --port 8080"
    assert container._command == words
    assert 8080 in container.ports
    assert container._kwargs["devices"] == ["/dev/net/tun"]
    checked = run(*words.replace(" -- ", " --generate -- ").split())
    assert checked.returncode == 0, checked.stderr


def test_node_changes_the_link(links):
    script = textwrap.dedent(f"""
        const {{ Link }} = require({json.dumps(str(INTEGRATIONS / "playwright" / "link.js"))});
        (async () => {{
          const link = new Link();
          console.log((await link.set({{ down: {{ rate: "2mbit" }} }})).down.rate);
          console.log((await link.fault("reset", {{ only: ["tcp:9"], for: "1min" }}))[0].fault, await link.mend());
          console.log(Object.keys((await link.outage("50ms", {{ direction: "up" }})).outage));
          await link.set({{ down: {{ rate: "fast" }} }}).catch((error) => console.log(error.message.includes("fast")));
        }})();
    """)
    ran = run(*LINK, node(), "-e", script)
    assert ran.stdout == "2Mbit/s\nreset []\n[ 'up' ]\ntrue\n", ran.stderr


def test_the_fixture_of_playwright_restores_the_link(links, tmp_path):
    program = node("@playwright/test")
    cli = run(program, "-p", "require.resolve('@playwright/test/cli')").stdout.strip()
    (tmp_path / "link.spec.js").write_text(
        textwrap.dedent(f"""
        const {{ test, expect }} = require({json.dumps(str(INTEGRATIONS / "playwright"))});
        test("a slow link", async ({{ link }}) => {{
          const now = await link.set({{ down: {{ rate: "200kbit", loss: 0.1 }} }});
          expect(now.down.rate).toBe("200kbit/s");
          await link.fault("cut", {{ only: ["tcp:9"] }});
        }});
        test("the link of before", async ({{ link }}) => {{
          const now = await link.conditions();
          expect([now.down.rate, now.down.loss]).toEqual(["8Mbit/s", 0]);
          expect(await link.ask("GET", "/faults")).toEqual([]);
        }});
        """)
    )
    ran = run(*LINK, program, cli, "test", "--workers=1", "--reporter=line", cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 passed" in ran.stdout


def test_a_container_of_node_has_its_command_and_the_device():
    program = node("testcontainers")
    script = textwrap.dedent(f"""
        const {{ containerBehindLink }} = require({json.dumps(str(INTEGRATIONS / "testcontainers-node"))});
        const made = containerBehindLink({{ image: "image", command: ["./api"], port: 8080, token: "t" }});
        console.log(made.createOpts.Cmd.join(" "));
        console.log(made.hostConfig.Devices[0].PathInContainer, made.hostConfig.CapAdd.join());
    """)
    ran = run(program, "-e", script)
    words = "ackclock link --profile 3g --publish 0.0.0.0:8080 --control 8474 -- ./api"
    assert ran.stdout == f"{words}\n/dev/net/tun SYS_ADMIN,NET_ADMIN\n", ran.stderr
