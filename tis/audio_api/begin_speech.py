"""Answers a text with speech: a sound file that is sent while it is made, or a recorded stream of events."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Literal
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Message, Send

from tis.audio_api.audio_options import AudioOptions
from tis.audio_api.running_files import RunningFiles
from tis.audio_api.sound_ahead import MAX_UNREAD_BYTES, SoundAhead
from tis.audio_api.sound_encoder import MEDIA_TYPES
from tis.audio_api.sound_span import sound_span
from tis.audio_api.speech_run import SpeechRun
from tis.audio_api.speech_spec import SpeechSpec
from tis.audio_api.spoken_file import SoundPart, require_sayable, spoken_file
from tis.audio_api.text_to_speak import SPEECH_DIALECT, SentText, TextToSpeak, find_voice, voice_of
from tis.cancellation import Cancelled, race_cancel, race_draining
from tis.chat.run_spec import Services
from tis.errors import NotImplementedHere, ServiceError
from tis.http.admission import ticket_of
from tis.http.errors import InvalidApiKey
from tis.http.event_stream import CLIENT_CLOSED_REQUEST, ClientGone, while_connected
from tis.observability.spans import Span, ending
from tis.openai_api.routes.models import served_model
from tis.openai_api.routes.recorded import RecordedAnswer
from tis.openai_api.wire.ignored import name_ignored
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.turn import Turn

_log = logging.getLogger("tis.audio")


class SpeechAnswer:
    def __init__(self, body: TextToSpeak, request: Request, services: Services, audio: AudioOptions) -> None:
        self._audio = audio
        self._body = body
        self._request = request
        self._services = services
        self._ticket = ticket_of(request)

    async def response(
        self,
        sessions: Sessions,
        owner: str,
        strict: Literal["auto", "0", "1"],
        last_event_id: str | None,
        last_event_id_query: str | None,
    ) -> Response:
        engine, body = self._services.engine, self._body
        if not any(entry.task == "speech" for entry in engine.models):
            named = next((entry.id for entry in engine.models if entry.is_called(body.model)), None)
            which = f"The model `{named}` does not speak" if named else "No model of this server speaks"
            raise NotImplementedHere(f"{which}: the catalogue needs a model with the task speech.")
        model_id = served_model(engine, body.model, strict, "speech")
        if body.stream_format == "sse":
            answer = await self._recorded(model_id, sessions, owner, last_event_id, last_event_id_query)
        else:
            answer = await self._file(model_id, partial(sessions.is_revoked, owner))
        also, known = [], await engine.describe(model_id)
        if used := find_voice(body.voice_name, known.voices):
            answer.headers["X-Voice"] = quote(used)
            also = ["voice"] if len(known.voices) == 1 and body.voice_name != used else []
        no_effect = [] if known.takes_instructions else ["instructions"]
        no_effect += [] if known.takes_seed else ["seed"]
        no_effect += ["session_id"] if body.stream_format == "audio" else []
        return await name_ignored(answer, self._request, body, engine, model_id, no_effect, also)

    async def _recorded(
        self, model_id: str, sessions: Sessions, owner: str, last_event_id: str | None, last_event_id_query: str | None
    ) -> Response:
        services, ticket = self._services, self._ticket
        recorded = RecordedAnswer(
            SentText(self._body),
            self._request,
            sessions,
            owner,
            dialect=SPEECH_DIALECT,
            prompt_field="input",
            chunk_object="",
            last_event_id=last_event_id,
            last_event_id_query=last_event_id_query,
        )

        async def begin(wanted: SessionRequest) -> tuple[Session, Turn]:
            run = SpeechRun(await self._spec(model_id), services, ticket)
            was_taken = False

            def take() -> SpeechRun:
                nonlocal was_taken
                was_taken = True
                return run

            started = sessions.start(wanted, take)
            if was_taken:  # else another request began it meanwhile
                run.hold_ticket()
            return started

        session, turn = await recorded.find_or_begin(services.engine, begin)
        ticket.answer()
        return await recorded.response(session, turn, _no_fold)

    async def _file(self, model_id: str, is_revoked: Callable[[], bool]) -> Response:
        """The first bytes are made before the answer begins: until then an error has a status of its own."""
        engine, work = self._services.engine, sound_span("speech", model_id, "")

        async def begun() -> tuple[bytes, AsyncGenerator[SoundPart, None]]:
            parts = spoken_file(
                await self._spec(model_id),
                engine,
                self._ticket,
                asyncio.Event(),
                max_unread=MAX_UNREAD_BYTES,
                span=work.span,
            )
            async for part in parts:
                if part.data:
                    return part.data, parts
            raise AssertionError("a sound file has a header")

        work.begin()
        try:
            first, parts = await while_connected(self._request, race_draining(engine.until_draining(), begun()))
        except ClientGone as gone:
            work.end(gone)
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        except BaseException as fault:
            is_fault_of_client = isinstance(fault, ServiceError) and fault.status < 500
            work.end(None if is_fault_of_client else fault)
            raise
        ahead = SoundAhead(first, _until_end(parts, work.span), self._ticket, self._audio.slow_reader_seconds)
        return SoundFile(self._audio.running_files, ahead, MEDIA_TYPES[self._body.response_format], is_revoked)

    async def _spec(self, model_id: str) -> SpeechSpec:
        body, engine = self._body, self._services.engine
        known = await engine.describe_voice(model_id)
        voice = voice_of(body.voice_name, model_id, known.voices)
        cut = await engine.cut_text(model_id, body.input, body.speed)
        spec = SpeechSpec(
            model_id=model_id,
            revision=known.revision,
            sample_rate=known.sample_rate,
            sets_pace=known.sets_pace,
            sentences=cut.sentences,
            num_tokens=cut.num_tokens,
            voice=voice,
            origin=known.origins.get(voice, ""),
            speed=body.speed,
            seed=body.seed,
            form=body.response_format,
            max_seconds=self._audio.max_speech_seconds,
            instructions=body.instructions or "",
        )
        require_sayable(spec, known.min_token_seconds)
        return spec


class SoundFile(StreamingResponse):
    """An error in its middle breaks the connection off, which clients notice: a file has no place for a reason."""

    def __init__(
        self, files: RunningFiles, ahead: SoundAhead, media_type: str, is_revoked: Callable[[], bool] = lambda: False
    ) -> None:
        headers = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
        self._pieces = ahead.pieces()
        super().__init__(self._pieces, media_type=media_type, headers=headers)
        self._files, self._ahead, self._is_revoked = files, ahead, is_revoked

    async def stream_response(self, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            if self._is_revoked():
                raise InvalidApiKey("its API key has been revoked")
            await race_cancel(self._ahead.too_slow.wait(), send(message))

        try:
            with self._files.one():
                async with aclosing(self._pieces):
                    await super().stream_response(send_in_time)
        except Cancelled:
            _log.warning("a sound file broke off: its client reads too slowly")
        except ServiceError as error:
            _log.warning("a sound file broke off: %s", error.message)


async def _until_end(parts: AsyncGenerator[SoundPart, None], span: Span) -> AsyncGenerator[SoundPart, None]:
    with ending(span):
        async with aclosing(parts):
            async for part in parts:
                yield part


def _no_fold(events: object, summary: bytes) -> bytes:
    raise AssertionError("a stream is not folded")
