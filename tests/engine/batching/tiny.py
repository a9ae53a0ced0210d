"""Models of every supported architecture, with random weights, small enough to be created for each test."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers

from tis.engine.answer import Piece
from tis.engine.batching.batch_runner import BatchRunner
from tis.engine.batching.kv_cache import PagedCache
from tis.engine.batching.lookup import DRAFT_WIDTH
from tis.engine.batching.stepped_model import SteppedModel
from tis.engine.batching.text_attention import cache_shape
from tis.engine.batching.turn_runner import TurnRunner
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt
from tis.engine.request import Delivery, Request
from tis.engine.runner import Runner
from tis.engine.sampling.params import SamplingParams
from tis.engine.text.tokenizer import Tokenizer
from tis.errors import ServiceError

VOCABULARY = 320
_CACHE_BYTES = 2**26
_TRIED = "_tried_alone"  # on a model: what it can do is found out once, not for each answer
_SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    # With tied embeddings, a model of random weights repeats its last token, whatever its attention computes.
    "tie_word_embeddings": False,
    # Large enough that one token is clearly the likeliest, and answers do not repeat one token for ever.
    "initializer_range": 0.25,
}


def _qwen3_vl() -> Any:
    config = transformers.Qwen3VLConfig(
        text_config={**_SMALL, "head_dim": 16, "rope_parameters": {"rope_type": "default", "mrope_section": [4, 2, 2]}},
        vision_config={"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 64}
        | {"deepstack_visual_indexes": [0]},
        image_token_id=310,
        video_token_id=311,
        vision_start_token_id=312,
        vision_end_token_id=313,
    )
    return transformers.Qwen3VLForConditionalGeneration(config)


def _of(kind: str, **more: Any) -> Callable[[], Any]:
    def make() -> Any:
        config = getattr(transformers, f"{kind}Config")(**{**_SMALL, **more})
        return transformers.AutoModelForCausalLM.from_config(config)

    return make


ARCHITECTURES: dict[str, Callable[[], Any]] = {
    "qwen2": _of("Qwen2"),
    "qwen3": _of("Qwen3", head_dim=32),
    "qwen3_vl": _qwen3_vl,
    "llama": _of("Llama"),
    "mistral_sliding": _of("Mistral", sliding_window=12),
    "gemma2_softcap": _of("Gemma2", head_dim=16, sliding_window=12, query_pre_attn_scalar=24),
    "gemma3": _of("Gemma3Text", head_dim=16, sliding_window=12, num_hidden_layers=6, query_pre_attn_scalar=24),
    "phi3": _of("Phi3", sliding_window=14, resid_pdrop=0.0, embd_pdrop=0.0),
}


def new_model(architecture: str) -> Any:
    return _seeded(ARCHITECTURES[architecture])


def new_model_of(kind: str, **more: Any) -> Any:
    return _seeded(_of(kind, **more))


def _seeded(make: Callable[[], Any]) -> Any:
    torch.manual_seed(7)
    model = make().eval().float()
    model.generation_config = transformers.GenerationConfig(pad_token_id=0)
    return model


class NumberTokenizer:
    """Each token is a letter, so that stop strings can match."""

    eos_ids = frozenset({2})
    vocabulary_size = VOCABULARY

    def encode_chat(self, prompt: ChatPrompt) -> list[int]:
        raise NotImplementedError

    def encode_text(self, text: str) -> list[int]:
        raise NotImplementedError

    def count_tokens(self, text: str, max_tokens: int) -> int:
        return len(text)

    def token_text(self, token_id: int) -> str:
        return chr(ord("A") + token_id)

    def token_bytes(self, token_id: int) -> bytes:
        return self.token_text(token_id).encode()

    def new_detokenizer(self) -> "NumberTokenizer":
        return self

    def feed(self, token_id: int) -> str:
        return self.token_text(token_id)

    def flush(self) -> str:
        return ""


TOKENIZER = NumberTokenizer()


def new_request(prompt_ids: list[int], seed: int = 11, **params: Any) -> Request:
    defaults: dict[str, Any] = {"temperature": 0.0, "max_tokens": 12, "ignore_eos": True}
    asked = SamplingParams(**(defaults | params))
    return Request(PreparedRequest("tiny", "r1", TOKENIZER, prompt_ids, asked, seed))


def prompt(length: int, seed: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return [int(token) for token in torch.randint(3, 300, (length,), generator=generator)]


def new_runner(model: Any, *, tokens: int = 2048, block_size: int = 4, **options: Any) -> BatchRunner:
    return BatchRunner(
        model,
        TOKENIZER,
        PagedCache(cache_shape(model), tokens // block_size, block_size),
        **({"draft_width": DRAFT_WIDTH} | options),
    )


def new_turn_runner(
    model: Any, tokenizer: Tokenizer = TOKENIZER, *, cache_bytes: int = _CACHE_BYTES, **options: Any
) -> TurnRunner:
    return TurnRunner(SteppedModel(model), tokenizer, cache_bytes, **options)


@dataclass
class Readers:
    """Collects everything that a runner hands out, by request."""

    pieces: dict[int, list[Piece]] = field(default_factory=dict)
    errors: dict[int, ServiceError] = field(default_factory=dict)

    def hand_out(self, deliveries: Iterable[Delivery]) -> None:
        for request, item in deliveries:
            if isinstance(item, Piece):
                self.pieces.setdefault(id(request), []).append(item)
            else:
                self.errors[id(request)] = item

    def of(self, request: Request) -> list[Piece]:
        return self.pieces.get(id(request), [])

    def text(self, request: Request, choice: int = 0) -> str:
        return "".join(piece.text for piece in self.of(request) if piece.choice == choice)

    def finish(self, request: Request, choice: int = 0) -> str | None:
        return next((piece.finish for piece in self.of(request) if piece.choice == choice and piece.finish), None)


def run(runner: Runner, requests: Iterable[Request], *, every: int = 1) -> Readers:
    """Admits a request every `every` steps while earlier ones run, until all are done."""
    readers, waiting, steps = Readers(), list(requests), 0
    while waiting or runner.running:
        if waiting and runner.has_room and steps % every == 0:
            runner.admit(waiting.pop(0))
        runner.step(readers.hand_out)
        steps += 1
        assert steps < 5000
    return readers


def alone(model: Any, request: Request) -> Readers:
    """Computes the answer with the model's own forward() and cache, through the runner without batches."""
    return alone_with(model, TOKENIZER, request)


def alone_with(model: Any, tokenizer: Tokenizer, request: Request) -> Readers:
    theirs = "sdpa" if model._supports_sdpa else "eager"
    plain = {"text_config": theirs} if "text_config" in model.config.sub_configs else theirs
    ours = model.config.get_text_config()._attn_implementation
    model.set_attn_implementation(plain)
    try:
        if _TRIED not in vars(model):
            setattr(model, _TRIED, SteppedModel(model))
        return run(TurnRunner(getattr(model, _TRIED), tokenizer, _CACHE_BYTES), [request])
    finally:
        model.set_attn_implementation({"text_config": ours} if isinstance(plain, dict) else ours)


def tokens(request: Request, choice: int = 0) -> list[int]:
    return request.completions[choice].token_ids


def greedy(model: Any, prompt_ids: list[int], length: int) -> list[int]:
    """Returns the tokens of model.generate(). To be called before a batch runner changes the model's attention."""
    ids = torch.tensor([prompt_ids])
    out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=length)
    return [int(token) for token in out[0, len(prompt_ids) :]]
