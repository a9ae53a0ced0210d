"""Loads a model that hears. Takes seconds to minutes, so it runs in a thread of its own."""

import logging
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tis.engine.errors import LoadFailed
from tis.engine.kernels.native import native_kernels
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import weights_bytes_of, weights_time_of
from tis.engine.models.hub_files import find_folder
from tis.engine.models.load_progress import Report, reporting_weights
from tis.engine.models.loading import LoadOptions, device_name
from tis.engine.models.model_status import ModelFootprint
from tis.engine.models.revision import revision_of
from tis.engine.models.torch_preload import preload_torch
from tis.engine.optional_stages import KERNELS, OptionalStages, read_and_prepare
from tis.engine.speech.heard import SpeechDescription
from tis.engine.speech.load_plain_speech import load_plain_speech
from tis.engine.speech.loaded_speech import LoadedSpeech

if TYPE_CHECKING:
    from tis.engine.speech.log_mel import LogMel

log = logging.getLogger("tis.engine")

_MAX_WINDOWS_ON_CPU = 8  # more gain nothing there, and each takes memory
_GROUP_ON_CPU, _GROUP_ELSEWHERE = 1, 8  # windows in the encoder together
_MAX_ALIGNMENT_HEADS = 16  # each takes megabytes for a moment
_STEP_SECONDS = 0.25  # where the setting leaves it open


def load_speech(entry: CatalogueEntry, options: LoadOptions, report: Report) -> LoadedSpeech:
    report("importing torch and transformers", None)
    preload_torch()
    import transformers

    transformers.utils.logging.disable_progress_bar()
    folder = find_folder(entry.repo, options.source, report)
    report("reading the tokenizer", None)
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=options.trust_remote_code)
    if config.model_type != "whisper":
        return load_plain_speech(folder, config, options, report)
    if config.activation_function != "gelu":
        raise LoadFailed(f"A Whisper with the activation {config.activation_function!r} is not served.")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    extractor = _extractor(transformers, folder, config)

    def read() -> Any:
        report("reading the weights", None)
        with reporting_weights(lambda share: report("reading the weights", share)):
            model = transformers.WhisperForConditionalGeneration.from_pretrained(
                folder, dtype=options.dtype, device_map=options.device_map, use_safetensors=True
            )
        report("preparing the weights", None)
        return model.eval()

    def prepare(model: Any, stages: OptionalStages) -> LoadedSpeech:
        return _prepared(model, tokenizer, extractor, folder, options, stages)

    return read_and_prepare(read, prepare)


def _extractor(transformers: Any, folder: Path, config: Any) -> Any:
    extractor_class = transformers.WhisperFeatureExtractor
    if any((folder / name).exists() for name in ("preprocessor_config.json", "processor_config.json")):
        extractor = extractor_class.from_pretrained(folder)
    else:
        extractor = extractor_class(feature_size=config.num_mel_bins)
    if (extractor.feature_size, extractor.nb_max_frames) != (config.num_mel_bins, 2 * config.max_source_positions):
        raise LoadFailed("Its feature extractor makes other windows than its encoder reads.")
    return extractor


