"""API keys: they are checked before a body is read, so a stranger can neither load nor probe what lies behind."""

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence

from starlette._utils import get_route_path
from starlette.datastructures import Headers, QueryParams
from starlette.types import ASGIApp, Receive, Scope, Send

from tis.http.error_handlers import error_response
from tis.http.errors import InvalidApiKey, InvalidReadToken
from tis.http.read_tokens import ReadTokens
from tis.observability.logs import READ_TOKEN

ANONYMOUS = "anonymous"
_STREAM = re.compile(r"/v1/stream/([A-Za-z0-9._-]{1,128})/?", re.ASCII)


class ApiKeys:
    """Stores only digests, so a heap dump or a log of it reveals no key. Without keys every request is accepted."""

    def __init__(self, keys: Iterable[str], admin_key: str | None = None) -> None:
        """The admin key opens what the others do. It alone closes nothing."""
        self._digests = [digest_of(key) for key in keys]
        if self._digests and admin_key:
            self._digests.append(digest_of(admin_key))

    @property
    def owners(self) -> list[str]:
        return [digest.hex() for digest in self._digests] or [ANONYMOUS]

    @property
    def is_open(self) -> bool:
        return not self._digests

    def owner_of(self, headers: Headers) -> str:
        """Returns a stable name for the client that sent the key. Raises InvalidApiKey."""
        if self.is_open:
            return ANONYMOUS
        digest = digest_of(key_in(headers))
        # No early return at a match: the time taken must not depend on which key matched.
        matches = [hmac.compare_digest(digest, known) for known in self._digests]
        if not any(matches):
            raise InvalidApiKey("Incorrect or missing API key. Send it as `Authorization: Bearer <key>`.")
        return digest.hex()


class ApiKeyMiddleware:
    """Requires a key for the given path prefixes. CORS preflights never get here: the CORS middleware is outside.

    A GET that reads a stream may have a read token instead.
    """

    def __init__(
        self, app: ASGIApp, keys: ApiKeys, prefixes: Sequence[str], read_tokens: ReadTokens | None = None
    ) -> None:
        self.app = app
        self._keys = keys
        self._prefixes = tuple(prefixes)
        self._read_tokens = read_tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The path that the router matches; behind a root path, scope["path"] begins with that root path.
        if scope["type"] == "http" and get_route_path(scope).startswith(self._prefixes):
            try:
                scope.setdefault("state", {})["owner"] = self._owner_of(scope)
            except InvalidApiKey as error:
                await error_response(scope, error)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _owner_of(self, scope: Scope) -> str:
        try:
            return self._keys.owner_of(Headers(scope=scope))
        except InvalidApiKey:
            stream = _STREAM.fullmatch(get_route_path(scope)) if scope["method"] == "GET" else None
            tokens = QueryParams(scope["query_string"]).getlist(READ_TOKEN) if stream else []
            if not (self._read_tokens and stream and tokens):
                raise
            owner = self._read_tokens.owner_of(tokens[-1], stream[1], self._keys.owners)
            if owner is None:
                raise InvalidReadToken(
                    "The read token is not for this stream, or has expired. Get another with "
                    f"POST /v1/stream/{stream[1]}/read_token."
                ) from None
            return owner


def key_in(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key", "")


def digest_of(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
