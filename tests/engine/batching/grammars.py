"""A model of random weights with the tokenizer of the demo model, and requests with a grammar."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import transformers

from tests.engine.batching.families import FAMILIES
from tests.engine.batching.tiny import new_model_of
from tests.serving import REPOSITORY
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.kv_cache import PagedCache
from tis.engine.batching.lookup import DRAFT_WIDTH
from tis.engine.batching.text_attention import cache_shape
from tis.engine.grammar.compile import GrammarCompiler
from tis.engine.grammar.grammar import Grammar
from tis.engine.prepared_request import PreparedRequest
from tis.engine.request import Request
from tis.engine.sampling.params import SamplingParams
from tis.engine.text.hf_tokenizer import HfTokenizer
from tis.engine.text.reasoning import reasoning_limit_of

END = 2030
VOCABULARY = 2048


@lru_cache(1)
def tokenizer() -> HfTokenizer:
    plain = transformers.AutoTokenizer.from_pretrained(REPOSITORY / "models" / "demo")
    return HfTokenizer(plain, {END}, VOCABULARY)


@lru_cache(1)
def grammars() -> GrammarCompiler:
    ours = tokenizer()
    return GrammarCompiler(ours.for_grammars, VOCABULARY, ours.markers.tool_format, ours.marker_ids)


@lru_cache(1)
def model() -> Any:
    return new_model_of("Qwen3", head_dim=32, vocab_size=VOCABULARY, max_position_embeddings=4096)


def make_folder(folder: Path, family: str) -> Path:
    """A folder to serve, with a tiny model of this family and the tokenizer of the demo model."""
    kind, sizes = FAMILIES[family]
    made = new_model_of(kind, **sizes, vocab_size=VOCABULARY, max_position_embeddings=4096, eos_token_id=END)
    made.generation_config = transformers.GenerationConfig(pad_token_id=0, eos_token_id=END)
    made.save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(REPOSITORY / "models" / "demo").save_pretrained(folder)
    return folder


def new_runner(*, num_tokens: int = 32768, block_size: int = 16, **options: Any) -> BatchRunner:
    cache = PagedCache(cache_shape(model()), num_tokens // block_size, block_size)
    return BatchRunner(model(), tokenizer(), cache, **({"draft_width": DRAFT_WIDTH} | options))


def prepared(grammar: Grammar | None, text: str = "Halo", seed: int = 1, **params: Any) -> PreparedRequest:
    asked = SamplingParams(**{"temperature": 1.0, "max_tokens": 600, "thinking_budget": 0} | params)
    ids = tokenizer().encode_text(text)
    compiled = grammars().compile(grammar) if grammar else None
    made = PreparedRequest("tiny", "r1", tokenizer(), ids, asked, seed, grammar=compiled)
    return with_thinking(made)


def with_thinking(made: PreparedRequest) -> PreparedRequest:
    from dataclasses import replace

    thinking = reasoning_limit_of(
        tokenizer().reasoning_tokens,
        made.prompt_ids,
        made.params.max_reasoning_tokens(has_grammar=made.grammar is not None),
        tokenizer().eos_ids,
        lambda ids: not made.decode(ids).strip(),
    )
    return replace(made, reasoning_limit=thinking)


def new_request(grammar: Grammar | None, text: str = "Halo", seed: int = 1, **params: Any) -> Request:
    return Request(prepared(grammar, text, seed, **params))


def schema(value: dict[str, Any]) -> Grammar:
    return Grammar("json_schema", value)
