"""Loads a model that speaks. Takes seconds to minutes, so it runs in a thread of its own."""

import weakref
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import weights_bytes_of, weights_time_of
from tis.engine.models.hub_files import find_folder
from tis.engine.models.load_progress import Report, reporting_weights
from tis.engine.models.loading import LoadOptions, device_name
from tis.engine.models.model_status import ModelFootprint
from tis.engine.models.revision import revision_of
from tis.engine.models.torch_preload import preload_torch
from tis.engine.voice.loaded_voice import LoadedVoice
from tis.engine.voice.speaking_model import SpeakingModel
from tis.engine.voice.spoken import MAX_TEXT_CHARS, SentenceToSay
from tis.engine.voice.vits_voice import read_vits

_WARM_TEXT = "Halo, selamat pagi."


def load_voice(entry: CatalogueEntry, options: LoadOptions, report: Report) -> LoadedVoice:
    report("importing torch and transformers", None)
    preload_torch()
    import transformers

    from tis.engine.voice.speaking_runner import SpeakingRunner

    transformers.utils.logging.disable_progress_bar()
    folder = find_folder(entry.repo, options.source, report)
    report("reading the tokenizer", None)
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=options.trust_remote_code)
    if config.model_type not in _READERS:
        raise LoadFailed(
            f"A model of type {config.model_type!r} is not served for speech: use one of {', '.join(_READERS)}."
        )
    models: list[Any] = []

    def read(model_class: Any, place: Path = folder) -> Any:
        report("reading the weights", None)
        with reporting_weights(lambda share: report("reading the weights", share)):
            made = model_class.from_pretrained(
                place, dtype=options.dtype, device_map=options.device_map, use_safetensors=True
            ).eval()
        models.append(made.float() if made.device.type == "cpu" else made)
        return models[-1]

    voice = _READERS[config.model_type](transformers, folder, read, entry.voices)
    model = models[0]
    return LoadedVoice(
        new_runner=partial(SpeakingRunner, voice, model.device),
        context_length=MAX_TEXT_CHARS,
        revision=revision_of(folder),
        weights_time=weights_time_of(folder),
        weights_bytes=weights_bytes_of(folder),
        footprint=ModelFootprint(
            device=device_name(model.device),
            dtype=str(model.dtype).removeprefix("torch."),
            weight_bytes=sum(int(one.get_memory_footprint()) for one in models),
            cache_tokens=0,
            cache_bytes=0,
        ),
        weights=weakref.ref(model),
        warm_up=partial(_warm_up, voice),
        voices=voice.voices,
        model=voice,
    )


def _warm_up(voice: SpeakingModel, runner: Any) -> None:
    if voice.num_tokens(_WARM_TEXT):
        runner.samples(SentenceToSay(_WARM_TEXT, voice.voices[0]))


Read = Callable[..., Any]
_READERS: Mapping[str, Callable[[Any, Path, Read, Mapping[str, str | int]], SpeakingModel]] = {
    "vits": read_vits,
}
