"""The form of a transcription or translation as a checked object."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator

from tis.bounds import MaxItems
from tis.engine.speech.heard import SpeechTask
from tis.errors import BadRequest, TooLarge
from tis.http.error_handlers import bad_request_from
from tis.http.multipart import FormPart, bad_form, read_form
from tis.media.limits import in_mib
from tis.openai_api.wire.chat_request import SESSION_ID, StreamOptions, fingerprint_of

DIALECT = "transcription"
MAX_FIELDS_BYTES = 256 * 1024  # of a form, beside its file
_MAX_FIELD_BYTES = 32 * 1024
_MAX_SAME_NAME = 256
_MAX_NAME_CHARS = 100
_LISTS = ("timestamp_granularities", "include", "languages", "keywords")
_NO_EFFECT = ("known_speaker_names", "known_speaker_references", "user")
_IN_BRACKETS = re.compile(r"(\w+)\[(\w*)\]", re.ASCII)
Format = Literal["json", "text", "srt", "vtt", "verbose_json"]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class ServerVad(BaseModel):
    """How the file is cut: what is not set follows from the levels of the sound."""

    type: Literal["server_vad"]
    prefix_padding_ms: int = Field(300, ge=0, le=5000)
    silence_duration_ms: int = Field(2000, ge=100, le=30_000)
    threshold: float = Field(0.5, ge=0, le=1)


class TranscriptionRequest(BaseModel):
    """What OpenAI's client sends, and `session_id`. `digest` is of the file."""

    model_config = ConfigDict(extra="ignore")

    model: Annotated[str, StringConstraints(max_length=512)] | None = None
    language: _Name | None = None
    languages: Annotated[list[_Name], MaxItems(64)] = Field(default_factory=list)
    prompt: Annotated[str, StringConstraints(max_length=8192)] = ""
    keywords: Annotated[list[Annotated[str, StringConstraints(max_length=256)]], MaxItems(256)] = Field(
        default_factory=list
    )
    response_format: Format = "json"
    temperature: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    timestamp_granularities: Annotated[list[Literal["word", "segment"]], MaxItems(8)] = Field(default_factory=list)
    include: Annotated[list[Literal["logprobs"]], MaxItems(8)] = Field(default_factory=list)
    chunking_strategy: Literal["auto"] | ServerVad | None = None
    stream: bool | None = None
    session_id: Annotated[str, StringConstraints(pattern=SESSION_ID, max_length=128)] | None = None

    @field_validator("response_format", mode="before")
    @classmethod
    def _no_speakers(cls, given: Any) -> Any:
        if given == "diarized_json":
            raise ValueError("diarized_json is not supported: no model here tells speakers apart")
        return given

    @field_validator("chunking_strategy", mode="before")
    @classmethod
    def _from_json(cls, given: Any) -> Any:
        if isinstance(given, str) and given.lstrip().startswith("{"):
            return _parsed(given, "it is no JSON object")
        return given

    @model_validator(mode="after")
    def _fit_together(self) -> "TranscriptionRequest":
        if self.timestamp_granularities and self.response_format != "verbose_json":
            raise BadRequest(
                "timestamp_granularities need response_format verbose_json.", param="timestamp_granularities"
            )
        if self.include and self.response_format != "json":
            raise BadRequest("include logprobs needs response_format json.", param="include")
        if self.stream and self.response_format in ("srt", "vtt"):
            raise BadRequest(
                f"A stream has no response_format {self.response_format}: it has events with text, and with "
                "verbose_json those of segments. Send stream=false.",
                param="stream",
            )
        return self

    @property
    def wants_segments(self) -> bool:
        """Times of segments are recorded."""
        return self.response_format in ("verbose_json", "srt", "vtt")

    @property
    def wants_words(self) -> bool:
        return "word" in self.timestamp_granularities


