"""Open WebUI against this server, in an environment of its own: it takes minutes to set up, so `make soak` runs it."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.serving import REPOSITORY, server_process, wait_until_live

pytestmark = [pytest.mark.model, pytest.mark.slow]
_KEY = "sk-clients"


def test_open_webui_works_unmodified(tmp_path: Path) -> None:
    python = REPOSITORY / ".venv-clients" / "openwebui" / "bin" / "python"
    if not python.exists():
        pytest.skip("Open WebUI is not set up: make soak does that")
    serving = server_process(
        MODEL_REPO_ID="models/demo",
        MODELS="demo-embedding",
        API_KEYS=_KEY,
        EAGER_LOAD_MODEL="1",
        LOAD_WAIT_SECONDS="120",
        LOG_LEVEL="warning",
        ANONYMOUS_GRACE_SECONDS="2",  # an answer that is left goes on for so long
    )
    with serving as served:
        wait_until_live(served.url)
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "OPENAI_"))}
        done = subprocess.run(
            [str(python), "-m", "pytest", "-c", "open_webui.ini", "--quiet", "--tb=short", "open_webui.py"],
            cwd=Path(__file__).parent,
            env={**variables, "CLIENTS_URL": served.url, "CLIENTS_API_KEY": _KEY, "HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=1500,
        )
    assert done.returncode == 0, done.stdout
