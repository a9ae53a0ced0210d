"""deploy/ray_serve.py on two nodes: whoever is killed, each client gets his answer byte for byte, through Serve's proxies."""

import asyncio
import os
import signal
from collections.abc import Sequence

import httpx2
import pytest

from tests.faults.checker import check
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import get, until
from tests.faults.test_kill import bodies_for_the_demo, references_of, seen_blocks, story, what_was_said
from tests.openai_api.test_chat import CHAT, said
from tests.ray.ray_cluster import RayCluster, RayNode, is_alive
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.anyio]


class ProxiedClient(Client):
    def _expect_more(self) -> None:
        if self.last.status != 500:  # by Serve's proxy, when a replica dies before its first byte
            super()._expect_more()


@pytest.fixture
async def ray(ray_cluster: RayCluster, redis_server: RedisServer) -> RayCluster:
    """Two replicas, one on each node, with nothing in their store."""
    await deploy_two(ray_cluster)
    return ray_cluster


async def deploy_two(cluster: RayCluster, **args: object) -> None:
    def are_up() -> bool:
        return [len(node.replicas) for node in cluster.nodes] == [1, 1]

    await asyncio.to_thread(cluster.deploy, min_replicas=2, max_replicas=2, **args)
    await until(are_up, 120, "a replica on each node")
    await until_ready(cluster)


async def until_ready(cluster: RayCluster) -> None:
    async def is_ready() -> bool:
        try:
            return (await get(cluster.url, "/ready")).status_code == 200
        except httpx2.TransportError:
            return False

    await until(is_ready, 120, "an answer of /ready")


def clients_of(cluster: RayCluster, prefix: str, num: int = 12, length: int = 250) -> list[Client]:
    more: list[dict[str, object]] = [{}, {"stream_options": {"include_usage": True}}, {"n": 2}, {"logprobs": True}]
    return [
        ProxiedClient(cluster.url, said(story(number, length), session_id=f"{prefix}-{number}", **more[number % 4]))
        for number in range(num)
    ]


def holders(redis: RedisServer) -> dict[str, str]:
    """The process that makes each session's answer, as Redis knows it."""
    return {key: str(redis.ask("HGET", key, "claim")).partition(":")[0] for key in redis.ask("KEYS", "tis:*:meta")}


async def read_at_the_end(cluster: RayCluster, clients: Sequence[Client]) -> list[Client]:
    fresh: list[Client] = [ProxiedClient(cluster.url, client.body) for client in clients]
    await asyncio.gather(*(client.follow() for client in fresh))
    return fresh


async def test_streams_go_on_when_a_replica_is_killed(ray: RayCluster, redis_server: RedisServer) -> None:
    clients = clients_of(ray, "replica")
    following = asyncio.gather(*(client.follow() for client in clients))
    await until(lambda: all(len(client.blocks) > 10 for client in clients))
    before = holders(redis_server)
    assert len(set(before.values())) == 2  # both replicas answer
    [victim, *_] = ray.replicas
    os.kill(victim, signal.SIGKILL)
    await following
    assert any(before[key] != holder for key, holder in holders(redis_server).items())
    again = await read_at_the_end(ray, clients)
    check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))


async def test_streams_go_on_when_a_node_is_killed(ray_cluster: RayCluster, redis_server: RedisServer) -> None:
    await deploy_two(ray_cluster)
    clients = clients_of(ray_cluster, "node")
    following = asyncio.gather(*(client.follow() for client in clients))
    await until(lambda: all(len(client.blocks) > 10 for client in clients))
    before = holders(redis_server)
    lost: RayNode = ray_cluster.nodes.pop()
    try:
        victims = lost.kill()
        await until(lambda: not any(map(is_alive, victims)), what="the end of the processes of the node")
        await following
        assert any(before[key] != holder for key, holder in holders(redis_server).items())
        again = await read_at_the_end(ray_cluster, clients)
        check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))
    finally:
        lost.stop()
        await asyncio.to_thread(ray_cluster.start_node)
