"""Loads a model from the hub or a folder. Takes seconds to minutes, so it runs in a thread of its own.

Reads weights only as safetensors and GGUF, which cannot run code, and never uses AutoProcessor, which would need
torchvision.
"""

import json
import sys
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tis.engine.batching.limits import BatchLimits
from tis.engine.errors import LoadFailed
from tis.engine.grammar.compile import GrammarCompiler
from tis.engine.grammar.tool_input import MAX_INPUTS
from tis.engine.models.description import weights_bytes_of, weights_time_of
from tis.engine.models.draft_rules import DraftRules
from tis.engine.models.gguf_config import config_of, recommended_sampling
from tis.engine.models.gguf_file import GgufHeader, is_gguf, read_gguf_header
from tis.engine.models.gguf_tokenizer import tokenizer_of
from tis.engine.models.hub_files import HubSource, find_folder, refuse_missing_folder
from tis.engine.models.load_progress import Report, reporting_weights
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.models.model_status import ModelFootprint
from tis.engine.models.quantised_files import (
    asking_for_plain_weights,
    packed_format_of,
    require_readable,
    without_quantisation,
)
from tis.engine.models.revision import revision_of
from tis.engine.models.torch_preload import preload_torch
from tis.engine.models.warm_up import warm_up_text
from tis.engine.optional_stages import OptionalStages, read_and_prepare, read_optional
from tis.engine.sampling.params import validate_defaults
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.vision.hearing_families import HEARING_FAMILIES, require_served
from tis.engine.weights.lora_files import read_adapter
from tis.errors import BadRequest
from tis.observability.collector import exempt_imported_objects

_USED_DEFAULTS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
# Other prompts wait while an image is encoded, and its work grows with the square of the image's size.
_MAX_PIXELS_ON_CPU = 1024 * 1024
_MODEL_CLASSES = ("AutoModelForImageTextToText", "AutoModelForCausalLM")
_CLASS_OF_HEARING = "AutoModelForSeq2SeqLM"  # where Transformers lists them, although they have no encoder of text


@dataclass(frozen=True, slots=True)
class LoadOptions:
    token: str | None = None
    revision: str | None = None  # of the repository; None: its main branch
    may_download: bool = True
    device_map: str = "auto"
    dtype: str = "auto"
    attn_implementation: str | None = None
    load_in_4bit: bool = False
    load_in_8bit: bool = False
    trust_remote_code: bool = False
    batch: BatchLimits = BatchLimits()
    # Of an image after preprocessing. 0: the limit of the model, and on a CPU _MAX_PIXELS_ON_CPU.
    max_pixels: int = 0

    @property
    def source(self) -> HubSource:
        return HubSource(self.token, self.revision, self.may_download, with_code=self.trust_remote_code)


def load_model(
    repo: str,
    options: LoadOptions,
    report: Report,
    adapters: Mapping[str, str] | None = None,
    draft_model: str | None = None,
) -> LoadedModel:
    """`adapters`: of LoRA, by the names that requests use. `draft_model`: folder or repository of a smaller model."""
    refuse_missing_folder(repo)  # before the imports, which take seconds
    report("importing torch and transformers", None)
    is_first_import = "transformers" not in sys.modules
    preload_torch()
    import transformers

    from tis.engine.batching.choose_runner import choose_runner
    from tis.engine.vision.choose_vision import choose_vision
    from tis.engine.weights.packed import weight_bytes_of

    if is_first_import:
        exempt_imported_objects()
    transformers.utils.logging.disable_progress_bar()
    folder = find_folder(repo, options.source, report)
    folders = {
        name: find_folder(place, replace(options.source, revision=None), report)
        for name, place in (adapters or {}).items()
    }
    report("reading the tokenizer", None)
    files = _opened(folder, options)
    read = _reader(files, options, report)
    draft = None
    if draft_model:
        draft_folder = find_folder(draft_model, replace(options.source, revision=None), report)
        draft = _load_draft(draft_model, draft_folder, DraftRules(folder, files.tokenizer), options, report)

    def prepare(model: Any, stages: OptionalStages) -> LoadedModel:
        text_config = files.config.get_text_config()
        ours = HfTokenizer(files.tokenizer, _eos_ids(model, files.tokenizer), text_config.vocab_size)
        vision = choose_vision(folder, files.config, ours, max_pixels_on(model.device, options))
        context_length = _context_length(text_config, files.tokenizer)
        lora = [read_adapter(name, place) for name, place in folders.items()]
        runner = choose_runner(
            model, ours, context_length, options.batch, vision, options.attn_implementation, stages, lora, draft
        )
        weight_bytes = read_optional("its size in memory", lambda: weight_bytes_of(model), 0)
        weight_bytes += draft.weight_bytes if draft else 0
        loaded = _loaded(model, ours, vision, runner, files, weight_bytes)
        return replace(loaded, adapter_revisions={name: revision_of(folder, place) for name, place in folders.items()})

    return read_and_prepare(read, prepare)


