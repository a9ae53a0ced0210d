"""Open WebUI as people install it, with a connection to the server as OpenAI's and one as Ollama's: a user signs up,
lists models, chats, stops, calls a tool, shows a picture, asks a file.
"""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import sync_playwright

# The model by its connection, with what asks there for the likeliest tokens.
MODELS: dict[str, dict[str, Any]] = {"demo": {"temperature": 0}, "ollama.demo:latest": {"options": {"temperature": 0}}}
_START_SECONDS = 600  # it imports for a minute, for several on a busy machine, and makes its tables
_PICTURE = base64.b64encode(Path(__file__).with_name("square.png").read_bytes()).decode()


@pytest.fixture(scope="session")
def url() -> str:
    return os.environ["CLIENTS_URL"]


@pytest.fixture(scope="session")
def api_key() -> str:
    return os.environ["CLIENTS_API_KEY"]


@pytest.fixture(scope="session")
def webui(tmp_path_factory: pytest.TempPathFactory, url: str, api_key: str) -> Iterator[str]:
    """Its server, offline: it has this server for chats and for the vectors of files, and nothing else."""
    folder = tmp_path_factory.mktemp("open-webui")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base_url = f"{url}/v1"
    settings = {
        "DATA_DIR": str(folder),
        "WEBUI_SECRET_KEY": "a-secret-of-this-test",
        "OFFLINE_MODE": "True",
        "HF_HUB_OFFLINE": "1",
        "ENABLE_VERSION_UPDATE_CHECK": "False",
        "ENABLE_OLLAMA_API": "True",
        "OLLAMA_BASE_URL": url,
        "OLLAMA_API_CONFIGS": json.dumps({"0": {"enable": True, "key": api_key, "prefix_id": "ollama"}}),
        "OPENAI_API_BASE_URL": base_url,
        "OPENAI_API_KEY": api_key,
        "RAG_EMBEDDING_ENGINE": "openai",
        "RAG_EMBEDDING_MODEL": "demo-embedding",
        "RAG_OPENAI_API_BASE_URL": base_url,
        "RAG_OPENAI_API_KEY": api_key,
        "ENABLE_TITLE_GENERATION": "False",
        "ENABLE_TAGS_GENERATION": "False",
        "ENABLE_FOLLOW_UP_GENERATION": "False",
        "ENABLE_RETRIEVAL_QUERY_GENERATION": "False",
        "DO_NOT_TRACK": "true",
        "ANONYMIZED_TELEMETRY": "false",
        "SCARF_NO_ANALYTICS": "true",
    }
    program = Path(sys.executable).with_name("open-webui")
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        [str(program), "serve", "--host", "127.0.0.1", "--port", str(port)],
        env={**os.environ, **settings},
        cwd=folder,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_up(url, process, folder / "log")
        yield url
    finally:
        process.terminate()
        process.wait(30)


