"""Errors of requests that are refused before their body is read."""

from tis.errors import Forbidden, ServiceError


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
