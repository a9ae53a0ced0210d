"""Texts are spoken by an upstream: a server of this software whose models speak, and small hostile ones."""

import json
import struct
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from openai import BadRequestError, OpenAI

from tests.audio_api.speaking import speaking_server
from tests.audio_api.test_speech import FORMATS, PATH, TEXT, body, decoded, events_of, sound_of, spoken
from tests.serving import Served, served, settings_with
from tests.test_status import until
from tests.upstream.gateway import SECONDS, Send, client_of, gateway, scripted
from tis.audio_api.text_to_speak import OPENAI_VOICES

pytestmark = pytest.mark.model
RATE = 24_000
LONG = " ".join(f"Ini kalimat yang panjang dengan nomor {number}, dan ada lagi." for number in "abcdefghijklmnop")


@pytest.fixture(scope="module")
def back(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with speaking_server(tmp_path_factory.mktemp("mouths")) as running:
        yield running


@pytest.fixture(scope="module")
def front(back: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("front") / "models.yaml"
    far = {"task": "speech", "upstream": f"{back.url}/v1", "upstream_kind": "tis", "upstream_seconds": SECONDS}
    models = {"mono": {**far, "aliases": ["tts-1"]}, "duo": far}
    models["renamed"] = {**far, "upstream_model": "duo", "voices": {"siti": "ani"}}
    path.write_text(json.dumps({"models": models}))
    settings = settings_with(model_config_path=str(path), model_repo_id="mono", models="duo,renamed")
    with served(settings) as running:
        yield running


@pytest.fixture
def openai(front: Served, sdk: Callable[[Served], OpenAI]) -> OpenAI:
    return sdk(front)


@pytest.fixture
def http(front: Served) -> Iterator[httpx2.Client]:
    with client_of(front) as client:
        yield client


def listed_voices(http: httpx2.Client, model: str) -> list[str]:
    found: list[str] = http.get(f"/v1/models/{model}").json()["voices"]
    return found


def counted(http: httpx2.Client, metric: str, model: str) -> float:
    lines = http.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{metric}{{") and f'"{model}"' in line)


def until_voices_are_known(http: httpx2.Client) -> None:
    """The upstream lists them once it has loaded the model; it is asked again and again."""
    assert http.post(PATH, json=body(model="duo", input="Halo.")).status_code == 200
    until(lambda: bool(listed_voices(http, "duo")))


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_the_speech_of_the_upstream(form: str, openai: OpenAI, back: Served) -> None:
    there = httpx2.post(f"{back.url}{PATH}", json=body(response_format="wav"), timeout=60)
    samples_there, rate_there = decoded(there.content, "wav")
    with openai.audio.speech.with_streaming_response.create(**body(response_format=form)) as answer:
        data = answer.read()
    samples, rate = decoded(data, form)
    assert rate == (48_000 if form == "opus" else RATE)
    assert len(samples) / rate == pytest.approx(len(samples_there) / rate_there, abs=0.15)
    assert float(np.abs(samples).max()) > 0.1
    assert spoken(openai, response_format=form) == data


def test_the_samples_are_those_of_the_upstream_at_another_rate(openai: OpenAI, back: Served) -> None:
    sent = body(input="Halo, dunia.", response_format="pcm", seed=5)
    there = httpx2.post(f"{back.url}{PATH}", json=sent, timeout=60).content  # it makes 24,000 of 16,000 itself
    here = spoken(openai, input="Halo, dunia.", response_format="pcm", extra_body={"seed": 5})
    length = min(len(here), len(there))
    np.testing.assert_allclose(
        np.frombuffer(here[:length], "<i2").astype(int), np.frombuffer(there[:length], "<i2").astype(int), atol=3
    )
    assert abs(len(here) - len(there)) < 2 * 64 and length > RATE
    assert spoken(openai, input="Halo, dunia.", response_format="pcm") != here


def test_sentence_n_has_the_noise_of_the_seed_and_n(openai: OpenAI) -> None:
    whole = decoded(spoken(openai, input="Selamat pagi, semua orang. Apa kabar?", response_format="wav"), "wav")[0]
    first = decoded(spoken(openai, input="Selamat pagi, semua orang.", response_format="wav"), "wav")[0]
    second = spoken(openai, input="Apa kabar?", response_format="wav", extra_body={"seed": 1})
    pause = np.zeros(RATE // 5, np.float32)
    np.testing.assert_array_equal(whole, np.concatenate([first, pause, decoded(second, "wav")[0]]))


def test_voices_are_those_of_the_upstream(http: httpx2.Client, openai: OpenAI) -> None:
    until_voices_are_known(http)
    assert listed_voices(http, "duo") == ["budi", "ani"]
    short = {"model": "duo", "input": "Halo.", "response_format": "wav"}
    own = {name: http.post(PATH, json=body(**short, voice=name)) for name in ("budi", "ani")}
    assert [answer.headers["x-voice"] for answer in own.values()] == ["budi", "ani"]
    assert own["budi"].content != own["ani"].content
    for number, name in enumerate(OPENAI_VOICES[:4]):
        assert spoken(openai, **short, voice=name) == own[("budi", "ani")[number % 2]].content
    with pytest.raises(BadRequestError, match="It has: budi, ani") as caught:
        spoken(openai, **short, voice="zulu")
    assert caught.value.param == "voice"


def test_an_entry_may_name_the_voices_of_its_upstream(http: httpx2.Client) -> None:
    assert listed_voices(http, "renamed") == ["siti"]
    there = http.post(PATH, json=body(model="duo", voice="ani", input="Halo.", response_format="wav"))
    for name in ("siti", "nova"):
        here = http.post(PATH, json=body(model="renamed", voice=name, input="Halo.", response_format="wav"))
        assert (here.status_code, here.headers["x-voice"], here.content) == (200, "siti", there.content)
    assert http.post(PATH, json=body(model="renamed", voice="ani", input="Halo.")).status_code == 400


def test_speed_is_that_of_the_upstream(openai: OpenAI) -> None:
    lengths = {
        speed: len(decoded(spoken(openai, response_format="wav", speed=speed), "wav")[0]) for speed in (0.5, 1.0, 2.0)
    }
    assert lengths[0.5] == pytest.approx(2 * lengths[1.0], rel=0.35)
    assert lengths[2.0] == pytest.approx(lengths[1.0] / 2, rel=0.35)


def test_events_are_recorded_and_the_same_file(http: httpx2.Client, openai: OpenAI) -> None:
    sent = body(response_format="mp3", stream_format="sse", session_id="far")
    stream = http.post(PATH, json=sent)
    events = events_of(stream.text)
    assert sound_of(events) == spoken(openai, response_format="mp3")
    usage = events[-1]["usage"]
    assert events[-1]["type"] == "speech.audio.done" and usage["input_tokens"] > 10 and usage["output_tokens"] > 100
    assert http.get("/v1/stream/far").text == http.post(PATH, json=sent).text == stream.text
    rest = http.post(PATH, json=sent, headers={"Last-Event-ID": "far:0"}).text
    assert stream.text.endswith(rest) and events_of(rest) == events[1:]


def test_its_tokens_and_seconds_are_counted(http: httpx2.Client) -> None:
    names = ("tis_generation_tokens_total", "tis_spoken_audio_seconds_total")
    before = [counted(http, name, "renamed") for name in names]
    sound = http.post(PATH, json=body(model="renamed", input="Halo, dunia.", response_format="wav")).content
    samples, _ = decoded(sound, "wav")
    after = [counted(http, name, "renamed") for name in names]
    assert after[1] - before[1] == pytest.approx(len(samples) / RATE, abs=0.001)
    assert after[0] - before[0] == -(-len(samples) * 50 // RATE)


def test_a_cancelled_stream_ends_the_work_of_the_upstream(http: httpx2.Client, back: Served) -> None:
    sent = body(input=LONG, stream_format="sse", session_id="stopped", response_format="opus")
    text = ""
    with http.stream("POST", PATH, json=sent) as answer:
        for piece in answer.iter_text():
            if not text:
                assert http.post("/v1/cancel/stopped").status_code == 200
            text += piece
    last = events_of(text)[-1]
    assert (last["type"], last["cancelled"]) == ("speech.audio.done", True)
    until(lambda: not back.app.state.admission.used("requests"))


def test_what_the_upstream_refuses_is_its_400(http: httpx2.Client) -> None:
    answer = http.post(PATH, json=body(input="日本", voice="default"))
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input")
    assert "no character that this model can say" in answer.json()["error"]["message"]
    silent = http.post(PATH, json=body(input="!? ..."))
    assert (silent.status_code, silent.json()["error"]["param"]) == (400, "input")


@pytest.mark.parametrize("field", ["input", "voice", "instructions"])
def test_half_a_character_is_refused(field: str, http: httpx2.Client) -> None:
    sent = json.dumps({"model": "mono", "voice": "alloy", "input": "a", "instructions": "b", field: "a\ud800"})
    answer = http.post(PATH, content=sent.encode())
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_nothing_is_held_when_all_have_ended(front: Served, back: Served) -> None:
    admissions = [one.app.state.admission for one in (front, back)]
    resources = ("requests", "body_bytes", "prompt_tokens", "decoded_bytes")
    until(lambda: not any(one.used(resource) for one in admissions for resource in resources))


def wav(samples: Any, rate: int = RATE, *, size: int | None = None) -> bytes:
    data = np.asarray(samples, "<i2").tobytes()
    form = struct.pack("<HHIIHH", 1, 1, rate, 2 * rate, 2, 16)
    size = len(data) if size is None else size
    return b"RIFF\xff\xff\xff\xffWAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", size) + data


def http_answer(content: bytes, kind: str = "audio/wav") -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


TONE = np.round(np.sin(np.arange(RATE // 2) / 20) * 20_000).astype(int)


def test_sound_at_our_rate_is_passed_on_as_it_is(tmp_path: Path) -> None:
    with (
        scripted(http_answer(wav(TONE, size=0xFFFFFFFF))) as upstream,
        gateway(tmp_path, upstream.url, task="speech", upstream_kind="openai") as server,
        client_of(server) as client,
    ):
        answer = client.post(PATH, json=body(model="far", voice="coral", input="Halo.", response_format="wav"))
    assert answer.status_code == 200 and "x-voice" not in answer.headers
    np.testing.assert_array_equal(np.frombuffer(answer.content[44:], "<i2"), TONE)


@pytest.mark.parametrize("kind", ["openai", "vllm", "tis"])
def test_an_upstream_gets_what_was_said_and_nothing_that_nobody_set(kind: str, tmp_path: Path) -> None:
    plain = {"model": "far", "input": "Halo.", "voice": "coral", "response_format": "wav"}
    seeds = [{"seed": 0}, {"seed": 7}] if kind == "tis" else [{}, {}]
    with (
        scripted(http_answer(wav(TONE))) as upstream,
        gateway(tmp_path, upstream.url, task="speech", upstream_kind=kind) as server,
        client_of(server) as client,
    ):
        answers = [
            client.post(PATH, json={"model": "far", "voice": "coral", "input": "Halo.", **more})
            for more in ({}, {"speed": 2.0, "instructions": "Gembira", "seed": 7})
        ]
    assert upstream.bodies == [
        {**plain, **seeds[0]},
        {**plain, "speed": 2.0, "instructions": "Gembira", **seeds[1]},
    ]
    assert [one.headers.get("x-ignored-parameters") for one in answers] == [None, None if kind == "tis" else "seed"]


WRONG = {
    "no wav": b"ID3 and so on",
    "empty": b"",
    "no data": wav([])[:36],
    "no samples": wav([]),
    "one sample at another rate": wav(TONE[:1], 44_100),
    "no rate": wav(TONE, 1),
    "a rate beyond that of sound": wav(TONE, 192_000),
    "many channels": wav(TONE).replace(struct.pack("<HH", 1, 1), struct.pack("<HH", 1, 99), 1),
    "a minute and more": wav(np.zeros(4_000 * 61), 4_000),
    "too many bytes": wav(np.zeros(2**23 + 1)),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_sound_is_a_502(name: str, tmp_path: Path) -> None:
    with (
        scripted(http_answer(WRONG[name])) as upstream,
        gateway(tmp_path, upstream.url, task="speech") as server,
        client_of(server) as client,
    ):
        answer = client.post(PATH, json=body(model="far", input="Halo."))
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_failed"), answer.text
        streamed = client.post(PATH, json=body(model="far", input="Halo.", stream_format="sse"))
        [last] = events_of(streamed.text)
        assert last["error"]["code"] == "upstream_failed"


def test_an_upstream_that_does_not_speak_is_named(tmp_path: Path) -> None:
    missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    with (
        scripted(missing) as upstream,
        gateway(tmp_path, upstream.url, task="speech", upstream_kind="ollama") as server,
        client_of(server) as client,
    ):
        answer = client.post(PATH, json=body(model="far", input="Halo."))
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_failed")
    assert "does not know the model or the route" in answer.json()["error"]["message"]


def test_an_upstream_that_is_silent_is_a_504(tmp_path: Path) -> None:
    seconds = {**SECONDS, "first_token": 0.3}
    with (
        scripted(lambda send: time.sleep(3)) as upstream,
        gateway(tmp_path, upstream.url, task="speech", upstream_seconds=seconds) as server,
        client_of(server) as client,
    ):
        answer = client.post(PATH, json=body(model="far", input="Halo."))
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "upstream_timeout")


def test_a_sentence_goes_to_another_upstream_when_one_fails(tmp_path: Path) -> None:
    with (
        scripted(b"HTTP/1.1 500 Error\r\nContent-Length: 0\r\n\r\n") as broken,
        scripted(http_answer(wav(TONE))) as sound,
        gateway(tmp_path, broken.url, sound.url, task="speech") as server,
        client_of(server) as client,
    ):
        answer = client.post(PATH, json=body(model="far", input=TEXT, response_format="wav"))
    assert answer.status_code == 200 and len(broken.bodies) >= 1
    pause = np.zeros(RATE // 5, int)
    num_sentences = len(sound.bodies)
    wanted = np.concatenate([TONE, *([pause, TONE] * (num_sentences - 1))])
    np.testing.assert_array_equal(np.frombuffer(answer.content[44:], "<i2"), wanted)
    assert " ".join(sorted((one["input"] for one in sound.bodies), key=TEXT.index)) == TEXT


def test_a_speech_that_has_begun_waits_for_an_upstream_that_starts_again(tmp_path: Path) -> None:
    numbers = count(1)

    def restart(send: Send) -> None:
        is_away = 2 <= next(numbers) <= 4
        send(b"HTTP/1.1 503 Starting\r\nContent-Length: 0\r\n\r\n" if is_away else http_answer(wav(TONE)))

    with (
        scripted(restart) as upstream,
        gateway(tmp_path, upstream.url, task="speech") as server,
        client_of(server) as client,
    ):
        answer = client.post(PATH, json=body(model="far", input=TEXT, response_format="pcm"))
    num_sentences = len({one["input"] for one in upstream.bodies})
    assert answer.status_code == 200 and num_sentences > 1 and len(upstream.bodies) > num_sentences
    assert len(answer.content) == 2 * (num_sentences * len(TONE) + (num_sentences - 1) * RATE // 5)