@dataclass(slots=True)
class SentForm:
    """A form that was read: as `RecordedRequest` wants it."""

    body: TranscriptionRequest
    task: SpeechTask
    file: bytes | None  # None: it resumes a session
    digest: str
    ignored: Sequence[str]  # names of fields that have no effect
    session_id: str | None
    stream: bool | None
    stream_options: StreamOptions | None = None
    wants_usage: bool = True

    @property
    def has_prompt(self) -> bool:
        return self.file is not None

    def fingerprint(self) -> str:
        fields = self.body.model_dump(exclude={"stream", "session_id"}, exclude_none=True)
        return f"{DIALECT}:{fingerprint_of({**fields, 'task': self.task, 'file': self.digest})}"


async def read_sent_form(
    request: Request, task: SpeechTask, max_bytes: int, digest_of: Callable[[bytes], Awaitable[str]]
) -> SentForm:
    left = MAX_FIELDS_BYTES

    def max_bytes_of(name: str, num_before: int) -> int | None:
        nonlocal left
        if name == "file":
            if num_before:
                raise BadRequest("file: a request has one file.", param="file")
            return max_bytes
        if len(name) > _MAX_NAME_CHARS or num_before >= _MAX_SAME_NAME:
            raise bad_form("a name is too long, or too many parts have it")
        left -= len(name)
        if left < 0:
            raise bad_form("its fields are too long")
        return _MAX_FIELD_BYTES

    parts = await read_form(request, max_bytes_of)
    if parts is None:
        raise BadRequest("Send a multipart/form-data body with the field `file`.", param="file")
    files = [part for part in parts if part.name == "file"]
    fields = [part for part in parts if part.name != "file"]
    if sum(len(part.data) for part in fields) > MAX_FIELDS_BYTES:
        raise bad_form("its fields are too long")
    values = _values(fields)
    body = _validated(values)
    file = files[0].take() if files else None
    if files and files[0].is_too_large:
        raise TooLarge(f"file: the file is larger than {in_mib(max_bytes)}, the most that is taken.", param="file")
    if file == b"":
        raise BadRequest("file: the file is empty.", param="file", code="invalid_audio")
    unknown = [name for name in values if name not in TranscriptionRequest.model_fields]
    digest = await digest_of(file) if file is not None else ""
    return SentForm(body, task, file, digest, unknown, body.session_id, body.stream)


def _values(parts: Sequence[FormPart]) -> dict[str, Any]:
    """By name. A list may be repeated, be a JSON list, and have brackets behind its name."""
    values: dict[str, Any] = {}
    for part in parts:
        if part.is_too_large:
            raise bad_form(f"the field {part.name[:40]} is too long")
        try:
            text = part.take().decode()
        except UnicodeDecodeError:
            raise BadRequest(f"{part.name[:40]}: it is not UTF-8.", param=part.name[:40]) from None
        bracketed = _IN_BRACKETS.fullmatch(part.name)
        name, key = (bracketed[1], bracketed[2]) if bracketed else (part.name, "")
        if name in (*_LISTS, *_NO_EFFECT):
            values.setdefault(name, []).extend(_entries(name, text))
        elif key and name == "chunking_strategy":  # as OpenAI's client sends an object
            inner = values.setdefault(name, {})
            if isinstance(inner, dict):
                inner[key] = text
        elif text:
            values[part.name] = text
    return values


def _entries(name: str, text: str) -> list[Any]:
    if not text.strip():
        return []
    if text.lstrip().startswith("["):
        found = _parsed(text, "it is no JSON list", name)
        return found if isinstance(found, list) else [found]
    return [text]


def _parsed(text: str, why: str, name: str = "chunking_strategy") -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadRequest(f"{name}: {why}.", param=name) from None


def _validated(values: Mapping[str, Any]) -> TranscriptionRequest:
    try:
        return TranscriptionRequest.model_validate(values)
    except ValidationError as error:
        raise bad_request_from([{**one, "loc": ("body", *one["loc"])} for one in error.errors()]) from None
