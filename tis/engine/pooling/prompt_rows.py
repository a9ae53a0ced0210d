"""Rows of a model that sees: its chat template lays out texts, pictures and videos, as in a chat."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from tis.engine.errors import ContextLengthExceeded
from tis.engine.pooling.sentence_files import SentenceFiles
from tis.engine.pooling.text_rows import TextRows, TokenBudget
from tis.engine.pooling.token_row import Text, TokenRow
from tis.engine.prompt import ChatPrompt, MediumKind, media_of
from tis.engine.text.text_encoder import TooManyTokens
from tis.engine.vision.vision_input import VisionProcessor, preprocessed
from tis.errors import BadRequest


class PromptRows:
    """A text is the message of a user, and a prompt of the repository that of the system."""

    def __init__(self, texts: TextRows, vision: VisionProcessor, files: SentenceFiles) -> None:
        self._texts = texts
        self._vision = vision
        options = dict(files.template_options)
        self._adds_generation_prompt = options.pop("add_generation_prompt", False) is True
        self._options = options
        self.max_length = texts.max_length

    @property
    def kinds(self) -> Collection[MediumKind]:
        return self._vision.kinds

    def prompt(self, name: str | None) -> str:
        return self._texts.prompt(name)

    def limit(self, max_length: int) -> None:
        self.max_length = min(self.max_length, max_length)
        self._texts.limit(max_length)

    def of_texts(self, texts: Sequence[Text], prompt: str, *, truncate: bool) -> list[TokenRow]:
        budget, rows = TokenBudget(), list[TokenRow]()
        for number, text in enumerate(texts):
            if isinstance(text, str):
                text = ChatPrompt([{"role": "user", "content": text}])
            if isinstance(text, ChatPrompt):
                row = self._row(text, prompt, number, truncate=truncate)
            else:
                [row] = self._texts.of_texts([text], "", truncate=truncate)
            budget.taken(row.ids, number)
            rows.append(row)
        return rows

    def of_pairs(self, pairs: Sequence[tuple[str, str]], *, truncate: bool) -> list[TokenRow]:
        return self._texts.of_pairs(pairs, truncate=truncate)

    def in_template(
        self, before: Sequence[int], texts: Iterable[str], after: Sequence[int], *, truncate: bool
    ) -> list[TokenRow]:
        return self._texts.in_template(before, texts, after, truncate=truncate)

    def _row(self, given: ChatPrompt, prompt: str, number: int, *, truncate: bool) -> TokenRow:
        messages: list[Any] = [{"role": "system", "content": prompt}] if prompt else []
        whole = replace(
            given,
            messages=[*messages, *given.messages],
            template_options=self._options,
            add_generation_prompt=self._adds_generation_prompt,
            max_tokens=self.max_length,
        )
        try:
            ids = self._vision.encode(whole)
        except TooManyTokens as error:
            raise self._too_long(error.num_tokens, number, truncate=truncate) from None
        if len(ids) > self.max_length:
            raise self._too_long(len(ids), number, truncate=truncate)
        media = media_of(given.messages)
        return TokenRow(ids, media=preprocessed(self._vision, ids, media) if media else None)

    def _too_long(self, num_tokens: int, number: int, *, truncate: bool) -> Exception:
        if truncate:
            reason = f"text {number} has {num_tokens} tokens or more, and this model's chat template cannot be cut."
            return BadRequest(f"truncate: {reason}", param="truncate")
        return ContextLengthExceeded(
            self.max_length, f"text {number} has {num_tokens} tokens or more, with its pictures.", param="input"
        )
