"""`python main.py` and `uvicorn main:app`, as processes."""

import json
import signal
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.serving import REPOSITORY, bare_environment, free_port, server_process, wait_until_live
from tests.test_status import until

pytestmark = [pytest.mark.slow, pytest.mark.long]


def run_python(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env={**bare_environment(), **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_importing_the_app_does_not_import_slow_libraries() -> None:
    late = {"torch", "transformers", "numpy", "openai", "mcp", "httpx2", "cv2", "onnxruntime", "rapidocr", "rapidfuzz"}
    late |= {"sqlalchemy", "alembic", "tis.database.database", "tis.marketplace.tables"}
    probe = f"import sys, main, tis.app; print(sorted({late} & set(sys.modules)))"
    assert run_python("-c", probe).stdout.strip() == "[]"


def test_importing_the_app_starts_no_thread() -> None:
    probe = "import threading, tis.app; print(threading.active_count())"
    assert run_python("-c", probe).stdout.strip() == "1"


@pytest.mark.parametrize(
    "variables",
    [
        {"PORT": "0"},
        {"MARKETPLACE_AUTH": "open", "HOST": "0.0.0.0"},
        {"MODELS": "nobody"},
        {"MODEL_CONFIG": "LICENSE"},
        *({"DATABASE_URL": url} for url in ("sqlite+nobody:///x", "nothing", "sqlite://host/x", "postgresql://x:y/z")),
    ],
)
def test_a_bad_setting_stops_the_start_with_one_line(variables: dict[str, str]) -> None:
    ended = run_python("main.py", MODEL_REPO_ID="echo", **variables)
    assert ended.returncode == 1
    assert ended.stderr.startswith("Cannot start: ") and ended.stderr.count("\n") == 1


def test_it_listens_on_its_port_and_ends_on_sigterm() -> None:
    with server_process() as process:
        wait_until_live(process.url)
        process.popen.send_signal(signal.SIGTERM)
        assert process.popen.wait(timeout=10) == 0


def test_uvicorn_serves_the_same_app() -> None:
    port = str(free_port())
    with server_process(sys.executable, "-m", "uvicorn", "main:app", "--port", port, PORT=port) as process:
        wait_until_live(process.url)
        with urllib.request.urlopen(f"{process.url}/v1/models", timeout=5) as answer:
            assert b'"echo"' in answer.read()
        process.popen.send_signal(signal.SIGTERM)
        assert "no limits of headers" in process.popen.communicate(timeout=10)[0]


def test_a_draining_server_refuses_new_requests_and_finishes_running_ones() -> None:
    with server_process(MODEL_REPO_ID="echo?tokens_per_second=20", DRAIN_SECONDS="5") as process:
        wait_until_live(process.url)
        body = b'{"messages":[{"role":"user","content":"a slow answer"}],"stream":true}'
        request = urllib.request.Request(
            f"{process.url}/v1/chat/completions", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as stream:
            stream.readline()
            process.popen.send_signal(signal.SIGTERM)
            until(lambda: httpx2.get(f"{process.url}/ready").status_code == 503)
            refused = httpx2.post(f"{process.url}/v1/chat/completions", json=json.loads(body))
            rest = stream.read()
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "server_shutting_down")
        assert rest.rstrip().endswith(b"data: [DONE]")
        assert process.popen.wait(timeout=10) == 0


def test_answers_that_take_longer_than_the_drain_end_with_their_own_error_code() -> None:
    with server_process(MODEL_REPO_ID="echo?tokens_per_second=2", DRAIN_SECONDS="0.5") as process:
        wait_until_live(process.url)
        url, body = f"{process.url}/v1/chat/completions", {"messages": [{"role": "user", "content": "very slow" * 9}]}
        with ThreadPoolExecutor() as pool:
            stream = pool.submit(httpx2.post, url, json={**body, "stream": True}, timeout=20)
            whole = pool.submit(httpx2.post, url, json=body, timeout=20)
            until(lambda: httpx2.get(f"{process.url}/health").json()["modelReady"])
            process.popen.send_signal(signal.SIGTERM)
        assert '"code":"server_shutting_down"' in stream.result().text and "[DONE]" not in stream.result().text
        assert (whole.result().status_code, whole.result().json()["error"]["code"]) == (503, "server_shutting_down")
        assert process.popen.wait(timeout=10) == 0
