"""Decides questions about an input: each is a prompt that ends where a letter comes, and nothing is generated.

The probabilities are those of the letters of the options, among themselves, at the one place behind the prompt. No
question sees another one, so each is decided as it would be alone.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from string import ascii_uppercase
from typing import Any

from tis.admission.ticket import Ticket
from tis.chat.media import with_media
from tis.chat.run_spec import Services
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt, media_of
from tis.engine.raw_requests import MAX_LISTED_TOKENS
from tis.engine.text.tokenizer import RawTokenizer
from tis.errors import BadRequest
from tis.http.scanned_route import in_thread_if
from tis.openai_api.wire.chat_prompt import chat_prompt
from tis.openai_api.wire.decision_request import (
    ChoiceQuestion,
    DecisionRequest,
    PredicateQuestion,
    Question,
    ScoreQuestion,
)

_MAX_QUESTIONS_ABOUT_PICTURES = 16  # each computes them once more
_OPTIONS = "Options:"
_HOW = "Answer with the letter of one option, and nothing else."


class DecisionMaking:
    """A request on its way."""

    def __init__(
        self,
        body: DecisionRequest,
        services: Services,
        model_id: str,
        ticket: Ticket,
        *,
        cache_salt: str,
        is_large: bool,
    ) -> None:
        self._body = body
        self._engine = services.engine
        self._media = services.media
        self._model_id = model_id
        self._ticket = ticket
        self._cache_salt = cache_salt
        self._is_large = is_large

    async def decide(self) -> dict[str, Any]:
        chat = await in_thread_if(self._is_large, self._body.as_chat)
        prompt, _ = await with_media(chat_prompt(chat), self._model_id, self._engine, self._media, self._ticket)
        questions = self._body.questions
        has_pictures = bool(media_of(prompt.messages))
        if has_pictures and len(questions) > _MAX_QUESTIONS_ABOUT_PICTURES:
            message = f"questions: at most {_MAX_QUESTIONS_ABOUT_PICTURES} about an input with pictures."
            raise BadRequest(message, param="questions", code="too_many_questions")
        most = max(len(_option_texts(one)) for one in questions)
        labels = await self._engine.with_tokenizer(self._model_id, lambda tokenizer: _labels(tokenizer, most))
        rows: list[list[float]] = []
        num_tokens = num_cached = 0
        # Each prepared question keeps the pixels once more.
        for group in [[one] for one in questions] if has_pictures else [questions]:
            prepared = await self._all_prepared(prompt, group, labels)
            num_tokens += sum(len(one.prompt_ids) for one in prepared)
            for some in filter(None, (prepared[:1], prepared[1:])):  # behind the first, the input is in the cache
                more, num_more = await self._computed(some)
                rows, num_cached = [*rows, *more], num_cached + num_more
        return {
            "model": self._model_id,
            "answers": [_answer(question, row) for question, row in zip(questions, rows, strict=True)],
            "usage": {
                "input_tokens": num_tokens,
                "input_tokens_details": {"cached_tokens": num_cached, "cache_write_tokens": 0},
                "output_tokens": 0,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": num_tokens,
            },
        }

    async def _all_prepared(
        self, prompt: ChatPrompt, questions: Sequence[Question], labels: Sequence[tuple[str, int]]
    ) -> list[PreparedRequest]:
        prepared: list[PreparedRequest] = []
        num_tokens = 0
        for question in questions:
            prepared.append(await self._prepared(prompt, question, labels))
            num_tokens += len(prepared[-1].prompt_ids)
            if len(prepared) > 1 and num_tokens > MAX_LISTED_TOKENS:
                message = f"questions: their prompts have at most {MAX_LISTED_TOKENS:,} tokens together."
                raise BadRequest(message, param="questions", code="too_many_tokens")
        return prepared

    async def _prepared(
        self, prompt: ChatPrompt, question: Question, labels: Sequence[tuple[str, int]]
    ) -> PreparedRequest:
        options = _option_texts(question)
        lines = [f"{label}. {text}" for (label, _), text in zip(labels, options, strict=False)]
        text = "\n".join([_asked(question), "", _OPTIONS, *lines, "", _HOW])
        sampling = {
            "max_tokens": 1,
            "min_tokens": 1,
            "ignore_eos": True,
            "temperature": 0.0,
            "n": 1,
            "top_logprobs": 0,
            "logprob_token_ids": tuple(token_id for _, token_id in labels[: len(options)]),
        }
        asked = replace(prompt, messages=_with_question(prompt.messages, text), emit_markers=False)
        prepared = await self._engine.prepare(
            self._model_id, asked, sampling, cache_salt=self._cache_salt, ticket=self._ticket
        )
        if prepared.starts_in_reasoning:
            raise BadRequest(
                "This model always reasons before it answers, so it cannot decide in one pass.",
                param="model",
                code="model_not_supported",
            )
        return replace(prepared, reasoning_limit=None, begun=[])

    async def _computed(self, prepared: Sequence[PreparedRequest]) -> tuple[list[list[float]], int]:
        """The log probabilities of the labels of each question."""
        answer = self._engine.submit_list(prepared, ticket=self._ticket)
        rows: dict[int, list[float]] = {}
        try:
            async for piece in answer:
                if piece.logprobs:
                    rows[piece.choice] = [one.logprob for one in piece.logprobs[0].top]
        finally:
            answer.cancel()  # nothing, unless the client has left
        if len(rows) < len(prepared):
            raise BadRequest(
                "This model tells no log probabilities, so it cannot decide.", param="model", code="model_not_supported"
            )
        return [rows[number] for number in range(len(prepared))], answer.cached_tokens


def _labels(tokenizer: RawTokenizer, count: int) -> list[tuple[str, int]]:
    """Letters, or pairs of them, that are one token each."""
    found: dict[int, str] = {}
    for label in (*ascii_uppercase, *map("".join, product(ascii_uppercase, repeat=2))):
        if len(found) == count:
            break
        ids = tokenizer.encode_text(label)
        if len(ids) == 1:
            found.setdefault(ids[0], label)
    if len(found) < count:
        message = f"questions: this model has tokens for {len(found)} options, not for {count}."
        raise BadRequest(message, param="questions", code="too_many_options")
    return [(label, token_id) for token_id, label in found.items()]


def _asked(question: Question) -> str:
    if isinstance(question, PredicateQuestion):
        return f"Is this statement about the input true?\n{question.text}"
    return question.text


def _option_texts(question: Question) -> list[str]:
    match question:
        case ChoiceQuestion(choices=choices):
            return [_described(one.text, one.description) for one in choices]
        case ScoreQuestion(levels=levels):
            return [_described(one.label, one.description) for one in levels]
    return ["true", "false"]


def _described(text: str, description: str | None) -> str:
    return f"{text}: {description}" if description else text


def _with_question(messages: Sequence[Mapping[str, Any]], text: str) -> list[Mapping[str, Any]]:
    """In the last message, if that is of the user: many templates want the roles to take turns."""
    last = messages[-1]
    if last["role"] != "user":
        return [*messages, {"role": "user", "content": text}]
    content = last["content"]
    if isinstance(content, str):
        asked: Any = f"{content}\n\n{text}"
    else:
        asked = [*content, {"type": "text", "text": f"\n\n{text}"}]
    return [*messages[:-1], {**last, "content": asked}]


def _answer(question: Question, logprobs: Sequence[float]) -> dict[str, Any]:
    shares = list(_shares(logprobs))
    named = {"type": question.type, "name": question.name}
    if isinstance(question, ChoiceQuestion):
        values = [one.value for one in question.choices]
        each: list[dict[str, Any]] = [
            {"value": value, "probability": share} for value, share in zip(values, shares, strict=True)
        ]
        best = values[shares.index(max(shares))]
        return {**named, "choice": best, "probabilities": each, "confidence": _confidence(shares)}
    if isinstance(question, ScoreQuestion):
        each = [
            {"value": number, "label": level.label, "probability": share}
            for number, (level, share) in enumerate(zip(question.levels, shares, strict=True))
        ]
        score = sum(number * share for number, share in enumerate(shares))
        return {**named, "score": score, "probabilities": each, "confidence": _confidence(shares)}
    return {**named, "probability": shares[0]}


def _shares(logprobs: Sequence[float]) -> Iterator[float]:
    largest = max(logprobs)
    weights = [math.exp(one - largest) for one in logprobs]
    return (weight / sum(weights) for weight in weights)


def _confidence(shares: Sequence[float]) -> float:
    """0 if all options are equally likely, 1 if one is certain."""
    even = 1 / len(shares)
    return max(0.0, (max(shares) - even) / (1 - even))
