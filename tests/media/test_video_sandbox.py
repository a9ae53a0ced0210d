"""A decoding process that fails costs one client one response, and leaves no process, file or descriptor behind."""

import asyncio
import os
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # comes with accelerate
import pytest

from tests.media.loading import decode, decode_error, media_loader
from tests.media.videos import expected_frames, frame_number, make_video
from tests.sandbox.programs import command_without, sandbox_command
from tis.errors import Draining
from tis.media.limits import MediaBudget, MediaLimits
from tis.media.video.decoder import COMMAND, SandboxDecoder
from tis.sandbox.errors import SandboxUnavailable

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.long]
VIDEO = make_video(frames=40)


MAIN = "tis.media.video.decode_process"
WITHOUT_LIMITS = command_without("resource", MAIN)
LIMIT_RESOURCES = """
import json
from tis.media.video.decode_process import DecodeLimits, limit_resources
limit_resources(DecodeLimits(**json.loads(sys.argv[1])))
"""


@pytest.fixture(autouse=True)
async def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Checks that a test leaves no process, zombie, file or open descriptor."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    process = psutil.Process()
    before, files_before = set(process.children()), process.num_fds()
    yield
    assert set(process.children()) <= before
    assert os.listdir(tmp_path / "temporary") == []
    assert process.num_fds() <= files_before


@pytest.mark.parametrize("command", [COMMAND, WITHOUT_LIMITS], ids=["limits", "no-limits"])
@pytest.mark.parametrize(
    ("form", "codec"), [("mp4", "libx264"), ("webm", "libvpx"), ("matroska", "mpeg4"), ("avi", "mpeg4")]
)
async def test_the_expected_frames_are_sampled(command: Sequence[str], form: str, codec: str) -> None:
    limits = MediaLimits()
    decoder = SandboxDecoder(limits, command)
    frames, info = await decoder.decode(make_video(form, codec, frames=75, fps=25), MediaBudget(limits))
    decoder.close()
    assert [frame_number(frame) for frame in frames] == expected_frames(75, 25)
    assert info.times == pytest.approx([index / 25 for index in expected_frames(75, 25)])


@pytest.mark.usefixtures("many_descriptors")
async def test_a_server_with_more_than_1024_open_files_decodes() -> None:
    video = await decode(VIDEO, "video")
    assert [frame_number(frame) for frame in video.frames] == expected_frames(40, 30)


@pytest.mark.slow
async def test_playlists_are_rejected_without_opening_their_entries(tmp_path: Path) -> None:
    (tmp_path / "video.ts").write_bytes(make_video("mpegts", frames=10))
    with socket.create_server(("127.0.0.1", 0)) as canary:
        canary.setblocking(False)
        port = canary.getsockname()[1]
        here = str(tmp_path / "video.ts")
        lists = [
            f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{target}\n#EXT-X-ENDLIST\n"
            for target in (f"http://127.0.0.1:{port}/x.ts", here, f"file:{here}")
        ]
        lists += [
            f"ffconcat version 1.0\nfile '{here}'\n",
            f'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><BaseURL>{here}</BaseURL></MPD>',
            f"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=video {port} RTP/AVP 96\n",
        ]
        for text in lists:
            error = await decode_error(text.encode(), "video")
            assert error.code in ("invalid_video", "invalid_video_format")
        with pytest.raises(BlockingIOError):
            canary.accept()


@pytest.mark.parametrize(
    "program",
    [
        "os.kill(os.getpid(), 11)",
        "sys.exit(1)",
        "raise MemoryError",
        "pass",  # exits with 0 and without a result
        "server.send_bytes(b'x' * 100_000)",
        "server.send_bytes(b'x' * 10_000_000)",
        "server.send_bytes(b'[' * 100_000)",
        "server.send_bytes(b'[]')",
        "import pickle; server.send_bytes(pickle.dumps(print))",
        "server.send_bytes(b'{\"refused\": [1]}')",
        LIMIT_RESOURCES + "b = b'x' * 2**20\nwhile True: sys.stdout.buffer.write(b)",
    ],
)
async def test_a_decoder_that_crashes_or_sends_garbage_is_an_invalid_video(program: str) -> None:
    assert (
        await decode_error(VIDEO, "video", decoder_command=sandbox_command(program), max_decoded_bytes=2**22)
    ).code == "invalid_video"


