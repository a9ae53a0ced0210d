"""Servers that share a Redis load and unload the models that one of them was told to.

Redis has the last order for each model. Each server looks every second, and follows what it has not seen. One that
starts later loads what is to be loaded. Where a model is in use it is unloaded when it is not, within a minute.
"""

import asyncio
import logging
import secrets
import time
from contextlib import aclosing
from typing import Any, Literal

from tis.engine.engine import Engine
from tis.engine.errors import ModelInUse
from tis.errors import ServiceError
from tis.observability.logs import log_exception
from tis.streaming.stores.redis_clients import FAULTS, RedisClients, RedisScript, fault_label
from tis.streaming.stores.redis_keys import PREFIX

Order = Literal["load", "unload"]

_log = logging.getLogger("tis.http")
_ORDERS = f"{PREFIX}:model-orders"
_LOOK_SECONDS = 1.0
_MAX_UNLOAD_SECONDS = 60.0

# KEYS: a hash, and a counter. ARGV: the model, a token, the order. The answer: what the hash has of the model now.
_GIVE = """
local order = redis.call('INCR', KEYS[2]) .. ' ' .. ARGV[2] .. ' ' .. ARGV[3]
redis.call('HSET', KEYS[1], ARGV[1], order)
return order
"""


class ModelOrders:
    def __init__(self, clients: RedisClients, engine: Engine) -> None:
        self._redis: Any = clients.commands
        self._engine = engine
        self._give = RedisScript(_GIVE)
        self._unsent: dict[str, Order] = {}
        self._seen: dict[str, bytes] = {}  # by model
        self._has_looked = False
        self._looking: asyncio.Task[None] | None = None
        self._following: dict[str, asyncio.Task[None]] = {}

    def open(self) -> None:
        self._looking = asyncio.create_task(self._look_forever())

    async def close(self) -> None:
        tasks = [*self._following.values(), *([self._looking] if self._looking else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def tell_others(self, model_id: str, order: Order) -> None:
        """What this server does itself. While Redis is away they are told later."""
        self._unsent[model_id] = order
        self._drop(model_id)
        try:
            await self._send()
        except FAULTS as error:
            _log.warning("other servers are not told yet to %s %s (%s)", order, model_id, fault_label(error))

    async def _send(self) -> None:
        for model_id, order in list(self._unsent.items()):
            token = secrets.token_hex(4)
            keys = [_ORDERS, f"{_ORDERS}:counter"]
            self._seen[model_id] = await self._give.run(self._redis, keys, (model_id, token, order))
            if self._unsent.get(model_id) == order:
                del self._unsent[model_id]

    async def _look_forever(self) -> None:
        while True:
            try:
                await self._send()
                self._follow_new(await self._redis.hgetall(_ORDERS))
            except FAULTS:
                pass  # the next look may succeed; others report that Redis is away
            except Exception as error:
                log_exception("orders to load models could not be read", error, "-")
            await asyncio.sleep(_LOOK_SECONDS)

    def _follow_new(self, orders: dict[bytes, bytes]) -> None:
        served = {entry.id for entry in self._engine.models}
        for name, written in sorted(orders.items(), key=lambda one: int(one[1].partition(b" ")[0])):
            model_id, order = name.decode(), written.rpartition(b" ")[2].decode()
            if model_id not in served or self._seen.get(model_id) == written:
                continue
            self._seen[model_id] = written
            if order == "load" or self._has_looked:
                self._drop(model_id)
                follow = self._load(model_id) if order == "load" else self._unload(model_id)
                self._following[model_id] = asyncio.create_task(follow)
        self._has_looked = True

    def _drop(self, model_id: str) -> None:
        if former := self._following.pop(model_id, None):
            former.cancel()

    async def _load(self, model_id: str) -> None:
        try:
            async with aclosing(self._engine.watch_load(model_id)) as changes:
                async for _ in changes:
                    pass
        except ServiceError as error:
            _log.warning("%s was loaded at another server, and could not be loaded here: %s", model_id, error.message)

    async def _unload(self, model_id: str) -> None:
        end = time.monotonic() + _MAX_UNLOAD_SECONDS
        while True:
            try:
                await self._engine.unload(model_id)
                return
            except ModelInUse as error:
                if time.monotonic() > end:
                    _log.warning("%s was unloaded at another server, and stays loaded here: %s", model_id, error)
                    return
            except ServiceError as error:
                _log.warning("%s was unloaded at another server, and not here: %s", model_id, error.message)
                return
            await asyncio.sleep(_LOOK_SECONDS)
