"""A server whose models speak: tiny ones with random weights, computed as any other."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.engine.voice.models import save_speecht5, save_vits
from tests.serving import Served, served, settings_with

CATALOGUE = """
models:
  mono:
    repo: {folder}/mono
    task: speech
    aliases: [tts-1]
  duo:
    repo: {folder}/duo
    task: speech
    voices: {{budi: 0, ani: 1}}
  slow:
    repo: {folder}/slow
    task: speech
    voices: {{nova: ani.npy}}
    vocoder: {folder}/slow/vocoder
  narrow:
    repo: {folder}/mono
    task: speech
    limits: {{max_queue_size: 1}}
  chatter:
    repo: echo
"""


def write_catalogue(folder: Path) -> Path:
    save_vits(folder / "mono", use_stochastic_duration_prediction=False)
    save_vits(folder / "duo", 2, use_stochastic_duration_prediction=False)
    save_speecht5(folder / "slow")
    (folder / "models.yaml").write_text(CATALOGUE.format(folder=folder))
    return folder / "models.yaml"


@contextmanager
def speaking_server(folder: Path, **values: Any) -> Iterator[Served]:
    settings = settings_with(
        model_config_path=str(write_catalogue(folder)),
        model_repo_id="mono",
        models=("duo", "slow", "narrow", "chatter"),
        load_wait_seconds=120,
        **values,
    )
    with served(settings) as running:
        yield running
