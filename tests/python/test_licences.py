"""The check of the licences of Python packages."""

import runpy
from email.message import Message
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "python" / "requirements" / "licences.py"))
ALLOWED = {"MIT", "BSD-3-Clause", "PSF-2.0"}


class Metadata(Message):
    """What an installed package says of itself."""

    def __init__(self, **fields: object) -> None:
        super().__init__()
        self.json = fields


def judged(monkeypatch: pytest.MonkeyPatch, **fields: object) -> str | None:
    refused = SCRIPT["refused"]
    monkeypatch.setitem(refused.__globals__, "metadata", lambda _: Metadata(**fields))
    return refused("a", ALLOWED)


@pytest.mark.parametrize(
    "fields",
    [
        {"license_expression": "MIT"},
        {"license_expression": "BSD-3-Clause AND (MIT OR PSF-2.0)"},
        {"classifier": ["License :: OSI Approved :: BSD License"], "license": "Copyright of somebody, a page long"},
        {"license": "MIT"},
    ],
)
def test_a_licence_is_read_from_its_expression_its_classifiers_or_its_text(monkeypatch, fields):
    assert judged(monkeypatch, **fields) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"license_expression": "GPL-3.0-only"},
        {"license_expression": "MIT AND GPL-3.0-only"},
        {"classifier": ["License :: OSI Approved :: GNU General Public License v3 (GPLv3)"], "license": "MIT"},
        {"license": "All rights reserved"},
        {},
    ],
)
def test_what_is_not_on_the_list_is_refused(monkeypatch, fields):
    assert judged(monkeypatch, **fields).startswith("a has the licence ")


def test_a_package_that_is_not_there_is_named():
    assert SCRIPT["refused"]("no-such-package-anywhere", ALLOWED) == "no-such-package-anywhere is not installed"


def test_only_what_this_platform_needs_is_asked_for():
    pins = ["b==1", "a==2 ; sys_platform == 'linux'", "c==3 ; sys_platform == 'none'"]
    lock = "".join(f"{pin} \\\n    --hash=sha256:0\n" for pin in pins)
    assert SCRIPT["required"](lock) == ["a", "b"]
