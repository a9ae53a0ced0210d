"""The packages that people point at this server, unmodified, each in an environment of its own: `make test-clients`.

What they are asked is in `python/` and `node/`, in files that pytest does not find from here.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import REPOSITORY

pytestmark = pytest.mark.model
HERE = Path(__file__).parent
OURS = "ours"
PYTHON = (
    (OURS, "openai_chat.py"),
    (OURS, "openai_responses.py"),
    (OURS, "huggingface.py"),
    ("openai1", "openai_chat.py"),
    ("openai1", "openai_responses.py"),
    ("instructor", "structured_instructor.py"),
    ("frameworks", "langchain_chat.py"),
    ("frameworks", "pydantic_ai_agents.py"),
    ("frameworks", "openai_agents.py"),
    ("ollama", "ollama_client.py"),
    ("ollama", "langchain_with_ollama.py"),
    ("anthropic", "anthropic_messages.py"),
    ("anthropic", "anthropic_readme.py"),
    ("anthropic-frameworks", "langchain_anthropic_chat.py"),
    ("anthropic-frameworks", "litellm_anthropic.py"),
    ("litellm-proxy", "litellm_proxy.py"),
)
NODE = ("openai_chat", "openai_responses", "ai_sdk", "eventsource")


@pytest.mark.parametrize(("environment", "file"), PYTHON)
def test_python_clients_work_unmodified(environment: str, file: str, servers: dict[str, str]) -> None:
    python = REPOSITORY / ".venv-clients" / environment / "bin" / "python"
    if environment == OURS:
        python = Path(sys.executable)
    elif not python.exists():
        pytest.skip(f"{environment} is not set up: make setup-clients")
    run(servers, str(python), "-W", "default", "-m", "pytest", "--quiet", "--tb=short", file, where=HERE / "python")


@pytest.mark.parametrize("name", NODE)
def test_node_clients_work_unmodified(name: str, servers: dict[str, str]) -> None:
    node = shutil.which("node")
    if not (node and (HERE / "node" / "node_modules").exists()):
        pytest.skip("the packages of Node are not set up: make setup-clients, with npm")
    run(servers, node, "--test", f"{name}.test.mjs", where=HERE / "node")


def run(servers: dict[str, str], *command: str, where: Path) -> None:
    """One suite; what it said is the message if it fails."""
    own = ("PYTEST_", "OPENAI_", "ANTHROPIC_")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    done = subprocess.run(
        command,
        cwd=where,
        env={**variables, **servers},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=170,  # below the limit at which pytest itself would give up
    )
    assert done.returncode == 0, done.stdout
