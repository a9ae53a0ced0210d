"""Example forms and answers of the audio API for /docs."""

from typing import Any

from tis.openai_api.wire.examples import Responses, error_example

SPEECH_REQUEST: Any = {"model": "voice", "input": "Selamat pagi!", "voice": "alloy", "response_format": "wav"}
_TEXT = {"type": "string"}
_FIELDS: dict[str, Any] = {
    "file": {"type": "string", "format": "binary", "description": "flac, m4a, mp3, mp4, mpeg, ogg, wav or webm"},
    "model": {**_TEXT, "example": "whisper"},
    "language": {**_TEXT, "example": "id", "description": "a code or a name; without it, detected"},
    "prompt": {**_TEXT, "description": "names and words that are said; each window gets it"},
    "response_format": {"enum": ["json", "text", "srt", "vtt", "verbose_json"], "default": "json"},
    "temperature": {"type": "number", "minimum": 0, "maximum": 1, "default": 0},
    "timestamp_granularities[]": {"type": "array", "items": {"enum": ["word", "segment"]}},
    "include[]": {"type": "array", "items": {"enum": ["logprobs"]}},
    "chunking_strategy": {**_TEXT, "description": "`auto`, or an object with type `server_vad`"},
    "languages[]": {"type": "array", "items": _TEXT},
    "keywords[]": {"type": "array", "items": _TEXT},
    "stream": {"type": "boolean", "default": False},
    "session_id": {**_TEXT, "description": "names the answer, to come back to it"},
}
_DONE = (
    '{"type":"transcript.text.done","text":"Selamat pagi.","task":"transcribe","language":"indonesian",'
    '"languages":[{"code":"id"}],"duration":1.52,"usage":{"type":"tokens","input_tokens":76,'
    '"input_token_details":{"audio_tokens":76,"text_tokens":0},"output_tokens":6,"total_tokens":82}}'
)
_STREAM = (
    "id: sess-1:0\nretry: 1500\nevent: transcript.text.delta\n"
    'data: {"type":"transcript.text.delta","delta":"Selamat pagi."}\n\n'
    f"id: sess-1:1\nevent: transcript.text.done\ndata: {_DONE}\n\n"
)


def _form(fields: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, "required": ["file"]}
    return {"requestBody": {"content": {"multipart/form-data": {"schema": schema}}, "required": True}}


TRANSCRIPTION_FORM = _form(_FIELDS)
TRANSLATION_FORM = _form(_FIELDS)
TRANSCRIPTION_RESPONSES: Responses = {
    200: {
        "description": "The text: JSON, plain text or subtitles, or a stream of events if `stream` is true",
        "content": {
            "application/json": {
                "example": {"text": "Selamat pagi.", "usage": {"type": "duration", "seconds": 2}},
            },
            "text/event-stream": {"example": _STREAM},
        },
    },
    400: error_example(
        "Invalid file format. Supported formats: flac, m4a, mp3, mp4, mpeg, mpga, oga, ogg, wav, or webm.",
        "invalid_request_error",
        "file",
        "invalid_audio_format",
    ),
    413: error_example(
        "file: the file is larger than 25 MiB, the most that is taken.",
        "invalid_request_error",
        "file",
        "body_too_large",
    ),
}
_SPEECH_STREAM = (
    "id: sess-1:0\nretry: 1500\nevent: speech.audio.delta\n"
    'data: {"type":"speech.audio.delta","audio":"//OIxAA7LBawAU9gAAkY41tOE4Ho..."}\n\n'
    "id: sess-1:1\nevent: speech.audio.done\n"
    'data: {"type":"speech.audio.done","usage":{"input_tokens":27,"output_tokens":61,"total_tokens":88}}\n\n'
)
SPEECH_RESPONSES: Responses = {
    200: {
        "description": "The sound, sent while it is made; with `stream_format` sse a stream of events",
        "content": {
            "audio/mpeg": {"schema": {"type": "string", "format": "binary"}, "example": "the bytes of an mp3"},
            "text/event-stream": {"example": _SPEECH_STREAM},
        },
    },
    400: error_example(
        "voice: the model `voice` has no voice 'zulu'. It has: default.",
        "invalid_request_error",
        "voice",
        "invalid_value",
    ),
    501: error_example(
        "No model of this server speaks: the catalogue needs a model with the task speech.",
        "invalid_request_error",
        None,
        "not_implemented",
    ),
}
