"""Contrast of reports against their background (WCAG 2.1: 4.5:1 of text, 3:1 of marks), in light and dark mode."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import numpy as np
import pytest

import ackclock
from ackclock import plot, report
from ackclock.plot import style
from ackclock.results import Results
from conftest import link_object, run_object

PAGE = report.of_runs(Results([run_object()]))
LIGHT, DARK = (dict(re.findall(r"--(\w+): (#\w+)", line)) for line in re.findall(r":root \{.+\}", PAGE))
TEXT, MARK = 4.5, 3.0


def rgb(colour: str) -> np.ndarray:
    digits = colour.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    return np.array([int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)])


def luminance(colour: np.ndarray) -> float:
    """Relative luminance, WCAG 2.1."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    dim, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dim + 0.05)


def in_dark_mode(colour: np.ndarray) -> np.ndarray:
    """A colour of a figure through the filter of the page (Filter Effects Module Level 1, sections 8.4 and 8.7)."""
    filters = re.search(r"figure svg \{ filter: invert\(([\d.]+)\) hue-rotate\((\d+)deg\); \}", PAGE)
    assert filters is not None
    amount, angle = float(filters[1]), np.radians(float(filters[2]))
    weights = np.array([0.213, 0.715, 0.072])
    sine = np.array([[-0.213, -0.715, 0.928], [0.143, 0.140, -0.283], [-0.787, 0.715, 0.072]])
    rotation = weights + np.cos(angle) * (np.eye(3) - weights) + np.sin(angle) * sine
    return np.clip(rotation @ (colour * (1 - amount) + (1 - colour) * amount), 0, 1)


def least(colour: str) -> float:
    """Least contrast of a figure's colour in both modes."""
    bright = contrast(rgb(colour), rgb("#ffffff"))
    return min(bright, contrast(in_dark_mode(rgb(colour)), in_dark_mode(rgb("#ffffff"))))


def colours(svg: str) -> Iterator[tuple[str, float]]:
    """Each colour of a figure with the contrast it needs; grid, background and translucent bands are decoration."""
    for element in ET.fromstring(svg).iter():
        said = dict(re.findall(r"([\w-]+): ([^;]+)", element.get("style", "")))
        if element.tag.endswith("}text"):
            yield said.get("fill", "#000000"), TEXT
        elif "fill-opacity" not in said and "opacity" not in said:
            # An outline makes a pale area visible.
            outline = said.get("stroke", "none")
            shown = outline if outline != "none" else said.get("fill", "none")
            if shown not in ("none", style.GRID, "#ffffff"):
                yield shown, MARK


def reports(link_series) -> Iterator[str]:
    series = ackclock.run("scenarios/first.toml", set={"edge.regulator": "wrd", "duration": "30s"}, series_interval=0.1)
    regulators = [
        run_object(150e3 + seed, seed=seed, point={"edge.regulator": name, "edge.buffer": buffer})
        for name in ("none", *"abcdef")
        for buffer in ("4p", "8p")
        for seed in (1, 2, 3)
    ]
    compared = Results(regulators, series.series * 2)
    compared.series_of = ["none", "ack-regulator"]
    yield report.of_runs(compared)
    yield report.of_runs(Results([link_object(60)], [link_series]))


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_of_a_page_is_legible(palette):
    assert set(palette) == {"ink", "soft", "line", "page", "good", "bad"}
    for name in ("ink", "soft", "good", "bad"):
        assert contrast(rgb(palette[name]), rgb(palette["page"])) >= TEXT, name


def test_a_figure_has_the_background_of_its_page():
    assert in_dark_mode(rgb("#ffffff")) == pytest.approx(rgb(DARK["page"]), abs=1 / 255)
    assert LIGHT["page"] == "#fff"


@pytest.mark.parametrize("colour", plot.COLOURS)
def test_every_colour_of_the_palette_is_visible(colour):
    assert least(colour) >= MARK


def test_what_figures_of_reports_draw_is_visible(link_series):
    needed: dict[str, float] = {}
    for page in reports(link_series):
        for svg in re.findall(r"<svg.+?</svg>", page, re.DOTALL):
            for colour, contrast_needed in colours(svg):
                needed[colour] = max(contrast_needed, needed.get(colour, 0))
    assert len(needed) > 5
    assert {colour: least(colour) for colour, wanted in needed.items() if least(colour) < wanted} == {}
