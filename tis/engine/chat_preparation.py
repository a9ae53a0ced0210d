"""Prepares chats: renders and tokenises them, shortens what may be shortened, and refuses what cannot be answered."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tis.engine.compression import compress
from tis.engine.errors import ContextLengthExceeded
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt, Medium, media_of, text_of
from tis.engine.request_rules import RequestRules, adapter_of
from tis.engine.resumable_request import SavedMedium
from tis.engine.resume import find_reasoning_limit
from tis.engine.sampling.params import SamplingParams
from tis.engine.sampling.random_stream import new_seed
from tis.engine.text.text_encoder import MAX_CHARS_PER_TOKEN, TooManyTokens
from tis.engine.text.tokenizer import Tokenizer, decode
from tis.engine.vision.vision_input import preprocessed

_MAX_COUNTED_TOKENS = 2**20  # as of a text that is tokenised alone


class ChatPreparation:
    """Called in a thread."""

    def __init__(self, rules: RequestRules) -> None:
        self._rules = rules

    def prepare(
        self,
        entry: CatalogueEntry,
        loaded: LoadedModel,
        prompt: ChatPrompt,
        sampling: Mapping[str, Any],
        *,
        has_grammar: bool,
    ) -> PreparedRequest:
        tokenizer = loaded.tokenizer
        max_context = self._rules.max_context(entry, loaded)
        most = self._max_prompt(prompt, max_context)
        self._refuse_far_too_long(prompt, most)
        params = self._rules.params(entry, loaded, sampling, max_context)
        try:
            prompt, prompt_ids, context = self._encode(loaded, prompt, params, most)
        except TooManyTokens as error:
            raise _too_long(max_context, error.num_tokens) from None
        if len(prompt_ids) >= max_context and not prompt.is_only_counted:
            raise ContextLengthExceeded(max_context, f"you requested {len(prompt_ids)} tokens in the messages.")
        room = max(1, max_context - len(prompt_ids))
        if params.max_tokens > room:
            params = params.with_max_tokens(room)
        seed = new_seed() if params.seed is None else params.seed
        media = media_of(prompt.messages)
        markers = loaded.markers.with_format(entry.tool_format, entry.reasoning_format)
        prepared = PreparedRequest(
            entry.id,
            loaded.revision_with(adapter_of(entry)),
            tokenizer,
            prompt_ids,
            params,
            seed,
            context,
            vision=preprocessed(loaded.vision, prompt_ids, media) if loaded.vision and media else None,
            media=[_saved_medium(medium) for medium in media],
            visible_markers=markers.visible(with_tool_calls=bool(prompt.tools)) if prompt.emit_markers else {},
            markers=markers,
            starts_in_reasoning=markers.starts_in_reasoning(
                prompt_ids, tokenizer.eos_ids, lambda ids: decode(tokenizer, ids)
            ),
            adapter=adapter_of(entry),
            prediction_ids=_encode_prediction(tokenizer, prompt.prediction, max_context),
        )
        return replace(prepared, reasoning_limit=find_reasoning_limit(loaded, prepared, has_grammar=has_grammar))

    def _max_prompt(self, prompt: ChatPrompt, max_context: int) -> int:
        """The number of tokens that are encoded at most. Processors of media encode all at once."""
        is_longer = prompt.is_only_counted and not media_of(prompt.messages) and not self._may_truncate(prompt)
        return max(max_context, _MAX_COUNTED_TOKENS) if is_longer else max_context

    def _refuse_far_too_long(self, prompt: ChatPrompt, max_context: int) -> None:
        """Before rendering. What else the template renders, the tokenizer counts: tools, reasoning and calls."""
        num_characters = sum(len(text_of(message)) for message in prompt.messages)
        min_tokens = num_characters // MAX_CHARS_PER_TOKEN
        if min_tokens > max_context and not self._may_truncate(prompt):
            raise _too_long(max_context, min_tokens)

    def _encode(
        self, loaded: LoadedModel, prompt: ChatPrompt, params: SamplingParams, max_context: int
    ) -> tuple[ChatPrompt, list[int], dict[str, Any] | None]:
        """Returns the prompt, truncated if need be, its tokens, and what was dropped."""
        encode = loaded.vision.encode if loaded.vision else loaded.tokenizer.encode_chat
        prompt = replace(prompt, max_tokens=max_context)
        if not self._may_truncate(prompt):
            return prompt, encode(prompt), None
        # Leaves room for the answer, but at least half of the context to the conversation.
        budget = max(max_context // 2, max_context - params.max_tokens)
        return compress(prompt, encode, loaded.tokenizer.count_tokens, budget, max_context)

    def _may_truncate(self, prompt: ChatPrompt) -> bool:
        return self._rules.compresses or prompt.may_truncate


def _encode_prediction(tokenizer: Tokenizer, prediction: str, max_context: int) -> list[int]:
    num_tokens = tokenizer.count_tokens(prediction, max_context)
    if num_tokens > max_context:
        raise ContextLengthExceeded(
            max_context, f"you predicted {num_tokens} tokens of the answer, or more.", param="prediction"
        )
    return tokenizer.encode_text(prediction) if prediction else []


def _too_long(max_context: int, min_tokens: int) -> ContextLengthExceeded:
    return ContextLengthExceeded(max_context, f"you requested {min_tokens} tokens or more in the messages.")


def _saved_medium(medium: Medium) -> SavedMedium:
    return SavedMedium(medium.kind, medium.digest, medium.detail)
