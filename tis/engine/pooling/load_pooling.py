"""Loads an embedding model or a reranker. Takes seconds to minutes, so it runs in a thread of its own."""

import logging
import weakref
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.kernels.native import native_kernels
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import weights_bytes_of, weights_time_of
from tis.engine.models.hub_files import find_folder
from tis.engine.models.load_progress import Report, reporting_weights
from tis.engine.models.loading import LoadOptions, adopt_separate_template, device_name, max_pixels_on
from tis.engine.models.model_status import ModelFootprint
from tis.engine.models.revision import revision_of
from tis.engine.models.torch_preload import preload_torch
from tis.engine.optional_stages import KERNELS, OptionalStages, read_and_prepare
from tis.engine.pooling.loaded_pooling import LoadedPooling
from tis.engine.pooling.prompt_rows import PromptRows
from tis.engine.pooling.reranking import YesNoTemplate, yes_no_template
from tis.engine.pooling.row_codec import RowCodec
from tis.engine.pooling.sentence_files import SentenceFiles, read_sentence_files
from tis.engine.pooling.text_rows import TextRows
from tis.engine.pooling.token_row import RowMaker
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.weights.packed import pack_weights

log = logging.getLogger("tis.engine")

_PACKING = "packing the weights"
_FUSING = "fusing the layers of an encoder"
# Of all requests together. More tokens fill a CPU no better, and while a step is computed others are received.
_TOKENS_PER_STEP = 512
_MAX_LENGTH = 8192  # of a row, if neither the model nor its files say: its attention grows with the square


def load_pooling(entry: CatalogueEntry, options: LoadOptions, report: Report) -> LoadedPooling:
    report("importing torch and transformers", None)
    preload_torch()
    import transformers

    transformers.utils.logging.disable_progress_bar()
    folder = find_folder(entry.repo, options.source, report)
    report("reading the tokenizer", None)
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=options.trust_remote_code)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=options.trust_remote_code)
    files = read_sentence_files(folder)
    if entry.pooling:
        files = replace(files, pooling=(entry.pooling,))

    def read() -> Any:
        report("reading the weights", None)
        with reporting_weights(lambda share: report("reading the weights", share)):
            model = _model_class(transformers, config, entry).from_pretrained(
                folder,
                dtype=options.dtype,
                device_map=options.device_map,
                trust_remote_code=options.trust_remote_code,
                use_safetensors=True,
            )
        report("preparing the weights", None)
        return model.eval()

    def prepare(model: Any, stages: OptionalStages) -> LoadedPooling:
        return _prepared(model, tokenizer, files, folder, entry, options, stages)

    return read_and_prepare(read, prepare)


def _model_class(transformers: Any, config: Any, entry: CatalogueEntry) -> Any:
    """A reranker is a classifier of pairs, or a causal model that says yes or no."""
    if entry.task == "embedding":
        return transformers.AutoModel
    if type(config) in transformers.AutoModelForCausalLM._model_mapping and not _is_classifier(config):
        return transformers.AutoModelForCausalLM
    if type(config) in transformers.AutoModelForSequenceClassification._model_mapping or config.auto_map:
        return transformers.AutoModelForSequenceClassification
    raise LoadFailed(f"A model of type {config.model_type!r} scores no pairs: it cannot rerank.")


def _is_classifier(config: Any) -> bool:
    return any("SequenceClassification" in name for name in config.architectures or ())


