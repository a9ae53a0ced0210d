"""kill -9 while the assistant answers: the stream goes on where it stopped, and the database has one answer."""

import json
from pathlib import Path

import httpx2
import pytest

from tests.faults.mortal_server import MortalServer, durable, running

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.anyio]
QUESTION = {"user_id": 1, "query": "Saya butuh laptop gaming, budget 20 juta", "stream": True}


async def test_an_answer_survives_a_kill_while_the_model_speaks(tmp_path: Path) -> None:
    variables = durable(tmp_path, DATABASE_URL=f"sqlite:///{tmp_path}/market.db", MARKETPLACE_AUTH="open")
    variables |= {"MODEL_REPO_ID": "models/demo", "ASSISTANT_MODEL": "demo", "EAGER_LOAD_MODEL": "1"}
    async with running(tmp_path, **variables) as server:
        await stock_a_shop(server)
        first = await read_until_products(server)
        session_id = json.loads(first[0].partition("data: ")[2])["session_id"]
        server.kill()
        await server.start()
        async with httpx2.AsyncClient(base_url=server.url, timeout=60) as http:
            url = f"/api/chat/stream/{session_id}?user_id=1"
            cursor = {"last-event-id": f"{session_id}:{len(first) - 1}"}
            rest = (await http.get(url, headers=cursor)).text
            whole = (await http.get(url)).text
            assert "".join(f"{block}\n\n" for block in first) + rest == whole
            assert whole.count("event: chat.search.completed") == 1
            messages = (await http.get(f"/api/chat/conversations/{session_id}?user_id=1")).json()
            assert sorted(message["role"] for message in messages) == ["assistant", "user"]


async def read_until_products(server: MortalServer) -> list[str]:
    text = ""
    async with (
        httpx2.AsyncClient(base_url=server.url, timeout=60) as http,
        http.stream("POST", "/api/chat/search", json=QUESTION) as response,
    ):
        assert response.status_code == 200
        async for chunk in response.aiter_text():
            text += chunk
            if "event: chat.search.products" in text and text.endswith("\n\n"):
                break
    return text.split("\n\n")[:-1]


SHOP = {
    "name": "Sari",
    "business_name": "Toko Sari",
    "email": "sari@example.com",
    "latitude": -6.2,
    "longitude": 106.8,
    "city": "Jakarta",
    "province": "DKI Jakarta",
}


async def stock_a_shop(server: MortalServer) -> None:
    async with httpx2.AsyncClient(base_url=server.url, timeout=60) as http:
        buyer = {"name": "Budi", "email": "budi@example.com", "ai_access_enabled": True}
        assert (await http.post("/api/users/register", json=buyer)).json()["id"] == QUESTION["user_id"]
        shop = (await http.post("/api/suppliers/register", json=SHOP)).json()["id"]
        for name in ("Acer Nitro laptop gaming", "Asus TUF laptop gaming"):
            goods = {"name": name, "price": 15_000_000, "stock_quantity": 3, "category": "laptop"}
            assert (await http.post(f"/api/suppliers/{shop}/products", json=goods)).status_code == 200
