"""How soon a page can be used: from the navigation until a message can be typed and the models are there.

    python benchmarks/pages.py [--rounds 7]

`cold`: a browser that has nothing of this server. `warm`: a second visit by the same browser. `phone`: the same with
a processor of a quarter of the speed, by Chromium's throttle. The CPU is that of the page's main thread: on a machine
that others use it says more than the clock. Server and browser share the cores. The server has the echo model, loaded.
"""

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
_THROTTLE = 4
# What a page shows when it can be used; `at` is in milliseconds since the navigation began.
_READY = {
    "/": "document.querySelector('.composer-field:enabled') && document.querySelector('.model-dot.loaded')",
    "/status": "document.querySelector('h1[data-message]:not([data-message=connecting])')",
}
_WATCH = """(() => {
  const look = () => { if (window.readyAt === undefined && (%s)) window.readyAt = performance.now(); };
  new MutationObserver(look).observe(document, { childList: true, subtree: true, attributes: true });
})();"""


@dataclass(frozen=True, slots=True)
class Visit:
    ready_milliseconds: float
    cpu_milliseconds: float
    num_requests: int


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=7)
    given = arguments.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with _server() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        print(f"{given.rounds} visits: ready after ms, fastest / median / slowest; CPU of the page's thread, median")
        for path in _READY:
            for rate in (1, _THROTTLE):
                _measure(browser, url, path, rate, given.rounds)
        browser.close()


def _measure(browser: Browser, url: str, path: str, rate: int, rounds: int) -> None:
    found: dict[str, list[Visit]] = {"cold": [], "warm": []}
    for _ in range(rounds):
        context = browser.new_context(viewport={"width": 390, "height": 844} if rate > 1 else None)
        for visits in found.values():
            visits.append(_visit(context, url, path, rate))
        context.close()
    for name, visits in found.items():
        ready = [visit.ready_milliseconds for visit in visits]
        cpu = statistics.median(visit.cpu_milliseconds for visit in visits)
        device = "desktop" if rate == 1 else f"phone (CPU / {rate})"
        print(
            f"{path:8} {device:15} {name}: {min(ready):5.0f} / {statistics.median(ready):5.0f} / {max(ready):5.0f},"
            f" CPU {cpu:4.0f}, {visits[-1].num_requests} requests"
        )


def _visit(context: BrowserContext, url: str, path: str, rate: int) -> Visit:
    page = context.new_page()
    page.add_init_script(_WATCH % _READY[path])
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    session.send("Emulation.setCPUThrottlingRate", {"rate": rate})
    page.goto(url + path, wait_until="commit")
    page.wait_for_function("() => window.readyAt !== undefined", timeout=120_000)
    metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    visit = Visit(
        page.evaluate("window.readyAt"),
        metrics["TaskDuration"] * 1000,
        page.evaluate("performance.getEntriesByType('resource').length + 1"),
    )
    page.close()
    return visit


@contextmanager
def _server() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="tis-bench-") as folder:
        variables = {"PORT": str(port), "MODEL_REPO_ID": "echo", "EAGER_LOAD_MODEL": "1", "LOG_LEVEL": "warning"}
        variables["DATABASE_URL"] = f"sqlite:///{folder}/market.db"
        process = subprocess.Popen([sys.executable, "main.py"], cwd=ROOT, env={**os.environ, **variables})
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _wait_until_ready(url: str) -> None:
    while True:
        try:
            with urllib.request.urlopen(f"{url}/ready", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)


if __name__ == "__main__":
    main()
