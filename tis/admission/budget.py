"""The budget of one resource: how much of it requests hold, of the server and of each owner, and who waits for it."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tis.admission.fair_queue import FairQueue
from tis.admission.limits import AdmissionLimits, Resource
from tis.errors import Draining, QueueFull
from tis.observability.metrics import WAIT_SECONDS, count_refusal
from tis.observability.spans import current_span, ending

_MAX_RETRY_SECONDS = 30
_WHY: dict[Resource, str] = {
    "requests": "too many requests are being received and prepared",
    "body_bytes": "the bodies of current requests take all the memory that they may take",
    "media_bytes": "the images and videos of current requests take all the memory that they may take",
    "decoded_bytes": "the decoded images and videos of current requests take all the memory that they may take",
    "image_decoders": "too many images wait to be decoded",
    "video_decoders": "too many videos and large images wait to be decoded",
    "card_readers": "too many pictures of cards wait to be read",
    "sound_decoders": "too many long recordings are being heard",
    "heard_decoders": "too many sounds of messages wait to be decoded",
    "sound_seconds": "the recordings that are being heard have too many seconds",
    "grammar_compilers": "too many grammars wait to be compiled",
    "prompt_tokens": "the prompts of current requests have too many tokens",
}


@dataclass(eq=False, slots=True)
class _Waiter:
    amount: int
    granted: "asyncio.Future[None]"


class Budget:
    """Used on the event loop alone. An amount over the bound is granted when nobody else holds anything."""

    def __init__(
        self,
        resource: Resource,
        limits: AdmissionLimits,
        share_of: Callable[[str], float | None] = lambda owner: None,
    ) -> None:
        self.resource = resource
        self.limit = limits.of(resource)
        self.used = 0
        self.max_used = 0  # the most so far
        self._limits, self._share_of = limits, share_of
        self._max_waiting = limits.max_waiting
        self._wait_seconds = limits.wait_seconds
        self._used_by: Counter[str] = Counter()
        self._waiting: FairQueue[_Waiter] = FairQueue()

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    def used_by(self, owner: str) -> int:
        return self._used_by[owner]

    async def take(self, owner: str, amount: int, *, is_resumed: bool = False) -> float:
        """Returns how long it waited. Raises QueueFull; a resumed request waits as long as it takes."""
        if not self._waiting and self._fits(owner, amount):
            self._add(owner, amount)
            return 0.0
        if not is_resumed and self._has_too_many_waiting(owner):
            raise self._refusal()
        return await self._wait(owner, amount, None if is_resumed else self._wait_seconds)

    def take_now(self, owner: str, amount: int) -> None:
        """Raises QueueFull instead of waiting."""
        if not self._fits(owner, amount):
            raise self._refusal()
        self._add(owner, amount)

    def take_anyway(self, owner: str, amount: int) -> None:
        self._add(owner, amount)

    def give_back(self, owner: str, amount: int) -> None:
        self.used -= amount
        left = self._used_by[owner] - amount
        if left:
            self._used_by[owner] = left
        else:
            del self._used_by[owner]
        if self._waiting:
            self._grant()

    def drain(self) -> None:
        """Refuses all who wait."""
        for waiter in self._waiting:
            if not waiter.granted.done():
                waiter.granted.set_exception(Draining())

    async def _wait(self, owner: str, amount: int, seconds: float | None) -> float:
        waiter = _Waiter(amount, asyncio.get_running_loop().create_future())
        began_at = time.monotonic()
        self._waiting.append(owner, waiter)
        self._grant()
        span = current_span().child("admission", {"tis.resource": self.resource})
        try:
            with ending(span):
                async with asyncio.timeout(seconds):
                    await waiter.granted
        except BaseException as error:
            self._leave(owner, waiter)
            if isinstance(error, TimeoutError):
                raise self._refusal() from None
            raise
        waited = time.monotonic() - began_at
        WAIT_SECONDS.labels(self.resource).observe(waited)
        return waited

    def _leave(self, owner: str, waiter: _Waiter) -> None:
        granted = waiter.granted
        if granted.done() and not granted.cancelled() and granted.exception() is None:
            self.give_back(owner, waiter.amount)  # granted and cancelled at the same moment
            return
        self._waiting.remove(owner, waiter)
        self._grant()  # those behind it may need less

    def _grant(self) -> None:
        """Owners in turn. One who has reached the owner's bound is passed over; one for whom the server has no room
        yet is waited for, else large requests would starve.
        """
        is_over = False
        while not is_over:
            is_over = True
            for owner, waiter in self._waiting.heads():
                if waiter.granted.done():
                    continue  # it is about to leave
                if not self._owner_fits(owner, waiter.amount):
                    continue
                if not self._server_fits(waiter.amount):
                    return
                self._waiting.pop(owner)
                self._add(owner, waiter.amount)
                waiter.granted.set_result(None)
                is_over = False
                break

    def _add(self, owner: str, amount: int) -> None:
        if not amount:
            return  # an entry of zero would stay
        self.used += amount
        self._used_by[owner] += amount
        self.max_used = max(self.max_used, self.used)

    def _fits(self, owner: str, amount: int) -> bool:
        return self._server_fits(amount) and self._owner_fits(owner, amount)

    def _server_fits(self, amount: int) -> bool:
        return self.used + amount <= self.limit or not self.used

    def _owner_fits(self, owner: str, amount: int) -> bool:
        used = self._used_by.get(owner, 0)
        share = self._share_of(owner) or self._limits.owner_share
        return used + amount <= max(1, int(self.limit * share)) or not used

    def _has_too_many_waiting(self, owner: str) -> bool:
        waiting = self._waiting
        max_of_owner = self._limits.max_waiting_of_owner(self.resource, self._share_of(owner))
        return len(waiting) >= self._max_waiting or waiting.num_of(owner) >= max_of_owner

    def _refusal(self) -> QueueFull:
        count_refusal(self.resource)
        # A guess that spreads the retries.
        seconds = min(_MAX_RETRY_SECONDS, 1 + len(self._waiting) / 16)
        return QueueFull(f"The server is busy: {_WHY[self.resource]}. Retry later.", retry_after=seconds)
