"""Begins a transcription: checks it against its model, opens the file, and starts the turn."""

from tis.admission.limits import Resource
from tis.admission.ticket import Ticket
from tis.audio_api.languages import language_code
from tis.audio_api.transcription_request import SentForm, ServerVad
from tis.audio_api.transcription_run import TranscriptionRun, open_file
from tis.audio_api.transcription_spec import TranscriptionSpec
from tis.chat.run_spec import Services
from tis.engine.speech.heard import FALLBACK_TEMPERATURES, SpeechDescription
from tis.errors import BadRequest
from tis.media.audio.protocol import CutRules
from tis.streaming.session import Session
from tis.streaming.session_request import SessionRequest
from tis.streaming.sessions import Sessions
from tis.streaming.turn import Turn

_EVENTS_PER_WINDOW = 64  # more come from the store, or are a gap for who reads late
_MAX_WINDOW_EVENTS = 65_536
_OF_FILE: tuple[Resource, ...] = ("sound_seconds", "decoded_bytes", "media_bytes")


async def begin_transcription(
    sent: SentForm,
    services: Services,
    sessions: Sessions,
    wanted: SessionRequest,
    model_id: str,
    ticket: Ticket,
    at_once: int,
) -> tuple[Session, Turn]:
    assert sent.file is not None
    known = await services.engine.describe_speech(model_id)
    spec = _spec(sent, model_id, known)
    opened = await open_file(spec, sent.file, services, at_once, ticket)
    run = TranscriptionRun(spec, services, at_once, opened=opened, file=sent.file, ticket=ticket)
    num_windows = ticket.held("sound_seconds") / known.window_seconds + 1
    window = min(_MAX_WINDOW_EVENTS, int(num_windows * _EVENTS_PER_WINDOW))
    was_taken = False

    def begin() -> TranscriptionRun:
        nonlocal was_taken
        was_taken = True
        return run

    try:
        started = sessions.start(wanted.with_window(window), begin)
    finally:
        if not was_taken:  # another request began it meanwhile, or it cannot begin
            opened.sound.close()
            for resource in _OF_FILE:
                ticket.keep(resource, 0)
    if was_taken:
        run.hold_ticket()
    return started


def _spec(sent: SentForm, model_id: str, known: SpeechDescription) -> TranscriptionSpec:
    body = sent.body
    if sent.task not in known.tasks:
        raise BadRequest(f"The model `{model_id}` does not translate.", param="model", code="model_not_supported")
    if body.wants_words and not known.has_words:
        raise BadRequest(
            f"timestamp_granularities: the model `{model_id}` does not tell the times of words.",
            param="timestamp_granularities",
        )
    language = body.language and language_code(body.language, known, "language")
    allowed = [code for one in body.languages if (code := language_code(one, known, "languages"))]
    glossary = ", ".join(one for one in body.keywords if one.strip())
    vad = body.chunking_strategy
    rules = CutRules()
    if isinstance(vad, ServerVad):
        rules = CutRules(vad.prefix_padding_ms / 1000, vad.silence_duration_ms / 1000, vad.threshold)
    first = body.temperature
    return TranscriptionSpec(
        model_id=model_id,
        task=sent.task,
        file=sent.digest,
        sample_rate=known.sample_rate,
        window_seconds=known.window_seconds,
        rules=rules,
        language=language or (allowed[0] if len(allowed) == 1 else None),
        languages=allowed,
        language_names=dict(known.languages),
        prompt=" ".join(filter(None, [glossary, body.prompt])),
        temperatures=[first, *(one for one in FALLBACK_TEMPERATURES if one > first)],
        with_words=body.wants_words,
        with_logprobs=bool(body.include),
        with_segments=body.wants_segments,
    )
