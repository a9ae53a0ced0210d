"""A transcription is a recorded stream: it has ids, several readers, a cursor, a cancel, and one turn per request."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.audio_api.tones import TonesEngine
from tests.media.sounds import sound_file, spoken
from tests.serving import Served

WORDS = ["dua", "tiga", "empat", "lima", "enam", "tujuh"]
FILE = sound_file(spoken(" 2.5 ".join(WORDS)))
PATH = "/v1/audio/transcriptions"


@pytest.fixture
def http(ears: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=ears.url, timeout=30) as client:
        yield client


def blocks(text: str) -> list[str]:
    assert text.endswith("\n\n")
    return [block for block in text.split("\n\n") if block]


def data_of(block: str) -> Any:
    return json.loads(block.partition("data: ")[2])


def streamed(http: httpx2.Client, session: str, **fields: Any) -> httpx2.Response:
    headers = fields.pop("headers", {})
    return http.post(
        PATH,
        data={"model": "tones", "stream": "true", "session_id": session, **fields},
        files={"file": ("a.wav", FILE)},
        headers=headers,
    )


def used(ears: Served) -> list[int]:
    admission = ears.app.state.admission
    return [
        admission.used(one) for one in ("media_bytes", "decoded_bytes", "sound_decoders", "sound_seconds", "body_bytes")
    ]


def until(fact: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_official_client_reads_the_stream(ears: Served, sdk: Callable[[Served], OpenAI]) -> None:
    events = list(sdk(ears).audio.transcriptions.create(model="tones", file=("a.wav", FILE), stream=True))
    assert [event.type for event in events] == ["transcript.text.delta"] * 6 + ["transcript.text.done"]
    done: Any = events[-1]
    assert "".join(event.delta for event in events[:-1]) == done.text == " ".join(WORDS)  # type: ignore[union-attr]
    assert done.usage.type == "tokens"
    assert done.usage.total_tokens == done.usage.input_tokens + done.usage.output_tokens
    assert done.languages[0].code == "id"


def test_log_probabilities_ride_on_the_stream(ears: Served, sdk: Callable[[Served], OpenAI]) -> None:
    events: Any = list(
        sdk(ears).audio.transcriptions.create(model="tones", file=("a.wav", FILE), stream=True, include=["logprobs"])
    )
    assert [event.logprobs[0].token for event in events[:-1]] == [f" {word}" for word in WORDS]
    assert len(events[-1].logprobs) == 6


def test_segments_ride_on_a_verbose_stream(http: httpx2.Client) -> None:
    events = [data_of(block) for block in blocks(streamed(http, "verbose", response_format="verbose_json").text)]
    kinds = [event["type"].rpartition(".")[2] for event in events]
    assert kinds == ["delta", "segment"] * 6 + ["done"]
    assert [event["id"] for event in events if "segment" in event["type"]] == [f"seg_{n}" for n in range(6)]


def test_ids_have_no_holes_and_a_cursor_gets_the_rest(http: httpx2.Client, ears: Served) -> None:
    whole = streamed(http, "ids")
    assert whole.headers["x-session-id"] == "ids"
    found = blocks(whole.text)
    assert [block.partition("\n")[0] for block in found] == [f"id: ids:{number}" for number in range(7)]
    assert all("\nevent: transcript.text." in block for block in found)
    for seen in (0, 3, 5):
        rest = "".join(f"{block}\n\n" for block in found[seen + 1 :])
        cursor = {"last-event-id": f"ids:{seen}"}
        assert http.get("/v1/stream/ids", headers=cursor).text == rest
        assert streamed(http, "ids", headers=cursor).text == rest
        assert http.post(PATH, data={"stream": "true"}, files={"x": b""}, headers=cursor).text == rest
    assert http.get("/v1/stream/ids").text == whole.text
    assert http.get("/v1/stream/ids", headers={"last-event-id": "ids:6"}).status_code == 204


def test_the_same_request_is_heard_once(http: httpx2.Client) -> None:
    before = TonesEngine.num_heard
    first = streamed(http, "once").text
    assert streamed(http, "once").text == first
    whole = http.post(PATH, data={"model": "tones", "session_id": "once"}, files={"file": ("b.wav", FILE)})
    assert whole.json()["text"] == " ".join(WORDS)
    assert TonesEngine.num_heard - before == 6
    other = http.post(PATH, data={"model": "tones", "session_id": "once", "prompt": "x"}, files={"file": ("b", FILE)})
    assert other.json()["text"] == " ".join(WORDS)
    assert TonesEngine.num_heard - before == 12


def test_a_transcription_is_no_chat(http: httpx2.Client) -> None:
    streamed(http, "mixed")
    chat = {"model": "chatter", "session_id": "mixed"}
    assert http.post("/v1/chat/completions", json=chat).status_code == 409


def test_nothing_is_held_when_it_is_over(http: httpx2.Client, ears: Served) -> None:
    streamed(http, "held")
    http.post(PATH, files={"file": ("a", FILE)})
    http.post(PATH, files={"file": ("a", b"no sound")})
    until(lambda: used(ears) == [0, 0, 0, 0, 0])


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONES_SECONDS", "0.4")


@pytest.mark.usefixtures("slowly")
def test_the_first_text_comes_before_the_last_is_heard(http: httpx2.Client) -> None:
    long = sound_file(spoken(" 2.5 ".join(WORDS * 4)), "flac", "flac")
    began, at = time.monotonic(), []
    fields = {"model": "tones", "stream": "true"}
    with http.stream("POST", PATH, data=fields, files={"file": ("a.wav", long)}) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                at.append(time.monotonic() - began)
    assert len(at) == 25
    assert at[0] < at[-1] - 0.6


@pytest.mark.usefixtures("slowly")
def test_a_cancel_ends_it_soon_and_says_so(http: httpx2.Client, ears: Served) -> None:
    long = sound_file(spoken(" 2.5 ".join(WORDS * 8)), "flac", "flac")
    fields = {"model": "tones", "stream": "true", "session_id": "cancelled"}
    events = []
    with http.stream("POST", PATH, data=fields, files={"file": ("a.wav", long)}) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line[6:]))
                if len(events) == 1:
                    assert httpx2.post(f"{ears.url}/v1/cancel/cancelled").json()["status"] == "cancelled"
    assert events[-1]["type"] == "transcript.text.done"
    assert events[-1]["cancelled"] is True
    assert len(events) < 40
    assert events[-1]["text"] == "".join(event["delta"] for event in events[:-1])
    until(lambda: used(ears) == [0, 0, 0, 0, 0])
    fields.pop("stream")
    whole = http.post(PATH, data=fields, files={"file": ("a.wav", long)})
    assert (whole.status_code, whole.json()["error"]["code"]) == (409, "cancelled")


@pytest.mark.usefixtures("slowly")
def test_a_client_that_leaves_an_unstreamed_answer_ends_it(ears: Served) -> None:
    long = sound_file(spoken(" 2.5 ".join(WORDS * 8)), "flac", "flac")
    before = TonesEngine.num_heard
    with httpx2.Client(base_url=ears.url, timeout=0.6) as http, pytest.raises(httpx2.TimeoutException):
        http.post(PATH, data={"model": "tones"}, files={"file": ("a.wav", long)})
    until(lambda: used(ears) == [0, 0, 0, 0, 0])
    assert TonesEngine.num_heard - before < 40


def test_what_was_not_recorded_is_no_empty_answer(http: httpx2.Client) -> None:
    assert streamed(http, "kept-as-json").status_code == 200

    def again(**fields: str) -> httpx2.Response:
        return http.post(PATH, files=[(name, (None, value)) for name, value in fields.items()])

    wanted: list[dict[str, str]] = [
        {"response_format": "srt"}, {"response_format": "verbose_json"}, {"include[]": "logprobs"}
    ]  # fmt: skip
    for fields in wanted:
        refused = again(session_id="kept-as-json", stream="false", **fields)
        assert refused.status_code == 409, (fields, refused.text)
        assert "was recorded without" in refused.json()["error"]["message"]
    assert again(session_id="kept-as-json", stream="false").json()["text"]


def test_fields_have_a_bound_together(http: httpx2.Client) -> None:
    many = [("keywords", (None, "x" * 30_000)) for _ in range(12)]
    answer = http.post(PATH, files=[("file", ("a.wav", FILE)), *many])
    assert answer.status_code == 400 and "too long" in answer.json()["error"]["message"]
