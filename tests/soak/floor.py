"""What every client of a soak has at hand: requests that outlive a kill, references, names."""

import asyncio
import itertools
import json
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import httpx2
from openai import AsyncOpenAI

from tests.soak.ledger import SoakLedger
from tests.soak.soaked_server import KEYS, SoakedServer

_PATIENCE_SECONDS = 600
_PAUSE_SECONDS = 0.5
_MAX_REMEMBERED = 100  # finished streams and stored responses that are looked at again


@dataclass
class Floor:
    server: SoakedServer
    ledger: SoakLedger
    http: httpx2.AsyncClient
    end: float = float("inf")  # when clients begin nothing more
    is_quiet: bool = True  # one request at a time and no kills: what is answered now is the reference
    references: dict[str, str] = field(default_factory=dict)
    remembered: deque[tuple[str, str, str]] = field(default_factory=lambda: deque(maxlen=_MAX_REMEMBERED))
    tokens: dict[str, str] = field(default_factory=dict)  # of accounts of the marketplace, by name
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    @property
    def is_open(self) -> bool:
        return time.monotonic() < self.end

    def close(self) -> None:
        self.end = 0.0

    def name(self, kind: str) -> str:
        return f"{kind}-{next(self._numbers)}"

    def same(self, kind: str, variant: int, found: object) -> None:
        """As it was when nobody else was there, and nobody was killed."""
        text = found if isinstance(found, str) else json.dumps(found, sort_keys=True)
        expected = self.references.setdefault(f"{kind}-{variant}", text)
        fact = expected == text
        self.ledger.expect(fact, "different", kind, f"variant {variant} is {text[:200]!r}, not {expected[:200]!r}")

    def sdk(self, key: str) -> AsyncOpenAI:
        return AsyncOpenAI(
            base_url=f"{self.server.url}/v1", api_key=KEYS[key], max_retries=0, timeout=300, http_client=self.http
        )

    async def send(
        self,
        kind: str,
        path: str,
        *,
        method: str = "POST",
        key: str = "ada",
        token: str = "",
        expected: tuple[int, ...] = (200,),
        headers: dict[str, str] | None = None,
        **sent: Any,
    ) -> httpx2.Response:
        """Repeats the request until it is answered: it may be sent twice, but must not be done twice.

        An answer that is neither expected nor explained by a kill is a fault, and is returned.
        """
        headers = {"Authorization": f"Bearer {token or KEYS.get(key, key)}", **(headers or {})}
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end:
            began = time.monotonic()
            try:
                answer = await self.http.request(method, path, headers=headers, **sent)
            except httpx2.TransportError as error:
                self.cut(kind, began, error)
            else:
                status = answer.status_code
                self.ledger.answered(kind, str(status), time.monotonic() - began)
                if status in expected:
                    return answer
                is_excused = self.server.excuses(began)
                if status >= 500:
                    self.ledger.server_error(kind, status, f"{path}: {answer.text}", is_expected=is_excused)
                if not (status == 429 or (status == 503 and is_excused)):
                    if status < 500:
                        self.ledger.fault("status", kind, f"{path}: {status} {answer.text}")
                    return answer
            await asyncio.sleep(_PAUSE_SECONDS)
        self.ledger.fault("hangs", kind, f"{path} was not answered in {_PATIENCE_SECONDS} s")
        raise Unanswered(path)

    def cut(self, kind: str, began: float, error: object) -> None:
        """A connection that ended before its answer did."""
        self.ledger.answered(kind, "cut")
        if not self.server.excuses(began):
            self.ledger.fault("connection", kind, f"ended without a kill: {error!r}")


class Unanswered(Exception):
    """The ledger has it already: the client goes on with something else."""
