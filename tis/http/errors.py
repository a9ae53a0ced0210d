"""Errors of requests that are refused before their body is read."""

from tis.errors import BadRequest, Forbidden, QueueFull, ServiceError


class InvalidApiKey(ServiceError):
    status = 401
    type = "invalid_request_error"
    code = "invalid_api_key"

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": "Bearer"}


class InvalidReadToken(InvalidApiKey):
    code = "invalid_read_token"


class RateLimitExceeded(ServiceError):
    status = 429
    type = "rate_limit_error"
    code = "too_many_requests"


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
