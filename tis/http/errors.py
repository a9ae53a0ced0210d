"""Errors of requests that are refused before their body is read."""

from tis.errors import BadRequest, Forbidden, QueueFull, ServiceError

# OpenAI's and Anthropic's SDKs wait as long as Retry-After says up to this; for longer they would try at once.
_MAX_SDK_WAIT_SECONDS = 60


class InvalidApiKey(ServiceError):
    status = 401
    type = "invalid_request_error"
    code = "invalid_api_key"

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": "Bearer"}


class InvalidReadToken(InvalidApiKey):
    code = "invalid_read_token"


class InvalidPageKey(InvalidApiKey):
    """A browser then asks for a login; its password is the key."""

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": 'Bearer, Basic realm="an API key as the password", charset="UTF-8"'}


class ModelNotAllowed(Forbidden):
    code = "model_not_allowed"

    def __init__(self, model_id: str) -> None:
        super().__init__(f"This API key may not use the model {model_id[:200]!r}.", param="model")


class RateLimitExceeded(ServiceError):
    status = 429
    type = "rate_limit_error"
    code = "too_many_requests"


class CallLimitReached(RateLimitExceeded):
    """A caller has used up what it may do."""

    def __init__(self, limit: str, seconds: float) -> None:
        super().__init__(f"You have reached your limit of {limit}. Try again in {seconds:g} s.", retry_after=seconds)
        self.may_be_repeated = seconds <= _MAX_SDK_WAIT_SECONDS


class HostNotAllowed(Forbidden):
    code = "host_not_allowed"


class RequestTimeout(BadRequest):
    """The client sent its request too slowly. The rest of it may still come, so the connection closes."""

    status = 408
    code = "request_timeout"

    @property
    def headers(self) -> dict[str, str]:
        return {"Connection": "close"}


class HeadersTooLarge(BadRequest):
    status = 431
    code = "headers_too_large"


class HttpVersionNotSupported(BadRequest):
    status = 505
    code = "http_version_not_supported"


class TooManyConnections(QueueFull):
    code = "too_many_connections"
