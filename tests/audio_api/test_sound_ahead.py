"""A sound file is made ahead of its reader: a slow one keeps unread bytes, no model and no room for samples."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from starlette.types import Message

from tests.audio_api.test_speech_runs import RATE, SPEC, HummingEngine, services
from tests.faults.mortal_server import until
from tis.admission.admission import Admission
from tis.admission.ticket import Ticket
from tis.audio_api.begin_speech import SoundFile
from tis.audio_api.running_files import RunningFiles
from tis.audio_api.sound_ahead import MAX_UNREAD_BYTES, SoundAhead
from tis.audio_api.spoken_file import spoken_file
from tis.engine.models.model_use import ModelUse
from tis.engine.voice.spoken import SentenceToSay
from tis.errors import GenerationFailed

pytestmark = pytest.mark.anyio
SECONDS = 2  # of a sentence
BYTES_OF_SENTENCE = SECONDS * RATE * 2


class UsedEngine(HummingEngine):
    def __init__(self, fails_at: str = "") -> None:
        super().__init__(seconds=SECONDS)
        self.use, self._fails_at = ModelUse(), fails_at

    async def say(self, model_id: str, sentence: SentenceToSay, ticket: Any, *, is_begun: bool) -> Any:
        with self.use.preparing(ticket):
            if sentence.text == self._fails_at:
                raise GenerationFailed("no more")
            return await super().say(model_id, sentence, ticket, is_begun=is_begun)


@dataclass
class ListeningClient:
    """Takes as many messages as it may: at first the head of the answer."""

    allowed: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    messages: list[Message] = field(default_factory=list)

    async def send(self, message: Message) -> None:
        await self.allowed.acquire()
        self.messages.append(message)

    def allow(self, count: int) -> None:
        for _ in range(count):
            self.allowed.release()

    @property
    def data(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)

    @property
    def has_all(self) -> bool:
        return bool(self.messages) and self.messages[-1].get("more_body") is False


@dataclass
class Sending:
    client: ListeningClient
    task: "asyncio.Task[None]"
    admission: Admission
    ticket: Ticket
    key_is_revoked: asyncio.Event


@asynccontextmanager
async def sending(engine: UsedEngine, num_sentences: int, slow_seconds: float = 60) -> AsyncIterator[Sending]:
    admission, client = Admission(), ListeningClient()
    ticket = admission.ticket("somebody")
    ticket.enter("preparing")
    spec = replace(SPEC, form="wav", speed=1.0, sentences=[str(one) for one in range(num_sentences)], max_seconds=600)
    parts = spoken_file(spec, services(engine).engine, ticket, asyncio.Event(), max_unread=MAX_UNREAD_BYTES)
    first = (await anext(parts)).data
    key_is_revoked = asyncio.Event()
    ahead = SoundAhead(first, parts, ticket, slow_seconds)
    file = SoundFile(RunningFiles(), ahead, "audio/wav", key_is_revoked.is_set)
    task = asyncio.create_task(file.stream_response(client.send))
    try:
        yield Sending(client, task, admission, ticket, key_is_revoked)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        ticket.end_request()
        assert not admission.used("decoded_bytes") and not engine.use.is_used


async def test_who_reads_nothing_of_a_speech_that_is_made_keeps_its_bytes_and_no_model() -> None:
    engine = UsedEngine()
    async with sending(engine, 6) as sent:
        await until(lambda: not engine.use.is_used)
        assert len(engine.begun) == 6 and sent.ticket.stage == "answering" and not sent.task.done()
        unread = sent.admission.used("decoded_bytes")
        assert 6 * BYTES_OF_SENTENCE <= unread + 2 * 16 * 1024 < 7 * BYTES_OF_SENTENCE
        sent.client.allow(9)
        await until(lambda: len(sent.client.messages) == 10)
        assert sent.admission.used("decoded_bytes") < unread
        sent.client.allow(1000)
        await sent.task
        assert sent.client.has_all and len(sent.client.data) >= 6 * BYTES_OF_SENTENCE


async def test_a_long_speech_is_made_as_fast_as_it_is_read_and_whoever_reads_too_slowly_is_cut() -> None:
    engine, num = UsedEngine(), 60
    async with sending(engine, num, slow_seconds=0.3) as sent:
        await until(lambda: sent.task.done())
        made = len(engine.begun)
        assert MAX_UNREAD_BYTES / BYTES_OF_SENTENCE - 4 < made < 45 and not sent.client.has_all
    engine = UsedEngine()
    async with sending(engine, num, slow_seconds=0.3) as sent:
        while not sent.task.done():  # 64 KiB in a tenth of a second
            sent.client.allow(4)
            await asyncio.sleep(0.1 if len(engine.begun) < made + 4 else 0)
        assert sent.client.has_all and len(engine.begun) == num


async def test_an_error_comes_behind_the_bytes_that_were_made_before_it() -> None:
    engine = UsedEngine(fails_at="3")
    async with sending(engine, 6) as sent:
        sent.client.allow(1000)
        await sent.task
        assert not sent.client.has_all
        assert 3 * BYTES_OF_SENTENCE <= len(sent.client.data) < 4 * BYTES_OF_SENTENCE


async def test_a_file_breaks_off_when_its_key_is_revoked() -> None:
    engine = UsedEngine()
    async with sending(engine, 60) as sent:
        sent.client.allow(3)
        await until(lambda: len(sent.client.messages) == 4)
        sent.key_is_revoked.set()
        sent.client.allow(1000)
        await sent.task
        assert not sent.client.has_all and len(sent.client.messages) <= 5


async def test_who_leaves_while_a_sentence_is_made_ends_it() -> None:
    class HeldVoiceEngine(UsedEngine):
        was_cancelled = False

        async def say(self, model_id: str, sentence: SentenceToSay, ticket: Any, *, is_begun: bool) -> Any:
            if sentence.text != "0":
                with self.use.preparing(ticket):
                    try:
                        await asyncio.Event().wait()
                    finally:
                        self.was_cancelled = True
            return await super().say(model_id, sentence, ticket, is_begun=is_begun)

    engine = HeldVoiceEngine()
    async with sending(engine, 3) as sent:
        sent.client.allow(1000)
        await until(lambda: len(sent.client.data) > BYTES_OF_SENTENCE)
        sent.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sent.task
        assert engine.was_cancelled and not engine.use.is_used


async def test_who_leaves_ends_what_is_made_ahead() -> None:
    engine = UsedEngine()
    async with sending(engine, 60) as sent:
        sent.client.allow(1)
        await until(lambda: len(engine.begun) > 3)
        sent.task.cancel()
        await asyncio.gather(sent.task, return_exceptions=True)
        made = len(engine.begun)
        await asyncio.sleep(0.05)
        assert len(engine.begun) == made < 60
