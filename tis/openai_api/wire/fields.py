"""The types of request fields with their limits, and the sampling parameters, of which this is the only list here.

OpenAI documents 128 tools, 4 stop strings, 16 keys of metadata and 10,485,760 characters of a text; the other limits
are this server's own. Nested limits multiply, so `tis.http.json_scan` limits the number of values in a whole body,
which includes free-form JSON. Ranges are checked by `SamplingParams`, which has fields of the same names.
"""

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from tis.bounds import MaxItems
from tis.engine.sampling.params import MAX_BIASES
from tis.errors import BadRequest

MAX_TEXT_CHARS = 10 * 2**20
MAX_MESSAGES = 16_384
MAX_PARTS = 4096  # of one message
MAX_ITEMS = 10_000  # of the input of a response
MAX_TOOLS = 128
MAX_CALLS = 1024  # of one message: a client sends back all calls of an answer
MAX_TOOL_NAMES = 1024
MAX_STOP_STRINGS = 4
MAX_STOP_TOKENS = 1024
MAX_INCLUDES = 16
MAX_CONTEXT_ENTRIES = 8
MAX_CHOICES = 1000  # of guided_choice
MAX_KEYS = 1024

Name = Annotated[StrictStr, Field(max_length=512)]  # ids, models, users, kinds of things
ToolName = Annotated[StrictStr, StringConstraints(pattern=r"^[a-zA-Z0-9_-]{1,64}$", max_length=64)]
Url = Annotated[StrictStr, Field(max_length=8192)]
Text = Annotated[StrictStr, Field(max_length=MAX_TEXT_CHARS)]
# A URL or base64. MAX_BODY_MB and MAX_MEDIA_MB are stricter.
Medium = Annotated[StrictStr, Field(max_length=2**30)]
Key = Annotated[str, Field(max_length=512)]
# Free-form JSON: a schema, template options, or an item that is validated later by its type.
JsonObject = Annotated[dict[Key, Any], MaxItems(MAX_KEYS)]
Stop = Annotated[list[Text], MaxItems(MAX_STOP_STRINGS)]
# As in vLLM: requests share cached prefixes only if their salts are equal.
CacheSalt = Annotated[StrictStr, Field(min_length=1, max_length=512)]
_Short = Annotated[StrictStr, Field(max_length=64)]
Metadata = Annotated[dict[_Short, Annotated[StrictStr, Field(max_length=512)]], MaxItems(16)]
# JSON allows integers of any length; the model needs 64 bits.
Integer = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]


def _none_if_wrong(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    try:
        return validate(value)
    except ValidationError:
        return None


_Hint = WrapValidator(_none_if_wrong)
# Hints never fail: a value that is none of these counts as absent.
ReasoningEffort = Annotated[Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None, _Hint]
Verbosity = Annotated[Literal["low", "medium", "high"] | None, _Hint]
HintText = Annotated[Annotated[StrictStr, Field(max_length=512)] | None, _Hint]
Number = Integer | Annotated[StrictFloat, Field(allow_inf_nan=False)]


class RequestModel(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class SamplingFields(RequestModel):
    temperature: Number | None = None
    top_p: Number | None = None
    top_k: Integer | None = None
    min_p: Number | None = None
    min_tokens: Integer | None = None
    repetition_penalty: Number | None = None
    presence_penalty: Number | None = None
    frequency_penalty: Number | None = None
    logit_bias: Annotated[dict[Key, Number], MaxItems(MAX_BIASES)] | None = None
    seed: Integer | None = None
    stop: Text | Stop | None = None
    stop_token_ids: Annotated[list[Integer], MaxItems(MAX_STOP_TOKENS)] | None = None
    ignore_eos: StrictBool | None = None
    thinking_token_budget: Integer | None = None

    def sampling(self) -> dict[str, Any]:
        """The parameters that the request sets, as `SamplingParams` takes them."""
        params = {name: value for name in SamplingFields.model_fields if (value := getattr(self, name)) is not None}
        for name in ("logit_bias", "stop", "stop_token_ids"):
            if not params.get(name):
                params.pop(name, None)  # empty means absent, as for OpenAI
        if "logit_bias" in params:
            params["logit_bias"] = {_token_id(key): value for key, value in params["logit_bias"].items()}
        if isinstance(params.get("stop"), str):
            params["stop"] = [params["stop"]]
        for name in ("stop", "stop_token_ids"):
            if name in params:
                params[name] = tuple(params[name])
        if "thinking_token_budget" in params:
            params["thinking_budget"] = params.pop("thinking_token_budget")
        return params


def _token_id(key: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) < 10):
        raise BadRequest(f"logit_bias: {key[:40]!r} is not a token id.", param="logit_bias")
    return int(key)
