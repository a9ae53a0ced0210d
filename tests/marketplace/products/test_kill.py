"""A server killed during a request has committed its work and its key, or neither."""

import subprocess
import sys

import httpx2
import pytest

from tests.marketplace.market_server import MarketServer
from tests.marketplace.products.test_idempotency import goods_of, send
from tests.serving import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.long]

# The whole request as the route does it, up to the moment before the commit.
_KILLED = """
import os, signal, sys
from fastapi.responses import JSONResponse
from tis.database.database import Database
from tis.marketplace.kit.principal import Principal
from tis.marketplace.products.service import create_product
from tis.marketplace.kit.idempotency import IdempotencyKey
from tis.marketplace.market import Market, MarketRules
market, principal = Market(Database(sys.argv[1]), MarketRules()), Principal(is_open=True)
values = {"name": "x", "price": 1, "stock_quantity": 1, "category": "x"}
def make(session):
    create_product(session, market.search, principal, int(sys.argv[2]), values)
    return JSONResponse({})
with market.writing() as session:
    IdempotencyKey("k-killed", "digest").answer(session, principal, lambda: make(session))
    session.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_after_a_kill_there_is_neither_product_nor_key(
    server: MarketServer, database_url: str, anybody: httpx2.Client
) -> None:
    supplier = server.supplier()
    command = [sys.executable, "-c", _KILLED, database_url, str(supplier)]
    assert subprocess.run(command, cwd=REPOSITORY, timeout=60).returncode == -9
    assert goods_of(server, supplier) == 0
    answer = send(anybody, supplier, "k-killed")
    assert answer.status_code == 200 and "idempotent-replayed" not in answer.headers
    assert goods_of(server, supplier) == 1
