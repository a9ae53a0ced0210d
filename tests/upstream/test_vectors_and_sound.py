"""Embeddings, reranking and transcription through an upstream: the small models of this repository behind a server."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy
import pytest
from openai import OpenAI

from scripts.demo_whisper.checks import MAX_WORD_ERROR_RATE, glued
from scripts.demo_whisper.sentences import all_spoken
from scripts.demo_whisper.word_errors import word_errors
from tests.media.sounds import sound_file
from tests.serving import Served, served, server_process, settings_with, wait_until_loaded
from tests.upstream.gateway import client_of, gateway, scripted

pytestmark = [pytest.mark.slow, pytest.mark.long]
TASKS = {"demo-embedding": "embedding", "demo-reranker": "rerank", "demo-whisper": "transcription"}
TEXTS = ["Beras pandan wangi 5 kg", "Kopi Gayo", "Halo"]


def entries(url: str) -> str:
    models = {
        name: {"task": task, "upstream": url, "upstream_kind": "tis", "upstream_seconds": {"first_token": 60}}
        for name, task in TASKS.items()
    }
    return json.dumps({"models": models})


@pytest.fixture(scope="module")
def back() -> Iterator[Served]:
    settings = settings_with(model_repo_id="echo", models=",".join(TASKS), load_wait_seconds=120, torch_dtype="float32")
    with served(settings) as running:
        yield running


@pytest.fixture(scope="module")
def front(back: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("front") / "models.yaml"
    path.write_text(entries(f"{back.url}/v1"))
    first, *others = TASKS
    with served(settings_with(model_config_path=str(path), model_repo_id=first, models=",".join(others))) as running:
        yield running


def answers(path: str, body: dict[str, Any], *servers: Served) -> list[Any]:
    return [httpx2.post(f"{one.url}{path}", json=body, timeout=120).json() for one in servers]


def test_vectors_are_those_of_the_upstream(front: Served, back: Served) -> None:
    for more in ({}, {"dimensions": 8}, {"encoding_format": "base64"}):
        here, there = answers("/v1/embeddings", {"model": "demo-embedding", "input": TEXTS, **more}, front, back)
        assert here["usage"] == there["usage"]
        assert [one["embedding"] for one in here["data"]] == [one["embedding"] for one in there["data"]]


def test_scores_are_those_of_the_upstream(front: Served, back: Served) -> None:
    rerank = {"model": "demo-reranker", "query": "beras", "documents": TEXTS, "top_n": 2}
    score = {"model": "demo-reranker", "text_1": ["beras", "kopi", "beras"], "text_2": TEXTS}
    for path, body in (("/v1/rerank", rerank), ("/v1/score", score)):
        here, there = answers(path, body, front, back)
        for name in ("results", "data"):
            assert here.get(name) == there.get(name)


def speaking_to(server: Served) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="-", timeout=120)


def test_sound_is_heard_by_the_upstream(front: Served, back: Served) -> None:
    spoken = all_spoken()[0].sentence
    with speaking_to(front) as client, speaking_to(back) as direct:
        for form in ("json", "srt"):
            here, there = (
                one.audio.transcriptions.create(model="demo-whisper", file=spoken.path, response_format=form)
                for one in (client, direct)
            )
            assert getattr(here, "text", here) == getattr(there, "text", there)
        streamed = client.audio.transcriptions.create(model="demo-whisper", file=spoken.path, stream=True)
        [last] = [event for event in streamed if event.type == "transcript.text.done"]
    assert last.text == spoken.text


def test_indonesian_is_translated_by_the_upstream(front: Served, back: Served) -> None:
    spoken = all_spoken()[0].sentence
    files = {"file": ("a.ogg", spoken.path.read_bytes())}
    for form in ("json", "text"):
        fields = {"model": "demo-whisper", "response_format": form}
        here, there = (
            httpx2.post(f"{one.url}/v1/audio/translations", files=files, data=fields, timeout=60)
            for one in (front, back)
        )
        assert here.text == there.text
        assert (here.json()["text"] if form == "json" else here.text.strip()) == spoken.english


def test_words_lie_where_the_upstream_heard_them(front: Served, back: Served) -> None:
    spoken = all_spoken()[0].sentence
    with speaking_to(front) as client, speaking_to(back) as direct:
        here, there = (
            one.audio.transcriptions.create(
                model="demo-whisper",
                file=spoken.path,
                response_format="verbose_json",
                timestamp_granularities=["word", "segment"],
            )
            for one in (client, direct)
        )
    assert (here.language, here.text) == (there.language, there.text)
    assert [(word.word, word.start, word.end) for word in here.words or ()] == [
        (word.word, word.start, word.end) for word in there.words or ()
    ]
    assert here.words


def test_a_model_that_hears_does_not_speak(front: Served) -> None:
    body = {"model": "demo-whisper", "input": "Halo", "voice": "alloy"}
    answer = httpx2.post(f"{front.url}/v1/audio/speech", json=body)
    assert answer.status_code == 501
    assert answer.json()["error"]["message"].startswith("The model `demo-whisper` does not speak")


def test_a_long_file_is_heard_to_its_end_when_an_upstream_is_killed(tmp_path: Path) -> None:
    long = glued(all_spoken(), seed=1)
    variables = {"MODEL_REPO_ID": "demo-whisper", "TORCH_DTYPE": "float32", "EAGER_LOAD_MODEL": "1"}
    with server_process(**variables) as one, server_process(**variables) as other:
        for process in (one, other):
            wait_until_loaded(process.url)
        seconds = {"connect": 1, "probe": 0.2}
        urls = [f"{process.url}/v1" for process in (one, other)]
        fields: dict[str, Any] = {
            "task": "transcription",
            "upstream_model": "demo-whisper",
            "upstream_seconds": seconds,
        }
        with gateway(tmp_path, *urls, **fields) as server, speaking_to(server) as client:
            sound = ("sound.wav", sound_file(numpy.asarray(long.samples, numpy.float32), "wav", "pcm_s16le"))
            streamed = iter(client.audio.transcriptions.create(model="far", file=sound, stream=True))
            assert next(streamed).type == "transcript.text.delta"
            os.kill(one.popen.pid, signal.SIGKILL)
            [last] = [event for event in streamed if event.type == "transcript.text.done"]
            metrics = httpx2.get(f"{server.url}/metrics").text
    counter = 'tis_generation_tokens_total{model_name="far"}'
    [counted] = [line for line in metrics.splitlines() if line.startswith(counter)]
    assert float(counted.split()[-1]) > 150  # for each word at least one
    errors = word_errors(long.text, last.text)
    assert errors.words > 150 and errors.rate <= MAX_WORD_ERROR_RATE


def test_a_model_answers_only_what_it_is_for(front: Served) -> None:
    body = {"model": "demo-embedding", "messages": [{"role": "user", "content": "a"}]}
    answer = httpx2.post(f"{front.url}/v1/chat/completions", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "model_not_supported")


WRONG = {
    "one too few": {"data": [{"embedding": [1.0]}]},
    "sizes": {"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]},
    "texts": {"data": [{"embedding": ["a"]}, {"embedding": ["a"]}]},
    "no base64": {"data": [{"embedding": "!"}, {"embedding": "!"}]},
    "not finite": {"data": [{"embedding": [1e99]}, {"embedding": [1.0]}]},
    "places": {"data": [{"embedding": [1.0], "index": 7}, {"embedding": [1.0]}]},
    "a list": [],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_vectors_are_a_502(name: str, tmp_path: Path) -> None:
    body = json.dumps(WRONG[name]).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    path = tmp_path / "models.yaml"
    with scripted(head, body) as upstream:
        path.write_text(entries(upstream.url))
        settings = settings_with(model_config_path=str(path), model_repo_id="demo-embedding")
        with served(settings) as server, client_of(server) as client:
            answer = client.post("/v1/embeddings", json={"input": ["a", "b"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_failed"), answer.text


def test_a_text_that_is_too_long_for_llama_cpp_is_the_fault_of_its_sender(tmp_path: Path) -> None:
    """It says so with a 500. If that counted against it, three such texts would close it for everybody."""
    said = "input (2001 tokens) is too large to process. increase the physical batch size"
    body = json.dumps({"error": {"code": 500, "message": said, "type": "server_error"}}).encode()
    head = b"HTTP/1.1 500 Error\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    path = tmp_path / "models.yaml"
    with scripted(head, body) as upstream:
        path.write_text(entries(upstream.url))
        settings = settings_with(model_config_path=str(path), model_repo_id="demo-embedding")
        with served(settings) as server, client_of(server) as client:
            for _ in range(4):
                answer = client.post("/v1/embeddings", json={"input": "beras " * 1000})
                assert (answer.status_code, answer.json()["error"]["message"]) == (400, said)


def test_floats_are_taken_where_base64_was_asked_for(tmp_path: Path) -> None:
    body = json.dumps({"data": [{"index": 1, "embedding": [0.5]}, {"index": 0, "embedding": [1]}]}).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    path = tmp_path / "models.yaml"
    with scripted(head, body) as upstream:
        path.write_text(entries(upstream.url))
        settings = settings_with(model_config_path=str(path), model_repo_id="demo-embedding")
        with served(settings) as server, client_of(server) as client:
            made = client.post("/v1/embeddings", json={"input": ["a", "b"]}).json()["data"]
    assert numpy.allclose([one["embedding"] for one in made], [[1.0], [0.5]])
