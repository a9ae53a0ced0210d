"""Servers whose models come and go: what happens to memory, to cached prefixes and to recorded streams."""

import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.tis_process import tis
from tests.engine.conftest import DEMO
from tests.engine.models.sized_models import NUM_BYTES, build_model
from tests.openai_api.test_chat import CHAT, said
from tests.serving import free_port, server_process, wait_until_live
from tests.test_status import until

pytestmark = [pytest.mark.slow, pytest.mark.long]

LONG = "Tell me of keyboards. " * 20


def state_of(url: str, number: int = 0) -> str:
    return str(httpx2.get(f"{url}/health").json()["models"][number]["state"])


def resident_bytes(url: str) -> float:
    found = re.search(r"^tis_resident_memory_bytes (\S+)", httpx2.get(f"{url}/metrics").text, re.MULTILINE)
    assert found
    return float(found[1])


def asked(url: str, text: str = LONG, **more: Any) -> Any:
    answer = httpx2.post(url + CHAT, json=said(text, **more), timeout=300)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.model
def test_memory_falls_and_cached_prefixes_are_gone_after_each_unload(tmp_path: Path) -> None:
    model = str(build_model(tmp_path / "sized"))
    variables = {"MODEL_IDLE_SECONDS": "2", "LOAD_WAIT_SECONDS": "300", "OMP_NUM_THREADS": "1"}
    with server_process(MODEL_REPO_ID=model, **variables) as server:
        wait_until_live(server.url, 60)
        httpx2.get(f"{server.url}/api/products", timeout=60)  # the marketplace, which is imported after the start
        unloaded = []
        for _ in range(3):
            cached = [asked(server.url, max_tokens=2)["usage"]["prompt_tokens_details"] for _ in range(2)]
            assert cached[0]["cached_tokens"] == 0 < cached[1]["cached_tokens"]
            loaded = resident_bytes(server.url)
            until(lambda: state_of(server.url) == "unloaded")
            unloaded.append(resident_bytes(server.url))
            assert loaded - unloaded[-1] > 0.9 * NUM_BYTES
        assert max(unloaded) - min(unloaded) < 0.5 * NUM_BYTES  # on a busy machine the allocator keeps a third


def test_a_recorded_stream_is_read_after_the_unload_without_a_load(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text("models: {a: {repo: echo, memory_mb: 60}, b: {repo: echo, memory_mb: 60}}")
    variables = {"MODEL_CONFIG": str(tmp_path / "models.yaml"), "MODELS": "a,b", "MODEL_MEMORY_MB": "100"}
    with server_process(MODEL_REPO_ID="", **variables) as server:
        wait_until_live(server.url, 60)
        streamed = httpx2.post(server.url + CHAT, json=said("Halo", model="a", stream=True, session_id="story")).text
        assert asked(server.url, "Halo", model="b")["model"] == "b"
        assert (state_of(server.url, 0), state_of(server.url, 1)) == ("unloaded", "ready")
        assert httpx2.get(f"{server.url}/v1/stream/story").text == streamed
        assert state_of(server.url, 0) == "unloaded"


def test_an_interrupted_stream_goes_on_by_a_load_that_takes_the_place_of_another_model(tmp_path: Path) -> None:
    text = "an answer that is killed in the middle"
    (tmp_path / "models.yaml").write_text(
        "models: {a: {repo: 'echo?tokens_per_second=20', memory_mb: 60}, b: {repo: echo, memory_mb: 60}}"
    )
    variables = {
        "MODEL_CONFIG": str(tmp_path / "models.yaml"),
        "MODELS": "a,b",
        "MODEL_REPO_ID": "",
        "MODEL_MEMORY_MB": "100",
        "PERSIST_SESSIONS": "1",
        "SESSIONS_DB_PATH": str(tmp_path / "sessions.db"),
        "PORT": str(free_port()),
    }
    with server_process(**variables) as server:
        wait_until_live(server.url, 60)
        body = said(text, model="a", stream=True, session_id="story")
        with httpx2.stream("POST", server.url + CHAT, json=body) as stream:
            seen = [line for line, _ in zip(stream.iter_lines(), range(20), strict=False)]
        server.popen.send_signal(signal.SIGKILL)
        server.popen.wait()
    with server_process(**variables) as server:
        wait_until_live(server.url, 60)
        again = httpx2.get(f"{server.url}/v1/stream/story", timeout=60).text
        assert again.startswith("\n".join(seen))
        assert "".join(re.findall(r'"content":\s?"([^"]*)"', again)) == text
        assert asked(server.url, "Halo", model="b")["model"] == "b"
        assert (state_of(server.url, 0), state_of(server.url, 1)) == ("unloaded", "ready")


def test_a_model_that_can_never_fit_ends_the_start_before_its_weights_are_read(tmp_path: Path) -> None:
    """They could not be read: the file is empty, but for its size."""
    model = tmp_path / "huge"
    shutil.copytree(DEMO, model)
    os.truncate(model / "model.safetensors", 0)
    os.truncate(model / "model.safetensors", 300 * 2**20)
    ended = tis("serve", str(model), folder=tmp_path, MODEL_MEMORY_MB="200", PORT=str(free_port()))
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    [line] = [line for line in ended.stderr.splitlines() if line.startswith("Cannot start:")]
    assert "huge needs 300 MiB of memory, and models may have 200 MiB" in line
    (tmp_path / "models.yaml").write_text("models: {a: {repo: echo, memory_mb: 300}}")
    ended = tis("serve", folder=tmp_path, MODEL_CONFIG="models.yaml", MODELS="a", MODEL_MEMORY_MB="200")
    assert ended.stderr.splitlines()[-1] == (
        "Cannot start: a may take 300 MiB (memory_mb), and MODEL_MEMORY_MB is 200."
    )
