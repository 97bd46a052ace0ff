"""The page of optimal delays computes what the models compute, beside a script engine and in a browser."""

import json
import re
import shutil
import subprocess

import pytest

from ackclock.models.degradation import Path as TcpPath
from ackclock.models.frame_errors import Coding
from ackclock.models.optimal_delays import optimal_delays
from ackclock.models.packet_delay import Scheme, packet_delay
from ackclock.models.power_control import Chain
from ackclock.paper.document import folder

PAGE = folder("m05") / "optimal-delays.html"
SOURCE = {
    "step": 0.06, "up": 9, "gain": 4, "sirSd": 1, "bits": 2560, "tti": 20, "frames": 2, "guard": 3, "rounds": 5,
    "epsilon": 0.001, "rho": 10, "window": 5, "packet": 1500, "rest": 200,
}  # fmt: skip
CASES = [
    {},
    {"step": 0.2, "frames": 1},
    {"step": 0.02, "frames": 4, "rho": 4},
    {"gain": 2.5, "bits": 7680, "sirSd": 0},
    {"up": 4, "guard": 1, "frames": 3, "epsilon": 0.002, "rho": 2},
    {"up": 19, "guard": 5, "rounds": 2, "epsilon": 0.0005, "tti": 10, "rho": 3},
    {"epsilon": 0.01},
    {"window": 8, "packet": 960, "frames": 1, "rest": 100},
]
NODE, CHROMIUM = shutil.which("node"), shutil.which("chromium")


@pytest.fixture(scope="module")
def computed() -> list[dict]:
    """What the page computes for each case."""
    if NODE is None:
        pytest.skip("node is not installed")
    script = re.search(r'<script id="model">(.*?)</script>', PAGE.read_text(), re.DOTALL)
    assert script is not None
    cases = json.dumps([SOURCE | case for case in CASES])
    run = f"{script[1]}\nprocess.stdout.write(JSON.stringify({cases}.map(computed)));"
    done = subprocess.run([NODE, "-"], input=run, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout)


@pytest.mark.parametrize("index", range(len(CASES)))
def test_the_page_computes_what_the_models_compute(computed, index):
    page, c = computed[index], SOURCE | CASES[index]
    chain = Chain(c["step"], Coding(c["gain"], c["sirSd"], c["bits"]), c["up"])
    law = packet_delay(chain, c["frames"], Scheme(c["guard"], c["rounds"])).law.scaled(c["tti"])
    found = optimal_delays(law, c["epsilon"], c["rho"])
    assert page["law"]["delays"] == pytest.approx(law.delays)
    assert page["law"]["probabilities"] == pytest.approx(law.probabilities, rel=1e-6, abs=1e-13)
    for name, of in (("before", law), ("after", found.after)):
        told = [page[name][key] for key in ("mean", "sd", "rto", "pTimeout")]
        assert told == pytest.approx([of.mean, of.sd, of.rto, of.p_timeout], rel=1e-7, abs=1e-12)
    assert page["found"]["held"] == found.held
    assert page["found"]["added"] == pytest.approx(list(found.added), abs=1e-5)
    assert page["meanAdded"] == pytest.approx(found.mean_added, abs=1e-7)
    path = TcpPath(c["window"], c["packet"], c["rest"] / 1e3)
    kib = [
        path.ideal(law.mean / 1e3),
        path.after_timeouts(law.mean / 1e3, law.p_timeout),
        path.after_timeouts(found.after.mean / 1e3, found.after.p_timeout),
    ]
    assert [page["kib"][key] for key in ("ideal", "before", "after")] == pytest.approx(kib, rel=1e-9)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["25.96", "34.18", "32.56", "0.681 %"]),
        ("?step=0.2&frames=1", ["0.26"]),
        ("?rho=39&frames=5", ["The margin must be below 20 ms"]),
        ("?epsilon=1", ["nothing need be added"]),
    ],
)
def test_a_browser_shows_it_from_the_file_system(tmp_path, query, shown):
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}", "--dump-dom",
         f"{PAGE.resolve().as_uri()}{query}"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    for text in shown:
        assert text in done.stdout, text


def test_the_page_carries_everything_with_it():
    text = PAGE.read_text()
    assert not re.search(r"""(?:src|href)\s*=|@import|url\(|fetch\(|https?://""", text)
