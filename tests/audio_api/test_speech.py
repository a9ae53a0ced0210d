"""OpenAI's client has texts spoken by a real model: every format is decoded again."""

import base64
import io
import json
import time
import typing
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import av
import httpx2
import numpy as np
import pytest
from openai import APIStatusError, BadRequestError, NotFoundError, OpenAI
from openai.types.audio.speech_create_params import SpeechCreateParams

from scripts.field_tables import ENDPOINTS, FieldRow, field_rows
from tests.audio_api.speaking import speaking_server
from tests.serving import Served
from tis.audio_api.text_to_speak import OPENAI_VOICES, TextToSpeak

pytestmark = pytest.mark.model
PATH = "/v1/audio/speech"
TEXT = "Selamat pagi, semua orang di sini. Apa kabar? Terima kasih banyak."
# The rate of the model is 16,000.
FORMATS = {"mp3": 16_000, "opus": 48_000, "aac": 16_000, "flac": 16_000, "wav": 16_000, "pcm": 24_000}


@pytest.fixture(scope="module")
def mouths(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with speaking_server(tmp_path_factory.mktemp("mouths"), max_speech_seconds=60) as running:
        yield running


@pytest.fixture
def openai(mouths: Served, sdk: Callable[[Served], OpenAI]) -> OpenAI:
    return sdk(mouths)


@pytest.fixture
def http(mouths: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=mouths.url, timeout=60) as client:
        yield client


def decoded(data: bytes, form: str) -> Any:
    """Samples from -1 to 1, with their rate."""
    if form == "pcm":
        return np.frombuffer(data, "<i2").astype(np.float32) / 32_768, 24_000
    with av.open(io.BytesIO(data), "r") as container:
        frames = [frame for frame in container.decode(audio=0) if isinstance(frame, av.AudioFrame)]
        resampler = av.AudioResampler(format="flt", layout="mono", rate=frames[0].sample_rate)
        parts = [one.to_ndarray()[0] for frame in frames for one in resampler.resample(frame)]
    return np.concatenate(parts), frames[0].sample_rate


def body(**fields: Any) -> dict[str, Any]:
    return {"model": "mono", "input": TEXT, "voice": "alloy", **fields}


def spoken(client: OpenAI, **fields: Any) -> bytes:
    return client.audio.speech.create(**body(**fields)).content


def events_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(block.partition("data: ")[2]) for block in text.split("\n\n") if block]


def sound_of(events: list[dict[str, Any]]) -> bytes:
    return b"".join(base64.b64decode(event["audio"]) for event in events if "audio" in event)


@pytest.fixture(scope="module")
def seconds(mouths: Served) -> float:
    """How long the text is: of the samples that the other formats encode."""
    answer = httpx2.post(f"{mouths.url}{PATH}", json=body(response_format="wav"), timeout=60)
    samples, rate = decoded(answer.content, "wav")
    return float(len(samples) / rate)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_the_speech(form: str, openai: OpenAI, seconds: float) -> None:
    with openai.audio.speech.with_streaming_response.create(**body(response_format=form)) as answer:
        data = answer.read()
    samples, rate = decoded(data, form)
    assert rate == FORMATS[form]
    assert len(samples) / rate == pytest.approx(seconds, abs=0.15) and seconds > 2
    assert float(np.abs(samples).max()) > 0.1
    assert spoken(openai, response_format=form) == data


def test_mp3_is_the_default_and_the_type_is_that_of_the_format(openai: OpenAI) -> None:
    raw = openai.audio.speech.with_raw_response.create(**body(input="Halo."))
    assert (raw.status_code, raw.headers["content-type"]) == (200, "audio/mpeg")
    assert decoded(raw.content, "mp3")[1] == 16_000


def test_the_samples_of_a_wav_are_those_of_the_model(openai: OpenAI, mouths: Served) -> None:
    import torch
    import transformers

    folder = next(one.repo for one in mouths.app.state.engine.models if one.id == "mono")
    model = transformers.VitsModel.from_pretrained(folder).eval()
    inputs = transformers.AutoTokenizer.from_pretrained(folder)("Halo, dunia.", return_tensors="pt")
    torch.manual_seed(5)
    with torch.no_grad():
        wanted = model(**inputs).waveform[0].numpy()
    made = spoken(openai, input="Halo, dunia.", response_format="wav", extra_body={"seed": 5})
    samples, _ = decoded(made, "wav")
    np.testing.assert_allclose(samples, wanted, atol=2 / 32_768)
    assert spoken(openai, input="Halo, dunia.", response_format="wav") != made