@dataclass(frozen=True, slots=True)
class _OpenedFiles:
    """What is read before the weights."""

    place: Path  # a folder, or a GGUF file
    header: GgufHeader | None
    config: Any
    tokenizer: Any


def _opened(place: Path, options: LoadOptions) -> _OpenedFiles:
    """Refuses what is not served."""
    import transformers

    if is_gguf(place):
        header = read_gguf_header(place)
        return _OpenedFiles(place, header, config_of(header), tokenizer_of(header))
    config = transformers.AutoConfig.from_pretrained(place, trust_remote_code=options.trust_remote_code)
    require_readable(config)
    require_served(config)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place, trust_remote_code=options.trust_remote_code)
    read_optional("the template of its own file", lambda: adopt_separate_template(tokenizer, place), None)
    return _OpenedFiles(place, None, config, tokenizer)


def _load_draft(name: str, folder: Path, rules: DraftRules, options: LoadOptions, report: Report) -> Any:
    """Loads a smaller model that drafts, as any model is loaded. Refuses it before its weights are read."""
    from tis.engine.batching.choose_runner import prepare_draft

    def report_draft(stage: str, share: float | None) -> None:
        report(f"draft model: {stage}", share)

    report_draft("reading the tokenizer", None)
    files = _opened(folder, options)
    rules.require_fit(name, folder, files.tokenizer)
    context_length = _context_length(files.config.get_text_config(), files.tokenizer)
    return read_and_prepare(
        _reader(files, options, report_draft),
        lambda model, stages: prepare_draft(name, model, context_length, options.batch, stages),
    )


def _reader(files: _OpenedFiles, options: LoadOptions, report: Report) -> Callable[[], Any]:
    """Refuses what cannot be read, at once."""
    import transformers

    quantisation = _quantisation(options)
    model_class = _model_class(transformers, files.config)
    packed = None if files.header else _packed_files(files)

    def read() -> Any:
        report("reading the weights", None)
        with reporting_weights(lambda share: report("reading the weights", share)):
            if files.header:
                model = _read_gguf(files.header, files.config, model_class, options)
            elif packed:
                model = _read_packed(packed, model_class, options)
            else:
                model = model_class.from_pretrained(
                    files.place,
                    config=asking_for_plain_weights(files.config),
                    dtype=options.dtype,
                    device_map=options.device_map,
                    attn_implementation=options.attn_implementation,
                    **quantisation,
                    trust_remote_code=options.trust_remote_code,
                    use_safetensors=True,
                )
        report("preparing the weights", None)
        return model.eval()

    return read


def _read_gguf(header: GgufHeader, config: Any, model_class: Any, options: LoadOptions) -> Any:
    from tis.engine.models.gguf_weights import GgufWeights

    weights = GgufWeights(header, config, may_stay_in_blocks=_may_stay_packed(options))
    return weights.read(
        model_class, options.dtype, device_map=options.device_map, attn_implementation=options.attn_implementation
    )


def _packed_files(files: _OpenedFiles) -> Any | None:
    """None: Transformers reads the weights."""
    form = packed_format_of(files.config)
    if form is None:
        return None
    from tis.engine.models.packed_files import PackedFiles, is_read_here

    return (
        PackedFiles(files.place, without_quantisation(files.config), form) if is_read_here(files.place, form) else None
    )


def _read_packed(packed: Any, model_class: Any, options: LoadOptions) -> Any:
    return packed.read(
        model_class,
        options.dtype,
        may_stay_packed=_may_stay_packed(options),
        trust_remote_code=options.trust_remote_code,
        device_map=options.device_map,
        attn_implementation=options.attn_implementation,
    )


def _may_stay_packed(options: LoadOptions) -> bool:
    """On a CPU with the native kernels. Refuses to make smaller what is smaller already."""
    import torch

    if options.load_in_4bit or options.load_in_8bit:
        raise LoadFailed(
            "LOAD_IN_4BIT and LOAD_IN_8BIT do not apply: the weights of this model were made smaller already."
        )
    on_cpu = options.device_map == "cpu" or not torch.accelerator.is_available()
    return on_cpu and options.batch.native_kernels


