"""POST /pages/kill: the page of a demo may do it, and nobody else."""

import httpx2
import pytest
from starlette.types import Message, Receive, Scope, Send

from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with
from tis.app import create_app
from tis.pages.kill_switch import KillSwitch, KillSwitchMiddleware
from tis.settings import Settings

OWN = {"origin": "http://127.0.0.1:3000"}


class Kills:
    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> None:
        self.number += 1


async def answer_to(settings: Settings, kills: Kills | None, headers: dict[str, str], client: str = "127.0.0.1") -> int:
    transport = httpx2.ASGITransport(create_app(settings, kill=kills), client=(client, 50000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:3000") as caller:
        return (await caller.post("/pages/kill", headers=headers)).status_code


def test_the_page_of_a_demo_kills_the_server_once_an_answer_can_be_seen() -> None:
    kills = Kills()
    settings = settings_with(demo=True, model_repo_id="echo?tokens_per_second=100")
    with served(settings, kill=kills) as server, httpx2.Client(base_url=server.url) as client:
        for _ in range(2):  # the second changes nothing
            assert client.post("/pages/kill", headers={"origin": server.url}).status_code == 202
        client.post(CHAT, json=said("short")).raise_for_status()
        assert kills.number == 0
        client.post(CHAT, json={**said("a long answer " * 4), "stream": True}).raise_for_status()
        assert kills.number == 1


class Death(Exception):
    pass


def dies() -> None:
    raise Death


async def sent_until_killed(bodies: list[bytes]) -> bytes:
    """What a page has of a stream that is sent in these pieces."""
    switch, sent = KillSwitch(dies), b""
    switch.set()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for body in bodies:
            await send({"type": "http.response.body", "body": body, "more_body": True})

    async def receive() -> Message:
        raise NotImplementedError

    async def send(message: Message) -> None:
        nonlocal sent
        sent += message.get("body", b"")

    try:
        await KillSwitchMiddleware(app, switch)({"type": "http"}, receive, send)
    except Death:
        assert not switch.is_set
    else:
        assert switch.is_set
    return sent


@pytest.mark.anyio
@pytest.mark.parametrize("size", [1, 3, 19, 20, 21, 100])
async def test_a_page_has_the_begin_of_the_answer_and_never_its_end(size: int) -> None:
    events = [b": a comment\n\nid: a:%d\ndata: id: {}\n\n" % number for number in range(100)]
    bodies = [b"".join(events[start : start + size]) for start in range(0, 100, size)]
    assert await sent_until_killed(bodies) == b"".join(events[:20])
    assert await sent_until_killed([b"".join(events[:20])]) == b"".join(events[:20])


@pytest.mark.anyio
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://127.0.0.1:5173"},  # another page of this computer, which CORS_ORIGINS lets call
        {"origin": "https://stranger.example"},
        {"origin": "null"},
        OWN | {"x-forwarded-for": "203.0.113.9"},
        {"origin": "http://stranger.example", "host": "stranger.example"},  # a name that resolves to this computer
    ],
)
async def test_a_page_of_a_stranger_a_program_and_a_proxy_do_not(headers: dict[str, str]) -> None:
    kills = Kills()
    assert await answer_to(settings_with(demo=True, allowed_hosts="*"), kills, headers) == 403
    assert kills.number == 0


@pytest.mark.anyio
async def test_nobody_elsewhere_does() -> None:
    kills = Kills()
    assert await answer_to(settings_with(demo=True), kills, OWN, client="203.0.113.9") == 403
    assert kills.number == 0


@pytest.mark.anyio
@pytest.mark.parametrize(
    "settings",
    [settings_with(), settings_with(demo=True, host="0.0.0.0"), settings_with(demo=False)],
    ids=["no demo", "open to the network", "turned off"],
)
async def test_there_is_no_such_route_but_in_a_demo_on_this_computer(settings: Settings) -> None:
    kills = Kills()
    assert await answer_to(settings, kills, OWN) in (404, 405)
    assert kills.number == 0


@pytest.mark.anyio
async def test_a_server_that_nobody_would_start_again_has_no_button() -> None:
    assert await answer_to(settings_with(demo=True), None, OWN) in (404, 405)
