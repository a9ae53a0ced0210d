"""deploy/ray_serve.py on two nodes: whoever is killed, each client gets the whole answer through Serve's proxies."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
import pytest

from tests.faults.checker import check
from tests.faults.history import Client, connections_of
from tests.faults.mortal_server import get, until
from tests.faults.test_kill import bodies_for_the_demo, references_of, seen_blocks, story, what_was_said
from tests.openai_api.test_chat import CHAT, said
from tests.ray.ray_cluster import RayCluster, RayNode, is_alive
from tests.redis_server import RedisServer
from tis.http.api_keys import ANONYMOUS
from tis.streaming.stores.redis_keys import digest_of, keys_of
from tis.streaming.stores.store import SessionKey

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.anyio]


class ProxiedClient(Client):
    def _expect_more(self) -> None:
        if self.last.status != 500:  # by Serve's proxy, when a replica dies before its first byte
            super()._expect_more()


@pytest.fixture
async def ray(ray_cluster: RayCluster, redis_server: RedisServer) -> RayCluster:
    """Two replicas, one on each node, which both get requests."""
    await deploy_two(ray_cluster)
    probes: list[Client] = []

    async def both_answer() -> bool:
        probes.append(ProxiedClient(ray_cluster.url, said("?", session_id=f"probe-{len(probes)}")))
        await probes[-1].follow()
        return len(set(holders(redis_server, probes))) == 2

    await until(both_answer, what="answers of both replicas")
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


def clients_of(cluster: RayCluster, prefix: str, num: int = 12) -> list[Client]:
    """Of answers that take ten seconds: a kill meets them all."""
    more: list[dict[str, object]] = [{}, {"stream_options": {"include_usage": True}}, {"n": 2}, {"logprobs": True}]
    return [
        ProxiedClient(cluster.url, said(story(number) * 8, session_id=f"{prefix}-{number}", **more[number % 4]))
        for number in range(num)
    ]


def holders(redis: RedisServer, clients: Sequence[Client]) -> list[str]:
    """The process that makes the answer of each, as Redis knows it."""
    keys = [keys_of(digest_of(SessionKey(ANONYMOUS, client.session_id))).meta for client in clients]
    return [str(redis.ask("HGET", key, "claim")).partition(":")[0] for key in keys]


async def read_at_the_end(cluster: RayCluster, clients: Sequence[Client]) -> list[Client]:
    fresh: list[Client] = [ProxiedClient(cluster.url, client.body) for client in clients]
    await asyncio.gather(*(client.follow() for client in fresh))
    return fresh


async def test_streams_go_on_when_a_replica_is_killed(ray: RayCluster, redis_server: RedisServer) -> None:
    clients = clients_of(ray, "replica")
    following = asyncio.gather(*(client.follow() for client in clients))
    await until(lambda: all(len(client.blocks) > 10 for client in clients))
    before = holders(redis_server, clients)
    assert len(set(before)) == 2  # both replicas answer
    [victim, *_] = ray.replicas
    os.kill(victim, signal.SIGKILL)
    await following
    assert holders(redis_server, clients) != before
    again = await read_at_the_end(ray, clients)
    check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))


async def test_streams_go_on_when_a_node_is_killed(ray: RayCluster, redis_server: RedisServer) -> None:
    clients = clients_of(ray, "node")
    following = asyncio.gather(*(client.follow() for client in clients))
    await until(lambda: all(len(client.blocks) > 10 for client in clients))
    before = holders(redis_server, clients)
    lost: RayNode = ray.nodes.pop()
    try:
        victims = lost.kill()
        await until(lambda: not any(map(is_alive, victims)), what="the end of the processes of the node")
        await following
        assert holders(redis_server, clients) != before
        again = await read_at_the_end(ray, clients)
        check(connections_of([*clients, *again]), references_of(clients, finish_reason="stop"))
    finally:
        lost.stop()
        await asyncio.to_thread(ray.start_node)


async def test_a_model_says_elsewhere_what_it_would_have_said(ray: RayCluster) -> None:
    whole = [ProxiedClient(ray.url, {**body, "model": "demo"}) for body in bodies_for_the_demo("whole")]
    await asyncio.gather(*(client.follow(patience=200) for client in whole))
    clients = [ProxiedClient(ray.url, {**body, "model": "demo"}) for body in bodies_for_the_demo("moved")]
    following = asyncio.gather(*(client.follow(patience=200) for client in clients))
    await seen_blocks(clients, 100)
    [victim, *_] = ray.replicas
    os.kill(victim, signal.SIGKILL)
    await following
    references = {
        (client.session, 0): what_was_said(reference) for client, reference in zip(clients, whole, strict=True)
    }
    check(connections_of(clients), references)


async def test_a_new_version_takes_over_the_streams_of_the_old_one(ray: RayCluster, redis_server: RedisServer) -> None:
    """Each replica gets one second to end its answers, and is killed then: its streams go on elsewhere."""
    await deploy_two(ray, stop_seconds=1)
    before = set(ray.replicas)
    clients = clients_of(ray, "version")
    following = asyncio.gather(*(client.follow(patience=150) for client in clients))
    await until(lambda: all(len(client.blocks) > 10 for client in clients))
    await deploy_two(ray, stop_seconds=1, num_cpus=0.9)
    await until(lambda: not before & set(ray.replicas), 120, "new processes only")
    await following
    check(connections_of(clients), references_of(clients, finish_reason="stop"))


async def test_prompts_that_wait_bring_a_replica_and_it_goes_again(ray: RayCluster) -> None:
    scaled: Mapping[str, Any] = {
        "min_replicas": 1,
        "max_replicas": 2,
        "waiting_tokens": 100,
        "requests_per_replica": 1000,
        "downscale_seconds": 5,
    }
    await asyncio.to_thread(ray.deploy, **scaled)
    await until(lambda: len(ray.replicas) == 1, 120, "one replica, as nobody asks")
    body = {**said("Tell me a long story.", temperature=0), "model": "demo", "ignore_eos": True, "max_tokens": 300}
    answers: list[httpx2.Response] = []
    grown = asyncio.Event()

    async def keep_asking(http: httpx2.AsyncClient) -> None:
        while not grown.is_set():
            answers.append(await http.post(CHAT, json=body))

    async with httpx2.AsyncClient(base_url=ray.url, timeout=300) as http:
        asking = asyncio.gather(*(keep_asking(http) for _ in range(40)))  # in one piece: the model is what is slow
        await until(lambda: len(ray.replicas) == 2, 300, "a second replica")
        grown.set()
        await asking
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["choices"][0]["message"]["content"] for answer in answers}) == 1
    await until(lambda: len(ray.replicas) == 1, 120, "the end of the second replica")
    await until_ready(ray)
