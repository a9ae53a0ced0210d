"""Loads a model that speaks without a server, and has it say a sentence."""

from pathlib import Path
from typing import Any

from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.loading import LoadOptions
from tis.engine.voice.load_voice import load_voice
from tis.engine.voice.loaded_voice import LoadedVoice
from tis.engine.voice.spoken import SentenceToSay


def load(folder: Path, **fields: Any) -> LoadedVoice:
    entry = CatalogueEntry("mouth", str(folder), "speech", **fields)
    return load_voice(entry, LoadOptions(device_map="cpu"), lambda stage, progress: None)


def said(
    loaded: LoadedVoice, text: str = "Selamat pagi, dunia.", voice: str = "", pace: float = 1.0, seed: int = 7
) -> Any:
    """The samples."""
    runner: Any = loaded.new_runner()
    return runner.samples(SentenceToSay(text, voice or loaded.description.voices[0], pace, seed))
