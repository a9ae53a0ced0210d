"""Resumes an answer that another process began: prepares its request again and replays the tokens that clients have."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from tis.engine.completion import Completion
from tis.engine.errors import GenerationInterrupted
from tis.engine.grammar.compile import CompiledGrammar
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import Medium
from tis.engine.resumable_request import EmittedTokens, ResumableRequest
from tis.engine.text.reasoning import ReasoningLimit, reasoning_limit_of
from tis.engine.vision.vision_input import PreprocessedMedia
from tis.errors import BadRequest


def restore_request(
    saved: ResumableRequest,
    loaded: LoadedModel,
    media: Sequence[Medium] = (),
    grammar: CompiledGrammar | None = None,
    adapter: str = "",
) -> PreparedRequest:
    if saved.revision != loaded.revision_with(adapter):
        raise GenerationInterrupted(
            f"The answer cannot be resumed: {saved.model_id} is another model now than the one that began it."
        )
    if len(saved.prompt_ids) + saved.params.max_tokens - 1 > loaded.context_length:  # the last has no place in a cache
        raise GenerationInterrupted(
            f"The answer cannot be resumed: the context of {saved.model_id} has only {loaded.context_length} tokens "
            "here, fewer than prompt and max_tokens need."
        )
    prepared = PreparedRequest(
        saved.model_id,
        saved.revision,
        loaded.tokenizer,
        saved.prompt_ids,
        saved.params,
        saved.seed,
        saved.context,
        vision=_restore_vision(saved, loaded, media),
        media=saved.media,
        visible_markers=saved.visible_markers,
        grammar=grammar,
        cache_salt=saved.cache_salt,
        adapter=adapter,
        prediction_ids=saved.prediction_ids,
        is_raw=saved.is_raw,
        prompt_logprobs=saved.prompt_logprobs,
    )
    has_grammar = bool(saved.grammar and saved.grammar.covers_answer and not saved.is_raw)
    limit = find_reasoning_limit(loaded, prepared, has_grammar=has_grammar)
    return replace(prepared, reasoning_limit=limit)


def find_reasoning_limit(loaded: LoadedModel, prepared: PreparedRequest, *, has_grammar: bool) -> ReasoningLimit | None:
    """Depends on nothing that is not saved, so a resumed answer has the same limit."""
    return reasoning_limit_of(
        loaded.reasoning_tokens,
        prepared.prompt_ids,
        prepared.params.max_reasoning_tokens(has_grammar=has_grammar),
        loaded.tokenizer.eos_ids,
        lambda ids: not prepared.decode(ids).strip(),
    )


def _restore_vision(saved: ResumableRequest, loaded: LoadedModel, media: Sequence[Medium]) -> PreprocessedMedia | None:
    if not saved.media:
        return None
    try:
        if loaded.vision is None or [medium.digest for medium in media] != [medium.digest for medium in saved.media]:
            raise ValueError("other media")
        return loaded.vision.preprocess(saved.prompt_ids, media)
    except (ValueError, BadRequest) as error:
        raise GenerationInterrupted(
            "The answer cannot be resumed: its pictures differ from those that it began with."
        ) from error


def replay_completions(prepared: PreparedRequest, emitted: Sequence[EmittedTokens]) -> list[Completion]:
    """Takes a while for thousands of tokens."""
    if len(emitted) != prepared.params.n:
        raise GenerationInterrupted(
            f"The answer cannot be resumed: {len(emitted)} choices are recorded of an answer that has "
            f"{prepared.params.n}."
        )
    _check_token_ids(prepared, emitted)
    completions = [Completion(index, prepared) for index in range(prepared.params.n)]
    for completion, tokens in zip(completions, emitted, strict=True):
        completion.replay(tokens)
    return completions


def _check_token_ids(prepared: PreparedRequest, emitted: Sequence[EmittedTokens]) -> None:
    """On a GPU, one id outside the vocabulary would fail every running request."""
    params, size = prepared.params, prepared.tokenizer.vocabulary_size
    recorded = chain.from_iterable(tokens.token_ids for tokens in emitted)
    token_ids = chain(
        prepared.prompt_ids,
        prepared.prediction_ids,
        recorded,
        params.logit_bias,
        params.stop_token_ids,
        prepared.visible_markers.values(),
    )
    if not prepared.prompt_ids or any(not 0 <= token_id < size for token_id in token_ids):
        raise GenerationInterrupted("The answer cannot be resumed: its recorded tokens are no tokens of its model.")
