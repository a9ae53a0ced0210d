"""Films: which frames are kept, when they are shown, and what is refused."""

import base64
import io
import struct
from fractions import Fraction

import av
import numpy as np
import pytest

from tests.media.films import a_film, evenly, number_of
from tests.media.loading import decode, load, undecoded
from tests.media.pictures import a_picture

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
FORMS = [("mp4", "libx264"), ("mp4", "mpeg4"), ("mp4", "libx265"), ("mov", "mjpeg"), ("webm", "libvpx")]
FORMS += [("webm", "libvpx-vp9"), ("matroska", "libx264"), ("mpegts", "libx264"), ("avi", "mpeg4"), ("avi", "libx264")]
FORMS += [("flv", "flv"), ("mpeg", "mpeg2video")]


@pytest.mark.parametrize(("form", "codec"), FORMS)
async def test_frames_are_kept_evenly_and_know_their_times(form: str, codec: str) -> None:
    pixels = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    clip = await decode(a_film(form, codec, frames=75, fps=25, pixels=pixels), "video")
    kept = evenly(75, 25)
    assert len(kept) == 6 and [number_of(frame) for frame in clip.frames] == kept
    assert clip.fps == 25 and clip.times == pytest.approx([index / 25 for index in kept], abs=1e-9)
    assert clip.frames.dtype == np.uint8 and clip.frames.shape[1:] == (48, 64, 3) and clip.frames.flags.writeable


@pytest.mark.parametrize(
    ("form", "codec", "options"),
    [
        ("mp4", "libx264", {"movflags": "frag_keyframe+empty_moov+default_base_moof"}),
        ("webm", "libvpx", {"live": "1"}),
        ("matroska", "libx264", {"live": "1"}),
    ],
)
async def test_films_that_were_written_as_a_stream_have_no_count_and_no_index(
    form: str, codec: str, options: dict[str, str]
) -> None:
    film = a_film(form, codec, frames=75, fps=25, options=options)
    with av.open(io.BytesIO(film)) as container:
        assert container.streams.video[0].frames == 0
    clip = await decode(film, "video")
    assert [number_of(frame) for frame in clip.frames] == evenly(75, 25)
    assert clip.times == pytest.approx([index / 25 for index in evenly(75, 25)], abs=1e-9)


async def test_a_film_with_one_key_frame_is_decoded_from_there() -> None:
    clip = await decode(a_film("mp4", "libx264", frames=200, keys_every=1000), "video")
    assert [number_of(frame) for frame in clip.frames] == evenly(200, 30)


async def test_an_animated_gif_is_a_film_too() -> None:
    clip = await decode(a_film("gif", "gif", frames=40, fps=20, pixels="rgb8"), "video")
    assert [number_of(frame) for frame in clip.frames] == evenly(40, 20)
    assert clip.times == pytest.approx([index / 20 for index in evenly(40, 20)])


@pytest.mark.parametrize(
    ("frames", "fps"), [(1, 30), (2, 30), (3, 30), (4, 30), (5, 1), (33, Fraction(30000, 1001)), (400, 10)]
)
async def test_the_number_of_frames_follows_the_official_rule(frames: int, fps: Fraction | int) -> None:
    clip = await decode(a_film(frames=frames, fps=fps), "video")
    assert [number_of(frame) for frame in clip.frames] == evenly(frames, float(fps))
    assert clip.times == pytest.approx([index / float(fps) for index in evenly(frames, float(fps))], abs=1e-4)


async def test_a_rule_says_how_many_are_kept_at_most() -> None:
    clip = await decode(a_film(frames=300), "video", max_video_frames=5)
    assert [number_of(frame) for frame in clip.frames] == evenly(300, 30, 5)


@pytest.mark.parametrize(("form", "codec"), [("matroska", "mpeg4"), ("mp4", "libx264"), ("webm", "libvpx")])
async def test_frames_at_uneven_times_have_their_own(form: str, codec: str) -> None:
    # Slow, then fast: an even rate would put the last ones seconds away from where they are.
    times = [100 * n for n in range(20)] + [2000 + 10 * n for n in range(1, 21)]
    clip = await decode(a_film(form, codec, frames=40, times_ms=times), "video")
    kept = [number_of(frame) for frame in clip.frames]
    assert kept == evenly(40, clip.fps)
    assert clip.times == pytest.approx([times[n] / 1000 for n in kept], abs=0.002)


async def test_times_begin_with_the_film() -> None:
    clip = await decode(a_film("matroska", frames=20, times_ms=[5000 + 100 * n for n in range(20)]), "video")
    assert clip.times[0] == 0 and clip.times[-1] == pytest.approx(1.9)


@pytest.mark.parametrize(("degrees", "seen"), [(90, 3), (180, 2), (270, 1)])
async def test_a_telephone_held_upright_is_turned(degrees: int, seen: int) -> None:
    film = bytearray(a_film(frames=4))
    cosine, sine = {90: (0, 1), 180: (-1, 0), 270: (0, -1)}[degrees]
    matrix = struct.pack(">9i", *(part << 16 for part in (cosine, sine, 0, -sine, cosine, 0, 0, 0)), 1 << 30)
    place = film.index(b"tkhd") + 44
    film[place : place + 36] = matrix
    turned = (await decode(bytes(film), "video")).frames
    lying = (await decode(a_film(frames=4), "video")).frames
    assert np.array_equal(turned, np.rot90(lying, seen, axes=(1, 2)))


async def test_films_come_as_data_uris_and_base64() -> None:
    film = a_film(frames=8)
    written = base64.b64encode(film).decode()
    for value in (written, f"data:video/mp4;base64,{written}"):
        assert (await load(value, "video")).data == film


async def test_a_film_is_named_by_its_bytes() -> None:
    one, same, other = [await decode(a_film(frames=n), "video") for n in (8, 8, 9)]
    assert one.digest == same.digest != other.digest


@pytest.mark.parametrize(
    "data", [b"", b"no film", b"RIFF\0\0\0\0AVI LIST", a_picture("JPEG"), a_picture("PNG"), bytes(5000)]
)
async def test_what_is_no_film_is_refused(data: bytes) -> None:
    assert (await undecoded(data, "video")).code in ("invalid_video", "invalid_video_format")


async def test_a_film_without_its_index_is_refused() -> None:
    film = a_film("mp4", "libx264")
    assert (await undecoded(film[: len(film) // 2], "video")).code in ("invalid_video", "invalid_video_format")


async def test_sound_alone_is_no_film() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    assert (await undecoded(file.getvalue(), "video")).code == "invalid_video_format"


async def test_limits_of_a_film() -> None:
    film = a_film(frames=90, fps=30)
    assert (await decode(film, "video", max_video_seconds=3, max_frame_pixels=64 * 48)).frames.shape[0] == 6
    for limit in (
        {"max_video_seconds": 2.9},
        {"max_frame_pixels": 64 * 48 - 1},
        {"max_decoded_bytes": 6 * 64 * 48 * 3 - 1},
        {"max_frames_decoded": 10},
    ):
        assert (await undecoded(film, "video", **limit)).code == "video_too_large"


async def test_the_header_of_a_film_is_not_believed() -> None:
    film = a_film("matroska", frames=40, fps=2)
    place = film.index(b"\x44\x89\x88") + 3  # Duration, in milliseconds
    assert struct.unpack_from(">d", film, place) == (20_000,)
    lying = film[:place] + struct.pack(">d", 2000) + film[place + 8 :]
    assert (await undecoded(lying, "video", max_video_seconds=10)).code == "video_too_large"