def _prepared(
    model: Any,
    tokenizer: Any,
    files: SentenceFiles,
    folder: Path,
    entry: CatalogueEntry,
    options: LoadOptions,
    stages: OptionalStages,
) -> LoadedPooling:
    from tis.engine.pooling.encoder import Encoder
    from tis.engine.pooling.fused_encoder import fuse_encoder_layers
    from tis.engine.pooling.pooling_runner import PoolingRunner

    if model.device.type == "cpu" and options.dtype == "auto":
        _widen(model)
    weight_bytes = int(model.get_memory_footprint())
    config = model.config.get_text_config()
    model.config.use_cache = config.use_cache = False
    pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
    template = (
        yes_no_template(tokenizer, files) if entry.task == "rerank" and not _is_classifier(model.config) else None
    )
    head, body = _head_and_body(model, files, template, entry, pad_id)
    texts = TextRows(tokenizer, files, config.vocab_size, _max_length(files, config, body, tokenizer))
    with stages.guard(KERNELS):
        kernels = native_kernels() if options.batch.native_kernels and KERNELS not in stages.left_out else None
    if body.device.type != "cpu":
        kernels = None
    encoder = Encoder(body, pad_id, kernels)
    num_fused = num_packed = 0
    if kernels:
        if encoder.is_packed:
            num_fused = stages.run(_FUSING, lambda: fuse_encoder_layers(body, kernels))
        num_packed = stages.run(_PACKING, lambda: pack_weights(body, kernels))
    size = _size_of_result(encoder, head)
    rows = _rows_of(texts, folder, body, files, options) if entry.task == "embedding" and encoder.is_packed else texts
    kind = "vectors" if size > 1 else "scores"
    log.info("%s of %d numbers; %d layers fused, weights of %d others packed", kind, size, num_fused, num_packed)
    return LoadedPooling(
        new_runner=partial(PoolingRunner, encoder, head, _TOKENS_PER_STEP),
        context_length=rows.max_length,
        revision=revision_of(folder),
        weights_time=weights_time_of(folder),
        weights_bytes=weights_bytes_of(folder),
        footprint=ModelFootprint(
            device=device_name(body.device),
            dtype=str(body.dtype).removeprefix("torch."),
            weight_bytes=weight_bytes,
            cache_tokens=0,
            cache_bytes=0,
        ),
        weights=weakref.ref(body),
        media=rows.kinds,
        warm_up=lambda runner: _warm_up(encoder, head, rows),
        rows=rows,
        template=template,
        size=size,
        codec=RowCodec(tokenizer, config.vocab_size, lower_case=files.lower_case),
    )


def _rows_of(texts: TextRows, folder: Path, body: Any, files: SentenceFiles, options: LoadOptions) -> RowMaker:
    """With pictures, if the model sees."""
    from tis.engine.pooling.placed_pictures import places_pictures

    if not places_pictures(body):
        return texts
    import transformers

    from tis.engine.vision.choose_vision import choose_vision

    # Another one: that of the texts never reads a control token.
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=options.trust_remote_code)
    adopt_separate_template(tokenizer, folder)
    ours = HfTokenizer(tokenizer, (), body.config.get_text_config().vocab_size)
    vision = choose_vision(folder, body.config, ours, max_pixels_on(body.device, options))
    return texts if vision is None else PromptRows(texts, vision, files)


def _head_and_body(
    model: Any, files: SentenceFiles, template: YesNoTemplate | None, entry: CatalogueEntry, pad_id: int
) -> tuple[Any, Any]:
    from tis.engine.pooling.pooling_head import ClassifierHead, VectorHead, YesNoHead

    if entry.task == "embedding":
        return VectorHead(files, model.device, model.dtype), model
    body = model.base_model
    if template is None:
        return ClassifierHead(model, pad_id), body
    return YesNoHead(model.get_output_embeddings(), template.yes, template.no), body


def _widen(model: Any) -> None:
    """Vectors are compared to the fifth digit. Weights of 16 bits stay so where the native kernels multiply them."""
    import torch

    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.dtype in (torch.bfloat16, torch.float16):
            tensor.data = tensor.data.float()


def _max_length(files: SentenceFiles, config: Any, body: Any, tokenizer: Any) -> int:
    """In tokens. A tokenizer without a limit has 1e30; RoBERTa and its like have positions that belong to padding."""
    positions = getattr(config, "max_position_embeddings", None)
    embeddings = getattr(body, "embeddings", None)
    if positions and hasattr(embeddings, "create_position_ids_from_inputs_embeds"):
        positions -= 1 + (config.pad_token_id or 0)
    limits = [files.max_length, positions, tokenizer.model_max_length]
    return min([int(limit) for limit in limits if limit and limit < 10**9], default=_MAX_LENGTH)


def _warm_up(encoder: Any, head: Any, rows: RowMaker) -> None:
    import torch

    some = rows.of_texts(["Hello, how are you?"] * 4, "", truncate=True)
    with torch.inference_mode():
        head(encoder.hidden_states(some), some)


def _size_of_result(encoder: Any, head: Any) -> int:
    import torch

    from tis.engine.pooling.token_row import TokenRow

    rows = [TokenRow([0, 0])]
    with torch.inference_mode():
        return int(head(encoder.hidden_states(rows), rows).shape[-1])
