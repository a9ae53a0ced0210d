"""What a transcription was asked to do: with its records, all that another process needs to go on with it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from tis.chat.run_spec import OtherVersion
from tis.engine.speech.heard import SpeechTask
from tis.media.audio.protocol import CutRules

KIND = "transcription"
# It rises when the same records make other events, or the same file other windows.
_VERSION = 2


@dataclass(frozen=True, slots=True)
class TranscriptionSpec:
    model_id: str
    task: SpeechTask
    file: str  # the digest of its bytes, which are an attachment
    sample_rate: int
    window_seconds: float
    rules: CutRules
    language: str | None  # a code; None: detected in the first window
    languages: Sequence[str]  # codes that a detected one may be; empty: any
    language_names: Mapping[str, str]  # by code
    prompt: str
    temperatures: Sequence[float]
    with_words: bool
    with_logprobs: bool
    with_segments: bool  # events of segments are recorded beside those of text
    caller: str = ""  # the name of the key whose tokens these are
    traceparent: str = ""  # of the span of the run, in the process that began it

    def to_json(self) -> bytes:
        return json.dumps({"kind": KIND, "version": _VERSION, **asdict(self)}, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, given: Any) -> Self:
        """Raises OtherVersion, or KeyError or TypeError if it is no transcription at all."""
        fields = dict(given)
        if (fields.pop("kind", None), fields.pop("version", None)) != (KIND, _VERSION):
            raise OtherVersion("a transcription of another version")
        return cls(**{**fields, "rules": CutRules(**fields["rules"])})