def test_speed_is_the_pace_of_the_model(openai: OpenAI, seconds: float) -> None:
    for speed in (0.5, 2.0):
        samples, rate = decoded(spoken(openai, response_format="wav", speed=speed), "wav")
        assert len(samples) / rate == pytest.approx(seconds / speed, rel=0.35)


def test_the_sound_of_a_model_without_a_pace_is_made_faster_at_the_same_pitch(openai: OpenAI) -> None:
    fields = {"model": "slow", "voice": "nova", "input": "Halo dunia.", "response_format": "flac"}
    lengths = {}
    for speed in (0.25, 1.0, 3.0):
        samples, rate = decoded(spoken(openai, **fields, speed=speed), "flac")
        lengths[speed] = len(samples) / rate
        assert float(np.abs(samples).max()) > 0.1
    assert lengths[1.0] > 1
    assert lengths[3.0] == pytest.approx(lengths[1.0] / 3, abs=0.15)
    assert lengths[0.25] == pytest.approx(lengths[1.0] * 4, abs=0.6)


def test_voices_are_the_speakers_of_the_model(openai: OpenAI, http: httpx2.Client) -> None:
    ani, budi = (spoken(openai, model="duo", voice=name, response_format="wav") for name in ("ani", "budi"))
    assert ani != budi
    assert spoken(openai, model="duo", voice={"id": "ani"}, response_format="wav") == ani
    with pytest.raises(BadRequestError, match="It has: budi, ani") as caught:
        spoken(openai, model="duo", voice="zulu")
    assert caught.value.param == "voice"
    with pytest.raises(BadRequestError, match="It has: default"):
        spoken(openai, voice="zulu")
    assert "x-ignored-parameters" not in http.post(PATH, json=body(voice="default", input="Halo.")).headers
    assert http.post(PATH, json=body(input="Halo.")).headers["x-ignored-parameters"] == "voice"
    models = {one["id"]: one for one in http.get("/v1/models").json()["data"]}
    assert (models["duo"]["voices"], models["mono"]["voices"]) == (["budi", "ani"], ["default"])
    assert models["mono"]["modalities"] == {"input": ["text"], "output": ["audio"]}
    assert models["mono"]["capabilities"] == ["speech"]


def test_the_names_of_openais_voices_go_through_those_of_the_model(openai: OpenAI, http: httpx2.Client) -> None:
    voice = typing.get_type_hints(SpeechCreateParams)["voice"]
    of_the_client = [name for one in typing.get_args(voice) for name in typing.get_args(one)]
    assert set(OPENAI_VOICES) >= set(of_the_client) and len(of_the_client) > 9
    short = {"model": "duo", "input": "Halo.", "response_format": "wav"}
    own = {name: http.post(PATH, json=body(**short, voice=name)) for name in ("budi", "ani")}
    assert [answer.headers["x-voice"] for answer in own.values()] == ["budi", "ani"]
    for number, name in enumerate(OPENAI_VOICES):
        answer = http.post(PATH, json=body(**short, voice=name))
        used = ("budi", "ani")[number % 2]
        assert (answer.status_code, answer.headers["x-voice"], answer.content) == (200, used, own[used].content)
        assert "x-ignored-parameters" not in answer.headers  # the name chose one of two
    streamed = http.post(PATH, json=body(model="duo", input="Halo.", voice={"id": "ash"}, stream_format="sse"))
    assert (streamed.status_code, streamed.headers["x-voice"]) == (200, "ani")
    assert http.post(PATH, json=body(input="Halo.")).headers["x-voice"] == "default"
    assert http.post(PATH, json=body(model="slow", voice="nova", input="Halo.")).headers["x-voice"] == "nova"


def test_events_are_the_same_file_with_its_usage(openai: OpenAI, http: httpx2.Client) -> None:
    for form in ("mp3", "wav"):
        sent = body(response_format=form, stream_format="sse", session_id=f"events-{form}")
        stream = http.post(PATH, json=sent)
        assert stream.headers["content-type"].startswith("text/event-stream")
        events = events_of(stream.text)
        assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
        assert sound_of(events) == spoken(openai, response_format=form)
        done = events[-1]
        assert done["type"] == "speech.audio.done"
        usage = done["usage"]
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 100
        assert http.get(f"/v1/stream/events-{form}").text == stream.text
        assert http.post(PATH, json=sent).text == stream.text
        rest = http.post(PATH, json=sent, headers={"Last-Event-ID": f"events-{form}:0"}).text
        assert stream.text.endswith(rest) and events_of(rest) == events[1:]


