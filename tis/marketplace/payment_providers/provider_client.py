"""Asks payment providers over HTTPS: bounded in time and bytes, without redirects, without proxies of the environment.

It dials only what the settings name. Nothing that is sent or received is logged: it has keys.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from tis.errors import Unavailable
from tis.marketplace.payment_providers.provider import ProviderRefused, ProviderSilent
from tis.network.url import NoUrl, read_url

_CONNECT_SECONDS = 3.0
_MAX_BYTES = 256 * 1024
_MAX_CALLS = 8  # at once: a slow provider must not take all threads of requests
_MAX_CONNECTIONS = 16  # with those of the background
_WAIT_SECONDS = 2.0
_MAX_URL_CHARS = 500


class ProviderClient:
    def __init__(self, seconds: float = 10.0) -> None:
        """`seconds` for a call in all."""
        self._seconds = seconds
        self._turns = threading.BoundedSemaphore(_MAX_CALLS)
        self._client: Any = None
        self._opening = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        if not self._turns.acquire(timeout=_WAIT_SECONDS):
            raise Unavailable("Too many payments are being asked for. Retry shortly.", retry_after=3)
        try:
            yield
        finally:
            self._turns.release()

    def ask(
        self,
        method: Literal["GET", "POST"],
        url: str,
        key: str,
        content: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """Its status, below 500, and the JSON of its answer. `key` is the user of the basic authentication."""
        import httpx2

        ends = time.monotonic() + self._seconds
        sent = {"accept": "application/json", **(headers or {})}
        body = None
        if content is not None:
            body, sent["content-type"] = json.dumps(content).encode(), "application/json"
        try:
            with self._http().stream(method, url, content=body, headers=sent, auth=(key, "")) as answer:
                data = self._read(answer, ends)
                status = int(answer.status_code)
        except httpx2.HTTPError as error:
            raise ProviderSilent(type(error).__name__) from None
        if status >= 500 or status == 429 or 300 <= status < 400:
            raise ProviderSilent(f"status {status}")
        try:
            return status, json.loads(data)
        except (ValueError, RecursionError):
            raise ProviderSilent(f"status {status} without JSON") from None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _http(self) -> Any:
        import httpx2

        with self._opening:
            if self._client is None:
                self._client = httpx2.Client(
                    timeout=httpx2.Timeout(self._seconds, connect=min(_CONNECT_SECONDS, self._seconds)),
                    limits=httpx2.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=_MAX_CALLS),
                    trust_env=False,
                    follow_redirects=False,  # the key is for this host alone
                )
            return self._client

    def _read(self, answer: Any, ends: float) -> bytes:
        data = bytearray()
        for chunk in answer.iter_bytes():
            data += chunk
            if len(data) > _MAX_BYTES or time.monotonic() > ends:
                raise ProviderSilent("an answer was too long, or too slow")
        return bytes(data)


def page_url(value: object) -> str:
    """Where a buyer is sent to: an https address, or the answer is none."""
    try:
        if isinstance(value, str) and len(value) <= _MAX_URL_CHARS and read_url(value).scheme == "https":
            return value
    except NoUrl:
        pass
    raise ProviderSilent("no address of a page")


def rupiah_of(value: object) -> int | None:
    """`"15000.00"` and `15000` are 15,000. None for what is no whole number of them."""
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        return None
    return int(number) if number is not None and number == number // 1 and abs(number) < 2**53 else None


def text_of(answer: Any, name: str) -> str:
    value = answer.get(name) if isinstance(answer, dict) else None
    return value if isinstance(value, str) else ""


def refusal(answer: Any, *names: str) -> ProviderRefused:
    """With the first of its fields that says why."""
    for name in names:
        found = answer.get(name) if isinstance(answer, dict) else None
        if isinstance(found, list) and found:
            found = found[0]
        if isinstance(found, str) and found:
            return ProviderRefused(found)
    return ProviderRefused("")