def _loaded(
    model: Any,
    ours: HfTokenizer,
    vision: Any,
    runner: Any,
    files: _OpenedFiles,
    weight_bytes: int,
) -> LoadedModel:
    folder = files.place
    return LoadedModel(
        tokenizer=ours,
        new_runner=runner.new,
        context_length=runner.context_length,
        generation_defaults=read_optional(
            "its recommended sampling", lambda: _generation_defaults(folder, files.header), {}
        ),
        revision=revision_of(folder),
        has_encoder=bool(model.config.is_encoder_decoder),
        starts_whole=runner.starts_whole,
        vision=vision,
        markers=ours.markers,
        grammars=GrammarCompiler(
            partial(ours.for_grammars, MAX_INPUTS),
            ours.vocabulary_size,
            ours.markers.tool_format,
            ours.marker_ids,
            writes_xml=ours.markers.writes_xml,
        ),
        reasoning_tokens=read_optional("limits of its reasoning", lambda: ours.reasoning_tokens, None),
        template_variables=ours.template_variables,
        weights_time=weights_time_of(folder),
        weights_bytes=weights_bytes_of(folder),
        footprint=ModelFootprint(
            device=device_name(model.device),
            dtype=str(model.dtype).removeprefix("torch."),
            weight_bytes=weight_bytes,
            cache_tokens=runner.cache_tokens,
            cache_bytes=runner.cache_bytes,
        ),
        weights=weakref.ref(model),
        warm_up=partial(warm_up_text, ours),
    )


def max_pixels_on(device: Any, options: LoadOptions) -> int | None:
    """Of an image after preprocessing. None: the limit of the model."""
    return options.max_pixels or (_MAX_PIXELS_ON_CPU if device.type == "cpu" else None)


def device_name(device: Any) -> str:
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


def _quantisation(options: LoadOptions) -> dict[str, Any]:
    """Empty, not None, without: Transformers takes a None for the settings of a model that was saved quantised."""
    if not (options.load_in_4bit or options.load_in_8bit):
        return {}
    import torch
    from transformers import BitsAndBytesConfig
    from transformers.utils import is_bitsandbytes_available

    variable = "LOAD_IN_4BIT" if options.load_in_4bit else "LOAD_IN_8BIT"
    if not torch.cuda.is_available():
        raise LoadFailed(f"{variable}=1 needs a CUDA device, and there is none.")
    if not is_bitsandbytes_available():
        raise LoadFailed(f"{variable}=1 needs bitsandbytes: pip install bitsandbytes.")
    chosen = BitsAndBytesConfig(load_in_4bit=options.load_in_4bit, load_in_8bit=options.load_in_8bit)
    return {"quantization_config": chosen}


def _model_class(transformers: Any, config: Any) -> Any:
    if config.model_type in HEARING_FAMILIES:
        return getattr(transformers, _CLASS_OF_HEARING)
    for name in _MODEL_CLASSES:
        auto_class = getattr(transformers, name)
        if type(config) in auto_class._model_mapping:
            return auto_class
    if getattr(config, "auto_map", None):
        return transformers.AutoModelForCausalLM
    raise LoadFailed(f"A model of type {config.model_type!r} generates no text: it cannot answer chats.")


def adopt_separate_template(tokenizer: Any, folder: Path) -> None:
    """Some vision models keep their chat template with the processor, which is not loaded."""
    separate = folder / "chat_template.json"
    if tokenizer.chat_template is None and separate.exists():
        tokenizer.chat_template = json.loads(separate.read_text(encoding="utf-8"))["chat_template"]


def _eos_ids(model: Any, tokenizer: Any) -> set[int]:
    configured = model.generation_config.eos_token_id
    ids = configured if isinstance(configured, list) else [configured]
    return {token_id for token_id in [*ids, tokenizer.eos_token_id] if token_id is not None}


def _context_length(text_config: Any, tokenizer: Any) -> int:
    positions = getattr(text_config, "max_position_embeddings", None)
    # A tokenizer without a limit has 1e30.
    return int(positions or (tokenizer.model_max_length if tokenizer.model_max_length < 10**9 else 32768))


def _generation_defaults(folder: Path, header: GgufHeader | None) -> Mapping[str, Any]:
    """Reads the file itself: Transformers fills in values that the makers of the model never set."""
    if header:
        return {name: value for name, value in recommended_sampling(header).items() if _is_valid(name, value)}
    path = folder / "generation_config.json"
    if not path.exists():
        return {}
    configured = json.loads(path.read_text(encoding="utf-8"))
    defaults = {name: configured[name] for name in _USED_DEFAULTS if _is_valid(name, configured.get(name))}
    if configured.get("do_sample") is False:
        defaults["temperature"] = 0.0
    return defaults


def _is_valid(name: str, value: Any) -> bool:
    try:
        validate_defaults({name: value})
    except (ValueError, BadRequest):
        return False
    return True
