"""Keys, queues and fair shares stand in front of an upstream as in front of a model of this process."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2

from tests.http.keys import bearer, entry, write_key_file
from tests.openai_api.test_chat import CHAT, said
from tests.serving import Served
from tests.test_status import until
from tests.upstream.gateway import client_of, gateway

LONG = "It took the ferry a night to cross the sea. "


def test_tokens_of_an_upstream_count_for_the_key(echo_server: Served, tmp_path: Path) -> None:
    keys = write_key_file(tmp_path / "keys.json", entry("shop", "sk-shop", tokens_per_day=20), entry("b", "sk-b"))
    settings = {"api_keys_file": str(keys)}
    with gateway(tmp_path, f"{echo_server.url}/v1", upstream_model="echo", settings=settings) as server:
        with client_of(server) as client:
            assert client.post(CHAT, json=said("Halo")).status_code == 401
            assert client.post(CHAT, json=said("Halo, apa?"), headers=bearer("sk-shop")).status_code == 200
            used = client.get("/v1/usage", headers=bearer("sk-shop")).json()
            assert (used["prompt_tokens"], used["completion_tokens"]) == (10, 10)
            refused = client.post(CHAT, json=said("Halo"), headers=bearer("sk-shop"))
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_requests")
            assert client.post(CHAT, json=said("Halo"), headers=bearer("sk-b")).status_code == 200


def test_a_full_queue_refuses_and_owners_take_turns(slow_server: Served, tmp_path: Path) -> None:
    keys = write_key_file(tmp_path / "keys.json", entry("a", "sk-a", share=0.5), entry("b", "sk-b", share=0.5))
    limits = {"max_batch_size": 1, "max_queue_size": 4}
    with gateway(
        tmp_path,
        f"{slow_server.url}/v1",
        upstream_model="echo",
        limits=limits,
        settings={"api_keys_file": str(keys)},
    ) as server:
        ended: list[str] = []

        def ask(who: str, text: str) -> int:
            answer = httpx2.post(f"{server.url}{CHAT}", json=said(text), headers=bearer(f"sk-{who}"), timeout=60)
            if answer.status_code == 200:
                ended.append(who)
            return answer.status_code

        [model] = server.app.state.engine.upstream._models.values()
        with ThreadPoolExecutor(8) as pool:
            first = pool.submit(ask, "a", LONG)
            until(lambda: model.status.num_running == 1)
            waiting = [pool.submit(ask, "a", "Halo") for _ in range(2)]
            until(lambda: model.status.num_waiting == 2)
            assert ask("a", "Halo") == 429  # half of the queue is all that one owner may have
            other = pool.submit(ask, "b", "Halo")
            assert [one.result() for one in (first, *waiting, other)] == [200] * 4
    assert ended[0] == "a" and ended.index("b") < 3  # not behind everything of the first owner
