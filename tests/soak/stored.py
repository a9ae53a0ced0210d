"""Responses and conversations: what was answered is found again, once, also after kills."""

import asyncio
from random import Random
from typing import Any

from tests.soak.chats import PROMPTS, RESPONSES
from tests.soak.floor import Floor, Unanswered
from tests.soak.streams import followed, text_of

_CONVERSATIONS = "/v1/conversations"
_NUM_ROUNDS = 3


def asked(variant: int, **more: Any) -> dict[str, Any]:
    return {"model": "demo", "input": PROMPTS[variant], "temperature": 0, "max_output_tokens": 60, **more}


async def response_stream(floor: Floor, chance: Random, variant: int) -> None:
    """The server names it: until its first block is there, a client that was cut begins another."""
    reader = await followed(floor, chance, "response stream", RESPONSES, asked(variant), "ada")
    floor.same("response stream", variant, text_of(reader.blocks))
    stored = (await floor.send("stored response", f"{RESPONSES}/{reader.session_id}", method="GET")).json()
    floor.same("response stream", variant, said_by(stored))


async def background_response(floor: Floor, chance: Random, variant: int) -> None:
    begun = (await floor.send("background response", RESPONSES, json=asked(variant, background=True))).json()
    for _ in range(2000):
        now = await floor.send("stored response", f"{RESPONSES}/{begun['id']}", method="GET")
        if now.status_code != 200:
            floor.ledger.fault("lost", "background response", f"{begun['id']}: {now.status_code}")
            raise Unanswered(begun["id"])
        if now.json()["status"] not in ("queued", "in_progress"):
            floor.same("background response", variant, said_by(now.json()))
            return
        await asyncio.sleep(0.3)
    floor.ledger.fault("hangs", "background response", f"{begun['id']} does not end: {now.text[:300]}")


async def conversation(floor: Floor, chance: Random, variant: int) -> None:
    """Its items are those that were acknowledged, each once, and those of an answer that a kill has cut, at most."""
    kind = "conversation"
    first = {"role": "user", "content": "Nama saya Sari."}
    made = (await floor.send(kind, _CONVERSATIONS, json={"items": [first]}, key="budi")).json()
    outputs = []
    for number in range(_NUM_ROUNDS):
        body = asked((variant + number) % len(PROMPTS), conversation=made["id"])
        answer = await floor.send("response in a conversation", RESPONSES, json=body, key="budi", expected=(200, 409))
        if answer.status_code == 200:
            outputs += [item["id"] for item in answer.json()["output"]]
    path = f"{_CONVERSATIONS}/{made['id']}/items?order=asc&limit=100"
    items = (await floor.send(kind, path, method="GET", key="budi")).json()["data"]
    ids = [item["id"] for item in items]
    lost, doubled = [one for one in outputs if one not in ids], len(ids) - len(set(ids))
    floor.ledger.expect(not lost, "lost", kind, f"{made['id']}: items {lost} were answered and are gone")
    floor.ledger.expect(not doubled, "doubled", kind, f"{made['id']}: {doubled} items come twice")
    if floor.is_quiet or chance.random() < 0.5:
        gone = await floor.send(
            kind, f"{_CONVERSATIONS}/{made['id']}", method="DELETE", key="budi", expected=(200, 404)
        )
        after = await floor.send(kind, path, method="GET", key="budi", expected=(404,))
        floor.ledger.expect(after.status_code == 404, "doubled", kind, f"{gone.text} was deleted, and is there")


def said_by(response: Any) -> str:
    parts = [part for item in response["output"] for part in item.get("content") or ()]
    return "".join(part.get("text", "") for part in parts)
