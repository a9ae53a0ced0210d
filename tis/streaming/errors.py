"""Why a stream cannot be begun, followed or recorded."""

from tis.errors import NotFound, ServiceError, Unavailable


class SessionNotFound(NotFound):
    code = "session_not_found"


class SessionConflict(ServiceError):
    status = 409
    type = "invalid_request_error"
    code = "session_conflict"

    @property
    def headers(self) -> dict[str, str]:
        # The official SDKs repeat a POST after any 409 unless told not to.
        return {"x-should-retry": "false"}


class SessionExpired(ServiceError):
    status = 410
    type = "invalid_request_error"
    code = "session_expired"


class ReplayGap(ServiceError):
    status = 410
    type = "invalid_request_error"
    code = "replay_gap"


class StoreUnavailable(Unavailable):
    code = "durability_degraded"


class LaterVersion(StoreUnavailable):
    """A server of a later version has recorded it: that one can serve it now, and this one not even later."""
