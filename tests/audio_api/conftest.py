from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from openai import OpenAI

from tests.audio_api.tones import MODELS, TonesEngine
from tests.serving import Served, served, settings_with


@pytest.fixture(scope="session")
def ears(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with two models that hear tones, and one that chats."""
    catalogue = tmp_path_factory.mktemp("ears") / "models.yaml"
    catalogue.write_text(MODELS)
    settings = settings_with(
        model_config_path=str(catalogue),
        model_repo_id="tones",
        models=("deaf-to-words", "chatter"),
        max_audio_mb=2,
        max_audio_seconds=3600,
    )
    with served(settings, make_engine=TonesEngine) as running:
        yield running


@pytest.fixture
def openai(ears: Served, sdk: Callable[[Served], OpenAI]) -> OpenAI:
    return sdk(ears)


@pytest.fixture
def durable_folder(tmp_path: Path) -> Path:
    return tmp_path
