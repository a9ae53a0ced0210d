"""Files of many formats become windows of samples, in a sandbox; what is no sound is refused, and nothing is left."""

import asyncio
import io
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]  # comes with accelerate
import pytest

from tests.media.sounds import FORMATS, RATE, heard_words, noise, sound_file, spoken, with_gap
from tis.admission.admission import Admission
from tis.admission.limits import AdmissionLimits
from tis.admission.ticket import Ticket
from tis.errors import QueueFull
from tis.media.audio.decoder import OpenedSound, SoundDecoder, SoundWanted, SoundWindow
from tis.media.audio.protocol import SoundRefused
from tis.media.audio.pyav import decoded_chunks
from tis.media.errors import BadMedia
from tis.media.limits import MediaLimits

pytestmark = [pytest.mark.anyio, pytest.mark.long]
WANTED = SoundWanted(RATE, 30.0)
TEXT = "satu dua tiga 0.5 empat lima"


@pytest.fixture
async def decoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SoundDecoder]:
    """Checks that a test leaves no process, zombie, file or open descriptor."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    process = psutil.Process()
    before, files_before = set(process.children()), process.num_fds()
    made = SoundDecoder(MediaLimits(max_sound_seconds=600))
    yield made
    made.close()
    assert set(process.children()) <= before
    assert os.listdir(tmp_path / "temporary") == []
    assert process.num_fds() <= files_before


def ticket() -> Ticket:
    return Admission().ticket("")


async def windows_of(decoder: SoundDecoder, data: bytes, wanted: SoundWanted = WANTED) -> list[SoundWindow]:
    opened = await decoder.open(data, wanted, ticket(), "file")
    return await rest_of(opened)


async def rest_of(opened: OpenedSound) -> list[SoundWindow]:
    found = []
    while window := await opened.next():
        found.append(window)
    return found


def words_of(windows: list[SoundWindow]) -> list[str]:
    return [word for window in windows for word, _, _ in heard_words(window.samples)]


async def refusal(decoder: SoundDecoder, data: bytes) -> BadMedia:
    with pytest.raises(BadMedia) as caught:
        await windows_of(decoder, data)
    return caught.value


@pytest.mark.parametrize(("form", "codec", "rate", "layout", "with_video"), FORMATS, ids=str)
async def test_a_format_is_decoded(
    decoder: SoundDecoder, form: str, codec: str, rate: int, layout: str, with_video: bool
) -> None:
    data = sound_file(spoken(TEXT, rate), form, codec, rate=rate, layout=layout, with_video=with_video)
    windows = await windows_of(decoder, data)
    assert words_of(windows) == ["satu", "dua", "tiga", "empat", "lima"]
    [window] = windows
    assert window.samples.dtype == np.float32
    assert window.start == 0


async def test_long_silence_is_left_out_and_times_are_those_of_the_file(decoder: SoundDecoder) -> None:
    opened = await decoder.open(sound_file(spoken("5 satu dua 40 tiga 9")), WANTED, ticket(), "file")
    first, second = await rest_of(opened)
    assert opened.seconds == pytest.approx(5 + 0.8 + 40 + 0.4 + 9, abs=0.01)
    assert first.start + heard_words(first.samples)[0][1] == pytest.approx(5, abs=0.05)
    assert second.start + heard_words(second.samples)[0][1] == pytest.approx(45.8, abs=0.05)
    assert len(first.samples) + len(second.samples) < 3 * RATE


async def test_windows_that_were_heard_before_are_skipped(decoder: SoundDecoder) -> None:
    data = sound_file(spoken("satu 3 dua 3 tiga 3 empat"))
    all_windows = await windows_of(decoder, data)
    rest = await windows_of(decoder, data, SoundWanted(RATE, 30.0, num_skipped=2))
    assert [window.start for window in rest] == [window.start for window in all_windows[2:]]
    assert all(np.array_equal(one.samples, other.samples) for one, other in zip(rest, all_windows[2:], strict=True))


@pytest.mark.parametrize("seconds", [0.05, 3.0])
async def test_silence_has_no_window(decoder: SoundDecoder, seconds: float) -> None:
    opened = await decoder.open(sound_file(spoken(str(seconds))), WANTED, ticket(), "file")
    assert await opened.next() is None
    assert opened.seconds == pytest.approx(seconds, abs=0.01)


GOOD = sound_file(spoken(TEXT), "mp3", "libmp3lame")
BAD: dict[str, bytes] = {
    "a byte": b"\0",
    "text": b"Selamat pagi. " * 900,
    "zeros": bytes(200_000),
    "random": np.random.default_rng(1).bytes(50_000),
    "a wav without samples": sound_file(spoken("0.01"))[:44],
    "half a wav head": sound_file(spoken(TEXT))[:20],
    "m3u8": b"#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
    "ffconcat": b"ffconcat version 1.0\nfile /etc/passwd\n",
    "sdp": b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\n",
    "m3u": b"#EXTM3U\nhttp://127.0.0.1:9/a.mp3\n",
    "mpd": b'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><Period/></MPD>',
    "a video without sound": b"",
}


def _silent_video() -> bytes:
    from tests.media.videos import make_video

    return make_video(frames=5)


@pytest.mark.parametrize("name", BAD)
async def test_what_is_no_sound_is_refused(decoder: SoundDecoder, name: str) -> None:
    error = await refusal(decoder, BAD[name] or _silent_video())
    assert (error.status, error.param) == (400, "file")
    assert error.code in ("invalid_audio_format", "invalid_audio")


async def test_a_video_without_sound_is_told_so_and_not_that_its_format_is_wrong(decoder: SoundDecoder) -> None:
    error = await refusal(decoder, _silent_video())
    assert (error.code, "has no sound" in error.message) == ("invalid_audio", True)


async def test_a_file_that_breaks_off_is_heard_until_there(decoder: SoundDecoder) -> None:
    whole = sound_file(spoken("satu dua tiga empat lima enam " * 4), "mp3", "libmp3lame")
    words = words_of(await windows_of(decoder, whole[: len(whole) // 2]))
    assert 8 <= len(words) < 24
    assert words[:6] == ["satu", "dua", "tiga", "empat", "lima", "enam"]


async def test_damage_in_the_middle_costs_only_what_is_damaged(decoder: SoundDecoder) -> None:
    whole = bytearray(sound_file(spoken("satu dua tiga empat lima enam " * 4), "mp3", "libmp3lame"))
    middle = len(whole) // 2
    whole[middle : middle + 800] = bytes(800)
    words = words_of(await windows_of(decoder, bytes(whole)))
    assert words[:6] == words[-6:] == ["satu", "dua", "tiga", "empat", "lima", "enam"]


async def test_hours_of_silence_are_refused_before_they_are_decoded(decoder: SoundDecoder) -> None:
    minutes = sound_file(np.zeros(60 * 8000, np.float32), "flac", "flac", rate=8000)
    assert (await windows_of(decoder, minutes)) == []
    long = sound_file(np.zeros(700 * 8000, np.float32), "ogg", "libopus", rate=8000, bit_rate=6000)
    assert len(long) < 400_000
    error = await refusal(decoder, long)
    assert (error.status, error.code) == (400, "audio_too_long")


@pytest.mark.parametrize("form", ["webm", "matroska"])
async def test_sound_that_is_missing_in_a_file_is_silence(decoder: SoundDecoder, form: str) -> None:
    """As a recorder leaves it that was paused, or lost its connection."""
    file = with_gap(sound_file(spoken("satu 1.6 dua tiga"), form, "libopus", rate=RATE), after=1.0, seconds=5.0)
    [first, second] = await windows_of(decoder, file)
    assert words_of([first, second]) == ["satu", "dua", "tiga"]
    [(_, start, _), *_] = heard_words(second.samples)
    assert second.start + start == pytest.approx(2.0 + 5.0, abs=0.1)


async def test_a_gap_of_years_is_refused(decoder: SoundDecoder) -> None:
    file = with_gap(sound_file(spoken("satu 1.6 dua"), "matroska", "libopus"), after=1.0, seconds=5e7)
    assert (await refusal(decoder, file)).code == "audio_too_long"
    with pytest.raises(SoundRefused, match="seconds"):
        list(decoded_chunks(io.BytesIO(file), RATE, max_seconds=100))


def test_a_file_that_claims_to_be_short_ends_at_the_limit() -> None:
    with pytest.raises(SoundRefused, match="seconds"):
        list(decoded_chunks(io.BytesIO(sound_file(spoken("5"))), RATE, max_seconds=2))


async def test_seconds_and_processes_are_counted_while_a_file_is_heard(decoder: SoundDecoder) -> None:
    admission = Admission(AdmissionLimits(max_sound_seconds=10, wait_seconds=0.05))
    first, second = admission.ticket("a"), admission.ticket("a")
    opened = await decoder.open(sound_file(spoken("satu 7 dua")), WANTED, first, "file")
    assert admission.used("sound_decoders") == 1
    assert admission.used("sound_seconds") == 8
    with pytest.raises(QueueFull):
        await decoder.open(sound_file(spoken("satu 7 dua")), WANTED, second, "file")
    assert admission.used("sound_decoders") == 1
    await rest_of(opened)
    assert admission.used("sound_decoders") == 0
    assert admission.used("sound_seconds") == 8
    first.end_request()
    assert admission.used("sound_seconds") == 0


async def test_a_client_that_leaves_frees_the_process(decoder: SoundDecoder) -> None:
    opened = await decoder.open(sound_file(spoken("satu 3 dua 3 tiga")), WANTED, ticket(), "file")
    asking = asyncio.create_task(opened.next())
    await asyncio.sleep(0)
    asking.cancel()
    opened.close()
    await asyncio.gather(asking, return_exceptions=True)


async def test_windows_of_noise_are_whole(decoder: SoundDecoder) -> None:
    windows = await windows_of(decoder, sound_file(noise(65, 0.05)))
    sizes = [len(window.samples) for window in windows]
    assert sum(sizes) == pytest.approx(65 * RATE, abs=RATE)
    assert max(sizes) <= 30 * RATE


def cuts(samples: Any, chunk: int, **rules: float) -> list[tuple[int, int]]:
    from tis.media.audio.cutting import cut_windows
    from tis.media.audio.protocol import CutRules

    chunks = (samples[start : start + chunk] for start in range(0, len(samples), chunk))
    found = list(cut_windows(chunks, RATE, 30.0, CutRules(**rules)))
    return [(window.start, len(window.samples)) for window in found if window]


def test_the_cut_does_not_depend_on_how_the_sound_arrives() -> None:
    samples = (
        spoken("satu dua 0.4 tiga 1.2 empat 2.6 " * 30)
        + noise(193.2, 0.002)[: len(spoken("satu dua 0.4 tiga 1.2 empat 2.6 " * 30))]
    )
    assert cuts(samples, 1000) == cuts(samples, 777_777) == cuts(samples, 33)
    assert max(size for _, size in cuts(samples, 1000)) <= 30 * RATE


def test_no_word_is_cut_and_none_is_lost() -> None:
    text = "satu dua tiga 0.3 empat lima 0.5 enam tujuh delapan 0.2 " * 40
    samples = spoken(text)
    found = cuts(samples, 16_000)
    assert len(found) > 4
    words = [word for start, size in found for word, _, _ in heard_words(samples[start : start + size])]
    assert words == [word for word in text.split() if not word.startswith("0.")]


def test_without_a_pause_the_quietest_place_is_cut() -> None:
    times = np.arange(70 * RATE) / RATE
    samples = (np.sin(2 * np.pi * 500 * times) * (0.3 + 0.25 * np.sin(2 * np.pi * times / 7))).astype(np.float32)
    (first, first_size), *_ = cuts(samples, 16_000)
    assert first == 0
    assert (first_size / RATE / 7) % 1 == pytest.approx(0.75, abs=0.03)


def test_a_shorter_silence_ends_a_window_where_a_request_says_so() -> None:
    samples = spoken("satu 0.8 dua 0.8 tiga")
    assert len(cuts(samples, 16_000)) == 1
    assert len(cuts(samples, 16_000, silence_seconds=0.5)) == 3
