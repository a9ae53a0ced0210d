"""The requests that wait for a model: resumed ones first, then those of all owners in turn."""

from collections import deque
from collections.abc import Callable, Iterator

from tis.admission.fair_queue import FairQueue
from tis.engine.request import QueuedRequest
from tis.errors import QueueFull
from tis.observability.metrics import count_refusal


class RequestQueue:
    """Shared by threads, which hold the worker's lock. Only reading its length and its tokens needs none."""

    def __init__(self, model_name: str, max_size: int) -> None:
        self._model_name = model_name
        self._max_size = max_size
        self._resumed: deque[QueuedRequest] = deque()
        self._new: FairQueue[QueuedRequest] = FairQueue()
        self.num_prompt_tokens = 0

    def __len__(self) -> int:
        return len(self._resumed) + len(self._new)

    def __iter__(self) -> Iterator[QueuedRequest]:
        yield from self._resumed
        yield from self._new

    def put(self, request: QueuedRequest) -> None:
        """Raises QueueFull. A resumed request is exempt from the limit: it was accepted before."""
        if request.is_resumed:
            self._resumed.append(request)
            self.num_prompt_tokens += request.num_prompt_tokens
            return
        # The share of one owner is the whole queue where there is one API key, or none.
        num_of_owner = self._new.num_of(request.owner)
        of_owner = max(1, int(self._max_size * request.owner_share))
        if not request.is_begun and (len(self) >= self._max_size or num_of_owner >= of_owner):
            count_refusal("model_queue")
            # retry_after is a guess that spreads the retries: one second for each eight waiting requests.
            raise QueueFull(
                f"The queue for model `{self._model_name}` is full ({len(self)} waiting). Retry later.",
                retry_after=1 + len(self) / 8,
            )
        self._new.append(request.owner, request)
        self.num_prompt_tokens += request.num_prompt_tokens

    def next(self) -> QueuedRequest | None:
        if self._resumed:
            return self._taken(self._resumed.popleft())
        return self._taken(self._new.pop()) if self._new else None

    def next_of(self, is_wanted: Callable[[str], bool]) -> QueuedRequest | None:
        """The next request of an owner who is wanted."""
        for request in self._resumed:
            if is_wanted(request.owner):
                self._resumed.remove(request)
                return self._taken(request)
        for owner, _ in self._new.heads():
            if is_wanted(owner):
                return self._taken(self._new.pop(owner))
        return None

    def remove(self, request: QueuedRequest) -> None:
        if request in self._resumed:
            self._resumed.remove(request)
        else:
            self._new.remove(request.owner, request)
        self._taken(request)

    def clear(self) -> list[QueuedRequest]:
        requests = list(self)
        self._resumed, self._new = deque(), FairQueue()
        self.num_prompt_tokens = 0
        return requests

    def _taken(self, request: QueuedRequest) -> QueuedRequest:
        self.num_prompt_tokens -= request.num_prompt_tokens
        return request
