"""ServiceError, the base of all errors that a client receives, and the errors that several packages use.

Each package defines its own errors in its `errors.py`. `tis/http/error_handlers.py` turns all of them into responses.

ServiceError                500
├── BadRequest              400   media: BadMedia; engine: ContextLengthExceeded; http: RequestTimeout, 408
├── Unauthenticated         401   http: InvalidApiKey
├── Forbidden               403   http: HostNotAllowed
├── NotFound                404   engine: ModelNotFound; streaming: SessionNotFound
├── Conflict                409   engine: ModelInUse; streaming: SessionConflict; SessionExpired and ReplayGap are 410
├── PreconditionFailed      412
├── TooLarge                413
├── Unprocessable           422   mcp_client: McpDependencyFailed, 424; ktp: CardNotFound
├── QueueFull               429   http: RateLimitExceeded, TooManyConnections
├── NotImplementedHere      501
├── Unavailable             503   engine: ModelLoading, LoadFailed, ModelMemoryFull, WorkerDied, OutOfMemory; database
│   ├── OcrUnavailable      503   of ktp
│   └── Draining            503
├── GenerationFailed        500   engine: GenerationInterrupted; sandbox: SandboxUnavailable
└── CardTimeout             504   of ktp
"""

from collections.abc import Iterator, Mapping
from typing import Any


class ServiceError(Exception):
    status = 500
    type = "server_error"
    code: str | None = None

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code or type(self).code
        self.retry_after = retry_after
        self.may_be_repeated = True
        self.details: Mapping[str, Any] = details or {}  # what an API may add to the body

    @property
    def headers(self) -> dict[str, str]:
        # The official SDKs retry a POST after any 409, 429 or 5xx, unless this header is "false".
        headers = {} if self.may_be_repeated else {"x-should-retry": "false"}
        return headers if self.retry_after is None else {**headers, "Retry-After": str(max(1, round(self.retry_after)))}


class BadRequest(ServiceError):
    status = 400
    type = "invalid_request_error"
    code = "invalid_value"


class Unauthenticated(ServiceError):
    """The route needs an account, and the request has no valid token."""

    status = 401
    type = "invalid_request_error"
    code = "unauthenticated"

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": "Bearer"}


class Forbidden(ServiceError):
    status = 403
    type = "invalid_request_error"
    code = "forbidden"


class NotFound(ServiceError):
    status = 404
    type = "invalid_request_error"
    code = "not_found"


class Conflict(ServiceError):
    """The request contradicts the current state."""

    status = 409
    type = "invalid_request_error"
    code = "conflict"


class PreconditionFailed(ServiceError):
    """The object has changed since the client read it."""

    status = 412
    type = "invalid_request_error"
    code = "version_conflict"


class TooLarge(ServiceError):
    status = 413
    type = "invalid_request_error"
    code = "body_too_large"


class Unprocessable(ServiceError):
    """The request is well-formed, but makes no sense."""

    status = 422
    type = "invalid_request_error"
    code = "unprocessable"


class QueueFull(ServiceError):
    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"


class NotImplementedHere(ServiceError):
    """A route of another server that this one does not have, by name."""

    status = 501
    type = "invalid_request_error"
    code = "not_implemented"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.may_be_repeated = False


class Unavailable(ServiceError):
    status = 503
    code = "unavailable"


class Draining(Unavailable):
    code = "server_shutting_down"

    def __init__(self) -> None:
        super().__init__("The server is shutting down.", retry_after=5)


class GenerationFailed(ServiceError):
    code = "generation_failed"


def error_with_code(
    message: str, kind: str, code: str | None, param: str | None, retry_after: float | None = None
) -> ServiceError:
    """Restores the error of a recorded error block, so that replaying a failed answer fails with the same status."""
    for cls in _all_errors(ServiceError):
        if cls.code == code and cls.type == kind:
            error = cls.__new__(cls)
            ServiceError.__init__(error, message, param=param, code=code, retry_after=retry_after)
            return error
    # BadRequest has more codes than there are classes.
    other = BadRequest if kind == BadRequest.type else ServiceError
    return other(message, param=param, code=code, retry_after=retry_after)


def _all_errors(cls: type[ServiceError]) -> Iterator[type[ServiceError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from _all_errors(child)
