"""The dashboard and the alerts, with a real Prometheus that scrapes a real server."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from tests.openai_api.test_chat import CHAT, said
from tests.serving import REPOSITORY, Process, free_port, server_process, wait_until_live
from tests.test_status import until

pytestmark = pytest.mark.long

DEPLOY = REPOSITORY / "deploy"
_DASHBOARD = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())
_REQUIRED = os.environ.get("SERVICES") == "required" and os.environ.get("PROMETHEUS") != "none"

without_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") or _REQUIRED), reason="Prometheus is not installed: apt-get install prometheus"
)


def queries() -> list[str]:
    return [target["expr"] for panel in _DASHBOARD["panels"] for target in panel.get("targets", ())]


def metrics_in(query: str) -> set[str]:
    return set(re.findall(r"(?:tis|embedding_cache)_[a-z0-9_]+", query))


@pytest.fixture(scope="module")
def server() -> Iterator[Process]:
    """A process of its own: in that of the tests, the page has the models of all tests."""
    with server_process(API_KEYS="") as running:
        wait_until_live(running.url)
        for number in range(3):
            assert httpx2.post(running.url + CHAT, json=said(f"Halo nomor {number}")).status_code == 200
        yield running


@pytest.fixture(scope="module")
def prometheus(server: Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Scrapes our server a few times a second."""
    folder = tmp_path_factory.mktemp("prometheus")
    shipped = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    [job] = shipped["scrape_configs"]
    job["static_configs"] = [{"targets": [server.url.removeprefix("http://")]}]
    shipped["global"] = {"scrape_interval": "300ms", "evaluation_interval": "300ms"}
    shutil.copy(DEPLOY / "prometheus" / "alerts.yml", folder)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(shipped))
    port = free_port()
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    with subprocess.Popen(command) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            until(lambda: has_scraped(url))
            # A rate needs a step: of what happened before the first scrape, it knows nothing.
            for number in range(3):
                assert httpx2.post(server.url + CHAT, json=said(f"Salam nomor {number}")).status_code == 200
            until(lambda: bool(ask(url, "sum(rate(tis_request_success_total[5s])) > 0")))
            yield url
        finally:
            process.kill()


def has_scraped(url: str) -> bool:
    try:
        is_ready = httpx2.get(f"{url}/-/ready").status_code == 200
    except httpx2.HTTPError:
        return False
    return is_ready and bool(ask(url, "tis_model_state"))


def ask(url: str, query: str) -> list[Any]:
    answer = httpx2.get(f"{url}/api/v1/query", params={"query": query}).json()
    assert answer["status"] == "success", (query, answer)
    result: list[Any] = answer["data"]["result"]
    return result


@without_prometheus
def test_every_query_of_the_dashboard_has_an_answer(server: Process, prometheus: str) -> None:
    page = httpx2.get(f"{server.url}/metrics").text
    sampled = set(re.findall(r"^([a-z0-9_]+)[{ ]", page, re.MULTILINE))
    asked = [query.replace("$__rate_interval", "10s").replace("$model_name", ".*") for query in queries()]
    answers = {query: ask(prometheus, query.replace("$instance", ".*")) for query in asked}
    # What has not happened yet, such as a refused card, has no series; everything else must show something.
    empty = [query for query, answer in answers.items() if not answer and metrics_in(query) <= sampled]
    assert not empty
    assert sum(bool(answer) for answer in answers.values()) > 40


def test_every_metric_of_the_dashboard_and_the_alerts_is_one_of_ours(server: Process) -> None:
    page = httpx2.get(f"{server.url}/metrics").text
    known = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE):
        known |= {name, *(f"{name}_{end}" for end in ("bucket", "sum", "count"))} if kind == "histogram" else {name}
    alerts = (DEPLOY / "prometheus" / "alerts.yml").read_text()
    used = metrics_in(alerts).union(*map(metrics_in, queries()))
    assert len(used) > 40 and used <= known


def test_the_dashboard_has_what_grafana_needs() -> None:
    ids = [panel["id"] for panel in _DASHBOARD["panels"]]
    assert len(ids) == len(set(ids)) and _DASHBOARD["schemaVersion"] >= 39
    variables = {one["name"] for one in _DASHBOARD["templating"]["list"]}
    text = json.dumps(_DASHBOARD["panels"])
    assert set(re.findall(r"\$\{?([A-Za-z_]+)", text)) == variables | {"__rate_interval"}


@without_prometheus
@pytest.mark.parametrize(
    "check",
    [
        ("check", "rules", DEPLOY / "prometheus" / "alerts.yml"),
        ("check", "config", DEPLOY / "prometheus" / "prometheus.yml"),
        ("test", "rules", Path(__file__).with_name("alerts_test.yml")),
        ("check", "metrics"),
    ],
    ids=lambda check: f"{check[0]} {check[1]}",
)
def test_promtool_accepts(server: Process, check: tuple[object, ...]) -> None:
    page = httpx2.get(f"{server.url}/metrics").text
    done = subprocess.run(["promtool", *map(str, check)], input=page, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr


@without_prometheus
def test_the_rules_are_loaded_and_a_quiet_server_raises_no_alert(prometheus: str) -> None:
    groups = httpx2.get(f"{prometheus}/api/v1/rules").json()["data"]["groups"]
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert len(rules) == 11
    until(lambda: not ask(prometheus, 'ALERTS{alertstate="firing"}'))
