"""Downloads a model from a hub on this machine."""

import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.engine.conftest import DEMO
from tests.engine.models.hub import REPO, hub_with
from tests.openai_api.test_chat import CHAT, said
from tests.serving import REPOSITORY, bare_environment, server_process, wait_until_live

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.long]


def test_a_model_is_downloaded_without_files_that_can_run_code(tmp_path: Path) -> None:
    code = {"modeling_evil.py": b"raise SystemExit", "pytorch_model.bin": b"x"}
    with (
        hub_with(Path(DEMO), extra=code) as hub,
        server_process(MODEL_REPO_ID=REPO, HF_ENDPOINT=hub, HF_HOME=str(tmp_path)) as server,
    ):
        wait_until_live(server.url)
        answer = httpx2.post(server.url + CHAT, json=said("Halo"), timeout=60).json()
        assert answer["model"] == REPO and answer["choices"][0]["message"]["content"]
        loaded = httpx2.get(f"{server.url}/v1/models").json()
        assert loaded["data"][0]["max_model_len"] == 32768
    with server_process(MODEL_REPO_ID=REPO, HF_ENDPOINT="http://127.0.0.1:9", HF_HOME=str(tmp_path)) as server:
        wait_until_live(server.url)
        [model] = httpx2.get(f"{server.url}/v1/models").json()["data"]
        assert model == {**loaded["data"][0], "status": "unloaded"}  # from the cache of downloads
    names = {path.name for path in tmp_path.rglob("*")}
    assert "model.safetensors" in names and not names & set(code)


def test_the_log_says_what_to_do_when_the_hub_is_unreachable(tmp_path: Path) -> None:
    with server_process(MODEL_REPO_ID=REPO, HF_ENDPOINT="http://127.0.0.1:9", HF_HOME=str(tmp_path)) as server:
        wait_until_live(server.url)
        response = httpx2.post(server.url + CHAT, json=said("Halo"), timeout=60)
        assert (response.status_code, response.json()["error"]["code"]) == (503, "model_load_failed")
        assert httpx2.get(f"{server.url}/health").status_code == 503
        server.popen.terminate()
        assert server.popen.stdout
        [line] = [line for line in server.popen.stdout if "could not be loaded" in line]
        assert "cannot be reached" in line and "MODEL_REPO_ID" in line


def test_a_download_reports_its_progress(tmp_path: Path) -> None:
    probe = (
        "from tis.engine.models.loading import LoadOptions, load_model\n"
        f"load_model({REPO!r}, LoadOptions(), lambda stage, share: print(f'{{stage}} {{share}}\\n', end=''))"
    )
    with hub_with(Path(DEMO), extra={}) as hub:
        variables = {**bare_environment(), "HF_ENDPOINT": hub, "HF_HOME": str(tmp_path)}
        process = subprocess.run(
            [sys.executable, "-c", probe], cwd=REPOSITORY, env=variables, capture_output=True, text=True, timeout=120
        )
    shares = [float(line.split()[1]) for line in process.stdout.splitlines() if line.startswith("downloading ")]
    # Files come several at a time, and each is only counted in once it has begun.
    assert len(shares) > 2 and all(0 < share <= 1 for share in shares) and 1 in shares, process.stderr