def _prepared(
    model: Any, tokenizer: Any, extractor: Any, folder: Path, options: LoadOptions, stages: OptionalStages
) -> LoadedSpeech:
    from tis.engine.batching.memory import MemoryBudget
    from tis.engine.speech.hearing_runner import HearingLimits, HearingRunner
    from tis.engine.speech.linear_maps import LinearMaker
    from tis.engine.speech.log_mel import LogMel
    from tis.engine.speech.running_window import WindowRules
    from tis.engine.speech.token_rules import TokenRules
    from tis.engine.speech.transcript import TranscriptMaker
    from tis.engine.speech.whisper_decoder import WhisperDecoder
    from tis.engine.speech.whisper_encoder import WhisperEncoder
    from tis.engine.speech.whisper_vocabulary import WhisperVocabulary
    from tis.engine.speech.window_slots import SlotShape, WindowSlots

    device, config, generation, limits = model.device, model.config, model.generation_config, options.batch
    is_on_cpu = device.type == "cpu"
    if is_on_cpu:
        model = model.float()
    dtype = model.dtype
    with stages.guard(KERNELS):
        kernels = native_kernels() if limits.native_kernels and KERNELS not in stages.left_out and is_on_cpu else None
    vocabulary = WhisperVocabulary(tokenizer, generation, config)
    mel = LogMel(extractor)
    with stages.guard(KERNELS):
        maker = LinearMaker(kernels, bits=limits.weight_bits)
        encoder = WhisperEncoder(model.model.encoder, maker)
        heads = _alignment_heads(generation, config)
        decoder = WhisperDecoder(model.model.decoder, model.proj_out, maker, heads)
    shape = SlotShape(
        layers=config.decoder_layers,
        heads=config.decoder_attention_heads,
        size=config.d_model // config.decoder_attention_heads,
        positions=config.max_target_positions,
        frames=config.max_source_positions,
    )
    weight_bytes = maker.num_bytes + int(model.get_input_embeddings().weight.nbytes)
    at_most = min(limits.max_running, _MAX_WINDOWS_ON_CPU) if is_on_cpu else limits.max_running
    bytes_of_slot = shape.bytes_of_slot(dtype)
    number = MemoryBudget.of(limits).num_states(device, weight_bytes, bytes_of_slot, at_most)
    taken = kernels if kernels is not None and kernels.takes(dtype, shape.size) else None
    rules = WindowRules(vocabulary, TokenRules(vocabulary, generation), config.max_target_positions)
    hearing = HearingLimits(_GROUP_ON_CPU if is_on_cpu else _GROUP_ELSEWHERE, limits.step_seconds or _STEP_SECONDS)
    log.info("%d windows at once, with %s", number, "the native kernels" if taken else "torch")

    def new_runner() -> HearingRunner:
        return HearingRunner(encoder, decoder, WindowSlots(shape, number, dtype, device, taken), rules, hearing)

    return LoadedSpeech(
        new_runner=new_runner,
        context_length=config.max_target_positions,
        revision=revision_of(folder),
        weights_time=weights_time_of(folder),
        weights_bytes=weights_bytes_of(folder),
        footprint=ModelFootprint(
            device=device_name(device),
            dtype=str(dtype).removeprefix("torch."),
            weight_bytes=weight_bytes,
            cache_tokens=0,
            cache_bytes=number * bytes_of_slot,
        ),
        weights=weakref.ref(encoder),
        warm_up=partial(_warm_up, mel),
        description=SpeechDescription(
            sample_rate=mel.sample_rate,
            window_seconds=mel.window_seconds,
            languages=_names_of(vocabulary.languages) or {"en": "english"},
            tasks=frozenset({"transcribe", "translate"} if "translate" in vocabulary.tasks else {"transcribe"}),
            has_times=True,
            has_words=bool(heads),
        ),
        features=mel,
        check=vocabulary.check,
        text=TranscriptMaker(vocabulary, mel.sample_rate, mel.window_seconds / config.max_source_positions),
        num_prompt_tokens=config.max_target_positions // 2,
    )


def _alignment_heads(generation: Any, config: Any) -> Sequence[tuple[int, int]]:
    """Those that the model names, else the first ones of the upper half of the layers."""
    named = getattr(generation, "alignment_heads", None)
    if named:
        return [(int(layer), int(head)) for layer, head in named]
    layers = range(config.decoder_layers // 2, config.decoder_layers)
    found = [(layer, head) for layer in layers for head in range(config.decoder_attention_heads)]
    return found[:_MAX_ALIGNMENT_HEADS]


def _names_of(languages: Mapping[str, int]) -> dict[str, str]:
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    return {code: LANGUAGES.get(code, code) for code in languages}


def _warm_up(features: "LogMel", runner: Any) -> None:
    """Hears a second of noise."""
    import numpy as np

    noise = np.random.default_rng(0).normal(0, 0.1, features.sample_rate).astype(np.float32)
    runner.warm_up(features(noise))
