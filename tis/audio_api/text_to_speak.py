"""The body of POST /v1/audio/speech, and the voice that it names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from tis.audio_api.examples import SPEECH_REQUEST
from tis.audio_api.sound_encoder import SoundForm
from tis.engine.voice.spoken import MAX_TEXT_CHARS
from tis.errors import BadRequest
from tis.openai_api.wire.chat_request import SESSION_ID, StreamOptions, fingerprint_of

SPEECH_DIALECT = "speech"
# Of OpenAI. Clients send one of them unless they are told otherwise. Their order says which voice of a model they are.
OPENAI_VOICES = "alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse".split()
_MAX_SHOWN = 20


def _text(given: str) -> str:
    try:
        given.encode()
    except UnicodeEncodeError:
        raise ValueError("it has half a surrogate pair, which is no text") from None
    return given


_Voice = Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(_text)]


class VoiceId(BaseModel):
    id: _Voice


class TextToSpeak(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [SPEECH_REQUEST]})

    model: Annotated[str, StringConstraints(min_length=1, max_length=512)]
    input: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT_CHARS), AfterValidator(_text)]
    voice: _Voice | VoiceId
    instructions: Annotated[str, StringConstraints(max_length=4096), AfterValidator(_text)] | None = None
    response_format: SoundForm = "mp3"
    speed: float = Field(1.0, ge=0.25, le=4, allow_inf_nan=False)
    stream_format: Literal["audio", "sse"] = "audio"
    seed: int = Field(0, ge=0, lt=2**63)
    session_id: Annotated[str, StringConstraints(pattern=SESSION_ID, max_length=128)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, given: Any) -> Any:
        return {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else given

    @property
    def voice_name(self) -> str:
        return self.voice.id if isinstance(self.voice, VoiceId) else self.voice


@dataclass(slots=True)
class SentText:
    """A body whose answer is recorded: as `RecordedRequest` wants it."""

    body: TextToSpeak
    stream: bool | None = True
    stream_options: StreamOptions | None = None
    wants_usage: bool = True
    has_prompt: bool = True

    @property
    def session_id(self) -> str | None:
        return self.body.session_id

    @session_id.setter
    def session_id(self, given: str | None) -> None:
        self.body.session_id = given

    def fingerprint(self) -> str:
        return f"{SPEECH_DIALECT}:{fingerprint_of(self.body.model_dump(exclude={'session_id'}, exclude_none=True))}"


def voice_of(given: str, model_id: str, voices: Sequence[str]) -> str:
    """The voice of the model that a name means, if its voices are known. Raises BadRequest for one that it lacks."""
    if not voices:
        return given
    if found := find_voice(given, voices):
        return found
    shown = ", ".join(voices[:_MAX_SHOWN]) + (f" and {len(voices) - _MAX_SHOWN} more" * (len(voices) > _MAX_SHOWN))
    raise BadRequest(f"voice: the model `{model_id}` has no voice {given[:64]!r}. It has: {shown}.", param="voice")


def find_voice(given: str, voices: Sequence[str]) -> str | None:
    """The names of OpenAI's voices that the model does not have itself go through its voices in turn."""
    if given in voices:
        return given
    return voices[OPENAI_VOICES.index(given) % len(voices)] if voices and given in OPENAI_VOICES else None
