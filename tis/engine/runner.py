"""The interface of what computes requests: `BatchRunner`, `TurnRunner`, `PoolingRunner` and the echo model's."""

from typing import Any, Protocol

from tis.engine.request import HandOut


class Runner(Protocol):
    """Used by the worker's thread alone. A runner of vectors has other requests than one of text."""

    @property
    def has_room(self) -> bool:
        """Whether another request may be admitted now."""
        ...

    def owes_place(self, owner: str) -> bool:
        """Whether a request of this owner may be admitted without room: others have more than their part."""
        ...

    @property
    def cache_use(self) -> float | None:
        """How much of the KV cache running requests own, from 0 to 1; None without a cache. Any thread may ask."""
        ...

    @property
    def has_bounded_steps(self) -> bool:
        """Whether a step that takes minutes hangs. False while one computes a prompt that cannot be cut."""
        ...

    @property
    def num_passes(self) -> int:
        """Counts the parts of a step, none of which takes minutes though the step may. Any thread may ask."""
        ...

    @property
    def running(self) -> list[Any]: ...

    def admit(self, request: Any) -> None:
        """If it raises, this request fails and no other."""
        ...

    def step(self, hand_out: HandOut) -> None:
        """Advances the running requests and drops the cancelled ones. If it raises, all running requests fail;
        but after DeviceLost nobody gets an error: the process ends, and the requests are resumed by the next one.

        A request that leaves `running` must have been handed its last item, even if the step fails later: the worker
        informs only the requests that are still in `running`.
        """
        ...

    def drop_all(self) -> None:
        """Drops every running request, after a failed step."""
        ...

    def device_answers(self) -> bool:
        """Whether the device still computes. Called after a failure; False ends the process."""
        ...
