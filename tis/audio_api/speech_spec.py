"""What a speech was asked to be: all that another process needs to make the same bytes."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from tis.audio_api.sound_encoder import SoundForm
from tis.chat.run_spec import OtherVersion

KIND = "speech"
# It rises when the same request makes other bytes.
_VERSION = 2


@dataclass(frozen=True, slots=True)
class SpeechSpec:
    model_id: str
    revision: str
    sample_rate: int  # of the model
    sets_pace: bool  # the model itself speaks faster; else its sound is made faster
    sentences: Sequence[str]
    num_tokens: int  # of the text
    voice: str
    origin: str  # of the voice, as the model describes it
    speed: float
    seed: int
    form: SoundForm
    max_seconds: float
    instructions: str = ""
    caller: str = ""  # the name of the key whose tokens these are
    traceparent: str = ""  # of the span of the run, in the process that began it

    def to_json(self) -> bytes:
        return json.dumps({"kind": KIND, "version": _VERSION, **asdict(self)}, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, given: Any) -> Self:
        """Raises OtherVersion, or KeyError or TypeError if it is no speech at all."""
        fields = dict(given)
        if (fields.pop("kind", None), fields.pop("version", None)) != (KIND, _VERSION):
            raise OtherVersion("a speech of another version")
        return cls(**fields)
