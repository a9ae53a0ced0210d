"""Sounds in messages: decoded whole, within the bounds of a request, and nothing of them stays behind."""

import asyncio
import base64
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]  # comes with accelerate
import pytest

from tests.media.loading import load, media_loader
from tests.media.sounds import RATE, heard_words, sound_file, spoken
from tests.media.web import body, serve_web
from tis.admission.admission import Admission
from tis.admission.limits import AdmissionLimits
from tis.admission.ticket import Ticket
from tis.errors import BadRequest
from tis.media.errors import BadMedia
from tis.media.loader import MediaSource
from tis.media.media_types import LoadedSound

pytestmark = pytest.mark.anyio
TEXT = "1 satu dua 2.5 tiga 1"  # transcriptions leave such silences out
SECONDS = 4.5 + 3 * 0.4
WAV = sound_file(spoken(TEXT))


def sources(*files: bytes) -> list[MediaSource]:
    return [
        MediaSource("audio", base64.b64encode(file).decode(), f"messages.{n}", "base64") for n, file in enumerate(files)
    ]


@pytest.mark.parametrize(
    ("form", "codec", "rate", "layout"),
    [
        ("mp3", "libmp3lame", 44_100, "stereo"),
        ("ogg", "libopus", 48_000, "stereo"),
        ("ipod", "aac", 44_100, "stereo"),
    ],
)
async def test_a_sound_is_whole_at_the_rate_of_models(form: str, codec: str, rate: int, layout: str) -> None:
    file = sound_file(spoken(TEXT, rate), form, codec, rate=rate, layout=layout)
    loaded = await load(base64.b64encode(file).decode(), "audio", "base64")
    assert isinstance(loaded, LoadedSound) and loaded.data == file
    assert len(loaded.samples) / RATE == pytest.approx(SECONDS, abs=0.15)
    words = heard_words(loaded.samples)
    assert [word for word, _, _ in words] == ["satu", "dua", "tiga"]
    assert words[0][1] == pytest.approx(1.0, abs=0.15)


async def test_the_samples_are_those_of_the_file() -> None:
    loaded = await load(base64.b64encode(WAV).decode(), "audio", "base64")
    stored = np.frombuffer(WAV[WAV.index(b"data") + 8 :], np.int16).astype(np.float32) / 32768
    np.testing.assert_array_equal(loaded.samples, stored)


async def test_all_sounds_of_a_request_share_its_seconds() -> None:
    async with media_loader(max_heard_seconds=2 * SECONDS + 1) as loader:
        with pytest.raises(BadMedia, match="all audio") as refused:
            await loader.load(sources(WAV, WAV, WAV))
    assert (refused.value.code, refused.value.param) == ("audio_too_long", "messages.2")


async def test_a_small_file_with_many_seconds_is_refused_before_it_is_decoded() -> None:
    file = sound_file(np.zeros(1200 * 8000, np.float32), "flac", "flac", rate=8000)
    assert len(file) < 300_000
    with pytest.raises(BadMedia) as refused:
        await load(base64.b64encode(file).decode(), "audio", "base64")
    assert refused.value.code == "audio_too_long"


@pytest.mark.parametrize("file", [b"", b"#EXTM3U\nfile:///etc/passwd\n", WAV[:40], bytes(5000)])
async def test_what_is_no_sound_is_a_400(file: bytes) -> None:
    with pytest.raises(BadRequest) as refused:
        await load(base64.b64encode(file).decode(), "audio", "base64")
    assert str(refused.value.code).startswith("invalid_") and refused.value.param == "messages.0.content.1"


async def test_a_sound_comes_by_url_or_permitted_path_as_pictures_do(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(WAV)
    by_path = await load(str(tmp_path / "a.wav"), "audio", local_roots=[tmp_path])
    with serve_web() as web:
        web.answers["/a.wav"] = body(WAV)
        by_url = await load("http://example.com/a.wav", "audio", **web.doubles)
    assert by_path.digest == by_url.digest and len(by_path.samples) == len(by_url.samples)


async def test_a_request_holds_room_for_its_own_sounds_and_not_for_the_longest() -> None:
    exact = round(SECONDS * RATE) * 4
    longest = 600 * RATE * 4
    admission = Admission()
    ticket = admission.ticket("a")
    async with media_loader() as loader:
        real, held = loader.sound.whole, list[int]()

        async def whole(
            data: bytes, max_seconds: float, ticket: Ticket, param: str, on_length: Callable[[float], None]
        ) -> Any:
            def is_long(seconds: float) -> None:
                on_length(seconds)
                held.append(ticket.held("decoded_bytes"))

            held.append(ticket.held("decoded_bytes"))
            return await real(data, max_seconds, ticket, param, is_long)

        loader.sound.whole = whole  # type: ignore[method-assign]
        await loader.load(sources(WAV, WAV), ticket)
        before, first, _, second = held
        assert exact < first < before < longest and first - second > exact
        assert second == 2 * exact == ticket.held("decoded_bytes")
        silent = sound_file(np.zeros(500 * 8000, np.float32), "flac", "flac", rate=8000)
        other = admission.ticket("b")
        [loaded] = await loader.load(sources(silent), other)
        assert loaded.num_bytes == other.held("decoded_bytes") > 100 * len(silent)
    for one in (ticket, other):
        one.end_request()
    assert not admission.used("decoded_bytes")


async def test_many_requests_wait_for_decoders_and_all_is_given_back() -> None:
    """Not for those that long recordings hold."""
    admission = Admission(AdmissionLimits(max_sound_decoders=1, max_decoders=1, wait_seconds=20))
    await admission.ticket("long").take("sound_decoders", 1)
    before = set(psutil.Process().children())

    async def answer(number: int) -> Sequence[int]:
        ticket = admission.ticket(str(number))
        try:
            loaded = await loader.load(sources(WAV), ticket)
            assert ticket.held("decoded_bytes") == sum(one.num_bytes for one in loaded)
            return [one.num_bytes for one in loaded]
        finally:
            ticket.end_request()

    async with media_loader() as loader:
        sizes = await asyncio.gather(*map(answer, range(3)))
        assert len({*map(tuple, sizes)}) == 1
        cancelled = asyncio.create_task(answer(7))
        await asyncio.sleep(0.05)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
    assert admission.budgets["heard_decoders"].max_used == 1
    assert {name: one.used for name, one in admission.budgets.items() if one.used} == {"sound_decoders": 1}
    assert set(psutil.Process().children()) <= before
