"""Loads a model that speaks. Takes seconds to minutes, so it runs in a thread of its own."""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
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
from tis.engine.one_by_one_runner import ForwardPasses
from tis.engine.voice.bark_voice import read_bark
from tis.engine.voice.code_voices import read_csm, read_dia
from tis.engine.voice.loaded_voice import LoadedVoice
from tis.engine.voice.speaking_model import ReadWeights, SpeakingModel
from tis.engine.voice.speecht5_voice import read_speecht5
from tis.engine.voice.spoken import MAX_TEXT_CHARS, SentenceToSay
from tis.engine.voice.vits_voice import read_vits
from tis.engine.voice.voice_files import origin_of

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
    if bool(entry.vocoder) != (config.model_type in _VOCODERS):
        raise LoadFailed(_about_vocoder(config.model_type))
    models: list[Any] = []
    vocoders: list[Path] = []

    def read(model_class: Any, *, vocoder: bool = False) -> Any:
        place = find_folder(entry.vocoder or "", replace(options.source, revision=None), report) if vocoder else folder
        if vocoder:
            vocoders.append(place)
        report("reading the weights", None)
        with reporting_weights(lambda share: report("reading the weights", share)):
            made = model_class.from_pretrained(
                place, dtype=options.dtype, device_map=options.device_map, use_safetensors=True
            ).eval()
        models.append(made.float() if made.device.type == "cpu" else made)
        return models[-1]

    voice = _READERS[config.model_type](transformers, folder, read, entry.voices)
    model = models[0]
    parts = [str(model.dtype), model.device.type, *map(revision_of, vocoders)]
    return LoadedVoice(
        new_runner=partial(SpeakingRunner, voice, ForwardPasses(models), model.device),
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
        origins={name: origin_of(folder, entry.voices.get(name, name), parts) for name in voice.voices},
    )


def _warm_up(voice: SpeakingModel, runner: Any) -> None:
    if voice.num_tokens(_WARM_TEXT):
        runner.samples(SentenceToSay(_WARM_TEXT, voice.voices[0]))


def _about_vocoder(kind: str) -> str:
    if example := _VOCODERS.get(kind):
        return f"A model of type {kind!r} needs a vocoder in its catalogue entry, such as {example}."
    return f"A model of type {kind!r} makes sound without the vocoder that its catalogue entry names."


_Reader = Callable[[Any, Path, ReadWeights, Mapping[str, str | int]], SpeakingModel]
_READERS: Mapping[str, _Reader] = {
    "vits": read_vits,
    "speecht5": read_speecht5,
    "bark": read_bark,
    "csm": read_csm,
    "dia": read_dia,
}
# Of models that need another to make sound, with the one that their makers use.
_VOCODERS = {"speecht5": "microsoft/speecht5_hifigan", "dia": "descript/dac_44khz"}
