"""The picture of a run's page in the README of the project: small, and of the page as it is.

The picture is made of a run of the demo, with `CONCERTINO_WRITE_PICTURE=1 pytest -m slow` and this file. It holds the
structure of the page from which it was made, so it is stale when parts of the page come, go or are renamed, and not
when colours or a font of some machine differ.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import io
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chromium import Browser
from concertino_view import write_page

ROOT = Path(__file__).resolve().parents[3]
PICTURE = ROOT / "docs" / "assets" / "run-page.png"
WIDTH, MOST_BYTES = 1000, 60_000
_KEY = "structure"
_PARTS = """(() => {
  const parts = new Set();
  for (const each of document.querySelectorAll("#page *")) {
    const told = each.matches("button, [class~=bar] > .pill, [class~=bar] > .dim, footer") ? each.textContent : "";
    if (!each.closest(".row, .boxes, .detail")) {
      const label = each.getAttribute("aria-label") || "";
      parts.add([each.localName, each.className, label, told].join("|").replace(/\\d+/g, "#"));
    }
  }
  return [...parts].join("\\n");
})()"""
_POSE = """(() => {
  document.querySelector(".rows").style.height = "230px";
  document.querySelector(".detail").style.maxHeight = "270px";
  const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  for (const key of ["f", "f", "f"]) press(key);
})()"""


def texts_of(png: bytes) -> dict[str, str]:
    """The texts in a PNG."""
    found, place = {}, 8
    while place < len(png):
        size, kind = struct.unpack(">I4s", png[place : place + 8])
        if kind == b"tEXt":
            name, _, text = png[place + 8 : place + 8 + size].partition(b"\0")
            found[name.decode("latin-1")] = text.decode("latin-1")
        place += 12 + size
    return found


def structure_of(browser: Browser, trace: Path) -> str:
    """What the parts of the page are, for a run that is always the same."""
    browser.show(width=WIDTH)
    browser.open(write_page(trace, trace.with_suffix(".html")))
    return hashlib.sha256(str(browser.value(_PARTS)).encode()).hexdigest()[:16]


def picture_of(browser: Browser, folder: Path, structure: str) -> bytes:
    """A picture of the page of the demo's run, in few colours."""
    command = [sys.executable, "-m", "concertino", "demo", "--leader", "scripted", "--plain", "--trace", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (page,) = folder.glob("*.html")
    browser.show(width=WIDTH)
    browser.open(page)
    browser.value(_POSE)
    browser.value("new Promise((done) => setTimeout(done, 500))")
    top, end = (
        browser.value(f"document.querySelector('{part}').getBoundingClientRect().top")
        for part in ("[aria-label=Timeline]", "footer")
    )
    clip = {"x": 0, "y": top, "width": WIDTH, "height": end - top, "scale": 1}
    shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
    # By name: only who makes the picture needs it.
    image: Any = importlib.import_module("PIL.Image")
    told: Any = importlib.import_module("PIL.PngImagePlugin").PngInfo()
    told.add_text(_KEY, structure)
    few = image.open(io.BytesIO(base64.b64decode(shot))).convert("RGB").quantize(48, dither=image.Dither.NONE)
    made = io.BytesIO()
    few.save(made, "PNG", optimize=True, pnginfo=told)
    return made.getvalue()


@pytest.mark.slow
def test_the_picture_in_the_readme_shows_the_page_as_it_is(browser: Browser, trace: Path, tmp_path: Path) -> None:
    structure = structure_of(browser, trace)
    if os.environ.get("CONCERTINO_WRITE_PICTURE"):
        PICTURE.write_bytes(picture_of(browser, tmp_path / "runs", structure))
    again = f"CONCERTINO_WRITE_PICTURE=1 python -m pytest {Path(__file__).relative_to(ROOT)} -m slow"
    made_of = texts_of(PICTURE.read_bytes()).get(_KEY)
    assert made_of == structure, f"the page has other parts than its picture; make it again: {again}"


def test_the_picture_is_small_and_the_readme_shows_it() -> None:
    png = PICTURE.read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(png) <= MOST_BYTES
    assert texts_of(png).keys() == {_KEY}
    assert "](docs/assets/run-page.png)" in (ROOT / "README.md").read_text(encoding="utf-8")
