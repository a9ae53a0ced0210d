"""What small requests cost: CPU of the whole app without its socket, with the index of routes and without it.

    python benchmarks/request_costs.py [--rounds 9] [--requests 50]

One process and one event loop, both sides in alternating rounds, the fastest round of each. What counts is the CPU time
of all threads, which other work on the machine hardly changes. The models are the echo, the marketplace is empty.
"""

import argparse
import asyncio
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the server and its tests

from fastapi import FastAPI
from starlette.types import Message

from tests.serving import settings_with
from tests.test_status import until
from tis.app import create_app
from tis.http.route_index import RouteIndex

ASKED = (
    "GET /live",
    "GET /health",
    "GET /v1/models",
    "POST /v1/tokenize",
    "GET /api/categories",
    "GET /api/products/7",
    "GET /api/suppliers/7/products",
    "DELETE /health",
    "GET /nowhere",
)


async def answer(app: FastAPI, method: str, path: str) -> int:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b'{"prompt": "Halo"}' if method == "POST" else b""}

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8000),
        "state": {},
    }
    await app(scope, receive, send)
    return int(sent[0]["status"])


async def print_first(app: FastAPI) -> None:
    """Of an app that has just started: FastAPI makes what it knows of a route when it first looks at it."""
    for name, side in (("with the index", app.router.middleware_stack), ("without", app.router.app)):
        app.router.middleware_stack = side
        began = time.process_time()
        await answer(app, "GET", "/live")
        print(f"the first /live {name}: {1000 * (time.process_time() - began):.0f} ms of CPU")


async def compare(app: FastAPI, rounds: int, requests: int) -> None:
    indexed, plain = RouteIndex(app.router), app.router.app
    print("| request | status | CPU µs with the index | without | ratio |\n|---|---|---|---|---|")
    for asked in ASKED:
        method, path = asked.split()
        costs: dict[object, list[float]] = {indexed: [], plain: []}
        for _ in range(rounds):
            for side in (indexed, plain):
                app.router.middleware_stack = side
                status = await answer(app, method, path)
                began = time.process_time()
                for _ in range(requests):
                    await answer(app, method, path)
                costs[side].append((time.process_time() - began) / requests * 1e6)
        ours, theirs = min(costs[indexed]), min(costs[plain])
        print(f"| `{asked}` | {status} | {ours:.0f} | {theirs:.0f} | {theirs / ours:.2f} |", flush=True)


async def main(rounds: int, requests: int) -> None:
    app = create_app(settings_with(marketplace_auth="open", marketplace_at_start=False))
    async with app.router.lifespan_context(app):
        await asyncio.to_thread(until, lambda: app.state.marketplace.market.state == "ready")
        await print_first(app)
        await compare(app, rounds, requests)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=50)
    given = parser.parse_args()
    asyncio.run(main(given.rounds, given.requests))
