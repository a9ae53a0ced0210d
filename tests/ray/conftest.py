"""One cluster for all tests of a file: it takes twenty seconds to start."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ray.ray_cluster import BIN, RayCluster, running_cluster
from tests.redis_server import RedisServer

LEASE_SECONDS = 2


@pytest.fixture(scope="session")
def ray_cluster(shared_redis: RedisServer) -> Iterator[RayCluster]:
    """Two nodes, each with room for one replica."""
    if not (BIN / "ray").exists():
        pytest.fail("Ray is not set up: make setup-ray")
    with (
        tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder,
        running_cluster(
            Path(folder),
            SESSION_STORE="redis",
            REDIS_URL=shared_redis.url,
            SESSION_LEASE_SECONDS=str(LEASE_SECONDS),
            MODEL_REPO_ID="echo?tokens_per_second=80",
            MODELS="demo",
            TORCH_DTYPE="float32",
            MAX_BATCH_SIZE="4",
        ) as cluster,
    ):
        yield cluster
