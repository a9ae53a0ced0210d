"""How soon the shop can be used on a phone with a slow line: until one can type, and until the first goods stand.

    python benchmarks/shop_on_3g.py [--rounds 5]

Chromium's own emulation: 1.6 Mbit/s down, 750 kbit/s up, 150 ms until an answer begins, a processor of a quarter of the
speed, a screen of 390 by 844. `first`: a browser that has nothing of this server; `again`: its second visit. The goods
are those of `make demo`. Server and browser share the cores. `pictures`: those in sight have come.
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

from playwright.sync_api import BrowserContext, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
_LINE = {"offline": False, "latency": 150, "downloadThroughput": 1_600_000 / 8, "uploadThroughput": 750_000 / 8}
_THROTTLE = 4
_WATCH = """(() => {
  window.at = {};
  const note = (name, is) => { if (is && !(name in window.at)) window.at[name] = performance.now(); };
  const look = () => {
    note("type", document.querySelector("input[role=combobox]:enabled"));
    note("goods", document.querySelector(".goods .product-name"));
    const inSight = (one) => one.getBoundingClientRect().top < innerHeight;
    const pictures = [...document.querySelectorAll(".goods img")].filter(inSight);
    note("pictures", pictures.length && pictures.every((one) => one.complete && one.naturalWidth));
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true, attributes: true });
  document.addEventListener("load", look, true);
})();"""
_STATES = ("type", "goods", "pictures")


@dataclass(frozen=True, slots=True)
class SlowVisit:
    milliseconds: dict[str, float]
    num_bytes: int  # on the line, until the pictures stood
    num_requests: int


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with _server() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        found: dict[str, list[SlowVisit]] = {"first": [], "again": []}
        for _ in range(given.rounds):
            context = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
            for visits in found.values():
                visits.append(_visit(context, url))
            context.close()
        browser.close()
    print(f"{given.rounds} visits, ms, fastest / median / slowest")
    for name, visits in found.items():
        for state in _STATES:
            times = [visit.milliseconds[state] for visit in visits]
            print(f"{name}: {state:9} {min(times):6.0f} / {statistics.median(times):6.0f} / {max(times):6.0f}")
        print(f"{name}: {visits[-1].num_bytes / 1000:.0f} KB in {visits[-1].num_requests} requests")


def _visit(context: BrowserContext, url: str) -> SlowVisit:
    page = context.new_page()
    page.add_init_script(_WATCH)
    session = context.new_cdp_session(page)
    num_bytes, num_requests = 0, 0

    def count(event: dict[str, int]) -> None:
        nonlocal num_bytes, num_requests
        num_bytes, num_requests = num_bytes + event["encodedDataLength"], num_requests + 1

    session.on("Network.loadingFinished", count)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", _LINE)
    session.send("Emulation.setCPUThrottlingRate", {"rate": _THROTTLE})
    page.goto(f"{url}/shop", wait_until="commit")
    page.wait_for_function("(states) => states.every((one) => one in window.at)", arg=list(_STATES), timeout=120_000)
    visit = SlowVisit(page.evaluate("window.at"), num_bytes, num_requests)
    page.close()
    return visit


@contextmanager
def _server() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="tis-bench-") as folder:
        variables = {"PORT": str(port), "MODEL_REPO_ID": "echo", "LOG_LEVEL": "warning", "MARKETPLACE_AUTH": "open"}
        variables |= {"DATABASE_URL": f"sqlite:///{folder}/market.db", "ASSISTANT_MODEL": "off"}
        environment = {**os.environ, **variables}
        subprocess.run(
            [sys.executable, "seed_data.py"], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL
        )
        process = subprocess.Popen([sys.executable, "main.py"], cwd=ROOT, env=environment)
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _wait_until_ready(url: str) -> None:
    while True:
        try:
            with urllib.request.urlopen(f"{url}/api/categories", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)


if __name__ == "__main__":
    main()
