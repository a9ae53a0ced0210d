"""Pixels have a budget of the server: many requests with large images wait for each other."""

import asyncio
from collections.abc import Sequence

import pytest
from PIL import Image

from tests.media.images import data_uri, encoded
from tests.media.loading import media_loader
from tests.media.videos import make_video
from tests.media.web import body, serve_web
from tis.admission.admission import Admission
from tis.admission.limits import MIB, AdmissionLimits
from tis.admission.ticket import Ticket
from tis.errors import QueueFull
from tis.media.errors import BadMedia
from tis.media.loader import MediaLoader, MediaSource

pytestmark = pytest.mark.anyio
SIDE = 1000
LARGE = data_uri(encoded(Image.new("RGB", (SIDE, SIDE), "red")))  # 3 kB that become 3 MB
PIXEL_BYTES = SIDE * SIDE * 3


def sources(*values: str) -> list[MediaSource]:
    return [MediaSource("image", value, f"messages.{n}") for n, value in enumerate(values)]


async def answer(loader: MediaLoader, ticket: Ticket, wanted: Sequence[MediaSource]) -> int:
    """What a request does with its media: it holds the pixels while the loop runs, and gives them back."""
    try:
        loaded = await loader.load(wanted, ticket)
        await asyncio.sleep(0)
        return len(loaded)
    finally:
        ticket.end_request()


async def test_24_small_requests_with_large_images_share_a_budget_of_pixels() -> None:
    admission = Admission(AdmissionLimits(max_decoded_bytes=4 * PIXEL_BYTES + 1))
    async with media_loader() as loader:
        requests = (answer(loader, admission.ticket("a"), sources(LARGE)) for _ in range(24))
        assert await asyncio.gather(*requests) == [1] * 24
    budget = admission.budgets["decoded_bytes"]
    assert (budget.used, budget.max_used) == (0, 4 * PIXEL_BYTES)


async def test_a_request_asks_for_all_of_its_images_at_once_so_that_none_blocks_another() -> None:
    admission = Admission(AdmissionLimits(max_decoded_bytes=5 * PIXEL_BYTES))
    async with media_loader() as loader:
        requests = (answer(loader, admission.ticket(str(n)), sources(*[LARGE] * 3)) for n in range(4))
        assert await asyncio.gather(*requests) == [3] * 4
    assert admission.budgets["decoded_bytes"].max_used == 3 * PIXEL_BYTES


async def test_a_video_gives_back_what_it_does_not_need() -> None:
    admission = Admission()
    ticket, video = admission.ticket("a"), make_video()
    async with media_loader() as loader:
        [loaded] = await loader.load([MediaSource("video", data_uri(video, "video/mp4"), "v")], ticket)
    assert loaded.num_bytes == admission.used("decoded_bytes") < MIB < admission.budgets["decoded_bytes"].max_used
    assert admission.used("media_bytes") == len(video) and admission.used("video_decoders") == 0


async def test_nothing_is_fetched_before_there_is_room_for_the_files() -> None:
    admission = Admission(AdmissionLimits(max_media_bytes=MIB, wait_seconds=0.001))
    await admission.ticket("other").take("media_bytes", MIB)

    def resolve(host: str, port: int) -> list[str]:
        raise AssertionError("it was resolved")

    async with media_loader(resolve=resolve) as loader:
        with pytest.raises(QueueFull, match="images and videos"):
            await loader.load(sources("http://example.com/a.png"), admission.ticket("a"))


async def test_a_file_that_is_larger_than_expected_gets_more_room_or_is_refused() -> None:
    large = encoded(Image.new("RGB", (10, 10))) + bytes(6 * MIB)
    with serve_web() as web:
        web.answers["/a.png"] = body(large)
        for room, is_enough in ((8, True), (5, False)):
            admission = Admission(AdmissionLimits(max_media_bytes=room * MIB))
            ticket = admission.ticket("a")
            async with media_loader(**web.doubles) as loader:
                if is_enough:
                    await loader.load(sources("http://pictures.example/a.png"), ticket)
                    assert admission.used("media_bytes") == len(large)
                else:
                    with pytest.raises(QueueFull, match="images and videos"):
                        await loader.load(sources("http://pictures.example/a.png"), ticket)


async def test_too_many_images_in_the_decoders_queue_are_refused() -> None:
    admission = Admission(AdmissionLimits(max_decoders=1, max_waiting=1))
    decoding, waiting = admission.ticket("other"), admission.ticket("other")
    await decoding.take("image_decoders", 1)
    turn = asyncio.create_task(waiting.take("image_decoders", 1))
    async with media_loader() as loader:
        with pytest.raises(QueueFull, match="decoded"):
            await answer(loader, admission.ticket("b"), sources(LARGE))
        decoding.end_request()
        await turn
        waiting.end_request()
        assert await answer(loader, admission.ticket("b"), sources(LARGE)) == 1
    assert admission.used("decoded_bytes") == 0


async def test_a_bad_image_gives_everything_back() -> None:
    admission = Admission()
    async with media_loader() as loader:
        for bad in (data_uri(b"x" * 100), "data:image/png;base64,???", data_uri(encoded(Image.new("L", (9, 9)))[:-30])):
            with pytest.raises(BadMedia) as refused:
                await answer(loader, admission.ticket("a"), sources(LARGE, bad))
            assert refused.value.param == "messages.1"
    assert all(not budget.used for budget in admission.budgets.values())


async def test_stored_media_of_resumed_answers_wait_and_are_not_refused() -> None:
    admission = Admission(AdmissionLimits(max_decoded_bytes=PIXEL_BYTES, max_waiting=1, wait_seconds=0.001))
    data = encoded(Image.new("RGB", (SIDE, SIDE)))
    async with media_loader() as loader:

        async def resume() -> int:
            ticket = admission.resumed_ticket()
            ticket.begin_run()
            loaded = await loader.decode_all(["image"], [data], ticket)
            ticket.end_run()
            return len(loaded)

        assert await asyncio.gather(*(resume() for _ in range(4))) == [1] * 4
    assert admission.budgets["decoded_bytes"].max_used == PIXEL_BYTES
