"""What the pages of concertino-view cost, in a headless Chromium: traces of 10,000 and 100,000 calls, and a live run.

    python benchmarks/pages.py [--json] [--quick]

A server of `concertino view` shows a trace that was never open before. Bars: of 10,000 calls, first paint <= 1 s,
interaction <= 50 ms, <= 2,000 nodes, <= 150 MB of JavaScript's heap; 100,000 calls are on the page in <= 5 s; an event
is on the page <= 300 ms after it was written; all pages together weigh <= 200 kB.

*First paint* is the browser's first contentful paint. *Interaction* is the time from a key to the next frame: a move in
the list, a jump to its end, the next failure, zoom, another round; the worst of each is given. *Begin* and *open* are
the times from the request of the page to the frame that shows the begin of the run, and all of it, the server's reading
of the trace included. Beside both
stands the CPU time, of the page's main thread and, for *open*, of the server: what they take where nothing else runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from chromium import Browser, headless_chromium
from concertino_view.run_page import scripts, static
from concertino_view.view_server import ViewServer
from hostile_traces import write_trace
from made_traces import records_of

Figures = dict[str, Any]
_OPEN = """(async (records) => {
  const page = document.querySelector("#page");
  while (!(Number(page.dataset.version) >= records)) await new Promise((done) => setTimeout(done, 5));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now();
})"""
_PRESS = """(async (key) => {
  const target = document.querySelector(".rows");
  const began = performance.now();
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - began;
})"""
KEYS = {"move": "ArrowDown", "end": "End", "begin": "Home", "failure": "f", "zoom": "+", "round": "]"}


@contextmanager
def served(folder: Path) -> Iterator[ViewServer]:
    """A server of a folder."""
    server = ViewServer(folder)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def worked(browser: Browser) -> float:
    """Seconds of CPU time that the main thread of the page has taken."""
    told = browser.call("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in told if each["name"] == "TaskDuration"))


def opened(browser: Browser, server: ViewServer, run: str) -> Figures:
    """Open a run, and press keys."""
    browser.open(server.address)
    # The list of runs reads each trace once; that is not the opening of a run.
    while not browser.value("document.querySelector('tbody tr') !== null"):
        time.sleep(0.1)
    records = server.pages.store.path_for(run).read_bytes().count(b"\n") - 1
    browser.call("Performance.enable", timeDomain="threadTicks")
    server_began = time.process_time()
    browser.open(f"{server.address.partition('/?')[0]}/run/{run}")
    begun = browser.value(f"{_OPEN}(1)")
    shown = browser.value(f"{_OPEN}({records})")
    page_took, server_took = worked(browser), time.process_time() - server_began
    paint = "performance.getEntriesByType('paint').find((each) => each.name === 'first-contentful-paint').startTime"
    found: Figures = {"first_paint_ms": browser.value(paint), "begin_ms": begun, "open_ms": shown}
    found |= {"open_page_cpu_ms": page_took * 1000, "open_server_cpu_ms": server_took * 1000}
    nodes = []
    for name, key in KEYS.items():
        frames, took = [], []
        for _ in range(5):
            before = worked(browser)
            frames.append(browser.value(f"{_PRESS}({json.dumps(key)})"))
            took.append(1000 * (worked(browser) - before))
        found |= {f"key_{name}_ms": max(frames), f"key_{name}_cpu_ms": max(took)}
        nodes.append(browser.value("document.querySelectorAll('*').length"))
    for kind in ("ms", "cpu_ms"):
        found[f"interaction_{kind}"] = max(found[f"key_{name}_{kind}"] for name in KEYS)
    found["nodes"] = max(nodes)
    browser.call("HeapProfiler.collectGarbage")
    found["heap_mb"] = browser.value("performance.memory.usedJSHeapSize") / 1e6
    return {name: round(value, 1) for name, value in found.items()}


def followed(browser: Browser, server: ViewServer, folder: Path, events: int) -> Figures:
    """How long after it was written an event is on the page."""
    path = write_trace(folder / "live.trace.jsonl", records_of(rounds=max(3, events // 10), width=4))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]))
    browser.open(f"{server.address.partition('/?')[0]}/run/live")
    browser.value(f"{_OPEN}(1)")
    # The page says when it has taken each record, on the clock of this machine.
    watch = """(() => { window.seen = []; new MutationObserver(() => window.seen.push([
      Number(document.querySelector("#page").dataset.version), performance.timeOrigin + performance.now(),
    ])).observe(document.querySelector("#page"), { attributes: true, attributeFilter: ["data-version"] }); })()"""
    browser.value(watch)
    wrote = {}
    for place in range(4, 4 + events):
        with path.open("ab") as file:
            file.write(lines[place])
        wrote[place] = time.time() * 1000
        time.sleep(0.12)
    time.sleep(1)
    seen = browser.value("window.seen")
    delays = [next(at for version, at in seen if version >= place) - moment for place, moment in wrote.items()]
    return {"event_median_ms": round(statistics.median(delays), 1), "event_worst_ms": round(max(delays), 1)}


def measured(sizes: list[int], events: int) -> Figures:
    """All figures, by their names."""
    found: Figures = {"weight_kb": sum(len(static(name).encode()) for name in (*scripts(), "page.css")) / 1000}
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "traces"
        folder.mkdir()
        for calls in sizes:
            write_trace(folder / f"r{calls}.trace.jsonl", records_of(rounds=calls // 20, width=20))
        browsers = headless_chromium(Path(home) / "profile")
        browser = next(browsers)
        try:
            with served(folder) as server:
                for calls in sizes:
                    found[f"{calls} calls"] = opened(browser, server, f"r{calls}")
                found["live"] = followed(browser, server, folder, events)
        finally:
            next(browsers, None)
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="smaller traces and fewer events")
    options = parser.parse_args()
    found = measured([1_000] if options.quick else [10_000, 100_000], 10 if options.quick else 60)
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        rows = value.items() if isinstance(value, dict) else [("", value)]
        for part, number in rows:
            print(f"{f'{name} {part}'.strip():40} {number:10,.1f}")


if __name__ == "__main__":
    main()
