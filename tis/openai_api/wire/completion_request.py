"""The body of POST /v1/completions: prompts that go to the model as they are, without a chat template."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, StrictBool, StrictStr, StringConstraints

from tis.bounds import MaxItems
from tis.engine.prompt import RawPrompt
from tis.engine.sampling.params import MAX_LOGPROBS
from tis.errors import BadRequest
from tis.openai_api.wire.chat_request import (
    SESSION_ID,
    ResponseFormat,
    StreamOptions,
    digested,
    fingerprint_of,
)
from tis.openai_api.wire.completion_examples import COMPLETION_REQUESTS
from tis.openai_api.wire.fields import (
    MAX_CHOICES,
    CacheSalt,
    HintText,
    Integer,
    JsonObject,
    Name,
    SamplingFields,
    Text,
)

MAX_PROMPTS = 128
MAX_ALL_CHOICES = 256  # of all prompts together
_DEFAULT_MAX_TOKENS = 16  # as OpenAI's
_MAX_TOKENS = 131_072  # of a prompt that is sent as token ids; a body has fewer values in all


def _as_list(given: Any) -> Any:
    """A text, a list of texts, the token ids of one prompt, or a list of those, as a list."""
    if isinstance(given, str):
        return [given]
    if isinstance(given, list) and given and isinstance(given[0], int):
        return [given]
    return given


def _not_empty(prompts: list[Any]) -> list[Any]:
    if not prompts:
        raise ValueError("there is no prompt in it")
    return prompts


_TokenIds = Annotated[list[Integer], MaxItems(_MAX_TOKENS)]
Prompts = Annotated[
    list[Text | _TokenIds], MaxItems(MAX_PROMPTS), BeforeValidator(_as_list), AfterValidator(_not_empty)
]


class CompletionRequest(SamplingFields):
    model: Name | None = None
    prompt: Prompts | None = Field(
        None, description="a text, a list of texts, token ids, or a list of lists of those; absent to resume a session"
    )
    stream: StrictBool | None = None
    stream_options: StreamOptions | None = None
    session_id: Annotated[StrictStr, StringConstraints(pattern=SESSION_ID, max_length=128)] | None = None

    max_tokens: Integer | None = Field(None, description="16 by default; 0 with `echo`: the prompt alone")
    n: Integer | None = Field(None, description="choices for each prompt: those of prompt i begin with i * n")
    echo: StrictBool | None = Field(
        None, description="the text begins with the prompt, and so do its log probabilities"
    )
    logprobs: Integer | None = Field(None, description=f"alternatives to each token, 0 to {MAX_LOGPROBS}")
    best_of: Integer | None = Field(None, description="only the same as `n`")
    suffix: Text | None = Field(None, description="not supported")
    cache_salt: CacheSalt | None = None
    add_special_tokens: StrictBool | None = Field(
        None, description="false: without the tokens that the tokenizer puts around a text, such as BOS"
    )
    response_format: ResponseFormat | None = None

    # Extensions of vLLM.
    structured_outputs: JsonObject | None = None
    guided_json: Text | JsonObject | None = None
    guided_regex: Text | None = None
    guided_choice: Annotated[list[Text], MaxItems(MAX_CHOICES)] | None = None
    guided_grammar: Text | None = None

    # Validated, without any effect.
    user: Annotated[HintText, Field(exclude=True)] = None

    model_config = ConfigDict(json_schema_extra={"examples": COMPLETION_REQUESTS})

    def check(self) -> None:
        """Rejects what the server does not support, and fields that contradict each other."""
        if self.suffix:
            message = "suffix is not supported: the model continues a prompt, it fills no gap."
            raise BadRequest(message, param="suffix", code="unsupported_parameter")
        if self.best_of not in (None, self.n or 1):
            message = "best_of must be the same as n: the server answers with all choices that it makes."
            raise BadRequest(message, param="best_of", code="unsupported_value")
        if self.logprobs is not None and not 0 <= self.logprobs <= MAX_LOGPROBS:
            message = f"logprobs must be at least 0 and at most {MAX_LOGPROBS}, got {self.logprobs}."
            raise BadRequest(message, param="logprobs")
        if self.max_tokens == 0 and not self.echo:
            raise BadRequest("max_tokens must be at least 1, or echo must be true, got 0.", param="max_tokens")
        if self.stream_options is not None and not self.stream:
            raise BadRequest(
                "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options"
            )
        if len(self.prompt or ()) * max(1, self.n or 1) > MAX_ALL_CHOICES:
            message = f"prompt: at most {MAX_ALL_CHOICES} choices of all prompts together."
            raise BadRequest(message, param="n" if (self.n or 1) > 1 else "prompt", code="too_many_choices")

    @property
    def has_prompt(self) -> bool:
        return self.prompt is not None

    @property
    def wants_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    @property
    def wants_prompt_only(self) -> bool:
        return self.max_tokens == 0

    @property
    def prompt_logprobs(self) -> int | None:
        return self.logprobs if self.echo else None

    def raw_prompts(self) -> list[RawPrompt]:
        return [RawPrompt(one, self.add_special_tokens is not False) for one in self.prompt or ()]

    def requested_sampling(self) -> dict[str, Any]:
        """The sampling parameters that the request sets; the engine adds the defaults."""
        requested = self.sampling()
        # The model computes a token behind every prompt; that of a prompt alone is not sent.
        requested["max_tokens"] = _DEFAULT_MAX_TOKENS if self.max_tokens is None else self.max_tokens or 1
        if self.n is not None:
            requested["n"] = self.n
        if self.logprobs is not None:
            requested["top_logprobs"] = self.logprobs
        return requested

    def fingerprint(self) -> str:
        """The same for requests that differ only in how the answer is sent."""
        fields = self.model_dump(exclude={"stream", "stream_options", "session_id"}, exclude_none=True)
        if self.prompt:
            fields["prompt"] = digested(self.prompt)
        return f"completion:{fingerprint_of(fields)}"
