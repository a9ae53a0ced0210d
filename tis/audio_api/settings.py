"""Settings of the audio API."""

from pydantic import BaseModel, Field


class AudioSettings(BaseModel):
    """Audio"""

    max_audio_mb: float = Field(
        25, gt=0, le=2000, description="largest audio file in MiB; more is a 413 (also read as MAX_AUDIO_BYTES)"
    )
    max_audio_seconds: float = Field(14_400, gt=0, le=604_800, description="longest audio, after decoding")
    audio_windows_at_once: int = Field(
        8, ge=1, le=64, description="windows of one file (of 30 seconds at most) that the model gets at once"
    )
    max_speech_seconds: float = Field(1200, gt=0, le=86_400, description="longest sound that is made of a text")
