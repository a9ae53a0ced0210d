"""An upstream that sends garbage, nothing, too much or for ever: a clear error, soon, and nothing hangs."""

import threading
from pathlib import Path

import pytest

from tests.http.keys import bearer, entry, write_key_file
from tests.openai_api.test_chat import CHAT, said
from tests.openai_api.test_chat_stream import blocks_of, text_of
from tests.serving import free_port
from tests.test_status import until
from tests.upstream.gateway import DONE, HEAD, Send, chunk, client_of, event, gateway, scripted
from tis.upstream.errors import UpstreamFault
from tis.upstream.hearing import _value
from tis.upstream.vectors import _number

pytestmark = pytest.mark.long

QUICK = {"connect": 1, "first_token": 1, "next_token": 1, "answer": 4, "probe": 0.2}
HELLO = chunk({"content": "Halo"})
END = (chunk(finish="stop"), DONE)
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}"


def status(line: bytes, body: bytes = b"", *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 " + line, b"Content-Type: application/json", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def for_ever(piece: bytes) -> object:
    def send_for_ever(send: Send) -> None:
        while True:
            send(piece)

    return send_for_ever


def beats(send: Send) -> None:
    pause = threading.Event()
    while True:
        send(b": ping\n\n")
        pause.wait(0.05)


def silence(send: Send) -> None:
    threading.Event().wait(30)


def call(**function: object) -> bytes:
    return chunk({"tool_calls": [{"index": 0, "id": "c", "function": function}]})


SCRIPTS: dict[str, tuple[list[object], int, str]] = {
    "an endless line": ([HEAD, b"data: ", for_ever(b"a" * 65_536)], 502, "event of more than"),
    "an endless event": ([HEAD, for_ever(b"data: " + b"a" * 65_536 + b"\n")], 502, "event of more than"),
    "endless headers": ([b"HTTP/1.1 200 OK\r\n", for_ever(b"X-A: " + b"a" * 8192 + b"\r\n")], 502, "speak HTTP"),
    "no HTTP": ([b"SSH-2.0-OpenSSH_9.9\r\n"], 502, "speak HTTP"),
    "nothing at all": ([silence], 504, "sent nothing for"),
    "a head and nothing": ([HEAD, silence], 504, "sent nothing for"),
    "comments for ever": ([HEAD, beats], 504, "sent nothing for"),
    "a close before the head": ([], 502, "closed the connection"),
    "a close after the head": ([HEAD], 502, "ended its answer in the middle"),
    "a close in the middle": ([HEAD, HELLO], 502, "cannot be continued"),
    "silence in the middle": ([HEAD, HELLO, silence], 504, "sent nothing for"),
    "no JSON": ([HEAD, b"data: {no\n\n"], 502, "no JSON"),
    "deep JSON": ([HEAD, b"data: " + b"[" * 50_000 + b"\n\n"], 502, "no JSON"),
    "a million lists": ([HEAD, b"data: [" + b"[]," * 340_000 + b"[]]\n\n"], 502, "too many lists"),
    "a list": ([HEAD, event([1])], 502, "no chunk"),
    "a text for choices": ([HEAD, event({"choices": "a"})], 502, "choices"),
    "another choice": ([HEAD, event({"choices": [{"index": 7}]})], 502, "choice"),
    "a number for a text": ([HEAD, chunk({"content": 5})], 502, "where a text belongs"),
    "a text for a delta": ([HEAD, event({"choices": [{"delta": "a"}]})], 502, "without a delta"),
    "a text for calls": ([HEAD, chunk({"tool_calls": "a"})], 502, "tool calls"),
    "a call without a name": ([HEAD, call(arguments="{}")], 502, "without a name"),
    "a number for logprobs": (
        [HEAD, event({"choices": [{"delta": {"content": "a"}, "logprobs": {"content": [5]}}]})],
        502,
        "log probabilities",
    ),
    "tokens longer than any": ([HEAD, chunk({"content": "a" * 100_000})], 502, "more than was asked for"),
    "more tokens than asked for": ([HEAD, for_ever(HELLO)], 502, "more than was asked for"),
    "a redirect": ([status(b"302 Found", b"", b"Location: http://127.0.0.1:1/")], 502, "redirect"),
    "a page": ([b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>"], 502, "text/event-stream"),
    "a whole answer": ([JSON], 502, "text/event-stream"),
    "compressed": (
        [b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"],
        502,
        "compressed",
    ),
    "an error of its own": ([status(b"500 Oh", b'{"error": {"message": "at 0x7f"}}')], 502, "failed (HTTP 500)"),
    "an endless error": (
        [b"HTTP/1.1 400 No\r\nContent-Type: application/json\r\n\r\n", for_ever(b"a" * 8192)],
        400,
        "refuses the request",
    ),
    "a wrong key": ([status(b"401 No")], 502, "refuses the key"),
    "an unknown model": ([status(b"404 No")], 502, "does not know the model"),
    "no room": ([status(b"503 Full", b"", b"Retry-After: 7")], 503, "not available"),
    "too many": ([status(b"429 Slow", b"", b"Retry-After: 7")], 429, "too many requests"),
    "a refusal": (
        [status(b"422 No", b'{"error": {"message": "stop: too long", "param": "stop", "code": "x_y"}}')],
        400,
        "stop: too long",
    ),
    "a refusal of FastAPI": ([status(b"400 No", b'{"detail": "stop: too long"}')], 400, "stop: too long"),
    "an error in the stream": ([HEAD, event({"error": {"message": "oops", "code": 500}})], 502, "while it answered"),
    "a refusal in the stream": (
        [HEAD, event({"error": {"message": "too long", "type": "BadRequestError", "code": 400}})],
        400,
        "too long",
    ),
    "an abort": ([HEAD, HELLO, chunk(finish="abort")], 502, "broke its answer off"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_hostile_upstream_gives_a_clear_error(name: str, tmp_path: Path) -> None:
    script, code, words = SCRIPTS[name]
    with (
        scripted(*script) as upstream,  # type: ignore[arg-type]
        gateway(tmp_path, upstream.url, upstream_kind="openai", upstream_seconds=QUICK) as server,
        client_of(server) as client,
    ):
        answer = client.post(CHAT, json=said("Halo", max_tokens=20))
        error = answer.json()["error"]
        assert (answer.status_code, words in error["message"]) == (code, True), answer.text
        assert code == 400 or int(answer.headers["Retry-After"]) >= 1
        streamed = blocks_of(client.post(CHAT, json=said("Halo", max_tokens=20, stream=True)).text)
        assert words in streamed[-1].chunk["error"]["message"] or code >= 500  # the next try may not be made at once
        assert client.get("/live").status_code == 200
        [engine] = [server.app.state.engine]
        assert [status.num_running for status in engine.statuses] == [0]


def test_nobody_there_is_a_503(tmp_path: Path) -> None:
    with (
        gateway(tmp_path, f"http://127.0.0.1:{free_port()}/v1", upstream_kind="openai") as server,
        client_of(server) as client,
    ):
        answer = client.post(CHAT, json=said("Halo"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "upstream_unavailable")
        assert int(answer.headers["Retry-After"]) >= 1


@pytest.mark.parametrize(
    "sent",
    [
        (HEAD, b"data:" + HELLO[6:].replace(b"\n\n", b"\r\n\r\n"), *END),
        (HEAD, b"event: message\nid: 7\nretry: 1\n" + HELLO, *END),
        (HEAD, chunk({"role": "assistant", "content": None}), HELLO, event({"choices": [], "usage": None}), *END),
        (HEAD, HELLO, chunk(finish="stop")),  # no [DONE]
        (HEAD, HELLO, chunk(finish="stop"), b"data: [DONE]"),  # no blank line
        (HEAD, HELLO, chunk(finish="stop"), silence),
        (HEAD, HELLO, *END, silence),
        (HEAD, chunk({"content": "Ha"}), chunk({"content": "lo"}, finish="stop"), DONE),
    ],
    ids=["CRLF", "fields", "nulls", "no DONE", "no blank line", "open", "open behind the end", "finish with text"],
)
def test_what_engines_do_differently_is_understood(sent: tuple[bytes, ...], tmp_path: Path) -> None:
    with (
        scripted(*sent) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="openai", upstream_seconds=QUICK) as server,
        client_of(server) as client,
    ):
        choice = client.post(CHAT, json=said("Halo")).json()["choices"][0]
        assert (choice["message"]["content"], choice["finish_reason"]) == ("Halo", "stop")


def test_half_a_surrogate_pair_becomes_a_question_mark(tmp_path: Path) -> None:
    with (
        scripted(HEAD, b'data: {"choices": [{"delta": {"content": "a\\ud800b"}}]}\n\n', *END) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="openai") as server,
        client_of(server) as client,
    ):
        assert text_of(blocks_of(client.post(CHAT, json=said("Halo", stream=True)).text)) == "a?b"


def test_calls_of_other_shapes_become_calls(tmp_path: Path) -> None:
    """Whole at once, without an index or an id, with an object for its arguments."""
    calls = chunk({"tool_calls": [{"function": {"name": "now", "arguments": {"a": 1}}} for _ in range(2)]})
    with (
        scripted(HEAD, chunk({"reasoning": "Hm."}), calls, *END) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="openai") as server,
        client_of(server) as client,
    ):
        choice = client.post(CHAT, json=said("Halo")).json()["choices"][0]
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["reasoning_content"] == "Hm."
    assert [one["function"] for one in choice["message"]["tool_calls"]] == [
        {"name": "now", "arguments": '{"a": 1}'}
    ] * 2
    assert len({one["id"] for one in choice["message"]["tool_calls"]}) == 2


def test_more_tokens_than_were_asked_for_are_not_counted(tmp_path: Path) -> None:
    """Else one wrong number would use up the tokens of a key for the day."""
    usage = event({"choices": [], "usage": {"prompt_tokens": 10**12, "completion_tokens": 10**12}})
    keys = write_key_file(tmp_path / "keys.json", entry("shop", "sk-shop"))
    with (
        scripted(HEAD, HELLO, chunk(finish="stop"), usage, DONE) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="openai", settings={"api_keys_file": str(keys)}) as server,
        client_of(server) as client,
    ):
        made = client.post(CHAT, json=said("Halo", max_tokens=20), headers=bearer("sk-shop")).json()["usage"]
        used = client.get("/v1/usage", headers=bearer("sk-shop")).json()
    assert 20 <= made["completion_tokens"] < 100 and used["completion_tokens"] == made["completion_tokens"]
    assert used["prompt_tokens"] < 10_000


def test_a_prompt_of_more_tokens_than_were_estimated_counts_with_all(tmp_path: Path) -> None:
    usage = event({"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 1}})
    keys = write_key_file(tmp_path / "keys.json", entry("shop", "sk-shop"))
    with (
        scripted(HEAD, HELLO, chunk(finish="stop"), usage, DONE) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="openai", settings={"api_keys_file": str(keys)}) as server,
        client_of(server) as client,
    ):
        assert client.post(CHAT, json=said("Halo"), headers=bearer("sk-shop")).status_code == 200
        used = client.get("/v1/usage", headers=bearer("sk-shop")).json()
    assert (used["prompt_tokens"], used["completion_tokens"]) == (50, 1)


def test_a_key_does_not_come_back_in_any_part_of_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAR_KEY", "topsecretword")
    said_back = b'{"error": {"message": "no topsecretword", "param": "a.topsecretword", "code": "topsecretword"}}'
    with (
        scripted(status(b"400 No", said_back)) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="openai", upstream_key_env="FAR_KEY") as server,
        client_of(server) as client,
    ):
        answer = client.post(CHAT, json=said("Halo"))
    assert answer.status_code == 400 and "topsecretword" not in answer.text, answer.text


def test_a_list_of_models_without_an_end_is_not_read(tmp_path: Path) -> None:
    num_sent: list[int] = []

    def models_for_ever(send: Send) -> None:
        send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            send(b" " * 2**20)
            num_sent.append(1)

    with (
        scripted(HEAD, HELLO, *END, models=models_for_ever) as upstream,
        gateway(tmp_path, upstream.url, upstream_kind="openai", upstream_seconds=QUICK) as server,
        client_of(server),
    ):
        until(lambda: upstream.num_closed > 0)
        [engine] = [server.app.state.engine]
        until(lambda: not engine.statuses[0].upstreams[0])
    assert len(num_sent) / upstream.num_closed < 32


def test_a_number_too_large_for_a_float_is_none() -> None:
    with pytest.raises(UpstreamFault, match="no number"):
        _number(10**400)
    assert _value(10**400, 0.5) == 0.5
