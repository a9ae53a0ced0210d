"""Loading and unloading over HTTP: who may, what is streamed, and what `transformers chat` makes of it."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.serving import Served, served, settings_with
from tests.test_status import Gate, until

post = partial(httpx2.post, timeout=60)
ADMIN = {"Authorization": "Bearer root"}
KEY = {"Authorization": "Bearer sesame"}


def events_of(text: str) -> list[dict[str, Any]]:
    assert all(line.startswith("data: ") for line in text.splitlines()[::2])
    return [json.loads(line[6:]) for line in text.splitlines()[::2]]


def load(server: Served, model: str = "echo", **options: Any) -> httpx2.Response:
    return post(f"{server.url}/load_model", json={"model": model}, **options)


def unload(server: Served, model: str = "echo", **options: Any) -> httpx2.Response:
    return post(f"{server.url}/v1/models/{model}/unload", **options)


def status_of(server: Served, model: str = "echo") -> str:
    return str(httpx2.get(f"{server.url}/v1/models/{model}").json()["status"])


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Served]:
    path = tmp_path / "models.yaml"
    path.write_text(
        "models:\n  team/a: {repo: 'echo?tokens_per_second=20', memory_mb: 60, aliases: [fast]}\n"
        "  b: {repo: echo, memory_mb: 60, revision: v2}\n"
    )
    settings = settings_with(
        model_repo_id="team/a",
        models="b",
        model_config_path=str(path),
        model_memory_mb=100,
        cancel_after_disconnect_seconds=0,
    )
    with served(settings) as server:
        yield server


def test_a_model_is_loaded_and_unloaded(two: Served) -> None:
    assert status_of(two, "team/a") == "unloaded"
    loaded = load(two, "fast")
    assert loaded.headers["content-type"].startswith("text/event-stream")
    *loading, ready = events_of(loaded.text)
    assert loading[0] == {"status": "loading", "model": "team/a@main", "stage": "processor"}
    assert ready == {"status": "ready", "model": "team/a@main", "cached": False}
    assert events_of(load(two, "team/a@main").text) == [{**ready, "cached": True}]
    assert status_of(two, "team/a") == "loaded"
    assert unload(two, "team/a").json() == {"id": "team/a", "object": "model", "status": "unloaded"}
    assert unload(two, "fast").json()["status"] == status_of(two, "team/a") == "unloaded"
    assert events_of(load(two, "b@v2").text)[-1]["model"] == "b@v2"


def test_a_model_in_use_is_a_409_and_its_answer_is_whole(two: Served) -> None:
    answers: list[httpx2.Response] = []
    body = said("a slow answer", model="team/a")
    asking = threading.Thread(target=lambda: answers.append(post(two.url + CHAT, json=body)))
    asking.start()
    until(lambda: httpx2.get(f"{two.url}/health").json()["models"][0]["state"] == "ready")
    refused = unload(two, "team/a")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "model_in_use")
    full = post(two.url + CHAT, json=said("x", model="b"))
    assert (full.status_code, full.json()["error"]["code"]) == (503, "model_memory_full")
    assert full.headers["retry-after"] == "10" and "In use: team/a (60 MiB)" in full.json()["error"]["message"]
    assert events_of(load(two, "b").text)[-1]["status"] == "error"
    assert httpx2.get(f"{two.url}/health").status_code == 200
    asking.join()
    assert answers[0].json()["choices"][0]["message"]["content"] == "a slow answer"
    assert post(two.url + CHAT, json=said("x", model="b")).status_code == 200


def test_readers_of_a_load_see_its_progress_and_its_failure() -> None:
    gate = Gate()
    with served(settings_with(), load=gate.load) as server:
        texts: list[str] = []
        readers = [threading.Thread(target=lambda: texts.append(load(server).text)) for _ in range(2)]
        for reader in readers:
            reader.start()
        until(lambda: gate.loads == 1)
        assert unload(server).status_code == 409
        gate.failure = RuntimeError("no /srv/secret")
        gate.open.set()
        for reader in readers:
            reader.join()
    for text in texts:
        *loading, error = events_of(text)
        assert "download" in [event["stage"] for event in loading] and error["status"] == "error"
        assert "could not be loaded" in error["message"] and "secret" not in error["message"]


def test_unknown_and_missing_models_are_errors_of_the_api(two: Served) -> None:
    answers = [load(two, "gpt-9"), unload(two, "gpt-9"), post(f"{two.url}/load_model", json={})]
    assert [answer.status_code for answer in answers] == [404, 404, 400]
    assert [answer.json()["error"]["code"] for answer in answers[:2]] == ["model_not_found"] * 2
    assert answers[2].json()["error"]["param"] == "model"


def test_a_server_with_an_admin_key_obeys_its_holder_alone() -> None:
    with served(settings_with(admin_key="root")) as server:
        assert post(server.url + CHAT, json=said("Halo")).status_code == 200
        for headers in ({}, KEY, {"x-api-key": "rooT"}):
            for answer in (load(server, headers=headers), unload(server, headers=headers)):
                assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
        assert status_of(server) == "loaded"
        assert unload(server, headers=ADMIN).status_code == 200
        assert load(server, headers=ADMIN).status_code == 200


def test_the_admin_key_opens_what_api_keys_open_and_they_do_not_open_what_it_opens() -> None:
    with served(settings_with(admin_key="root", api_keys="sesame")) as server:
        assert [unload(server, headers=headers).status_code for headers in ({}, KEY, ADMIN)] == [401, 403, 200]
        assert [load(server, headers=headers).status_code for headers in ({}, KEY, ADMIN)] == [401, 403, 200]
        for headers in (KEY, ADMIN):
            assert post(server.url + CHAT, json=said("Halo"), headers=headers).status_code == 200
    with served(settings_with(api_keys="sesame")) as server:
        assert [unload(server, headers=headers).status_code for headers in ({}, KEY)] == [401, 200]


def test_without_an_admin_key_only_programs_and_pages_of_this_computer_may(http: httpx2.Client) -> None:
    pages = {"http://localhost:5173": 200, "https://evil.example": 403, "null": 403}
    for origin, status in pages.items():
        answer = http.post("/v1/models/echo/unload", headers={"Origin": origin})
        assert answer.status_code == status, origin
    # uvicorn believes a proxy on this computer, which names a client elsewhere.
    far = http.post("/v1/models/echo/unload", headers={"X-Forwarded-For": "203.0.113.7"})
    assert (far.status_code, far.json()["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize("name", ["X-Forwarded-For", "X-Real-IP", "Forwarded", "Via"])
def test_what_a_proxy_on_this_computer_passes_on_is_of_nobody_on_this_computer(http: httpx2.Client, name: str) -> None:
    """A proxy may pass on a client's own X-Forwarded-For, or name the client in a header that uvicorn does not read."""
    forged = http.post("/v1/models/echo/unload", headers={name: "127.0.0.1"})
    assert (forged.status_code, forged.json()["error"]["code"]) == (403, "forbidden")