def wait_until_up(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()[-5000:]
        try:
            if httpx2.get(f"{url}/health", timeout=2).is_success:
                return
        except httpx2.TransportError:
            pass
        time.sleep(0.5)
    pytest.fail(log.read_text()[-5000:])


@pytest.fixture(scope="session")
def user(webui: str) -> Iterator[httpx2.Client]:
    """The first one who signs up, an admin."""
    account = {"name": "Ada", "email": "ada@example.com", "password": "a-long-password-1"}
    token = httpx2.post(f"{webui}/api/v1/auths/signup", json=account, timeout=60).raise_for_status().json()["token"]
    with httpx2.Client(base_url=webui, headers={"Authorization": f"Bearer {token}"}, timeout=120) as http:
        yield http


def asked(user: httpx2.Client, model: str, content: Any, **more: Any) -> dict[str, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": content}], "stream": False, **MODELS[model]}
    return dict(user.post("/api/chat/completions", json=body | more).raise_for_status().json())


def streamed(user: httpx2.Client, model: str, content: Any) -> list[dict[str, Any]]:
    body = {"model": model, "messages": [{"role": "user", "content": content}], "stream": True, **MODELS[model]}
    with user.stream("POST", "/api/chat/completions", json=body) as answer:
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_it_lists_the_models_of_both_connections(user: httpx2.Client) -> None:
    models = {one["id"]: one["owned_by"] for one in user.get("/api/models").raise_for_status().json()["data"]}
    assert set(MODELS) <= set(models)
    assert models["ollama.demo:latest"] == "ollama" != models["demo"]


def test_it_knows_what_runs_and_its_version(user: httpx2.Client) -> None:
    assert "demo" in json.dumps(user.get("/ollama/api/ps").raise_for_status().json())
    assert user.get("/ollama/api/version").raise_for_status().json()["version"]


@pytest.mark.parametrize("model", MODELS)
def test_it_chats(user: httpx2.Client, model: str) -> None:
    whole = asked(user, model, "Hello! How are you?")
    text = whole["choices"][0]["message"]["content"]
    chunks = streamed(user, model, "Hello! How are you?")
    pieces = [chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk.get("choices")]
    assert text and len(pieces) > 3 and "".join(pieces) == text


@pytest.mark.parametrize("model", MODELS)
def test_an_answer_that_is_left_is_stopped(user: httpx2.Client, url: str, api_key: str, model: str) -> None:
    numbers = {"type": "array", "items": {"type": "integer"}, "minItems": 5000}
    form = {"type": "json_schema", "json_schema": {"name": "numbers", "schema": numbers}}
    body = {"model": model, "messages": [{"role": "user", "content": "Count."}], "stream": True, "max_tokens": 20_000}
    with user.stream("POST", "/api/chat/completions", json={**body, "response_format": form}) as answer:
        next(answer.iter_lines())
        assert number_of_running(url, api_key) == 1
    deadline = time.monotonic() + 30
    while running := number_of_running(url, api_key):
        assert time.monotonic() < deadline, running
        time.sleep(0.2)


def number_of_running(url: str, api_key: str) -> float:
    metrics = httpx2.get(f"{url}/metrics", headers={"Authorization": f"Bearer {api_key}"}).raise_for_status().text
    return sum(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith("tis_num_requests_running"))


@pytest.mark.parametrize("model", MODELS)
def test_the_model_calls_a_tool(user: httpx2.Client, model: str) -> None:
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "get_weather", "description": "Get the weather in a city", "parameters": city}
    tools = [{"type": "function", "function": function}]
    answer = asked(user, model, "Bagaimana cuaca di Bandung?", tools=tools)["choices"][0]
    [call] = answer["message"]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("get_weather", {"city": "Bandung"})


@pytest.mark.parametrize("model", MODELS)
def test_it_shows_a_picture(user: httpx2.Client, model: str) -> None:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PICTURE}"}}
    seen = asked(user, model, [{"type": "text", "text": "What colour is this picture?"}, picture])
    assert "red" in seen["choices"][0]["message"]["content"].lower()


def test_it_makes_vectors_by_the_connection_of_ollama(user: httpx2.Client) -> None:
    body = {"model": "ollama.demo-embedding:latest", "input": ["kopi susu", "coffee"]}
    made = user.post("/ollama/api/embed", json=body).raise_for_status().json()
    assert [len(one) for one in made["embeddings"]] == [128, 128]


def test_it_asks_a_file_whose_vectors_this_server_makes(user: httpx2.Client) -> None:
    text = "\n\n".join(
        ["Kipas angin meja berputar tiga kecepatan.", "A mug warmer keeps coffee hot on a desk.", "Kulkas dua pintu."]
    )
    sent = user.post(
        "/api/v1/files/?process_in_background=false", files={"file": ("goods.txt", text.encode(), "text/plain")}
    )
    file = sent.raise_for_status().json()
    assert file["id"]
    knowledge = user.post("/api/v1/knowledge/create", json={"name": "Goods", "description": "what we sell"})
    identity = knowledge.raise_for_status().json()["id"]
    user.post(f"/api/v1/knowledge/{identity}/file/add", json={"file_id": file["id"]}).raise_for_status()
    found = user.post(
        "/api/v1/retrieval/query/collection", json={"collection_names": [identity], "query": "hot coffee", "k": 1}
    )
    assert "mug warmer" in json.dumps(found.raise_for_status().json())
    answer = asked(user, "demo", "What keeps coffee hot?", files=[{"type": "collection", "id": identity}])
    assert answer["choices"][0]["message"]["content"]


def test_a_person_chats_in_a_browser(webui: str, user: httpx2.Client) -> None:
    """With the model of each connection."""
    token = user.headers["authorization"].removeprefix("Bearer ")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(webui, wait_until="domcontentloaded")
        page.evaluate("token => localStorage.setItem('token', token)", token)
        page.goto(webui, wait_until="domcontentloaded")
        page.get_by_text("Okay, Let's Go!").click(timeout=60_000)  # what is new, shown once
        for model in MODELS:
            page.goto(f"{webui}/?models={model}", wait_until="domcontentloaded")
            page.locator("#chat-input").click(timeout=60_000)
            page.keyboard.type("Hello! How are you?")
            page.keyboard.press("Enter")
            page.wait_for_function(
                "() => [...document.querySelectorAll('.chat-assistant')].some(one => one.innerText.trim().length > 10)",
                timeout=90_000,
            )
        browser.close()
