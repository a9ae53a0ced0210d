"""The slots of all served models: loads them at start, unloads those that are idle, and shows how a load goes on."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import replace

from tis.engine.errors import ModelInUse
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.load_observer import LoadObserver
from tis.engine.models.model_memory import ModelMemory
from tis.engine.models.model_slot import Fetch, Load, ModelSlot, SlotRules
from tis.engine.models.model_status import ModelStatus
from tis.engine.threads import Bridge

_LOOKS_PER_IDLE_TIME = 4  # at least; more often than once a second is not needed


class ModelSlots:
    """On the event loop."""

    def __init__(
        self,
        models: Sequence[CatalogueEntry],
        load: Load,
        fetch: Fetch | None,
        bridge: Bridge,
        observer: LoadObserver,
        rules: SlotRules,
        on_loss: Callable[[str], None],
    ) -> None:
        memory = ModelMemory()
        slots = {
            entry.id: ModelSlot(
                entry,
                load,
                fetch,
                memory,
                bridge,
                observer,
                replace(rules, queue_size=entry.limits.max_queue_size or rules.queue_size),
                on_loss,
            )
            for entry in models
            if entry.base is None
        }
        self._all = list(slots.values())
        memory.holders = list(self._all)
        # An adapter lies beside the weights of its base.
        self._by_id = {entry.id: slots[entry.base or entry.id] for entry in models}
        self._tasks: list[asyncio.Task[None]] = []
        self._eager: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[ModelSlot]:
        return iter(self._all)

    def __getitem__(self, model_id: str) -> ModelSlot:
        return self._by_id[model_id]

    def get(self, model_id: str) -> ModelSlot | None:
        return self._by_id.get(model_id)

    @property
    def is_starting(self) -> bool:
        """The models that are loaded at start are not all there yet."""
        return self._eager is not None and not self._eager.done()

    def load_at_start(self) -> None:
        self._eager = asyncio.create_task(self._load_all())
        self._tasks.append(self._eager)

    def unload_idle_after(self, seconds: float) -> None:
        self._tasks.append(asyncio.create_task(self._unload_idle(seconds)))

    def stop_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def watch_load(self, model_id: str) -> AsyncGenerator[ModelStatus, None]:
        """Begins a load unless the model is loaded, and yields every change until it is over.

        The last status is `ready`. Raises what the load raises. Who stops reading does not stop the load.
        """
        slot = self._by_id[model_id]
        with slot.use.preparing():
            loading = None if slot.loaded else slot.start_loading()
            while loading and not loading.done():
                yield slot.status
                await slot.wait_for_change()
            if loading:
                await loading
            yield slot.status

    async def unload(self, model_id: str) -> ModelStatus:
        """Raises ModelInUse."""
        slot = self._by_id[model_id]
        if not await slot.unload():
            raise ModelInUse(f"The model `{model_id}` is in use or being loaded. Try again later.", param="model")
        return slot.status

    async def _load_all(self) -> None:
        """One after the other, the main model first: what does not fit beside those before it waits for a request."""
        failed = [slot for slot in self if not await slot.try_to_load()]
        await asyncio.gather(*(slot.load_until_ready() for slot in failed))

    async def _unload_idle(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(min(1.0, seconds / _LOOKS_PER_IDLE_TIME))
            for slot in self:
                if (idle := slot.idle_seconds) is not None and idle >= seconds:
                    await slot.unload()
