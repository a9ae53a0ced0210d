"""Prepares prompts that are no chats: the text goes to the model as it is, and so does what the model writes."""

from collections.abc import Iterator, Sequence

from tis.engine.errors import ContextLengthExceeded
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import RawPrompt
from tis.engine.sampling.params import SamplingParams
from tis.engine.sampling.random_stream import new_seed
from tis.engine.text.text_encoder import TooManyTokens
from tis.errors import BadRequest

MAX_LISTED_TOKENS = 2**18  # of all prompts of a list together
# Log probabilities in all echoes of a request: each takes 90 to 130 bytes of the events and their records.
MAX_ECHOED_LOGPROBS = 2**19
MAX_WHOLE_LOGPROBS = 512  # tokens of a prompt that the model computes in one step: each has a row of logits


def prepare_raw_prompts(
    model_id: str,
    adapter: str,
    loaded: LoadedModel,
    prompts: Sequence[RawPrompt],
    params: SamplingParams,
    max_context: int,
    *,
    prompt_logprobs: int | None,
    prompt_only: bool,
    cache_salt: str,
) -> Iterator[PreparedRequest]:
    """Each prompt is what it would be alone: with the same seed, it gets the same answer.

    `prompt_only`: no token behind it is wanted, so it may fill the context.
    """
    if prompt_logprobs is not None and loaded.has_encoder:
        raise BadRequest(
            "This model reads the prompt with an encoder, so there are no log probabilities of it: send echo or "
            "logprobs, not both.",
            param="logprobs",
            code="unsupported_value",
        )
    num_tokens = 0
    for number, prompt in enumerate(prompts):
        where = f"prompt.{number}" if len(prompts) > 1 else "prompt"
        prompt_ids = encode_raw_prompt(loaded, prompt, max_context, where)
        room = max_context - len(prompt_ids)
        if room < (0 if prompt_only else 1):
            raise _too_long(max_context, f"{len(prompt_ids)} tokens", where)
        num_tokens += len(prompt_ids)
        if len(prompts) > 1 and num_tokens > MAX_LISTED_TOKENS:
            raise BadRequest(
                f"prompt: the prompts of a list have at most {MAX_LISTED_TOKENS:,} tokens together.",
                param="prompt",
                code="too_many_tokens",
            )
        if prompt_logprobs is not None:
            _require_few_logprobs(loaded, len(prompt_ids), num_tokens * params.n * (prompt_logprobs + 1), where)
        yield PreparedRequest(
            model_id,
            loaded.revision_with(adapter),
            loaded.tokenizer,
            prompt_ids,
            params.with_max_tokens(min(params.max_tokens, max(1, room))),
            new_seed() if params.seed is None else params.seed,
            adapter=adapter,
            is_raw=True,
            prompt_logprobs=prompt_logprobs,
            cache_salt=cache_salt,
        )


def _require_few_logprobs(loaded: LoadedModel, num_of_prompt: int, num_of_all: int, where: str) -> None:
    if loaded.starts_whole and num_of_prompt > MAX_WHOLE_LOGPROBS:
        raise BadRequest(
            f"{where}: this model computes a prompt in one step, so it tells log probabilities of at most "
            f"{MAX_WHOLE_LOGPROBS} tokens of it, not of {num_of_prompt}.",
            param=where,
            code="too_many_tokens",
        )
    if num_of_all > MAX_ECHOED_LOGPROBS:
        raise BadRequest(
            f"logprobs: with echo, the tokens of all prompts, times n, times logprobs and one, are at most "
            f"{MAX_ECHOED_LOGPROBS:,}, not {num_of_all:,}. Send fewer prompts at a time.",
            param="logprobs",
            code="too_many_tokens",
        )


def encode_raw_prompt(loaded: LoadedModel, prompt: RawPrompt, max_tokens: int, where: str) -> list[int]:
    tokenizer = loaded.tokenizer
    if isinstance(prompt.text, str):
        try:
            ids = tokenizer.encode_raw(
                prompt.text, adds_special_tokens=prompt.adds_special_tokens, max_tokens=max_tokens
            )
        except TooManyTokens as error:
            raise _too_long(max_tokens, f"{error.num_tokens} tokens or more", where) from None
    else:
        ids = list(prompt.text)
        require_tokens(ids, tokenizer.vocabulary_size, where)
    if not ids:
        raise BadRequest(f"{where}: there are no tokens in it.", param=where)
    return ids


def require_tokens(token_ids: Sequence[int], vocabulary_size: int, where: str) -> None:
    for at, token_id in enumerate(token_ids):
        if not 0 <= token_id < vocabulary_size:
            raise BadRequest(
                f"{where}.{at}: token {token_id} is not in the vocabulary of {vocabulary_size}.", param=where
            )


def _too_long(max_context: int, num_tokens: str, where: str) -> ContextLengthExceeded:
    return ContextLengthExceeded(max_context, f"you requested {num_tokens} in the prompt.", param=where)
