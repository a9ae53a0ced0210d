"""Whose cached prefixes a request may share: those of its owner, or those of the salt that it names (as in vLLM)."""

from typing import Any

import httpx2
import pytest

from tests.openai_api.test_chat import CHAT, said
from tests.serving import served, settings_with
from tis.engine.local_engine import LocalEngine


def test_the_engine_gets_the_owner_or_the_salt(monkeypatch: pytest.MonkeyPatch) -> None:
    salts: list[str] = []
    prepare = LocalEngine.prepare

    async def seen(engine: LocalEngine, *given: Any, cache_salt: str = "", **named: Any) -> Any:
        salts.append(cache_salt)
        return await prepare(engine, *given, cache_salt=cache_salt, **named)

    monkeypatch.setattr(LocalEngine, "prepare", seen)
    with served(settings_with(api_keys="one,two")) as server, httpx2.Client(base_url=server.url) as http:
        for key, path, body in [
            ("one", CHAT, said("Halo")),
            ("one", CHAT, said("Halo again")),
            ("two", CHAT, said("Halo")),
            ("two", "/v1/responses", {"input": "Halo"}),
            ("two", CHAT, said("Halo", cache_salt="ours")),
            ("one", "/v1/responses", {"input": "Halo", "cache_salt": "ours"}),
        ]:
            answer = http.post(path, json=body, headers={"Authorization": f"Bearer {key}"})
            assert answer.status_code == 200, answer.text
    one, again, two, response, *ours = salts
    assert one == again != two == response and one.startswith("owner:") and ours == ["salt:ours", "salt:ours"]


@pytest.mark.parametrize("salt", ["", 5, "x" * 513])
@pytest.mark.parametrize(("path", "body"), [(CHAT, said("Halo")), ("/v1/responses", {"input": "Halo"})])
def test_a_salt_is_a_short_string(http: httpx2.Client, path: str, body: dict[str, Any], salt: object) -> None:
    answer = http.post(path, json={**body, "cache_salt": salt})
    assert answer.status_code == 400 and "cache_salt" in answer.json()["error"]["param"]
