"""The bodies of `/api/show`, `/api/pull`, `/api/embed` and `/api/embeddings`."""

from typing import Annotated

from pydantic import ConfigDict, Field, StrictBool, StrictInt, StrictStr

from tis.bounds import MaxItems
from tis.ollama_api.wire.chat_fields import KeepAlive
from tis.openai_api.wire.embedding_request import MAX_INPUTS
from tis.openai_api.wire.fields import MAX_TEXT_CHARS, JsonObject, Name, RequestModel

_InputText = Annotated[StrictStr, Field(max_length=MAX_TEXT_CHARS)]


class ShowRequest(RequestModel):
    model: Name | None = None
    name: Name | None = None  # the older name of the field
    verbose: StrictBool | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "demo"}]})


class PullRequest(RequestModel):
    model: Name | None = None
    name: Name | None = None
    stream: StrictBool | None = None
    insecure: StrictBool | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "demo"}]})


class OllamaEmbedRequest(RequestModel):
    model: Name | None = None
    input: _InputText | Annotated[list[_InputText], MaxItems(MAX_INPUTS)] | None = None
    truncate: StrictBool | None = Field(None, description="false: a 400 for a text that is too long, instead of a cut")
    dimensions: StrictInt | None = Field(None, ge=0)  # 0: all of them
    options: JsonObject | None = None
    keep_alive: KeepAlive | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "demo-embedding", "input": ["kopi", "teh"]}]})

    @property
    def texts(self) -> list[str]:
        """Empty: the model is only loaded."""
        if isinstance(self.input, str):
            return [self.input] if self.input else []
        return self.input or []


class OllamaEmbeddingRequest(RequestModel):
    model: Name | None = None
    prompt: _InputText | None = None
    options: JsonObject | None = None
    keep_alive: KeepAlive | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "demo-embedding", "prompt": "kopi"}]})
