"""Settings of admission: what all requests together may use."""

from pydantic import BaseModel, Field


class AdmissionSettings(BaseModel):
    """Admission"""

    max_pending_requests: int = Field(
        512, ge=1, description="requests with a body that are received and prepared at once; more of them wait"
    )
    max_bodies_mb: float = Field(512, gt=0, description="memory for the bodies of all current requests, in MiB")
    max_all_media_mb: float = Field(
        512, gt=0, description="memory for the image and video files of all current requests, in MiB"
    )
    max_all_decoded_mb: float = Field(
        768, gt=0, description="memory for the decoded images and videos of all current requests, in MiB"
    )
    max_all_audio_seconds: int = Field(172_800, ge=1, description="seconds of all audio files that are being heard")
    max_prompt_tokens: int = Field(
        4_000_000, ge=1, description="tokens of all prompts that wait for a model or are being answered"
    )
    max_waiting_requests: int = Field(
        1024, ge=1, description="requests that wait for room in one of these; more get a 429"
    )
    admission_wait_seconds: float = Field(
        60, gt=0, le=600, description="how long a request waits for room before it gets a 429"
    )
    owner_share: float = Field(
        0.5, gt=0, le=1, description="part of each of these and of MAX_QUEUE_SIZE that one of several API keys may use"
    )
