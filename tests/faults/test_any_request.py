"""Schemathesis makes requests of /openapi.json, of every operation: with a key, with a wrong one, with none.

No answer is a 500; each has a status, a content type and a body that the description names. Schemathesis has an
environment of its own: `make setup-clients`.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.faults.forms import SOAK, short_or_long
from tests.faults.mortal_server import MortalServer, durable, running
from tests.http.keys import entry, write_key_file
from tests.serving import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

KEY = "sk-of-schemathesis-4711"
_PROGRAM = REPOSITORY / ".venv-clients" / "schemathesis" / "bin" / "schemathesis"
_FOLDER = REPOSITORY / "tests" / "faults" / "any_request"
_CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
_MAX_EXAMPLES = short_or_long(2, 60)
_PHASES = "examples,coverage,fuzzing" if SOAK else "examples,fuzzing"
_MAX_SECONDS = short_or_long(160, 1300)


@asynccontextmanager
async def server_with_keys(folder: Path, **variables: str) -> AsyncIterator[MortalServer]:
    keys = write_key_file(folder / "keys.yaml", entry("schemathesis", KEY, requests_per_minute=10**6))
    given = durable(
        folder,
        API_KEYS_FILE=str(keys),
        DATABASE_URL=f"sqlite:///{folder}/market.db",
        ALLOW_REMOTE_MEDIA="0",
        MAX_TOKENS="64",
        ANONYMOUS_GRACE_SECONDS="0",
    )
    async with running(folder, **given, **variables) as server:
        yield server


def run_schemathesis(server: MortalServer, folder: Path, *arguments: str) -> None:
    if not _PROGRAM.exists():
        pytest.skip("schemathesis is not set up: make setup-clients")
    description = folder / "openapi.json"
    description.write_bytes(_description(server))
    command = [
        str(_PROGRAM),
        "--config-file",
        str(_FOLDER / "schemathesis.toml"),
        "run",
        str(description),
        "--url",
        server.url,
        "--no-color",
        "--warnings",
        "off",
    ]
    command += ["--phases", _PHASES, "--max-examples", str(_MAX_EXAMPLES), "--continue-on-failure", "--no-shrink"]
    # One worker: hypothesis parses sources in each, and CPython 3.11 counts the depth of all threads' parsers as one.
    command += ["--request-timeout", "60", "--workers", "1", "--suppress-health-check", "all", *arguments]
    command += [] if SOAK else ["--seed", "1", "--generation-deterministic"]
    done = subprocess.run(
        command,
        cwd=folder,  # where it leaves its examples
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "stranger_checks",
            "PYTHONPATH": str(_FOLDER),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_MAX_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    assert "Traceback" not in server.log.read_text(), server.log.read_text()[-5000:]


def _description(server: MortalServer) -> bytes:
    with httpx2.Client(base_url=server.url, timeout=60) as http:
        return http.get("/openapi.json", headers={"Authorization": f"Bearer {KEY}"}).raise_for_status().content


async def test_a_stranger_is_refused_in_the_shape_of_the_api(tmp_path: Path) -> None:
    """What schemathesis sends as a key is made up, or left out."""
    async with server_with_keys(tmp_path) as server:
        checks = f"stranger_is_refused,{_CHECKS}"
        asked = ("--exclude-path-regex", "^/(api/|mcp)", "--checks", checks)
        await asyncio.to_thread(run_schemathesis, server, tmp_path, *asked)


async def test_with_a_key_every_answer_is_one_of_the_description(tmp_path: Path) -> None:
    async with server_with_keys(tmp_path) as server:
        asked = ("--exclude-path-regex", "^/(api/|mcp)", "--checks", _CHECKS)
        await asyncio.to_thread(run_schemathesis, server, tmp_path, *asked, "-H", f"Authorization: Bearer {KEY}")


async def test_every_answer_of_the_marketplace_is_one_of_the_description(tmp_path: Path) -> None:
    """Open, so that nothing ends at a token that is not there."""
    async with server_with_keys(tmp_path, MARKETPLACE_AUTH="open") as server:
        # A stream without an end would take a minute of each request.
        paths = ("--include-path-regex", "^/(api/|mcp)", "--exclude-path-regex", "^/api/notices/stream$")
        asked = (*paths, "--checks", _CHECKS)
        without_tokens = ("--generation-with-security-parameters", "false")
        await asyncio.to_thread(run_schemathesis, server, tmp_path, *asked, *without_tokens)
