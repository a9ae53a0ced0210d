"""A crowd of requests starts a few at a time, and other owners need not wait for its end."""

import asyncio

from tis.http.start_pacing import StartPacer

REQUEST_SECONDS = 0.03


class BusyLoop:
    """Requests that each take the event loop for 30 ms, by a clock of their own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pacer = StartPacer(lambda: self.now)
        self.started: list[str] = []
        self.passes: list[float] = []

    async def request(self, owner: str) -> None:
        await self.pacer.turn(owner)
        self.started.append(owner)
        self.now += REQUEST_SECONDS

    async def stream(self) -> None:
        """Gets a turn in every pass of the loop."""
        while True:
            self.passes.append(self.now)
            await asyncio.sleep(0)

    @property
    def longest_passes(self) -> list[float]:
        return sorted(after - before for before, after in zip(self.passes, self.passes[1:], strict=False))[::-1]


def test_a_crowd_leaves_each_pass_short() -> None:
    async def scenario() -> None:
        loop = BusyLoop()
        stream = asyncio.create_task(loop.stream())
        await asyncio.gather(*(loop.request("crowd") for _ in range(200)))
        stream.cancel()
        assert loop.started == ["crowd"] * 200
        # The first pass cannot know what a request costs.
        assert loop.longest_passes[0] <= 9 * REQUEST_SECONDS and loop.longest_passes[4] <= 2 * REQUEST_SECONDS

    asyncio.run(scenario())


def test_owners_start_in_turn() -> None:
    async def scenario() -> None:
        loop = BusyLoop()
        crowd = [asyncio.create_task(loop.request("crowd")) for _ in range(200)]
        other = asyncio.create_task(loop.request("other"))
        await asyncio.gather(*crowd, other)
        assert loop.started.index("other") < 20

    asyncio.run(scenario())


def test_a_few_requests_start_at_once() -> None:
    async def scenario() -> None:
        pacer = StartPacer(lambda: 0.0)
        for _ in range(100):
            turns = [pacer.turn("owner") for _ in range(8)]
            for turn in turns:
                try:
                    turn.send(None)
                except StopIteration:
                    continue
                raise AssertionError("it waits")
            for _ in range(3):
                await asyncio.sleep(0)
        assert not pacer._is_counting

    asyncio.run(scenario())


def test_a_request_that_is_cancelled_while_it_waits_leaves_the_queue() -> None:
    async def scenario() -> None:
        loop = BusyLoop()
        crowd = [asyncio.create_task(loop.request("crowd")) for _ in range(50)]
        await asyncio.sleep(0)
        for task in crowd[20:40]:
            task.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)
        assert len(loop.started) == 30 and not loop.pacer._waiting
        await loop.request("next")
        assert loop.started[-1] == "next"

    asyncio.run(scenario())


def test_a_request_may_be_cancelled_in_the_pass_that_starts_it() -> None:
    async def scenario() -> None:
        loop = BusyLoop()
        crowd = [asyncio.create_task(loop.request("crowd")) for _ in range(50)]
        await asyncio.sleep(0)
        for task in crowd[8:40]:
            task.cancel()
        loop.pacer._on_pass()  # before the tasks notice
        await asyncio.gather(*crowd, return_exceptions=True)
        assert len(loop.started) == 18 and not loop.pacer._waiting

    asyncio.run(scenario())
