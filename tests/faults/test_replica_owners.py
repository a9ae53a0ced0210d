"""Servers on one Redis, with keys of their own: a session belongs to the key that began it, at every server."""

from collections.abc import Iterator

import pytest
import redis

from tests.http.keys import bearer
from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import blocks_of, text_of
from tests.redis_server import RedisServer
from tests.serving import Served, served, settings_with
from tests.upstream.gateway import client_of
from tis.settings import Settings

A, B, C = "sk-a-" + "1" * 40, "sk-b-" + "2" * 40, "sk-c-" + "3" * 40
SECRET = "The code of the safe is four two. "


def serving(redis_server: RedisServer, keys: str, tokens_per_second: int = 1000) -> Settings:
    return settings_with(
        session_store="redis",
        redis_url=redis_server.url,
        api_keys=keys,
        model_repo_id=f"echo?tokens_per_second={tokens_per_second}",
    )


@pytest.fixture
def first(redis_server: RedisServer) -> Iterator[Served]:
    with served(serving(redis_server, f"{A},{B}", 20)) as running:
        yield running


@pytest.mark.parametrize(("keys", "sent"), [(f"{A},{B}", B), (C, C), ("", "")], ids=["known", "unknown", "no keys"])
def test_nobody_else_reads_cancels_or_replaces_a_session_at_another_server(
    keys: str, sent: str, first: Served, redis_server: RedisServer
) -> None:
    other = bearer(sent) if sent else {}
    with (
        served(serving(redis_server, keys)) as second,
        client_of(first) as here,
        client_of(second) as there,
        here.stream("POST", CHAT, json=said(SECRET, session_id="same", stream=True), headers=bearer(A)) as answer,
    ):
        begun = answer.iter_lines()
        assert next(begun)
        for path in ("stream", "responses"):
            assert there.get(f"/v1/{path}/same", headers=other).status_code == 404
        assert there.get("/v1/stream/same", headers={**other, "Last-Event-ID": "same:0"}).status_code == 404
        assert there.post("/v1/stream/same/read_token", headers=other).status_code == 404
        assert there.post("/v1/cancel/same", headers=other).status_code in (200, 404)
        own = there.post(CHAT, json=said("Halo", session_id="same", stream=True), headers=other)
        assert text_of(blocks_of(own.text)) == "Halo"
        rest = list(begun)
        assert "data: [DONE]" in rest
        again = here.get("/v1/stream/same", headers=bearer(A)).text
        assert text_of(blocks_of(again)) == SECRET
    assert everything(redis_server).count(b"sk-") == 0


def everything(redis_server: RedisServer) -> bytes:
    with redis.Redis(port=redis_server.port) as client:
        names = list(client.scan_iter("*"))
        return b"\n".join([*names, *(client.dump(name) or b"" for name in names)])