async def test_a_decoder_that_returns_too_many_frames_is_an_invalid_video() -> None:
    program = """
import json
from tis.media.video.protocol import DecodeLimits, FrameWriter
limits = DecodeLimits(**json.loads(sys.argv[1]))
import numpy as np
sink = FrameWriter(sys.stdout.buffer, limits, server.send_bytes)
for _ in range(limits.max_frames + 1): sink.add(np.zeros((4, 4, 3), np.uint8))
sink.finish([0.0] * sink.count, 1.0)
"""
    assert (await decode_error(VIDEO, "video", decoder_command=sandbox_command(program))).code == "invalid_video"


async def test_a_decoder_that_hangs_is_killed() -> None:
    for program in (
        "import signal; os.kill(os.getpid(), signal.SIGXCPU)",
        "time.sleep(600)",
        "import signal; signal.signal(15, signal.SIG_IGN)\nwhile True: pass",
    ):
        error = await decode_error(VIDEO, "video", decoder_command=sandbox_command(program), decode_seconds=0.3)
        assert error.code == "video_too_large"


async def test_a_decoder_that_exceeds_its_memory_is_an_invalid_video() -> None:
    greedy = sandbox_command(LIMIT_RESOURCES + "eaten = []\nwhile True: eaten.append(bytearray(2**24))")
    assert (
        await decode_error(VIDEO, "video", decoder_command=greedy, decoder_memory_bytes=2**28)
    ).code == "invalid_video"


@pytest.mark.slow
async def test_a_video_that_needs_too_much_memory_is_rejected() -> None:
    large = make_video(frames=4, size=(3840, 2160))
    error = await decode_error(large, "video", decoder_memory_bytes=280 * 2**20)
    assert error.code in ("video_too_large", "invalid_video")
    assert (await decode(large, "video")).frames.shape == (4, 2160, 3840, 3)


@pytest.mark.parametrize("command", [("/no/such/program",), command_without("av", MAIN)])
async def test_a_decoder_that_does_not_start_makes_decoding_unavailable(
    command: Sequence[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with media_loader(decoder_command=command) as loader:
        for _ in range(2):
            with pytest.raises(SandboxUnavailable, match="decode videos"):
                await loader.decode("video", VIDEO)
    [record] = caplog.records
    assert any(why in record.getMessage() for why in ("No such file", "import of av halted"))


async def test_the_timeout_applies_where_resource_limits_cannot_be_set() -> None:
    error = await decode_error(make_video(frames=2000), "video", decoder_command=WITHOUT_LIMITS, decode_seconds=0.001)
    assert error.code == "video_too_large"


async def test_cancelling_a_request_kills_its_decoder(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = f"open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    async with media_loader(decoder_command=sandbox_command(program)) as loader:
        request = asyncio.create_task(loader.decode("video", VIDEO))
        pid = await _written(started)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_closing_the_loader_ends_all_waiting_requests(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = f"open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    async with media_loader(decoder_command=sandbox_command(program)) as loader:
        request = asyncio.create_task(loader.decode("video", VIDEO))
        await _written(started)
    with pytest.raises(Draining):
        await request


async def _written(path: Path) -> int:
    def wait() -> int:
        while not (path.exists() and path.read_text()):
            time.sleep(0.01)
        return int(path.read_text())

    return await asyncio.to_thread(wait)


async def test_the_number_of_concurrent_decoders_has_a_maximum(tmp_path: Path) -> None:
    program = f"""
mine = os.path.join({str(tmp_path)!r}, str(os.getpid()) + ".running")
open(mine, "w").close()
time.sleep(0.1)
others = [name for name in os.listdir({str(tmp_path)!r}) if name.endswith(".running")]
open(os.path.join({str(tmp_path)!r}, str(os.getpid()) + ".saw"), "w").write(str(len(others)))
os.remove(mine)
"""
    async with media_loader(decoder_command=sandbox_command(program), max_decoders=2) as loader:
        await asyncio.gather(*(loader.decode("video", VIDEO) for _ in range(5)), return_exceptions=True)
    saw = [int((tmp_path / name).read_text()) for name in os.listdir(tmp_path) if name.endswith(".saw")]
    assert len(saw) == 5 and max(saw) == 2


async def test_the_decoder_does_not_inherit_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEYS", "sesame")
    program = f"open({str(tmp_path / 'environment')!r}, 'w').write(repr(dict(os.environ)))"
    await decode_error(VIDEO, "video", decoder_command=sandbox_command(program))
    assert "sesame" not in (tmp_path / "environment").read_text()
