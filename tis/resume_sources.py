"""Who goes on with an answer that another process has begun, by what was asked."""

from collections.abc import Sequence

from tis.anthropic_api.routes import WRITERS as ANTHROPIC_WRITERS
from tis.audio_api.speech_run import resumed_speech
from tis.audio_api.transcription_run import resumed_transcription
from tis.chat.resume import Dialects, resume_with
from tis.chat.run_spec import Services
from tis.lazy_marketplace import LazyMarketplace
from tis.ollama_api.routes import WRITERS as OLLAMA_WRITERS
from tis.openai_api.routes import DIALECTS
from tis.settings import Settings
from tis.streaming.source import ReadAttachments, ResumeSource, Source

_MARKETPLACE_TURN = b'{"kind": "marketplace_chat"'
_TRANSCRIPTION = b'{"kind": "transcription"'
_SPEECH = b'{"kind": "speech"'


def resume_source_of(services: Services, marketplace: LazyMarketplace, settings: Settings) -> ResumeSource:
    """Turns of the assistant are resumed by the marketplace, sound by its API; all others are runs."""
    resume, at_once = settings.resume_generation, settings.audio_windows_at_once
    writers = {**DIALECTS.writers, **ANTHROPIC_WRITERS, **OLLAMA_WRITERS}
    dialects = Dialects(writers, DIALECTS.failed_event)
    resume_run = resume_with(services, dialects, resume=resume)

    def resume_source(request: bytes, states: Sequence[bytes], read_attachments: ReadAttachments) -> Source:
        if request.startswith(_TRANSCRIPTION):
            return resumed_transcription(request, states, read_attachments, services, at_once, resume=resume)
        if request.startswith(_SPEECH):
            return resumed_speech(request, states, services, resume=resume)
        if not request.startswith(_MARKETPLACE_TURN):
            return resume_run(request, states, read_attachments)
        from tis.marketplace.assistant.turn import AssistantTurn

        admission = services.admission
        return AssistantTurn(request, lambda: marketplace.market, admission, None, states, may_resume=resume)

    return resume_source
