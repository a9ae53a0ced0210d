"""The tokenizer of a GGUF file, made by Transformers from the vocabulary and the merges in its metadata."""

import logging
from collections.abc import Mapping
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.models.gguf_file import GgufHeader, texts_of

log = logging.getLogger("tis.engine")

_KINDS = ("gpt2", "llama")  # byte-level BPE, and sentencepiece's
# How text is cut before merges, by the name that llama.cpp has for it. Unnamed ones are cut as GPT-2 does.
_AS_GPT2 = frozenset({"default", "gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling"})
_DIGITS_FIRST = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"})
_WHOLE_WORDS_FIRST = frozenset(
    {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "tekken"}
)
_BEGINS_WITH_BOS = _WHOLE_WORDS_FIRST - {"tekken"}
_NORMALISED = frozenset({"qwen2", "deepseek-r1-qwen", "megrez", "qwen35"})  # their originals compose characters
_SPECIAL = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}


def tokenizer_of(header: GgufHeader) -> Any:
    """Raises LoadFailed."""
    from transformers import PreTrainedTokenizerFast
    from transformers.integrations.gguf import convert_gguf_tokenizer

    described, options = _described(header), _options(header)
    try:
        backend, more = convert_gguf_tokenizer(header.architecture, described)
        _complete(backend, described.get("pre_tokenizer_type"))
        return PreTrainedTokenizerFast(tokenizer_object=backend, **options, **more)
    except Exception as error:  # the library raises plain ones for a merge of tokens that are not there
        raise LoadFailed(f"{header.path.name} has no valid tokenizer: {' '.join(str(error).split())}") from error


def _described(header: GgufHeader) -> dict[str, Any]:
    from transformers.integrations.gguf import GGUF_TOKENIZER_MAPPING
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    names: Mapping[str, str] = GGUF_TOKENIZER_MAPPING["tokenizer"]
    found = {
        name: header.metadata[f"tokenizer.{key}"]
        for key, name in names.items()
        if f"tokenizer.{key}" in header.metadata
    }
    kind, tokens = found.get("tokenizer_type"), texts_of(found.get("tokens"))
    if not tokens or kind is None:
        raise LoadFailed(f"{header.path.name} has no tokenizer: no tokens are in its metadata.")
    if kind not in _KINDS:
        raise LoadFailed(f"{header.path.name} has a tokenizer of kind {kind!r}; {' and '.join(_KINDS)} are read.")
    for name in ("scores", "token_type"):
        if name in found and (not isinstance(found[name], list) or len(found[name]) != len(tokens)):
            raise LoadFailed(f"{header.path.name} has a tokenizer whose {name} do not match its tokens.")
    if kind == "llama" and "scores" not in found:
        raise LoadFailed(f"{header.path.name} has a tokenizer without scores.")
    merges = found.get("merges")
    if kind == "gpt2" and not texts_of(merges) or any(one.count(" ") != 1 for one in texts_of(merges)):
        raise LoadFailed(f"{header.path.name} has a tokenizer without valid merges.")
    pre = found.get("pre_tokenizer_type")
    if kind == "gpt2" and pre not in {*GGUF_PRE_TOKENIZER_SPLITS, *_AS_GPT2, *_DIGITS_FIRST}:
        log.warning(
            "%s: text is cut into words as GPT-2 does, as the file's own way (%r) is not known here. Tokens may differ "
            "from those that the model has learned.",
            *(header.path.name, pre),
        )
    return found


def _options(header: GgufHeader) -> dict[str, Any]:
    metadata, tokens = header.metadata, texts_of(header.metadata.get("tokenizer.ggml.tokens"))
    options: dict[str, Any] = {}
    for name, key in _SPECIAL.items():
        number = metadata.get(f"tokenizer.ggml.{key}_token_id")
        if number is not None and (type(number) is not int or not 0 <= number < len(tokens)):
            raise LoadFailed(f"{header.path.name} has {key}_token_id={number!r}, and {len(tokens)} tokens.")
        options[name] = None if number is None else tokens[number]
    template = metadata.get("tokenizer.chat_template")
    if isinstance(template, str):
        options["chat_template"] = template
    begins = metadata.get("tokenizer.ggml.model") == "llama" or metadata.get("tokenizer.ggml.pre") in _BEGINS_WITH_BOS
    for name, otherwise in (("add_bos_token", begins), ("add_eos_token", False)):
        options[name] = bool(metadata.get(f"tokenizer.ggml.{name}", otherwise))
    options["add_bos_token"] &= options["bos_token"] is not None
    return options


def _complete(backend: Any, pre: str | None) -> None:
    """What the originals do and Transformers leaves out."""
    from tokenizers import normalizers, pre_tokenizers

    if pre in _WHOLE_WORDS_FIRST:
        backend.model.ignore_merges = True
    if pre in _NORMALISED:
        backend.normalizer = normalizers.NFC()
    if pre in _DIGITS_FIRST:
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
