"""The errors of engines elsewhere, and what went wrong with one of them."""

from tis.errors import ServiceError, Unavailable

RETRY_SECONDS = 5.0


class UpstreamFailed(ServiceError):
    """It answered, but not with what was asked for."""

    status = 502
    code = "upstream_failed"


class UpstreamUnavailable(Unavailable):
    code = "upstream_unavailable"


class UpstreamTimeout(ServiceError):
    status = 504
    code = "upstream_timeout"


class UpstreamFault(Exception):
    """One try at one upstream failed. `error` is for clients, if no other try succeeds."""

    def __init__(
        self,
        error: ServiceError,
        *,
        may_go_elsewhere: bool = True,
        is_its_fault: bool = True,
        is_stale: bool = False,
        is_silent: bool = False,
        is_not_found: bool = False,
    ) -> None:
        """`is_its_fault`: it counts against the upstream. `is_stale`: a connection that had been closed meanwhile.

        `is_silent`: there was no answer in time, so perhaps it is only busy. `is_not_found`: it has no such route.
        """
        super().__init__(error.message)
        self.error = error
        self.may_go_elsewhere = may_go_elsewhere
        self.is_its_fault = is_its_fault
        self.is_stale = is_stale
        self.is_silent = is_silent
        self.is_not_found = is_not_found


def failed(message: str, *, is_not_found: bool = False) -> UpstreamFault:
    error = UpstreamFailed(f"The upstream of this model {message}.", retry_after=RETRY_SECONDS)
    return UpstreamFault(error, is_not_found=is_not_found)


def unreachable(*, is_silent: bool = False) -> UpstreamFault:
    error = UpstreamUnavailable("No upstream of this model can be reached. Retry later.", retry_after=RETRY_SECONDS)
    return UpstreamFault(error, is_silent=is_silent)


def too_slow(what: str) -> UpstreamFault:
    error = UpstreamTimeout(f"The upstream of this model {what}.", retry_after=RETRY_SECONDS)
    return UpstreamFault(error, is_silent=True)
