"""The middleware that asks for API keys: deny by default."""

import re

from starlette._utils import get_route_path
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tis.http.api_keys import ANONYMOUS, ApiKey, ApiKeys, key_in, password_in, set_current_key
from tis.http.error_handlers import KTP_PREFIX, BodyRejected, error_response
from tis.http.errors import InvalidApiKey, InvalidPageKey, InvalidReadToken, ModelNotAllowed
from tis.http.public_paths import METRICS_PATH, is_page, is_public
from tis.http.read_tokens import ReadTokens
from tis.observability.logs import READ_TOKEN

_STREAM = re.compile(r"/v1/stream/([A-Za-z0-9._-]{1,128})/?", re.ASCII)
# In the list of a key's models, this name allows the reading of cards, which chooses its model itself.
_CARDS = "ktp-ocr"


def _not_stored(send: Send) -> Send:
    """Caches between do not know that `x-api-key` is a key, and could give one key what they keep for another."""

    async def send_with_header(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).setdefault("Cache-Control", "private, no-store")
        await send(message)

    return send_with_header


class ApiKeyMiddleware:
    """Requires a key for every path but the public ones. A GET that reads a stream may have a read token instead.

    CORS preflights never get here: the CORS middleware is outside.
    """

    def __init__(
        self, app: ASGIApp, keys: ApiKeys, read_tokens: ReadTokens | None = None, *, metrics_are_public: bool = False
    ) -> None:
        self.app = app
        self._keys = keys
        self._read_tokens = read_tokens
        self._metrics_are_public = metrics_are_public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # The path that the router matches; behind a root path, scope["path"] begins with that root path.
            path = get_route_path(scope)
            set_current_key(None)
            if not (is_public(path) or (self._metrics_are_public and path == METRICS_PATH)):
                try:
                    key = await self._identify(scope, path)
                except (InvalidApiKey, ModelNotAllowed) as error:
                    await error_response(scope, error)(scope, receive, send)
                    return
                if key:
                    receive = self._checking_again(receive, key)
                    send = _not_stored(send) if scope["method"] in ("GET", "HEAD") else send
        await self.app(scope, receive, send)

    def _checking_again(self, receive: Receive, key: ApiKey) -> Receive:
        """Whoever has stolen a key cannot keep uploads open until it is revoked, and use it with their last bytes."""

        async def checking_receive() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                try:
                    self._keys.require_valid(key)
                except InvalidApiKey as error:
                    raise BodyRejected(error) from None
            return message

        return checking_receive

    async def _identify(self, scope: Scope, path: str) -> ApiKey | None:
        """None where no key is needed, or a read token was sent. Raises InvalidApiKey or ModelNotAllowed."""
        state = scope.setdefault("state", {})
        if self._keys.is_open:
            state["owner"] = ANONYMOUS
            return None
        try:
            key = self._key_of(scope, path)
        except InvalidApiKey:
            if (owner := await self._owner_of_read_token(scope, path)) is None:
                raise
            state["owner"] = owner
            return None
        if key.models is not None and _CARDS not in key.models and f"{path}/".startswith(f"{KTP_PREFIX}/"):
            raise ModelNotAllowed(_CARDS)
        state["owner"], state["api_key"] = key.owner, key
        set_current_key(key)
        return key

    def _key_of(self, scope: Scope, path: str) -> ApiKey:
        headers = Headers(scope=scope)
        if not (is_page(path) and scope["method"] in ("GET", "HEAD")):
            return self._keys.find(key_in(headers))
        password = password_in(headers)
        try:
            return self._keys.find(key_in(headers) if password is None else password)
        except InvalidApiKey as error:
            raise InvalidPageKey(error.message) from None

    async def _owner_of_read_token(self, scope: Scope, path: str) -> str | None:
        stream = _STREAM.fullmatch(path) if scope["method"] == "GET" else None
        tokens = QueryParams(scope["query_string"]).getlist(READ_TOKEN) if stream else []
        if not (self._read_tokens and stream and tokens):
            return None
        owner = await self._read_tokens.owner_of(tokens[-1], stream[1], self._keys.owners)
        if owner is None:
            raise InvalidReadToken(
                "The read token is not for this stream, or has expired. Get another with "
                f"POST /v1/stream/{stream[1]}/read_token."
            )
        return owner
