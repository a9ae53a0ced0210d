"""Wraps a Transformers tokenizer: encodes chats, and decodes token ids to bytes and text.

Text of users is never encoded as a control token, so nobody can forge a turn.
"""

import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from tis.engine.prompt import ChatPrompt, Message
from tis.engine.text.detokenizer import ByteDetokenizer, Detokenizer, MarkerDetokenizer, WindowDetokenizer
from tis.engine.text.markers import ModelMarkers, detect_markers
from tis.engine.text.reasoning import ReasoningTokens, find_reasoning_tokens
from tis.engine.text.render_time import RenderTooSlow, limited_rendering, watch_lookups
from tis.engine.text.template_messages import (
    wants_arguments_as_text,
    with_arguments_as_text,
    with_description,
    with_one_call_each,
)
from tis.engine.text.text_encoder import MAX_CHARS_PER_TOKEN, TextEncoder, TooManyTokens
from tis.engine.text.tokenizer import offsets_of
from tis.errors import BadRequest

# Mistral templates refuse a conversation unless the ids of its tool calls are nine letters and digits.
_MISTRAL_ID_LENGTH = 9


class HfTokenizer:
    def __init__(self, tokenizer: Any, eos_ids: Collection[int], vocabulary_size: int) -> None:
        self.eos_ids = frozenset(eos_ids)
        self.vocabulary_size = vocabulary_size
        self._tokenizer = tokenizer
        self._special_ids = frozenset(tokenizer.all_special_ids)
        self._token_bytes = byte_vocabulary(tokenizer)
        self._control_token = re.compile("|".join(map(re.escape, tokenizer.added_tokens_encoder)) or "(?!)")
        # Slow tokenizers only: sanitising sets a flag inside, and a second thread could encode text of users as control
        # tokens.
        self._lock = threading.Lock()
        self._encoder = self._new_encoder()
        self.markers: ModelMarkers = detect_markers(self.template, tokenizer.added_tokens_encoder)

    def _new_encoder(self) -> TextEncoder | None:
        """None for a slow tokenizer, whose library encodes in Python."""
        if getattr(self._tokenizer, "backend_tokenizer", None) is None:
            return None
        from transformers.utils.chat_template_utils import _compile_jinja_template

        for template in self._templates:
            with contextlib.suppress(Exception):  # an invalid template: every prompt is refused with the reason
                watch_lookups(_compile_jinja_template(template).environment)
        return TextEncoder(self._tokenizer, self._tokenizer._get_control_tokens(self.template))

    @property
    def _templates(self) -> list[str]:
        """A tokenizer may have several, by name."""
        template = self._tokenizer.chat_template or ""
        return [template] if isinstance(template, str) else list(map(str, template.values()))

    @property
    def template(self) -> str:
        return "\n".join(self._templates)

    @property
    def template_variables(self) -> frozenset[str]:
        """The variables that the template does not set itself, except the special tokens, which the library sets."""
        from transformers.utils.chat_template_utils import _get_template_variables

        try:
            variables: frozenset[str] = _get_template_variables(self.template)
        except Exception:  # an invalid template: every prompt is refused with the reason
            return frozenset()
        return variables.difference(self._tokenizer.special_tokens_map)

    @property
    def marker_ids(self) -> Mapping[str, int]:
        """The added tokens: each is one token, however it is written."""
        return dict(self._tokenizer.added_tokens_encoder)

    @property
    def reasoning_tokens(self) -> ReasoningTokens | None:
        return find_reasoning_tokens(self.marker_ids.get, self.encode_text, self.template)

    def for_grammars(self, num_more: int = 0) -> Any:
        """The tokenizer as llguidance wants it. `num_more`: tokens that the model does not have."""
        from llguidance import LLTokenizer

        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise _no_grammars("its tokenizer is a slow one")
        plain = json.loads(backend.to_str())
        # llguidance would treat <think> as a control token, and yet use it to spell text. Under other names, grammars
        # refer to markers by id, and text that looks like a marker is spelled out. The other ids stay as they are.
        plain["added_tokens"] = [
            token if token["special"] or not _is_marker(token["content"]) else _hidden(token)
            for token in plain["added_tokens"]
        ]
        plain["padding"] = plain["truncation"] = None
        eos_ids = sorted(self.eos_ids) or self._tokenizer.eos_token_id
        try:
            return LLTokenizer(json.dumps(plain), n_vocab=self.vocabulary_size + num_more, eos_token=eos_ids)
        except ValueError as error:
            raise _no_grammars(str(error)) from error

    def encode_chat(self, prompt: ChatPrompt) -> list[int]:
        """Raises TooManyTokens if there are more than the prompt may have."""
        if not self._tokenizer.chat_template:
            raise BadRequest("This model has no chat template.", param="model", code="no_chat_template")
        self.refuse_control_tokens_in_keys(prompt)
        messages, tools = self._for_template(prompt)
        try:
            ids = self._encode_messages(messages, tools or None, prompt)
        except TooManyTokens:
            raise
        except RenderTooSlow:
            raise BadRequest(
                "The model's chat template takes too long for these messages. Send fewer messages or tools.",
                param="messages",
                code="template_too_slow",
            ) from None
        except Exception as error:  # templates raise any exception; the cause is always the messages
            raise BadRequest(f"The model's chat template refused the messages: {error}", param="messages") from error
        if not ids:
            raise BadRequest("The messages make an empty prompt.", param="messages")
        return ids

    def count_tokens(self, text: str, max_tokens: int) -> int:
        """About the number of tokens in a text, or a number above the limit if there are more."""
        if self._encoder is None:
            return len(self.encode_text(text))
        return self._encoder.count(text, max_tokens)

    def require_few_tokens(self, text: str, max_tokens: int) -> None:
        """Raises TooManyTokens if the text surely has more, before all of it is encoded."""
        if self._encoder is not None:
            self._encoder.require_few(text, max_tokens)

    def _encode_messages(
        self, messages: list[Message], tools: list[Mapping[str, Any]] | None, prompt: ChatPrompt
    ) -> list[int]:
        options = {
            "add_generation_prompt": prompt.add_generation_prompt,
            "continue_final_message": prompt.continue_final_message,
        }
        if self._encoder is None:
            with self._lock, limited_rendering():
                ids: list[int] = self._tokenizer.apply_chat_template(
                    messages,
                    tools=tools,
                    sanitize_control_tokens=True,
                    return_dict=False,
                    **options,
                    **prompt.template_options,
                )
            return ids
        marked = self._encoder.mark([messages, tools, prompt.template_options])
        with limited_rendering():
            chat: str = self._tokenizer.apply_chat_template(
                marked[0], tools=marked[1], tokenize=False, **options, **marked[2]
            )
        return self._encoder.encode_marked(chat, prompt.max_tokens)

    def _for_template(self, prompt: ChatPrompt) -> tuple[list[Message], list[Mapping[str, Any]]]:
        """The messages and tools in the form that the template reads."""
        messages, tools = list(prompt.messages), list(prompt.tools)
        if self.markers.tool_format == "mistral":
            messages = with_short_ids(messages)
        elif self.markers.tool_format == "harmony":
            messages, tools = with_one_call_each(messages), [with_description(tool) for tool in tools]
        if any(message.get("tool_calls") for message in messages) and self._wants_arguments_as_text:
            messages = [with_arguments_as_text(message) for message in messages]
        return messages, tools

    @cached_property
    def _wants_arguments_as_text(self) -> bool:
        return wants_arguments_as_text(
            lambda messages: str(self._tokenizer.apply_chat_template(messages, tokenize=False))
        )

    def encode_text(self, text: str) -> list[int]:
        """Encodes text of the server itself, without a template and without control tokens."""
        if self._encoder is not None:
            return self._encoder.encode(text)
        with self._lock:
            ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def encode_raw(self, text: str, *, adds_special_tokens: bool, max_tokens: int | None = None) -> list[int]:
        """As the library does it. A raw prompt is all the client's own, so it may write control tokens."""
        if self._encoder is not None:
            return self._encoder.encode_raw(text, adds_special_tokens, max_tokens)
        if max_tokens is not None and len(text) > max_tokens * MAX_CHARS_PER_TOKEN:
            raise TooManyTokens(len(text) // MAX_CHARS_PER_TOKEN)
        with self._lock:
            ids: list[int] = self._tokenizer.encode(text, add_special_tokens=adds_special_tokens)
        return ids

    def decode_raw(self, token_ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(token_ids))

    def visible_texts(self, token_ids: Sequence[int]) -> list[str]:
        shown = MarkerDetokenizer(self.new_detokenizer(), self._control_texts)
        texts = list(map(shown.feed, token_ids))
        return [*texts[:-1], texts[-1] + shown.flush()] if texts else []

    def text_offsets(self, text: str, token_ids: Sequence[int], *, adds_special_tokens: bool) -> list[int]:
        if self._encoder is not None:
            return self._encoder.offsets(text, adds_special_tokens)
        return offsets_of(self.visible_texts(token_ids), len(text))

    def token_names(self, token_ids: Sequence[int]) -> list[str]:
        return [str(self._tokenizer.convert_ids_to_tokens(token_id)) for token_id in token_ids]

    @cached_property
    def _control_texts(self) -> Mapping[int, str]:
        """Of the tokens that an answer does not show."""
        added = self._tokenizer.added_tokens_decoder
        hidden = self._special_ids.union(token_id for token_id, token in added.items() if token.special)
        return {token_id: str(self._tokenizer.convert_ids_to_tokens(token_id)) for token_id in hidden}

    def refuse_control_tokens_in_keys(self, prompt: ChatPrompt) -> None:
        """Transformers sanitises values only, but templates print the keys of tools and arguments too."""
        self._refuse_keys_of([*prompt.messages, *prompt.tools, prompt.template_options])

    def _refuse_keys_of(self, node: Any) -> None:
        if isinstance(node, Mapping):
            for key, value in node.items():
                if isinstance(key, str) and self._control_token.search(key):
                    raise BadRequest(f"The field name {key[:60]!r} contains a control token. Rename the field.")
                self._refuse_keys_of(value)
        elif isinstance(node, list):
            for value in node:
                self._refuse_keys_of(value)

    def token_text(self, token_id: int) -> str:
        return str(self._tokenizer.decode([token_id]))

    def token_bytes(self, token_id: int) -> bytes:
        if self._token_bytes is not None and token_id in self._token_bytes:
            return self._token_bytes[token_id]
        return self.token_text(token_id).encode()

    def new_detokenizer(self) -> Detokenizer:
        if self._token_bytes is not None:
            return ByteDetokenizer(self._token_bytes)
        return WindowDetokenizer(lambda ids: str(self._tokenizer.decode(ids, skip_special_tokens=True)))


def _no_grammars(reason: str) -> BadRequest:
    message = f"This model does not support structured output: {reason}."
    return BadRequest(message[:300], param="model", code="unsupported_value")


def _is_marker(text: str) -> bool:
    return text.startswith("<") and text.endswith(">")


def _hidden(token: Mapping[str, Any]) -> dict[str, Any]:
    return {**token, "content": f"<|hidden marker {token['id']}|>", "special": True}


def byte_vocabulary(tokenizer: Any) -> Mapping[int, bytes] | None:
    """The bytes of every visible token, for byte-level vocabularies; None for other kinds."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None or not str(backend.decoder).startswith("ByteLevel"):
        return None
    to_byte = _bytes_of_characters()
    special = set(tokenizer.all_special_ids)
    added = tokenizer.added_tokens_decoder
    vocabulary: dict[int, bytes] = {}
    for token, token_id in tokenizer.get_vocab().items():
        if token_id in special or (token_id in added and added[token_id].special):
            continue
        if token_id in added or not to_byte.keys() >= set(token):
            vocabulary[token_id] = token.encode()
        else:
            vocabulary[token_id] = bytes(to_byte[character] for character in token)
    return vocabulary


def _bytes_of_characters() -> dict[str, int]:
    """GPT-2's alphabet: printable bytes stand for themselves, the others for characters from U+0100 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def with_short_ids(messages: Sequence[Message]) -> list[Message]:
    """Replaces invalid ids by a hash, so that a call and its result still have the same id."""
    return [_shortened(message) for message in messages]


def _shortened(message: Message) -> Message:
    changed: dict[str, Any] = {}
    if message.get("tool_calls"):
        changed["tool_calls"] = [_with_short_id(call, "id") for call in message["tool_calls"]]
    return {**_with_short_id(message, "tool_call_id"), **changed}


def _with_short_id(node: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    call_id = node.get(name)
    if not isinstance(call_id, str) or (len(call_id) == _MISTRAL_ID_LENGTH and call_id.isalnum() and call_id.isascii()):
        return node
    return {**node, name: hashlib.sha256(call_id.encode()).hexdigest()[:_MISTRAL_ID_LENGTH]}