def test_a_cancelled_stream_says_so(http: httpx2.Client) -> None:
    long = " ".join(["Selamat pagi semua orang di sini dan juga di sana."] * 24)
    sent = body(input=long, stream_format="sse", session_id="stopped", response_format="opus")
    text = ""
    with http.stream("POST", PATH, json=sent) as answer:
        for chunk in answer.iter_text():
            if not text:
                assert http.post("/v1/cancel/stopped").status_code == 200
            text += chunk
    last = events_of(text)[-1]
    assert (last["type"], last["cancelled"]) == ("speech.audio.done", True)
    assert last["usage"]["output_tokens"] < 24 * 50


def test_another_text_of_the_same_session_is_another_turn(http: httpx2.Client) -> None:
    first = http.post(PATH, json=body(input="Satu.", stream_format="sse", session_id="turns")).text
    second = http.post(PATH, json=body(input="Dua.", stream_format="sse", session_id="turns")).text
    assert second.startswith(f"id: turns:{len(events_of(first))}\n")
    chat = {"model": "chatter", "stream": True, "session_id": "turns", "messages": [{"role": "user", "content": "x"}]}
    assert http.post("/v1/chat/completions", json=chat).status_code == 200


def test_instructions_are_named_as_ignored(http: httpx2.Client) -> None:
    answer = http.post(PATH, json=body(voice="default", input="Halo.", instructions="Gembira", session_id="x", tone=1))
    assert answer.headers["x-ignored-parameters"].split(", ") == ["tone", "instructions", "session_id"]


def test_what_is_too_much_or_nothing_is_refused(openai: OpenAI) -> None:
    cases: list[dict[str, Any]] = [
        {"input": ""},
        {"input": "x" * 4097},
        {"input": "!? 日本"},
        {"speed": 9},
        {"response_format": "ape"},
        {"voice": ""},
        {"voice": {"id": ""}},
        {"extra_body": {"seed": -1}},
    ]
    for fields in cases:
        with pytest.raises(BadRequestError) as caught:
            spoken(openai, **fields)
        assert (caught.value.param or "").startswith(next(iter(fields.get("extra_body", fields))))


def test_a_text_that_becomes_too_long_ends_with_an_error(http: httpx2.Client) -> None:
    long = body(input="satu dua tiga empat lima. " * 30, speed=0.25, stream_format="sse")
    [*before, last] = events_of(http.post(PATH, json=long).text)
    assert before and "longer than 60 seconds" in last["error"]["message"]


@pytest.mark.parametrize("stream_format", ["audio", "sse"])
def test_a_text_that_is_surely_too_long_is_refused_before_it_is_spoken(http: httpx2.Client, stream_format: str) -> None:
    long = body(input="satu dua tiga empat lima. " * 99, speed=4, stream_format=stream_format)
    answer = http.post(PATH, json=long)  # a character is 32 milliseconds at least
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "input"
    assert "longer than 60 seconds" in answer.json()["error"]["message"]


def test_a_model_of_another_kind_and_an_unknown_one(openai: OpenAI) -> None:
    with pytest.raises(BadRequestError, match="served for chat") as caught:
        spoken(openai, model="chatter")
    assert (caught.value.param, caught.value.code) == ("model", "model_not_supported")
    with pytest.raises(NotFoundError):
        spoken(openai, model="nobody")
    assert spoken(openai, model="tts-1", input="Halo.") == spoken(openai, input="Halo.")


def test_a_full_queue_is_a_429_and_stops_nobody_who_is_spoken_to(http: httpx2.Client) -> None:
    fields = body(model="narrow", input=f"{TEXT} {TEXT}")
    assert http.post(PATH, json=fields).status_code == 200  # it is loaded
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: http.post(PATH, json=fields), range(12)))
    refused = [answer for answer in answers if answer.status_code == 429]
    spoken_to = {answer.content for answer in answers if answer.status_code == 200}
    assert refused and len(spoken_to) == 1
    assert refused[0].headers["retry-after"] and "queue for model `narrow` is full" in refused[0].text


