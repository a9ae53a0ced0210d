"""Models that hear and see nothing: a decoder with an encoder of sounds before it, which answers chats."""

from typing import Any

from tis.engine.errors import LoadFailed

# By `config.model_type`. Models that hear and see are found as those that see.
HEARING_FAMILIES = frozenset({"qwen2_audio", "audioflamingo3", "musicflamingo", "glmasr"})
_NOT_SERVED = {
    "voxtral": "only the tokenizer of mistral-common writes its prompts, and the server does not use that",
    "voxtral_realtime": "it hears while it writes",
    "granite_speech": "its processor needs torchaudio, which the server does not use",
    "granite_speech_plus": "its processor needs torchaudio, which the server does not use",
    "qwen2_5_omni": "it speaks, too; the server does not load its parts alone",
    "qwen3_omni_moe": "it speaks, too; the server does not load its parts alone",
    "kyutai_speech_to_text": "it writes down what it hears, and answers no chats",
}


def require_served(config: Any) -> None:
    """Raises LoadFailed for a model that hears in a way that this server does not know."""
    if reason := _NOT_SERVED.get(config.model_type):
        raise LoadFailed(f"Models of type {config.model_type} are not served: {reason}.")
