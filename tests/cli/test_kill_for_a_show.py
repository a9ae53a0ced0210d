"""The button of the demo: a real server is killed in mid-answer, its parent starts it again, and the answer goes on."""

import json
import os
import signal
import subprocess
from pathlib import Path

import httpx2
import pytest

from tests.cli.tis_process import TIS, environment
from tests.serving import free_port, wait_until_live

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"), pytest.mark.long]


def test_the_answer_goes_on_after_the_button_has_killed_the_server(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    # A token is a character. Many seconds are left when the button is pressed: a busy machine answers it late.
    variables = {"PORT": str(port), "PERSIST_SESSIONS": "1", "DEMO": "1", "MODEL_REPO_ID": "echo?tokens_per_second=30"}
    text = " ".join(f"word{number}" for number in range(40))
    body = {"messages": [{"role": "user", "content": text}], "stream": True, "session_id": "show"}
    with (tmp_path / "log").open("w") as log:
        parent = subprocess.Popen([*TIS, "serve"], cwd=tmp_path, env=environment(**variables), stderr=log)
    try:
        wait_until_live(url, 60)
        assert 'class="tis-can-be-killed"' in httpx2.get(url).text
        with httpx2.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=60) as answer:
            seen, is_pressed = b"", False
            try:
                for piece in answer.iter_bytes():
                    seen += piece
                    if not is_pressed and seen.count(b"id: ") >= 10:  # a late reader gets several at once
                        is_pressed = True
                        assert httpx2.post(f"{url}/pages/kill", headers={"origin": url}).status_code == 202
            except httpx2.TransportError:
                pass
        assert b"[DONE]" not in seen and parent.poll() is None
        wait_until_live(url, 60)
        whole = httpx2.get(f"{url}/v1/stream/show", timeout=60).content
        assert whole.endswith(b"[DONE]\n\n") and whole.startswith(seen[: seen.rindex(b"\n\n") + 2])
        chunks = [json.loads(line[6:]) for line in whole.decode().splitlines() if line.startswith("data: {")]
        assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == text
        assert "killed from its chat page" in (tmp_path / "log").read_text()
    finally:
        parent.send_signal(signal.SIGTERM)
        parent.wait(30)
