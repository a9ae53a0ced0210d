"""Settings of images, video and audio in messages."""

from pydantic import BaseModel, Field

from tis.setting_types import CommaSeparated


class MediaSettings(BaseModel):
    """Images and video"""

    allow_remote_media: bool = Field(
        True, description="fetch media from public http(s) URLs (also read as ALLOW_REMOTE_IMAGES)"
    )
    media_allowed_hosts: CommaSeparated = Field(
        (), description="only from these hosts: exact names and *.example.com; empty = any public host"
    )
    media_timeout_seconds: float = Field(
        10, gt=0, le=600, description="for a fetch with all its redirects (also read as REMOTE_IMAGE_TIMEOUT)"
    )
    media_local_roots: CommaSeparated = Field(
        (), description="folders whose files requests may name by path or file: URL; empty = none"
    )
    max_media_mb: float = Field(
        32,
        gt=0,
        description="largest image, video or audio part in MiB (also read as MAX_REMOTE_IMAGE_BYTES, in bytes)",
    )
    max_request_media_mb: float = Field(64, gt=0, description="all media of a request together, in MiB")
    max_media_items: int = Field(
        32, ge=0, le=1000, description="max images, videos and audio parts of a request; 0 = none"
    )
    # Above that Pillow itself refuses a picture.
    max_image_pixels: int = Field(25_000_000, ge=1, le=178_956_970, description="max width times height of an image")
    max_video_seconds: float = Field(600, gt=0, description="longest video")
    max_video_frames: int = Field(16, ge=2, le=768, description="max frames of a video, spread evenly")
    max_chat_audio_seconds: float = Field(
        600, gt=0, le=14_400, description="longest audio in the messages of a request, all of it together"
    )
    max_decoded_mb: float = Field(512, gt=0, description="memory for the decoded media of a request, in MiB")
    media_decode_seconds: float = Field(30, gt=0, le=3600, description="timeout for decoding a video or a large image")
