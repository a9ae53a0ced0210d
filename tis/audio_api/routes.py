"""POST /v1/audio/transcriptions, /v1/audio/translations and /v1/audio/speech."""

import asyncio
import hashlib
from functools import partial
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Request, Response

from tis.audio_api.audio_options import AudioOptions
from tis.audio_api.begin_speech import SpeechAnswer
from tis.audio_api.begin_transcription import begin_transcription
from tis.audio_api.examples import SPEECH_RESPONSES, TRANSCRIPTION_FORM, TRANSCRIPTION_RESPONSES, TRANSLATION_FORM
from tis.audio_api.folded_transcript import MEDIA_TYPES, folded
from tis.audio_api.text_to_speak import TextToSpeak
from tis.audio_api.transcription_request import DIALECT, SentForm, read_sent_form
from tis.chat.run_spec import Services
from tis.engine.speech.heard import SpeechTask
from tis.http.admission import ticket_of
from tis.http.dependencies import OwnerDep, SessionsDep
from tis.http.event_stream import (
    CLIENT_CLOSED_REQUEST,
    ClientGone,
    failing_once,
    is_long,
    session_headers,
    whole_turn,
)
from tis.http.scanned_route import ScannedBodyRoute, in_thread_if
from tis.openai_api.routes.models import OptionsDep, ServicesDep, served_model
from tis.openai_api.routes.recorded import RecordedAnswer
from tis.openai_api.routes.streams import LastEventId, LastEventIdQuery
from tis.openai_api.wire.ignored import name_in_header
from tis.openai_api.wire.sse import require_dialect
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.turn import Turn

router = APIRouter(prefix="/audio", tags=["OpenAI"], route_class=ScannedBodyRoute)


async def _options(request: Request) -> AudioOptions:
    return cast(AudioOptions, request.app.state.audio_options)


AudioOptionsDep = Annotated[AudioOptions, Depends(_options)]


@router.post(
    "/transcriptions", response_model=None, responses=TRANSCRIPTION_RESPONSES, openapi_extra=TRANSCRIPTION_FORM
)
async def create_transcription(
    request: Request,
    services: ServicesDep,
    sessions: SessionsDep,
    owner: OwnerDep,
    options: OptionsDep,
    audio: AudioOptionsDep,
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
) -> Response:
    """Write down what is said in an audio or video file of any length, whole or as a stream that clients can resume.

    The file is cut at pauses; the parts are heard at the same time, and the text of the first comes first.
    """
    sent = await _sent(request, "transcribe", audio)
    answering = _TranscriptionAnswer(sent, request, services, sessions, owner, audio)
    return await answering.response(options.strict_model, last_event_id, last_event_id_query)


@router.post("/translations", response_model=None, responses=TRANSCRIPTION_RESPONSES, openapi_extra=TRANSLATION_FORM)
async def create_translation(
    request: Request,
    services: ServicesDep,
    sessions: SessionsDep,
    owner: OwnerDep,
    options: OptionsDep,
    audio: AudioOptionsDep,
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
) -> Response:
    """Write down in English what is said in an audio or video file, for models that translate."""
    sent = await _sent(request, "translate", audio)
    answering = _TranscriptionAnswer(sent, request, services, sessions, owner, audio)
    return await answering.response(options.strict_model, last_event_id, last_event_id_query)


@router.post("/speech", response_model=None, response_class=Response, responses=SPEECH_RESPONSES)
async def create_speech(
    body: TextToSpeak,
    request: Request,
    services: ServicesDep,
    sessions: SessionsDep,
    owner: OwnerDep,
    options: OptionsDep,
    audio: AudioOptionsDep,
    last_event_id: LastEventId = None,
    last_event_id_query: LastEventIdQuery = None,
) -> Response:
    """Speak a text, with a model that speaks: as a sound file, or as a stream of events that clients can resume.

    Sentences are spoken one after the other, and the sound of the first is sent while the next is made.
    """
    answering = SpeechAnswer(body, request, services, audio)
    return await answering.response(sessions, owner, options.strict_model, last_event_id, last_event_id_query)


async def _sent(request: Request, task: SpeechTask, audio: AudioOptions) -> SentForm:
    return await read_sent_form(request, task, audio.max_file_bytes, lambda data: asyncio.to_thread(_digest, data))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=32).hexdigest()


class _TranscriptionAnswer:
    def __init__(
        self,
        sent: SentForm,
        request: Request,
        services: Services,
        sessions: Sessions,
        owner: str,
        audio: AudioOptions,
    ) -> None:
        self._sent = sent
        self._request = request
        self._services, self._sessions = services, sessions
        self._owner = owner
        self._audio = audio

    async def response(self, strict: str, last_event_id: str | None, last_event_id_query: str | None) -> Response:
        sent, services, ticket = self._sent, self._services, ticket_of(self._request)
        recorded = RecordedAnswer(
            sent,
            self._request,
            self._sessions,
            self._owner,
            dialect=DIALECT,
            prompt_field="file",
            chunk_object="",
            last_event_id=last_event_id,
            last_event_id_query=last_event_id_query,
        )

        async def begin(wanted: SessionRequest) -> tuple[Session, Turn]:
            model_id = served_model(services.engine, sent.body.model, strict, "transcription")  # type: ignore[arg-type]
            return await begin_transcription(
                sent, services, self._sessions, wanted, model_id, ticket, self._audio.windows_at_once
            )

        session, turn = await recorded.find_or_begin(services.engine, begin)
        ticket.answer()
        if sent.stream:
            answer = await recorded.response(session, turn, _no_fold)
        else:
            require_dialect(turn, DIALECT)
            answer = await self._folded(session, turn)
        return name_in_header(answer, self._sent.ignored)

    async def _folded(self, session: Session, turn: Turn) -> Response:
        body = self._sent.body
        await session.recording.require(turn.first_index - 1)
        try:
            with failing_once(turn):
                events = await whole_turn(self._request, session, turn)
                fold = partial(
                    folded,
                    events,
                    body.response_format,
                    body.timestamp_granularities,
                    with_logprobs=bool(body.include),
                )
                answer = await in_thread_if(is_long(events), fold)
        except ClientGone:
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        return Response(answer, media_type=MEDIA_TYPES[body.response_format], headers=session_headers(session))


def _no_fold(events: object, summary: bytes) -> bytes:
    raise AssertionError("a stream is not folded")
