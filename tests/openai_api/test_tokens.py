"""/tokenize, /detokenize and the count of a chat; what vLLM and llama.cpp say of themselves."""

import base64
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx2
import pytest
import transformers
from PIL import Image

from tests.engine.batching.grammars import make_folder
from tests.serving import REPOSITORY, Served, served, settings_with
from tis import __version__

pytestmark = [pytest.mark.model]

TEXT = "<|im_start|>user\nHalo 你好 😀!"
PATHS = ("/tokenize", "/v1/tokenize")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("models") / "tiny", "Qwen3")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    settings = settings_with(
        model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120, api_keys=["key-of-ada-1234567"]
    )
    with served(settings) as running:
        yield running


@pytest.fixture(scope="module")
def http(server: Served) -> Iterator[httpx2.Client]:
    key = {"Authorization": "Bearer key-of-ada-1234567"}
    with httpx2.Client(base_url=server.url, timeout=120, headers=key) as client:
        yield client


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder)


def test_a_text_has_the_tokens_of_the_library(http: httpx2.Client, tokenizer: Any) -> None:
    ids = tokenizer.encode(TEXT)
    for path in PATHS:
        answer = http.post(path, json={"prompt": TEXT, "return_token_strs": True}).json()
        assert answer == {
            "count": len(ids),
            "max_model_len": 4096,
            "tokens": ids,
            "token_strs": tokenizer.convert_ids_to_tokens(ids),
        }
        assert http.post(path, json={"content": TEXT}).json() == {
            "tokens": tokenizer.encode(TEXT, add_special_tokens=False)
        }
    for path in ("/detokenize", "/v1/detokenize"):
        answer = http.post(path, json={"tokens": ids}).json()
        assert answer["prompt"] == answer["content"] == tokenizer.decode(ids) == TEXT


def test_pieces_are_texts_or_bytes(http: httpx2.Client) -> None:
    found = http.post("/tokenize", json={"content": "Halo 🦜", "with_pieces": True}).json()["tokens"]
    data = b"".join(bytes(one["piece"]) if isinstance(one["piece"], list) else one["piece"].encode() for one in found)
    assert data.decode() == "Halo 🦜"
    assert any(isinstance(one["piece"], list) for one in found)


def test_a_chat_has_the_tokens_of_its_prompt(http: httpx2.Client, tokenizer: Any) -> None:
    messages = [{"role": "user", "content": "Apa kabar?"}]
    tool = {"type": "function", "function": {"name": "cuaca", "parameters": {"type": "object", "properties": {}}}}
    for more in ({}, {"add_generation_prompt": False}, {"tools": [tool]}):
        options = {"add_generation_prompt": True} | more
        expected = tokenizer.apply_chat_template(messages, return_dict=False, **options)
        answer = http.post("/v1/tokenize", json={"messages": messages, **more}).json()
        assert answer["tokens"] == expected and answer["count"] == len(expected)
        counted = http.post("/v1/chat/completions/input_tokens", json={"messages": messages, **more}).json()
        assert counted == {"object": "response.input_tokens", "input_tokens": len(expected)}
        used = http.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 1, **more}).json()["usage"]
        assert used["prompt_tokens"] == len(expected)


def test_a_chat_that_is_longer_than_the_context_is_counted(http: httpx2.Client, tokenizer: Any) -> None:
    for text in ("Kopi susu gula aren. " * 2_000, "x" * (4096 * 64 + 1)):
        messages = [{"role": "user", "content": text}]
        num_tokens = len(tokenizer.apply_chat_template(messages, return_dict=False, add_generation_prompt=True))
        body = {"messages": messages, "max_tokens": 1}
        assert num_tokens > 4096
        counted = http.post("/v1/chat/completions/input_tokens", json=body).json()
        assert counted["input_tokens"] == num_tokens
        count = http.post("/v1/messages/count_tokens", json={"messages": messages}).json()
        assert count == {"input_tokens": num_tokens}
        assert http.post("/v1/chat/completions", json=body).json()["error"]["code"] == "context_length_exceeded"


def test_a_picture_for_a_model_that_sees_none_is_refused(http: httpx2.Client) -> None:
    buffer = BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "PNG")
    url = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    messages = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]
    answer = http.post("/v1/chat/completions/input_tokens", json={"messages": messages})
    assert answer.status_code == 400


