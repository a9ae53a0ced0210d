"""How the engine of a server is made, and how its answers end with the process."""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

from tis.arguments.limits import upstream_limits_of
from tis.arguments.secrets import upstream_keys_of
from tis.audio_api.running_files import RunningFiles
from tis.engine.faults import EXIT_CODE
from tis.engine.local_engine import LocalEngine
from tis.engine.models.catalogue import CatalogueEntry
from tis.settings import Settings
from tis.streaming.sessions import Sessions
from tis.upstream.engine_switch import EngineSwitch
from tis.upstream.upstream_engine import UpstreamEngine

log = logging.getLogger("tis.app")
_MAX_ENDING_SECONDS = 30.0  # of a process that lost its device, if its event loop hangs too
_LAST_BYTES_SECONDS = 0.5  # for clients to get the end of their streams, before the process ends
ServedEngine = LocalEngine | EngineSwitch


def served_engine(settings: Settings, models: Sequence[CatalogueEntry], local: LocalEngine) -> ServedEngine:
    elsewhere = [entry for entry in models if entry.upstream]
    if not elsewhere:
        return local
    upstream = UpstreamEngine(elsewhere, upstream_keys_of(elsewhere), upstream_limits_of(settings))
    return EngineSwitch(models, local, upstream)


async def drain_answers(
    engine: ServedEngine, sessions: Sessions, files: RunningFiles, seconds: float, hurry: asyncio.Event
) -> None:
    """Refuses new requests and waits for running answers. Those that take too long resume after a restart, or fail."""
    log.info("stopping: running answers have up to %g s; a second signal, or Ctrl-C, ends them at once", seconds)
    engine.drain()

    async def until_idle() -> None:
        await asyncio.gather(sessions.wait_until_idle(seconds), files.wait_until_idle(seconds))

    waits: list[asyncio.Task[Any]] = [
        asyncio.create_task(until_idle()),
        asyncio.create_task(hurry.wait()),
    ]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await sessions.end_all()


async def end_when_lost(engine: ServedEngine, sessions: Sessions, end_process: Callable[[int], object]) -> None:
    """Ends the process when no model can compute in it any more. Durable answers are resumed by the next process."""
    reason = await engine.until_lost()
    log.error("%s The process ends with code %d; `tis serve` starts it again.", reason, EXIT_CODE)
    last_resort = threading.Timer(_MAX_ENDING_SECONDS, end_process, [EXIT_CODE])
    last_resort.daemon = True
    last_resort.start()
    await sessions.end_all()
    await asyncio.sleep(_LAST_BYTES_SECONDS)
    last_resort.cancel()
    end_process(EXIT_CODE)
