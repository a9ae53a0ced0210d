"""The body of POST /v1/audio/speech."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tis.audio_api.examples import SPEECH_REQUEST

_Voice = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class VoiceId(BaseModel):
    id: _Voice


class TextToSpeak(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [SPEECH_REQUEST]})

    model: Annotated[str, StringConstraints(min_length=1, max_length=512)]
    input: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    voice: _Voice | VoiceId
    instructions: Annotated[str, StringConstraints(max_length=4096)] | None = None
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] = "mp3"
    speed: float = Field(1.0, ge=0.25, le=4, allow_inf_nan=False)
    stream_format: Literal["audio", "sse"] = "audio"