def test_a_long_text_is_no_prompt_and_may_be_longer_than_the_context(http: httpx2.Client, tokenizer: Any) -> None:
    text = "Kopi susu gula aren. " * 20_000
    answer = http.post("/tokenize", json={"prompt": text}).json()
    assert answer["tokens"] == tokenizer.encode(text) and answer["count"] > 4096


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {}, "prompt"),
        ("/tokenize", {"prompt": "a", "content": "b"}, "content"),
        ("/tokenize", {"prompt": 5}, "prompt"),
        ("/tokenize", {"messages": []}, "messages"),
        (
            "/tokenize",
            {"messages": [{"role": "user", "content": "x"}], "add_special_tokens": True},
            "add_special_tokens",
        ),
        ("/detokenize", {}, "tokens"),
        ("/detokenize", {"tokens": [5, 2048]}, "tokens"),
        ("/detokenize", {"tokens": [-1]}, "tokens"),
        ("/v1/chat/completions/input_tokens", {}, "messages"),
    ],
)
def test_what_is_wrong_is_refused_by_name(http: httpx2.Client, path: str, body: Any, param: str) -> None:
    answer = http.post(path, json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


def test_models_of_vectors_and_scores_show_their_tokens() -> None:
    """Those that they read of a text: without control tokens that a client writes into it."""
    settings = settings_with(model_repo_id="echo", models="demo-embedding,demo-reranker", load_wait_seconds=120)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=120) as http:
        for model in ("demo-embedding", "demo-reranker"):
            library = transformers.AutoTokenizer.from_pretrained(REPOSITORY / "models" / model)
            text = "Kopi susu gula aren, tanpa gula!"
            ids = library.encode(text)
            answer = http.post("/tokenize", json={"model": model, "prompt": text, "return_token_strs": True}).json()
            assert answer["tokens"] == ids and answer["token_strs"] == library.convert_ids_to_tokens(ids)
            assert answer["max_model_len"] >= len(ids) == answer["count"]
            plain = http.post("/v1/tokenize", json={"model": model, "content": text, "with_pieces": True}).json()
            assert [one["id"] for one in plain["tokens"]] == library.encode(text, add_special_tokens=False)
            decoded = http.post("/detokenize", json={"model": model, "tokens": ids}).json()
            assert decoded["prompt"] == library.decode(ids)
            special = library.sep_token or library.eos_token
            written = http.post("/tokenize", json={"model": model, "content": f"a {special} b"}).json()["tokens"]
            assert library.convert_tokens_to_ids(special) not in written
            wrong = http.post("/detokenize", json={"model": model, "tokens": [10**6]})
            assert wrong.status_code == 400 and wrong.json()["error"]["param"] == "tokens"
            messages = [{"role": "user", "content": text}]
            refused = http.post("/tokenize", json={"model": model, "messages": messages})
            assert refused.status_code == 400, refused.text
        counted = http.post("/v1/embeddings", json={"model": "demo-embedding", "input": [text]}).json()["usage"]
        first = http.post("/tokenize", json={"model": "demo-embedding", "prompt": text}).json()
        assert counted["prompt_tokens"] == first["count"]
        assert http.post("/tokenize", json={"prompt": "abc"}).json()["count"] == 3, "no name: the model that writes"


def test_keys_are_asked_for_as_for_v1(server: Served) -> None:
    with httpx2.Client(base_url=server.url) as stranger:
        for path in ("/tokenize", "/detokenize", "/v1/tokenize", "/v1/moderations", "/v1/completions", "/v1/decisions"):
            answer = stranger.post(path, json={})
            assert answer.status_code == 401 and answer.json()["error"]["code"] == "invalid_api_key", path
        for path in ("/props", "/slots", "/version"):
            assert stranger.get(path).status_code == 401


def test_the_server_describes_itself_as_llama_cpp_does(http: httpx2.Client, tokenizer: Any) -> None:
    assert http.get("/version").json() == {"version": __version__}
    props = http.get("/props").json()
    settings = props["default_generation_settings"]
    assert settings["n_ctx"] == 4096 and settings["params"]["temperature"] == 0.7
    assert props["total_slots"] == 32 and props["chat_template"] == tokenizer.chat_template
    assert props["modalities"] == {"vision": False, "video": False, "audio": False}
    assert __version__ in props["build_info"] and props["model_alias"] == props["model_path"]
    assert not props["model_path"].startswith("/tmp"), "no path of this machine"
    slots = http.get("/slots", params={"model": props["model_alias"]}).json()
    assert len(slots) == 32 and not any(slot["is_processing"] for slot in slots)
    assert http.get("/props", params={"model": "nobody"}).status_code in (200, 404)


def test_moderations_say_that_there_are_none(http: httpx2.Client) -> None:
    answer = http.post("/v1/moderations", json={"input": "Halo"})
    assert answer.status_code == 501 and answer.headers["x-should-retry"] == "false"
    assert (
        answer.json()["error"]["code"] == "not_implemented" and "/v1/moderations" in answer.json()["error"]["message"]
    )


def test_half_a_character_is_no_text_of_the_echo_model() -> None:
    with served(settings_with()) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        assert client.post("/detokenize", json={"tokens": [97, 0xD800, 0xDFFF]}).json()["prompt"] == "a\ufffd\ufffd"
        named = client.post("/tokenize", json={"prompt": "a", "return_token_strs": True}).json()
        assert named["token_strs"] == ["a"]
        for logprobs in (None, 2):
            body = {"prompt": [[0xD800, 98]], "echo": True, "logprobs": logprobs}
            [choice] = client.post("/v1/completions", json=body).raise_for_status().json()["choices"]
            assert choice["text"] == "\ufffdb\ufffdb"