def test_a_short_text_does_not_wait_for_a_long_one(http: httpx2.Client) -> None:
    long = " ".join(["Selamat pagi semua orang di sini dan juga di sana."] * 24)
    sent = body(input=long, response_format="mp3", speed=4, stream_format="sse", session_id="long")
    with http.stream("POST", PATH, json=sent) as answer:
        parts = answer.iter_text()
        text = next(parts)
        assert http.post(PATH, json=body(input="Halo.")).status_code == 200
        running = http.post("/v1/cancel/long")
        text += "".join(parts)
    assert running.status_code == 200 and events_of(text)[-1]["cancelled"] is True


def test_a_client_that_leaves_ends_the_speech(
    http: httpx2.Client, mouths: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = mouths.app.state.engine
    real, spoken_texts = engine.say, []

    async def say(model_id: str, sentence: Any, *given: Any, **named: Any) -> Any:
        spoken_texts.append(sentence.text)
        return await real(model_id, sentence, *given, **named)

    monkeypatch.setattr(engine, "say", say)
    slow = engine.slots["mono"].loaded.model._model.register_forward_pre_hook(lambda *given: time.sleep(0.05))
    long = " ".join(["Selamat pagi semua orang di sini dan juga di sana."] * 24)
    with http.stream("POST", PATH, json=body(input=long, response_format="wav", speed=4)) as answer:
        next(answer.iter_raw())
    end = time.monotonic() + 20
    while mouths.app.state.admission.used("decoded_bytes") or engine.slots["mono"].idle_seconds is None:
        assert time.monotonic() < end
        time.sleep(0.01)
    num_spoken = len(spoken_texts)
    assert http.post(PATH, json=body(input="Halo.")).status_code == 200  # behind all that waited for the model
    assert spoken_texts[num_spoken:] == ["Halo."] and num_spoken < 20  # of twenty-four sentences
    slow.remove()


def test_null_is_as_if_it_was_not_sent(http: httpx2.Client) -> None:
    nothing = dict.fromkeys(("instructions", "response_format", "speed", "stream_format", "seed", "session_id"))
    answer = http.post(PATH, json=body(voice="default", input="Halo.", **nothing))
    assert (answer.status_code, "x-ignored-parameters" in answer.headers) == (200, False)
    assert answer.content == http.post(PATH, json=body(input="Halo.")).content
    assert http.post(PATH, json=body(model=None)).status_code == 400


def test_half_a_character_is_no_text(http: httpx2.Client) -> None:
    answer = http.post(PATH, content=b'{"model":"mono","voice":"alloy","input":"a\\ud800"}')
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_nothing_is_held_when_all_have_ended(mouths: Served) -> None:
    admission = mouths.app.state.admission
    resources = ("requests", "body_bytes", "prompt_tokens", "decoded_bytes")
    assert [admission.used(one) for one in resources] == [0] * len(resources)


@pytest.mark.parametrize("row", field_rows("speech"), ids=lambda row: f"{row.field}={row.value}")
def test_a_field_does_what_its_row_says(row: FieldRow, http: httpx2.Client) -> None:
    name = row.field.partition(".")[0]
    answer = http.post(ENDPOINTS["speech"], json={**body(voice="default", input="Halo."), **row.body})
    ignored = answer.headers.get("x-ignored-parameters", "")
    match row.outcome:
        case "done":
            assert (answer.status_code, ignored) == (200, ""), answer.text
        case "ignored":
            assert (answer.status_code, ignored) == (200, name)
        case "refused":
            assert answer.status_code == 400, answer.text
            assert answer.json()["error"]["param"].startswith(name)
        case other:
            pytest.fail(f"{other} is no outcome")


def test_every_field_has_a_row() -> None:
    rows = {row.field.partition(".")[0] for row in field_rows("speech")}
    assert set(TextToSpeak.model_fields) - rows == set()
    assert set(typing.get_type_hints(SpeechCreateParams)) - rows == set()


def test_without_a_model_that_speaks_it_is_not_implemented(ears: Served, sdk: Callable[[Served], OpenAI]) -> None:
    for model, who in (("chatter", "The model `chatter` does not speak"), ("gpt", "No model of this server speaks")):
        with pytest.raises(APIStatusError, match=who) as caught:
            sdk(ears).audio.speech.create(model=model, input="Halo", voice="alloy")
        assert (caught.value.status_code, caught.value.code) == (501, "not_implemented")
