"""The bodies of `/v1/embeddings`, `/v1/rerank` and their like, and the answers to them."""

import base64
import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictInt, StrictStr, model_validator

from tis.bounds import MaxItems
from tis.engine.pooling.loaded_pooling import Embeddings
from tis.engine.pooling.token_row import Text
from tis.engine.prompt import ChatPrompt
from tis.errors import BadRequest
from tis.openai_api.wire.chat_prompt import medium_placeholder, plain_messages
from tis.openai_api.wire.chat_request import ChatMessage, ContentPart, MediaRef
from tis.openai_api.wire.fields import (
    MAX_MESSAGES,
    MAX_TEXT_CHARS,
    CacheSalt,
    HintText,
    Medium,
    Name,
    RequestModel,
)

T = TypeVar("T")
MAX_INPUTS = 2048
_MAX_TOKENS = 131_072  # of an input that is sent as token ids


def _as_texts(given: Any) -> Any:
    """A text, a list of texts, the token ids of one text, or a list of those, as a list."""
    if isinstance(given, str | dict):
        given = [given]
    elif isinstance(given, list) and given and isinstance(given[0], int):
        given = [given]
    return given


def _not_empty(texts: list[T]) -> list[T]:
    if not texts:
        raise ValueError("there is no text in it")
    for number, text in enumerate(texts):
        if not text:
            raise ValueError(f"text {number} is empty")
    return texts


class SeenInput(RequestModel):
    """As Jina's API takes it: a text, a picture, or both."""

    text: Annotated[StrictStr, Field(max_length=MAX_TEXT_CHARS)] | None = None
    image: Medium | MediaRef | None = Field(None, description="a URL, a data: URI, or base64")

    @model_validator(mode="after")
    def _require_something(self) -> "SeenInput":
        if not (self.text or self.image):
            raise ValueError("there is neither a text nor an image in it")
        return self

    def prompt(self, number: int) -> ChatPrompt:
        """The picture stands before the text."""
        parts: list[dict[str, Any]] = []
        if self.image:
            part = ContentPart(type="image", image=self.image)
            parts.append({"type": "image", "image": medium_placeholder(part, f"input.{number}")})
        if self.text:
            parts.append({"type": "text", "text": self.text})
        return ChatPrompt([{"role": "user", "content": parts}])


_InputText = Annotated[StrictStr, Field(max_length=MAX_TEXT_CHARS)]
_TokenIds = Annotated[list[StrictInt], MaxItems(_MAX_TOKENS)]
Input = Annotated[
    list[_InputText | _TokenIds], MaxItems(MAX_INPUTS), BeforeValidator(_as_texts), AfterValidator(_not_empty)
]


_SeenInputs = Annotated[
    list[_InputText | _TokenIds | SeenInput],
    MaxItems(MAX_INPUTS),
    BeforeValidator(_as_texts),
    AfterValidator(_not_empty),
]


class EmbeddingRequest(RequestModel):
    model: Name | None = None
    input: _SeenInputs | None = Field(
        None,
        description="a text, up to 2,048 texts, or the token ids of them; for models that see, also objects with "
        "`text`, `image` or both",
    )
    messages: Annotated[list[ChatMessage], MaxItems(MAX_MESSAGES)] | None = Field(
        None, min_length=1, description="as for vLLM, instead of `input`: one vector of a conversation with pictures"
    )
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: StrictInt | None = Field(
        None, ge=1, description="the first numbers of the vectors, normalised again; vectors of Matryoshka models"
    )
    user: HintText = None
    prompt_name: Name | None = Field(None, description="a prompt of the model that is put before each text")
    truncate: StrictBool | None = Field(None, description="cut texts that are too long, instead of a 400")
    cache_salt: CacheSalt | None = None

    def texts(self) -> list[Text]:
        """Pictures are placeholders still."""
        if (self.input is None) == (self.messages is None):
            name = "input" if self.input is None else "messages"
            message = "Send either `input` or `messages`."
            code = "missing_required_parameter" if self.input is None else None
            raise BadRequest(message, param=name, code=code)
        if self.messages is not None:
            return [ChatPrompt(plain_messages(self.messages))]
        return [
            one if not isinstance(one, SeenInput) else one.prompt(number) if one.image else one.text or ""
            for number, one in enumerate(self.input or ())
        ]


class PlainEmbeddingRequest(RequestModel):
    """The body of llama.cpp's `/embedding`."""

    model: Name | None = None
    content: Input | None = Field(None, description="a text, several texts, or the token ids of them")
    input: Input | None = Field(None, description="the same as `content`")


class RerankedDocument(RequestModel):
    text: _InputText


class RerankRequest(RequestModel):
    model: Name | None = None
    query: _InputText
    documents: Annotated[list[_InputText | RerankedDocument], MaxItems(MAX_INPUTS)] = Field(min_length=1)
    top_n: StrictInt | None = Field(None, ge=1, description="only the best ones")
    return_documents: StrictBool | None = None
    instruction: Annotated[StrictStr, Field(max_length=4096)] | None = Field(
        None, description="for rerankers that read one: what makes a document answer a query"
    )
    truncate: StrictBool | None = Field(None, description="false: a 400 for what is too long, instead of a cut")

    @property
    def texts(self) -> list[str]:
        return [one if isinstance(one, str) else one.text for one in self.documents]


_Side = _InputText | Annotated[list[_InputText], MaxItems(MAX_INPUTS)]


class ScoreRequest(RequestModel):
    """As for vLLM: one text against many, or two lists of the same length."""

    model: Name | None = None
    text_1: _Side | None = None
    text_2: _Side | None = None
    queries: _Side | None = Field(None, description="the same as `text_1`")
    documents: _Side | None = Field(None, description="the same as `text_2`")
    instruction: Annotated[StrictStr, Field(max_length=4096)] | None = None
    truncate: StrictBool | None = None


def embeddings_json(made: Embeddings, model_id: str, encoding_format: Literal["float", "base64"] | None) -> bytes:
    """Encodes vector by vector: one call for all would hold the interpreter for a second."""
    head = json.dumps({"object": "list", "model": model_id, "usage": usage(made.num_tokens)})
    entries = []
    for number, vector in enumerate(made.vectors):
        encoded = _base64(vector) if encoding_format == "base64" else json.dumps(vector.tolist()).encode()
        entries.append(b'{"object":"embedding","index":%d,"embedding":%b}' % (number, encoded))
    return b'%b,"data":[%b]}' % (head[:-1].encode(), b",".join(entries))


def plain_embeddings_json(made: Embeddings) -> bytes:
    """As llama.cpp answers: each text has a list of vectors, which is one."""
    entries = [
        b'{"index":%d,"embedding":[%b]}' % (number, json.dumps(vector.tolist()).encode())
        for number, vector in enumerate(made.vectors)
    ]
    return b"[%b]" % b",".join(entries)


def usage(num_tokens: int) -> dict[str, int]:
    return {"prompt_tokens": num_tokens, "total_tokens": num_tokens}


def _base64(vector: Any) -> bytes:
    return b'"%b"' % base64.b64encode(vector.astype("<f4").tobytes())
