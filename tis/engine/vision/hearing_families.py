"""Models that hear and see nothing: a decoder with an encoder of sounds before it, which answers chats."""

# By `config.model_type`. Models that hear and see are found as those that see.
HEARING_FAMILIES = frozenset({"qwen2_audio", "audioflamingo3", "musicflamingo", "glmasr", "voxtral", "granite_speech"})
