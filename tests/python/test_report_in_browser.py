"""Reports in a browser, as wide as a screen and as narrow as a telephone."""

import html
import json
import re
import shutil
import subprocess

import pytest

import ackclock
from ackclock import report
from ackclock.paper import Verdict
from ackclock.results import Results
from conftest import link_object, run_object, swept_objects
from test_report import judged, outcome_of

CHROMIUM = shutil.which("chromium")
WIDTHS = (1280, 390)
# What sticks out of the page and has no box to scroll in, and the smallest text in pixels of the screen.
MEASURE = """
const found = frame => {
  const page = frame.contentDocument, width = page.documentElement.clientWidth, wide = [], small = [];
  for (const one of page.body.querySelectorAll("*")) {
    // What a drawing clips has a box all the same; its text is what must be seen.
    if (one.closest("svg") && !["svg", "text"].includes(one.tagName)) continue;
    const box = one.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    if ((box.right > width + 1 || box.left < -1) && !one.closest(".scroll")) wide.push(one.outerHTML.slice(0, 200));
    if (![...one.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
    const scale = one.getScreenCTM ? Math.hypot(one.getScreenCTM().a, one.getScreenCTM().b) : 1;
    const size = scale * parseFloat(frame.contentWindow.getComputedStyle(one).fontSize);
    if (size < 11) small.push(size.toFixed(1) + " px: " + one.textContent.trim());
  }
  return { width, scrolls: page.documentElement.scrollWidth, wide, small };
};
const frame = document.querySelector("iframe");
const tell = () => { document.querySelector("pre").textContent = JSON.stringify(found(frame)); };
addEventListener("load", tell);
"""


def shown(page: str, width: int, folder) -> dict:
    """What the browser says of a page of this width."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    around = folder / "around.html"
    around.write_text(
        f'<!doctype html><meta charset="utf-8"><iframe style="border:0;width:{width}px;height:20000px" '
        f'srcdoc="{html.escape(page)}"></iframe><pre></pre><script>{MEASURE}</script>'
    )
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}",
         "--window-size=1400,1000", "--dump-dom", around.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    told = re.search(r"<pre>(.+?)</pre>", done.stdout, re.DOTALL)
    assert told is not None
    return json.loads(html.unescape(told[1]))


def comparison() -> Results:
    """A comparison of many columns with two runs over time."""
    runs = [*swept_objects(), run_object(point={"flow.sender": "a-sender-of-a-long-name", "edge.buffer": "4p"})]
    series = ackclock.run(
        "scenarios/first.toml", set={"edge.regulator": "wrd", "duration": "30s"}, series_interval=0.1
    ).series
    results = Results(runs, series * 2)
    results.series_of = ["none", "ack-regulator"]
    return results


def radio() -> Results:
    """A run over HSDPA with the results and the gauges of the radio."""
    measured = {"duration": "3s", "measure": ["radio"]}
    return ackclock.run("scenarios/chain.toml", set=measured, series_interval=0.1)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_of_a_link_fits_and_is_legible(width, link_series, tmp_path):
    run = link_object(60)
    run["flows"][7]["from"] = "[2001:db8:85a3:1234:5678:8a2e:370:7334]:65535"
    told = shown(report.of_runs(Results([run], [link_series]), command="ackclock link " + "word" * 40), width, tmp_path)
    assert told["scrolls"] <= width
    assert told["wide"] == []
    assert told["small"] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "runs", [comparison, lambda: Results([run_object()]), radio], ids=["comparison", "run", "radio"]
)
def test_a_report_fits_and_is_legible(runs, width, tmp_path):
    told = shown(report.of_runs(runs()), width, tmp_path)
    assert told["width"] == width
    assert told["scrolls"] <= width
    assert told["wide"] == []
    assert told["small"] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_of_a_paper_fits_and_is_legible(width, tmp_path):
    rows = judged(FINE=(100, 1, Verdict.REPRODUCED), LOOSE=(9, 2, Verdict.ORDERING_HOLDS))
    off = judged(OFF=(300, 50, Verdict.NOT_REPRODUCED), SEEN=(1, 0, Verdict.NOT_CHECKED))
    told = shown(report.of_paper(outcome_of([*rows, *off]), []), width, tmp_path)
    assert told["scrolls"] <= width
    assert told["wide"] == []
    assert told["small"] == []


def test_the_measure_finds_what_sticks_out_and_what_is_small(tmp_path):
    bad = '<!doctype html><p style="width:500px">wide</p><b style="font-size:9px">x</b>'
    told = shown(bad, 390, tmp_path)
    assert len(told["wide"]) == 1
    assert told["small"] == ["9.0 px: x"]
