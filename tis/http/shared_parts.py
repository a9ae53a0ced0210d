"""What servers that have the same REDIS_URL share besides their sessions."""

from tis.engine.engine import Engine
from tis.http.call_counts import LocalCounts
from tis.http.model_orders import ModelOrders
from tis.http.shared_counts import SharedCounts
from tis.http.shared_secret import SharedSecret
from tis.streaming.stores.redis_clients import RedisClients


class SharedParts:
    def __init__(self, clients: RedisClients, engine: Engine, lease_seconds: float) -> None:
        self._clients = clients
        self.counts = SharedCounts(clients, LocalCounts(), lease_seconds=lease_seconds)
        self.model_orders = ModelOrders(clients, engine)
        self.token_secret = SharedSecret(clients)

    async def open(self) -> None:
        await self.counts.open()
        self.model_orders.open()

    async def close(self) -> None:
        """Last: what ends before gives back what it had."""
        await self.model_orders.close()
        await self.counts.close()
        await self._clients.close()
