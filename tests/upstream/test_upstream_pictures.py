"""Pictures go to an upstream that sees as data URIs, and once more when another process goes on with the answer."""

import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faults.mortal_server import durable, running
from tests.openai_api.media_requests import asking, data_uri, image_url, picture_file
from tests.openai_api.test_chat import CHAT
from tests.openai_api.test_chat_stream import blocks_of, text_of
from tests.upstream.gateway import DONE, HEAD, Send, chunk, client_of, gateway, scripted, write_catalogue
from tests.upstream.test_several_upstreams import Reading

RED, JPEG = picture_file(), picture_file("blue", kind="JPEG")
BODY = asking("What is this?", image_url(RED, detail="low"), image_url(JPEG), model="far")


def parts_of(body: dict[str, Any]) -> Any:
    return body["messages"][0]["content"]


def test_an_upstream_that_sees_gets_the_files_as_they_were_sent(tmp_path: Path) -> None:
    with (
        scripted(HEAD, chunk({"content": "Red."}, finish="stop"), DONE) as upstream,
        gateway(tmp_path, upstream.url, upstream_media=["image"]) as server,
        client_of(server) as client,
    ):
        answer = client.post(CHAT, json=BODY).json()
        assert answer["choices"][0]["message"]["content"] == "Red."
        assert answer["usage"]["prompt_tokens"] > 1024
        [known] = client.get("/v1/models").json()["data"]
        assert known["modalities"]["input"] == ["text", "image"]
    text, red, blue = parts_of(upstream.bodies[0])
    assert text == {"type": "text", "text": "What is this?"}
    assert red == {"type": "image_url", "image_url": {"url": data_uri(RED), "detail": "low"}}
    assert blue["image_url"]["url"] == data_uri(JPEG, "image/jpeg")


def test_an_upstream_that_does_not_see_gets_none(tmp_path: Path) -> None:
    with scripted(HEAD) as upstream, gateway(tmp_path, upstream.url) as server, client_of(server) as client:
        answer = client.post(CHAT, json=BODY)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unsupported_content")
    assert not upstream.bodies


@pytest.mark.slow
@pytest.mark.anyio
async def test_the_next_process_sends_the_pictures_once_more(tmp_path: Path) -> None:
    is_killed = threading.Event()
    turns = iter(["It is", " red."])

    def script(send: Send) -> None:
        text = next(turns)
        send(HEAD)
        send(chunk({"content": text}))
        if text == "It is":
            is_killed.wait(60)
            return
        send(chunk(finish="stop"))
        send(DONE)

    with scripted(script) as upstream:
        path = write_catalogue(tmp_path, [upstream.url], upstream_media=["image"])
        variables = durable(tmp_path, MODEL_CONFIG=str(path), MODEL_REPO_ID="far")
        async with running(tmp_path, **variables) as server:
            with httpx2.Client(base_url=server.url, timeout=60) as client:
                reading = Reading(client, {**BODY, "session_id": "seen"})
                reading.until_blocks(2)
                server.kill()
            is_killed.set()
            await server.start()
            with httpx2.Client(base_url=server.url, timeout=60) as client:
                blocks = blocks_of(client.get("/v1/stream/seen").text)
    assert text_of(blocks) == "It is red." and blocks[-1].data == "[DONE]"
    first, second = upstream.bodies
    assert parts_of(first) == parts_of(second)
    assert second["messages"][-1] == {"role": "assistant", "content": "It is"}
