"""`tis top` shows what a server does."""

import json
import threading
from pathlib import Path

import httpx2
import numpy as np
import pytest

from tests.cli.tis_process import tis
from tests.openai_api.test_chat import CHAT, said
from tests.serving import free_port, served, settings_with
from tests.test_status import until
from tis.cli.top import _HEAD, _quantile, _table

pytestmark = [pytest.mark.slow, pytest.mark.long]


def test_a_running_answer_is_seen(tmp_path: Path) -> None:
    with served(settings_with(model_repo_id="echo?tokens_per_second=50", served_model_name="kopi")) as server:
        done = threading.Event()

        def ask() -> None:
            with httpx2.stream("POST", server.url + CHAT, json=said("x" * 3000, stream=True), timeout=60) as stream:
                for _ in stream.iter_bytes():
                    if done.is_set():
                        return

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            running = 'tis_num_requests_running{model_name="kopi"} 1.0'
            until(lambda: running in httpx2.get(f"{server.url}/metrics").text)
            shown = tis("top", server.url, "--once", "--every", "1", folder=tmp_path, COLUMNS="150")
            narrow = tis("top", server.url, "--once", "--every", "1", folder=tmp_path, COLUMNS="80")
            as_json = tis("top", server.url, "--json", "--every", "1", folder=tmp_path)
        finally:
            done.set()
            asking.join()
    assert shown.returncode == 0, shown.stderr
    head, row = shown.stdout.splitlines()[-2:]
    assert head.split()[:4] == ["MODEL", "STATE", "RUN", "WAIT"] and row.split()[:4] == ["kopi", "ready", "1", "0"]
    assert all(len(line) <= 80 for line in narrow.stdout.splitlines()), narrow.stdout
    assert narrow.stdout.splitlines()[-2].split()[-2:] == ["CACHE", "MEMORY"], narrow.stdout
    assert "store lag" in narrow.stdout and "memory " in narrow.stdout
    [model] = json.loads(as_json.stdout)["models"]
    assert (model["model"], model["state"], model["running"]) == ("kopi", "ready", 1)
    assert 5 < model["tokens_per_second"] <= 75
    assert model["first_token_p50_seconds"] > 0


def test_a_narrow_table_keeps_cache_and_memory() -> None:
    row = ["a-model-with-a-name", "ready", "1", "0", "0.0", "12.5", "10 ms", "20 ms", "4 ms", "7%", "1.0 GiB"]
    head, wide = _table([_HEAD, row], 200)
    assert head.split()[4:6] == ["PROMPT/s", "TOKENS/s"] and wide.split()[6:] == "10 ms 20 ms 4 ms 7% 1.0 GiB".split()
    for columns in (99, 80, 60):
        head, narrow = _table([_HEAD, row], columns)
        assert max(len(head), len(narrow)) <= columns
        assert head.endswith("CACHE   MEMORY") and narrow.endswith("7%  1.0 GiB") and "12.5" in narrow


def test_what_is_no_server_of_ours_is_one_line(tmp_path: Path) -> None:
    done = tis("top", f"http://127.0.0.1:{free_port()}", "--once", folder=tmp_path)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "no metrics at" in done.stderr


def test_quantiles_lie_in_the_bucket_of_the_true_ones() -> None:
    values = np.random.default_rng(0).gamma(2, 0.1, 1000)
    bounds = [0.05, 0.1, 0.2, 0.4, 0.8, float("inf")]
    buckets = [(bound, float((values <= bound).sum())) for bound in bounds]
    for share in (0.1, 0.5, 0.9):
        true = float(np.quantile(values, share))
        upper = next(bound for bound in bounds if true <= bound)
        lower = max([0.0, *(bound for bound in bounds if bound < true)])
        assert lower <= _quantile(buckets, share) <= upper
