"""`ADMIN_KEY`: who may load and unload models."""

import hmac
from collections.abc import Sequence

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.types import Scope

from tis.errors import Forbidden
from tis.http.api_keys import ApiKeys, digest_of, key_in
from tis.http.client_address import is_of_this_computer
from tis.http.errors import InvalidApiKey
from tis.http.origins import AllowedOrigins


class AdminGuard:
    """Without a key, whoever is on this computer is the admin: a program, or a page of CORS_ORIGINS in a browser."""

    def __init__(self, admin_key: str | None, keys: ApiKeys, origins: Sequence[str]) -> None:
        self._digest = digest_of(admin_key) if admin_key else None
        self._keys = keys
        self._origins = AllowedOrigins(origins)

    def require_admin(self, scope: Scope) -> None:
        """Raises InvalidApiKey or Forbidden."""
        headers = Headers(scope=scope)
        if self._digest is None:
            self._require_this_computer(scope, headers)
        elif not hmac.compare_digest(digest_of(key_in(headers)), self._digest):
            if self._keys.is_open:
                raise InvalidApiKey("Incorrect or missing admin key. Send it as `Authorization: Bearer <ADMIN_KEY>`.")
            raise Forbidden("This key may not do that: it needs `Authorization: Bearer <ADMIN_KEY>`.")

    def _require_this_computer(self, scope: Scope, headers: Headers) -> None:
        if not is_of_this_computer(scope):
            raise Forbidden("Only clients on the computer of the server may do that, as it has no ADMIN_KEY.")
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            raise Forbidden("Web pages of this origin may not do that: it is not in CORS_ORIGINS.")


async def _require_admin(request: Request) -> None:
    guard: AdminGuard = request.app.state.admin_guard
    guard.require_admin(request.scope)


ADMIN_ONLY = Depends(_require_admin)
