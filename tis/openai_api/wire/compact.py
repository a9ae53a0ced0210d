"""Prepares a compaction: what stays, the prompt that asks for a summary of the rest, and the prompt of the answer."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from tis.admission.ticket import Ticket
from tis.chat.part_reader import parser_config
from tis.chat.parts import CallEvent, CompactionEnded, Events, RunPart, RunUsage
from tis.chat.run import Run
from tis.chat.run_spec import CompactionSpec, RunSpec, Services
from tis.engine.answer import FinishReason
from tis.engine.engine import Engine
from tis.engine.errors import ContextLengthExceeded
from tis.engine.grammar.grammar import Grammar
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt
from tis.engine.text.tokenizer import RawTokenizer
from tis.openai_api.wire.chat_request import ChatMessage
from tis.openai_api.wire.compacted_context import (
    REQUEST_OF_SUMMARY,
    ContextSplit,
    Message,
    ToolContext,
    asking_for_summary,
    context_to_seal,
    plain_text,
    sealed_context,
    without_media,
)

_MIN_SUMMARY_TOKENS, _MAX_SUMMARY_TOKENS = 32, 1024
_SHARE = 4  # of the threshold: a fourth for the summary, and as much for what the user said
_CONTEXT_SHARE = 0.8  # what a prompt may have of the context before it is compacted, whatever the threshold
_TOKENS_AROUND_MESSAGE = 12
_BEGINNING_IS_LEFT_OUT = "(The beginning is left out.)"


@dataclass(frozen=True, slots=True)
class PreparedCompaction:
    spec: CompactionSpec
    summary: PreparedRequest
    sealing: Mapping[str, Any]  # for the writer
    prompt: ChatPrompt  # of the answer; the summary in it is still missing
    answer: PreparedRequest | None  # the same, as far as it is known now; None: no answer follows


@dataclass(frozen=True, slots=True)
class _MeasuredHead:
    said: list[str]  # what the user said, as far as there is room
    is_worth_it: bool  # the summary is shorter than what it stands for
    head: list[Message]  # as much of what is to be summarised as the context has room for


@dataclass(frozen=True, slots=True)
class Compacting:
    """What a compaction needs to know of its request."""

    engine: Engine
    model_id: str
    ticket: Ticket
    cache_salt: str
    prompt: ChatPrompt
    messages: Sequence[ChatMessage]  # the same as in the prompt, as clients send them
    num_instructions: int  # messages at the beginning that are of this request alone
    tools: ToolContext = ToolContext()
    sampling: Mapping[str, Any] = field(default_factory=dict)  # of the answer
    grammar: Grammar | None = None

    async def limit(self, threshold: int | None) -> int:
        """The tokens that a prompt may have. A threshold above the context of the model is none."""
        context = await self._context_length()
        limits = [int(context * _CONTEXT_SHARE)] if context else []
        return min([*limits, *([threshold] if threshold else [])], default=_MAX_SUMMARY_TOKENS * _SHARE)

    async def as_it_is(self) -> PreparedRequest:
        return await self._prepare(self.prompt, self.sampling, self.grammar)

    async def whole_prompt(self, limit: int) -> PreparedRequest | None:
        """None if it has to be compacted."""
        try:
            prepared = await self._prepare(replace(self.prompt, is_only_counted=True), self.sampling, self.grammar)
        except ContextLengthExceeded:
            return None
        is_cut = bool(prepared.context and prepared.context["compressed"])
        return None if is_cut or prepared.num_prompt_tokens > limit else prepared

    async def before_answer(self, limit: int) -> PreparedCompaction | None:
        """None if a summary would save nothing, or leave no room for an answer."""
        split = ContextSplit.before_answer(self.prompt.messages)
        if all(self.prompt.messages[at]["role"] == "user" for at in split.head):
            return None
        num_summary = _summary_tokens(limit)
        sizes = await self._sizes(split, num_summary, limit // _SHARE)
        if not sizes.is_worth_it:
            return None
        prompt = replace(self.prompt, messages=split.compacted(self.prompt.messages, sizes.said))
        answer = await self._prepare(prompt, self.sampling, self.grammar)
        if context := await self._context_length():
            num_summary = min(num_summary, (context - answer.num_prompt_tokens) // 2)
        if num_summary < _MIN_SUMMARY_TOKENS:
            return None
        summary, spec = await self._summary(split, sizes, num_summary, split.summary_at)
        return PreparedCompaction(spec, summary, self._replacing(split, sizes.said), prompt, answer)

    async def alone(self, limit: int) -> PreparedCompaction:
        """No answer follows, and the item takes the place of everything."""
        split, sizes, num_summary = await self._of_everything(limit)
        summary, spec = await self._summary(split, sizes, num_summary, None)
        return PreparedCompaction(spec, summary, self._replacing(split, sizes.said), self.prompt, None)

    async def window(self, limit: int) -> PreparedCompaction:
        """No answer follows, and the item stands behind what the user said."""
        split, sizes, num_summary = await self._of_everything(limit)
        summary, spec = await self._summary(split, sizes, num_summary, None)
        behind = replace(split, system=()).compacted(self._to_seal(split), ())[1:]
        sealing = context_to_seal(behind, 0, self.tools, replaces=False)
        return PreparedCompaction(spec, summary, sealing, self.prompt, None)

    async def _of_everything(self, limit: int) -> tuple[ContextSplit, _MeasuredHead, int]:
        split = ContextSplit.of_everything(self.prompt.messages)
        open_calls = [_printed(without_media(self.prompt.messages[at])) for at in split.tail]
        if await self.newest_within(open_calls, limit) < len(open_calls):
            raise ContextLengthExceeded(limit, "the calls that are still open and their outputs have more.")
        num_summary = _summary_tokens(limit)
        return split, await self._sizes(split, num_summary, limit // _SHARE), num_summary

    def _replacing(self, split: ContextSplit, said: Sequence[str]) -> dict[str, Any]:
        own = replace(split, system=[at for at in split.system if at >= self.num_instructions])
        kept = own.compacted(self._to_seal(own), said)
        return context_to_seal(kept, own.summary_at, self.tools, replaces=True)

    def _to_seal(self, split: ContextSplit) -> Mapping[int, Message]:
        return {at: self.messages[at].model_dump(exclude_none=True) for at in (*split.system, *split.tail)}

    async def _summary(
        self, split: ContextSplit, sizes: _MeasuredHead, max_tokens: int, summary_at: int | None
    ) -> tuple[PreparedRequest, CompactionSpec]:
        options = dict(self.prompt.template_options)
        known = await self.engine.template_variables(self.model_id)
        if "enable_thinking" in known:
            options["enable_thinking"] = False
        if "reasoning_effort" in known:
            options["reasoning_effort"] = "low"
        system = [self.prompt.messages[at] for at in split.system]
        asked = asking_for_summary([*map(without_media, system), *sizes.head])
        # Without tools, so that the model calls none; greedy, and nothing that the request wants of its answer.
        prompt = ChatPrompt(asked, template_options=options, may_truncate=True, emit_markers=True)
        sampling = {"temperature": 0.0, "max_tokens": max_tokens, "thinking_budget": 0}
        prepared = await self._prepare(prompt, sampling)
        return prepared, CompactionSpec(prepared.resumable, parser_config(prepared, "summary", {}), summary_at)

    async def _sizes(self, split: ContextSplit, num_summary: int, num_said: int) -> _MeasuredHead:
        context = await self._context_length() or _MAX_SUMMARY_TOKENS * 2**10
        head = [without_media(self.prompt.messages[at]) for at in split.head]
        system = [self.prompt.messages[at] for at in split.system]
        given = split.said(self.prompt.messages)

        def measure(tokenizer: RawTokenizer) -> _MeasuredHead:
            def count(text: str) -> int:
                return tokenizer.count_tokens(text, context) + _TOKENS_AROUND_MESSAGE

            room = context - num_summary - sum(map(count, (REQUEST_OF_SUMMARY, *map(_printed, system))))
            said = _newest_texts(given, num_said, count)
            kept, num_tokens = _newest_messages(head, room, count)
            num_saved = num_tokens - sum(map(count, said))
            return _MeasuredHead(said, num_saved > num_summary, kept)

        return await self.engine.with_tokenizer(self.model_id, measure)

    async def newest_within(self, texts: Sequence[str], num_tokens: int) -> int:
        """How many of the newest texts have no more tokens than that."""

        def measure(tokenizer: RawTokenizer) -> int:
            return len(_newest_texts(texts, num_tokens, lambda text: tokenizer.count_tokens(text, num_tokens)))

        return await self.engine.with_tokenizer(self.model_id, measure)

    async def _prepare(
        self, prompt: ChatPrompt, sampling: Mapping[str, Any], grammar: Grammar | None = None
    ) -> PreparedRequest:
        return await self.engine.prepare(
            self.model_id, prompt, sampling, grammar, cache_salt=self.cache_salt, ticket=self.ticket
        )

    async def _context_length(self) -> int | None:
        return (await self.engine.describe(self.model_id)).context_length


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    encrypted_content: str
    usage: RunUsage


async def written_summary(
    prepared: PreparedCompaction, answer_id: str, services: Services, ticket: Ticket
) -> WrittenSummary:
    """Of a compaction without an answer, of which nothing is recorded."""
    spec = RunSpec("compaction", answer_id, {}, prepared.summary.resumable, compaction=prepared.spec)
    writer = _SummaryWriter()
    run = Run(spec, services, writer, prepared=prepared.summary, ticket=ticket)
    try:
        async with aclosing(run.events()) as events:
            async for _ in events:
                pass
    except BaseException:
        run.cancel()  # also when the client has left
        raise
    return WrittenSummary(sealed_context(prepared.sealing, writer.text), writer.usage)


class _SummaryWriter:
    """Makes no events."""

    def __init__(self) -> None:
        self.text = ""
        self.usage = RunUsage()

    def begun(self, num_choices: int) -> Events:
        return ()

    def part(self, choice: int, part: RunPart) -> Events:
        return ()

    def call(self, event: CallEvent) -> Events:
        if isinstance(event, CompactionEnded):
            self.text = event.summary
        return ()

    def ended(self, finish: FinishReason, usage: RunUsage) -> Events:
        self.usage = usage
        return ()

    def failed(self, error: Exception) -> bytes:
        return b""

    def summary(self, usage: RunUsage) -> bytes:
        return b"{}"


def _summary_tokens(limit: int) -> int:
    return min(_MAX_SUMMARY_TOKENS, max(_MIN_SUMMARY_TOKENS, limit // _SHARE))


def _newest_texts(texts: Sequence[str], num_tokens: int, count: Callable[[str], int]) -> list[str]:
    kept: list[str] = []
    for text in reversed(texts):
        num_tokens -= count(text)
        if num_tokens < 0:
            break
        kept.append(text)
    return kept[::-1]


def _newest_messages(
    messages: Sequence[Message], num_tokens: int, count: Callable[[str], int]
) -> tuple[list[Message], int]:
    """The end of a conversation that has room, and the tokens of the whole as far as they were counted.

    It begins with a message of the user, as many templates demand: a message that is cut and outputs whose calls are
    left out become text of that.
    """
    kept: list[Message] = []
    num_used = 0
    cut = ""
    for message in reversed(messages):
        text = _printed(message)
        size = count(text)
        if num_used + size > num_tokens:
            cut = text[: len(text) * max(0, num_tokens - num_used) // size]
            num_used += size
            break
        num_used += size
        kept.append(message)
    kept.reverse()
    if len(kept) == len(messages):
        return kept, num_used
    texts = [_BEGINNING_IS_LEFT_OUT, *([cut] if cut else [])]
    while kept and kept[0]["role"] in ("tool", "user"):
        texts.append(plain_text(kept.pop(0)))
    return [{"role": "user", "content": "\n\n".join(texts)}, *kept], num_used


def _printed(message: Message) -> str:
    """All of a message that templates print."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    texts = [message.get("reasoning_content") or "", plain_text(message)]
    return "\n".join(filter(None, [*texts, json.dumps(calls, ensure_ascii=False) if calls else ""]))
