"""The names of stages and resources, which are the labels of metrics, and the bounds of resources."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

MIB = 2**20

# receiving: its body arrives. preparing: parsed, fetched, decoded, tokenised. queued: it waits for the model.
# generating: from its first token to its last. calling: a run between two rounds of the model. answering: all others.
Stage: TypeAlias = Literal["receiving", "preparing", "queued", "generating", "calling", "answering"]

Resource: TypeAlias = Literal[
    "requests",  # with a body, from their arrival until they are answered or wait for the model
    "body_bytes",
    "media_bytes",  # files of images and videos, until the answer ends
    "decoded_bytes",  # their pixels
    "image_decoders",
    "video_decoders",
    "card_readers",  # threads that read identity cards
    "grammar_compilers",
    "sound_decoders",  # processes that have a file open of which windows are still to be heard
    "heard_decoders",  # processes that decode a sound of a message
    "sound_seconds",  # of files that are being heard
    "prompt_tokens",  # of prompts that wait for the model or are being answered
]


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    max_requests: int = 512
    max_body_bytes: int = 512 * MIB
    max_media_bytes: int = 512 * MIB
    max_decoded_bytes: int = 768 * MIB
    max_decoders: int = 2  # of each kind
    max_sound_decoders: int = 16
    max_sound_seconds: int = 172_800
    max_card_readers: int = 2
    max_grammar_compilers: int = 1
    max_waiting_grammars: int = 8  # of one owner: each may take seconds, and a retry is sooner than a wait for more
    max_prompt_tokens: int = 4_000_000
    max_waiting: int = 1024  # requests, for each resource
    wait_seconds: float = 60
    owner_share: float = 1.0  # of each bound, that one owner may use

    def of(self, resource: Resource) -> int:
        bounds: dict[Resource, int] = {
            "requests": self.max_requests,
            "body_bytes": self.max_body_bytes,
            "media_bytes": self.max_media_bytes,
            "decoded_bytes": self.max_decoded_bytes,
            "image_decoders": self.max_decoders,
            "video_decoders": self.max_decoders,
            "card_readers": self.max_card_readers,
            "sound_decoders": self.max_sound_decoders,
            "heard_decoders": self.max_decoders,
            "sound_seconds": self.max_sound_seconds,
            "grammar_compilers": self.max_grammar_compilers,
            "prompt_tokens": self.max_prompt_tokens,
        }
        return bounds[resource]

    def max_waiting_of_owner(self, resource: Resource, owner_share: float | None = None) -> int:
        share = max(1, int(self.max_waiting * (owner_share or self.owner_share)))
        return min(share, self.max_waiting_grammars) if resource == "grammar_compilers" else share
