"""Turns texts, token ids and pairs into rows of tokens, with the prompts and the limits of the model."""

from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from tis.engine.errors import ContextLengthExceeded, LoadFailed
from tis.engine.pooling.sentence_files import SentenceFiles
from tis.engine.pooling.token_row import Text, TokenRow
from tis.engine.prompt import ChatPrompt, MediumKind
from tis.errors import BadRequest

# No token of a usual text has more; a text beyond that many for each token is refused or cut before it is encoded.
_MAX_CHARS_PER_TOKEN = 16
_MAX_TOKENS = 2**20  # of a request
_SLICE = 32  # texts that are encoded at once: what the tokenizer returns takes 130 bytes for each token


class TextRows:
    """Several threads may encode at once: nothing of the tokenizer is changed after it is made.

    The text of a user is never encoded as a control token.
    """

    def __init__(self, tokenizer: Any, files: SentenceFiles, vocabulary_size: int, max_length: int) -> None:
        self._backend: Any = getattr(tokenizer, "backend_tokenizer", None)
        if self._backend is None:
            raise LoadFailed("Embeddings and reranking need a tokenizer of the library `tokenizers` (tokenizer.json).")
        self._special_ids = frozenset(tokenizer.all_special_ids)
        self._backend.encode_special_tokens = True  # as plain text
        self._backend.no_truncation()
        self._backend.no_padding()
        self._files = files
        self._vocabulary_size = vocabulary_size
        self.max_length = max_length
        self._has_type_ids = "token_type_ids" in tokenizer.model_input_names

    @property
    def kinds(self) -> Collection[MediumKind]:
        return ()

    def prompt(self, name: str | None) -> str:
        """Of a name in the repository's files; None: its default, mostly none."""
        wanted = self._files.default_prompt if name is None else name
        if wanted is None:
            return ""
        if wanted not in self._files.prompts:
            known = ", ".join(sorted(self._files.prompts)) or "none"
            message = f"prompt_name: this model has no prompt {wanted[:64]!r}. Its prompts: {known}."
            raise BadRequest(message, param="prompt_name")
        return self._files.prompts[wanted]

    def limit(self, max_length: int) -> None:
        """Of a setting of the operator."""
        self.max_length = min(self.max_length, max_length)

    def of_texts(self, texts: Sequence[Text], prompt: str, *, truncate: bool) -> list[TokenRow]:
        num_prompt_tokens = self._num_tokens_of_prompt(prompt) if prompt else 0
        room = self.max_length - int(self._backend.num_special_tokens_to_add(False))
        budget, rows = TokenBudget(), list[TokenRow]()
        for first in range(0, len(texts), _SLICE):
            some = texts[first : first + _SLICE]
            encodings = iter(self._encode([prompt + one for one in some if isinstance(one, str)], first, truncate))
            for number, text in enumerate(some, first):
                if isinstance(text, ChatPrompt):
                    raise BadRequest("messages: this model reads plain texts. Send them as `input`.", param="messages")
                if isinstance(text, str):
                    encoding = next(encodings)
                    self._cut(encoding, room, number, truncate=truncate)
                    ids = self._backend.post_process(encoding, None, True).ids
                else:
                    ids = self._checked(text, number, truncate=truncate)
                rows.append(TokenRow(budget.taken(ids, number), None, num_prompt_tokens))
        return rows

    def of_pairs(self, pairs: Sequence[tuple[str, str]], *, truncate: bool) -> list[TokenRow]:
        """As a cross-encoder reads them: both texts in one row. The longer one is cut first."""
        room = self.max_length - int(self._backend.num_special_tokens_to_add(True))
        budget, rows = TokenBudget(), list[TokenRow]()
        for begin in range(0, len(pairs), _SLICE):
            some = pairs[begin : begin + _SLICE]
            texts = list(dict.fromkeys(text for pair in some for text in pair))  # mostly one query of all
            known = dict(zip(texts, self._encode(texts, begin, truncate), strict=True))
            for number, pair in enumerate(some, begin):
                first, second = (type(known[text]).merge([known[text]]) for text in pair)  # copies, which are cut
                if len(first.ids) + len(second.ids) > room and not truncate:
                    self._refuse(len(first.ids) + len(second.ids), number)
                num_first, num_second = _longest_first(len(first.ids), len(second.ids), room)
                first.truncate(num_first)
                second.truncate(num_second)
                encoding = self._backend.post_process(first, second, True)
                types = array("b", encoding.type_ids) if self._has_type_ids else None
                rows.append(TokenRow(budget.taken(encoding.ids, number), types))
        return rows

    def in_template(
        self, before: Sequence[int], texts: Iterable[str], after: Sequence[int], *, truncate: bool
    ) -> list[TokenRow]:
        """The texts are cut, the template is not."""
        room = self.max_length - len(before) - len(after)
        budget, rows = TokenBudget(), list[TokenRow]()
        for number, text in enumerate(texts):
            [encoding] = self._encode([text], number, truncate)
            self._cut(encoding, room, number, truncate=truncate)
            rows.append(TokenRow(budget.taken([*before, *encoding.ids, *after], number)))
        return rows

    def _num_tokens_of_prompt(self, prompt: str) -> int:
        """Without the token that ends a text, as sentence-transformers counts."""
        ids = self._backend.encode(prompt).ids
        return len(ids) - (ids[-1] in self._special_ids)

    def _encode(self, texts: Sequence[str], first_number: int, truncate: bool) -> list[Any]:
        """Without the tokens around a text. One of megabytes is cut, or refused, before the tokenizer reads it."""
        most = self.max_length * _MAX_CHARS_PER_TOKEN
        for number, text in enumerate(texts, first_number):
            if len(text) > most and not truncate:
                self._refuse(len(text) // _MAX_CHARS_PER_TOKEN, number)
        short = [text[:most].lower() if self._files.lower_case else text[:most] for text in texts]
        return list(self._backend.encode_batch(short, add_special_tokens=False)) if short else []

    def _cut(self, encoding: Any, room: int, number: int, *, truncate: bool) -> None:
        if len(encoding.ids) > room:
            if not truncate:
                self._refuse(len(encoding.ids), number)
            encoding.truncate(max(1, room))

    def _checked(self, ids: Sequence[int], number: int, *, truncate: bool) -> list[int]:
        for token in ids:
            if not 0 <= token < self._vocabulary_size:
                message = f"input.{number}: token {token} is not in the vocabulary of {self._vocabulary_size}."
                raise BadRequest(message, param="input")
        if len(ids) > self.max_length and not truncate:
            self._refuse(len(ids), number)
        return list(ids[: self.max_length])

    def _refuse(self, num_tokens: int, number: int) -> None:
        reason = f"text {number} has {num_tokens} tokens or more. Send `truncate: true` to have it cut."
        raise ContextLengthExceeded(self.max_length, reason, param="input")


class TokenBudget:
    """Of the tokens of one request, which lie in memory until they are computed."""

    def __init__(self) -> None:
        self._left = _MAX_TOKENS

    def taken(self, ids: Sequence[int], number: int) -> Sequence[int]:
        if not ids:
            raise BadRequest(f"text {number} has no tokens.", param="input")
        self._left -= len(ids)
        if self._left < 0:
            raise BadRequest(f"The texts of a request have at most {_MAX_TOKENS} tokens together.", param="input")
        return array("i", ids)


def _longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens of two texts stay: the longer one is cut first, as the library `tokenizers` does it."""
    if first + second <= room:
        return first, second
    shorter, longer = sorted((first, second))
    longer = shorter if shorter > room else max(shorter, room - shorter)
    if shorter + longer > room:
        shorter, longer = room // 2, room // 2 + room % 2
    return (shorter, longer) if first <= second else (longer, shorter)