@pytest.mark.slow
@pytest.mark.long
def test_transformers_chat_loads_the_model_and_talks_with_it(tmp_path: Path) -> None:
    """With a flag of its user, which it sends in `generation_config`; it asks whether a cut answer should go on."""
    with served(settings_with(model_repo_id="echo?load_seconds=0.2", served_model_name="echo")) as server:
        chat = Path(sys.executable).with_name("transformers")
        done = subprocess.run(
            [str(chat), "chat", "echo", server.url, "max_new_tokens=12", "--user", "somebody"],
            input="Selamat pagi, semua\nn\nHalo\n!exit\n",
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "COLUMNS": "200"},
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert "echo is warm." in done.stdout
        first, second = done.stdout.split("<echo>:")[1:]
        assert "Selamat pagi" in first and "semua" not in first and "after reaching the token limit" in first
        assert "Halo" in second
        assert status_of(server) == "loaded"


def test_settings_of_generate_are_followed_where_the_request_says_nothing(http: httpx2.Client) -> None:
    def ask(config: str, **more: Any) -> httpx2.Response:
        return http.post(CHAT, json={**said("Selamat pagi"), "generation_config": config, **more})

    assert (
        ask('{"max_new_tokens": 7, "do_sample": true, "eos_token_id": [1]}').json()["usage"]["completion_tokens"] == 7
    )
    assert ask('{"max_new_tokens": 7}', max_tokens=3).json()["usage"]["completion_tokens"] == 3
    for wrong in ("[", "[]", "7"):
        answer = ask(wrong)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "generation_config")
    assert ask('{"temperature": 9}').status_code == 400
