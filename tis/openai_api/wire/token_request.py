"""The bodies of `/tokenize` and `/detokenize`, in the shapes of vLLM and of llama.cpp, and the answers to them."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, StrictBool

from tis.bounds import MaxItems
from tis.engine.text.tokenizer import TextCodec
from tis.errors import BadRequest
from tis.openai_api.wire.chat_request import ChatMessage, ChatRequest, Tool
from tis.openai_api.wire.fields import MAX_MESSAGES, MAX_TOOLS, Integer, JsonObject, Name, RequestModel, Text

MAX_TOKENS = 2**20  # of a text
_MAX_SENT_TOKENS = 131_072  # a body has fewer values in all
_OF_CHATS = ("add_generation_prompt", "continue_final_message", "tools", "chat_template_kwargs")


class TokenizeRequest(RequestModel):
    model: Name | None = None
    prompt: Text | None = Field(None, description="a raw text, as for vLLM")
    messages: Annotated[list[ChatMessage], Field(min_length=1), MaxItems(MAX_MESSAGES)] | None = Field(
        None, description="a chat, as for vLLM: the tokens of its prompt"
    )
    content: Text | None = Field(None, description="a raw text, as for llama.cpp")

    # Of vLLM.
    add_special_tokens: StrictBool | None = Field(None, description="with `prompt`; true by default")
    return_token_strs: StrictBool | None = None
    add_generation_prompt: StrictBool | None = None
    continue_final_message: StrictBool | None = None
    tools: Annotated[list[Tool], MaxItems(MAX_TOOLS)] | None = None
    chat_template_kwargs: JsonObject | None = None

    # Of llama.cpp.
    add_special: StrictBool | None = Field(None, description="with `content`; false by default")
    with_pieces: StrictBool | None = Field(None, description="with `content`: the text of each token, too")

    def check(self) -> None:
        given = [name for name in ("prompt", "messages", "content") if getattr(self, name) is not None]
        if not given:
            message = "Send `prompt` or `messages` (vLLM), or `content` (llama.cpp)."
            raise BadRequest(message, param="prompt", code="missing_required_parameter")
        if len(given) > 1:
            raise BadRequest(f"{given[0]} and {given[1]} exclude each other.", param=given[1])
        if self.messages is not None and self.add_special_tokens:
            message = "add_special_tokens is for `prompt`: the chat template writes those of a chat."
            raise BadRequest(message, param="add_special_tokens", code="unsupported_value")

    @property
    def chat(self) -> ChatRequest | None:
        if self.messages is None:
            return None
        given = {name: value for name in _OF_CHATS if (value := getattr(self, name)) is not None}
        return ChatRequest.model_construct(messages=self.messages, **given)

    def encode(self, tokenizer: TextCodec) -> list[int]:
        if self.content is not None:
            text, adds_special = self.content, bool(self.add_special)
        else:
            text, adds_special = self.prompt or "", self.add_special_tokens is not False
        return tokenizer.encode_raw(text, adds_special_tokens=adds_special, max_tokens=MAX_TOKENS)

    def answer(self, token_ids: Sequence[int], max_model_len: int | None, tokenizer: TextCodec) -> dict[str, Any]:
        if self.content is None:
            names = tokenizer.token_names(token_ids) if self.return_token_strs else None
            return {
                "count": len(token_ids),
                "max_model_len": max_model_len,
                "tokens": token_ids,
                "token_strs": names,
            }
        if self.with_pieces:
            return {"tokens": [{"id": token_id, "piece": _piece(token_id, tokenizer)} for token_id in token_ids]}
        return {"tokens": token_ids}


class DetokenizeRequest(RequestModel):
    """Of both servers, whose answers differ in the name of the text: this one has both."""

    model: Name | None = None
    tokens: Annotated[list[Integer], MaxItems(_MAX_SENT_TOKENS)]

    def answer(self, tokenizer: TextCodec) -> dict[str, Any]:
        for at, token_id in enumerate(self.tokens):
            if not 0 <= token_id < tokenizer.vocabulary_size:
                raise BadRequest(
                    f"tokens.{at}: token {token_id} is not in the vocabulary of {tokenizer.vocabulary_size}.",
                    param="tokens",
                )
        text = tokenizer.decode_raw(self.tokens)
        return {"prompt": text, "content": text}


def _piece(token_id: int, tokenizer: TextCodec) -> str | list[int]:
    """A part of a character is its bytes."""
    data = tokenizer.token_bytes(token_id)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return list(data)
