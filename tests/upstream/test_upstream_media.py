"""Sounds and videos of messages go to an upstream as files, in the form that its kind takes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.engine.hearing.tiny_hearing import make_hearing
from tests.media.sounds import sound_file, spoken
from tests.openai_api.media_requests import asking, data_uri, video_file
from tests.openai_api.test_chat import CHAT
from tests.serving import Served, served, settings_with
from tests.upstream.gateway import DONE, HEAD, chunk, client_of, gateway, scripted
from tis.engine.models.catalogue import CatalogueError, read_catalogue

WAV, MP3 = sound_file(spoken("satu dua")), sound_file(spoken("tiga"), "mp3", "libmp3lame")
FLAC, OGG = sound_file(spoken("lima"), "flac", "flac"), sound_file(spoken("enam"), "ogg", "libopus")
VIDEO = video_file("red", "blue")


def sound_part(data: bytes, form: str) -> dict[str, Any]:
    return {"type": "audio_url", "audio_url": {"url": data_uri(data, f"audio/{form}")}}


def parts_sent(folder: Path, kind: str, *parts: dict[str, Any], media: list[str]) -> tuple[httpx2.Response, Any]:
    """The answer, and the parts that the upstream got behind the text."""
    with (
        scripted(HEAD, chunk({"content": "Ya."}, finish="stop"), DONE) as upstream,
        gateway(folder, upstream.url, upstream_kind=kind, upstream_media=media) as server,
        client_of(server) as client,
    ):
        answer = client.post(CHAT, json=asking("Apa ini?", *parts, model="far"))
    return answer, upstream.bodies[0]["messages"][0]["content"][1:] if upstream.bodies else None


@pytest.mark.parametrize("kind", ["tis", "vllm", "sglang", "transformers"])
def test_sounds_and_videos_are_data_uris_where_the_engine_takes_urls(kind: str, tmp_path: Path) -> None:
    sounds = [(WAV, "wav"), (MP3, "mpeg"), (FLAC, "flac"), (OGG, "ogg")]
    parts = [sound_part(data, form) for data, form in sounds]
    video = {"type": "video_url", "video_url": {"url": data_uri(VIDEO, "video/mp4")}}
    answer, sent = parts_sent(tmp_path, kind, *parts, video, media=["audio", "video"])
    assert answer.status_code == 200, answer.text
    assert sent == [*parts, video]
    assert answer.json()["usage"]["prompt_tokens"] > 256


@pytest.mark.parametrize("kind", ["openai", "llama.cpp"])
def test_sounds_are_input_audio_in_the_words_of_openai(kind: str, tmp_path: Path) -> None:
    plain = {"type": "input_audio", "input_audio": {"data": data_uri(MP3).partition(",")[2], "format": "mp3"}}
    answer, sent = parts_sent(tmp_path, kind, sound_part(WAV, "wav"), plain, media=["audio"])
    assert answer.status_code == 200, answer.text
    wav = {"type": "input_audio", "input_audio": {"data": data_uri(WAV).partition(",")[2], "format": "wav"}}
    assert sent == [wav, plain]


def test_another_form_than_wav_and_mp3_is_refused_there(tmp_path: Path) -> None:
    answer, sent = parts_sent(tmp_path, "openai", sound_part(FLAC, "flac"), media=["audio"])
    assert (answer.status_code, sent) == (400, None)
    error = answer.json()["error"]
    assert error["code"] == "unsupported_content" and "wav and mp3" in error["message"]


def test_what_the_entry_does_not_name_is_refused(tmp_path: Path) -> None:
    for part in (sound_part(WAV, "wav"), {"type": "video_url", "video_url": {"url": data_uri(VIDEO, "video/mp4")}}):
        answer, sent = parts_sent(tmp_path, "vllm", part, media=["image"])
        assert (answer.status_code, answer.json()["error"]["code"], sent) == (400, "unsupported_content", None)


def test_what_is_no_sound_never_reaches_the_upstream(tmp_path: Path) -> None:
    answer, sent = parts_sent(tmp_path, "vllm", sound_part(b"RIFF" + b"x" * 200, "wav"), media=["audio"])
    assert (answer.status_code, sent) == (400, None)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"upstream_kind": "openai", "upstream_media": "[video]"}, "has videos in upstream_media, which are for tis"),
        ({"upstream_media": "[smell]"}, "is a list of image, video, audio"),
        ({"upstream_media": "image"}, "is a list of image, video, audio"),
    ],
)
def test_an_entry_with_media_that_its_kind_lacks_is_refused_at_the_start(
    fields: dict[str, str], words: str, tmp_path: Path
) -> None:
    path = tmp_path / "models.yaml"
    lines = [f"    {name}: {value}\n" for name, value in {"upstream": "http://a/v1", **fields}.items()]
    path.write_text(f"models:\n  far:\n{''.join(lines)}")
    with pytest.raises(CatalogueError, match=words):
        read_catalogue(path)


@pytest.fixture(scope="module")
def hearing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = make_hearing(tmp_path_factory.mktemp("heard") / "qwen2_audio", "qwen2_audio")
    with served(settings_with(model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120)) as running:
        yield running


@pytest.mark.model
@pytest.mark.long
def test_an_answer_about_sounds_is_that_of_the_upstream(hearing: Served, tmp_path: Path) -> None:
    body = asking("Apa ini?", sound_part(WAV, "wav"), sound_part(FLAC, "flac"), "dan ini?", model="qwen2_audio")
    body |= {"max_tokens": 24, "ignore_eos": True}
    there = httpx2.post(f"{hearing.url}{CHAT}", json=body, timeout=120).json()
    fields: dict[str, Any] = {"upstream_media": ["audio"], "upstream_model": "qwen2_audio"}
    with gateway(tmp_path, f"{hearing.url}/v1", **fields) as server, client_of(server) as client:
        here = client.post(CHAT, json=body | {"model": "far"}, timeout=120).json()
        [known] = client.get("/v1/models").json()["data"]
    assert here["choices"][0]["message"]["content"] == there["choices"][0]["message"]["content"] != ""
    assert here["usage"]["prompt_tokens"] == there["usage"]["prompt_tokens"]
    assert known["modalities"]["input"] == ["text", "audio"] and "audio" in known["capabilities"]
