"""Chats of all dialects: streamed and whole, with tools, schemas, pictures; cancelled and left."""

import asyncio
import base64
import json
import time
from random import Random
from typing import Any

import httpx2
import jsonschema
from openai import APIConnectionError, APIStatusError, OpenAIError

from scripts.smoke import PERSON, WEATHER
from tests.serving import REPOSITORY
from tests.soak.floor import Floor, Unanswered
from tests.soak.soaked_server import KEYS, ORDINARY
from tests.soak.streams import SoakReader, blocks_in_order, followed, text_of

CHAT, RESPONSES, MESSAGES, COMPLETIONS = "/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/completions"
PROMPTS = ("Tell me a short story.", "What is 12 + 7?", "Halo, apa kabar?", "Write a long list of colours.")
NUM_VARIANTS = len(PROMPTS)
_LONG: dict[str, Any] = {"ignore_eos": True}
_PICTURES = [
    base64.b64encode((REPOSITORY / "docs/samples" / name).read_bytes()).decode() for name in ("red.png", "green.jpg")
]


def messages(variant: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": PROMPTS[variant]}]


def sampling(variant: int) -> dict[str, Any]:
    """Two are greedy, two are sampled with a seed: the noise belongs to the position, so they repeat, too."""
    return {"temperature": 0} if variant % 2 == 0 else {"temperature": 0.9, "seed": variant}


async def chat_stream(floor: Floor, chance: Random, variant: int) -> None:
    body = {"model": "demo", "messages": messages(variant), "max_tokens": 90, **_LONG, **sampling(variant)}
    session = floor.name("chat")
    reader = await followed(
        floor, chance, "chat stream", CHAT, {**body, "session_id": session}, chance.choice(ORDINARY)
    )
    floor.same("chat stream", variant, text_of(reader.blocks))


async def completion_stream(floor: Floor, chance: Random, variant: int) -> None:
    body = {"model": "demo", "prompt": PROMPTS[variant], "max_tokens": 40, **_LONG, **sampling(variant)}
    session = floor.name("completion")
    reader = await followed(floor, chance, "completion stream", COMPLETIONS, {**body, "session_id": session}, "budi")
    floor.same("completion stream", variant, text_of(reader.blocks))


async def message_stream(floor: Floor, chance: Random, variant: int) -> None:
    body = {"model": "demo", "messages": messages(variant), "max_tokens": 60, "temperature": 0}
    session = floor.name("message")
    reader = await followed(floor, chance, "message stream", MESSAGES, {**body, "session_id": session}, "citra")
    floor.same("message stream", variant, text_of(reader.blocks))


async def message(floor: Floor, chance: Random, variant: int) -> None:
    body = {"model": "demo", "messages": messages(variant), "max_tokens": 60, "temperature": 0}
    headers = {"anthropic-version": "2023-06-01", "x-api-key": KEYS["citra"]}
    answer = await floor.send("message", MESSAGES, key="citra", json=body, headers=headers)
    if answer.status_code == 200:
        floor.same("message", variant, [block.get("text") for block in answer.json()["content"]])


async def chat_by_sdk(floor: Floor, chance: Random, variant: int) -> None:
    """The official client, whole and streamed without a session: a kill may cut it, nothing else."""
    began = time.monotonic()
    sdk, kind = floor.sdk(chance.choice(ORDINARY)), "chat by the SDK"
    asked: dict[str, Any] = {"model": "demo", "messages": messages(variant), "max_tokens": 60, **sampling(variant)}
    try:
        if variant < 2:
            whole = await sdk.chat.completions.create(**asked)
            text = whole.choices[0].message.content or ""
        else:
            text = ""
            async for chunk in await sdk.chat.completions.create(**asked, stream=True):
                text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
    except APIStatusError as error:
        is_expected = error.status_code == 503 and floor.server.excuses(began)
        floor.ledger.answered(kind, str(error.status_code))
        floor.ledger.server_error(kind, error.status_code, error.message, is_expected=is_expected)
    except (APIConnectionError, OpenAIError, httpx2.TransportError) as error:
        floor.cut(kind, began, error)
    else:
        floor.ledger.answered(kind, "200", time.monotonic() - began)
        floor.same(kind, variant, text)


async def tool_call(floor: Floor, chance: Random, variant: int) -> None:
    city = ("Jakarta", "Bandung", "Medan", "Solo")[variant]
    body = {"messages": [{"role": "user", "content": f"What is the weather in {city}?"}], "tools": [WEATHER]}
    answer = await floor.send("tool call", CHAT, key="narrow", json={"model": "demo", **body, "temperature": 0})
    if answer.status_code == 200:
        calls = answer.json()["choices"][0]["message"].get("tool_calls") or []
        floor.same("tool call", variant, [call["function"] for call in calls])


async def json_schema(floor: Floor, chance: Random, variant: int) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    question = f"Answer in JSON: name and city of {('Sari', 'Budi', 'Ani', 'Joko')[variant]} from Bandung."
    body = {"messages": [{"role": "user", "content": question}], "response_format": form, "max_tokens": 200}
    answer = await floor.send("JSON schema", CHAT, json={"model": "demo", **body, "temperature": 0})
    if answer.status_code == 200:
        text = answer.json()["choices"][0]["message"]["content"]
        try:
            jsonschema.validate(json.loads(text), PERSON)
        except (ValueError, jsonschema.ValidationError) as error:
            floor.ledger.fault("different", "JSON schema", f"{text!r}: {error}")
        floor.same("JSON schema", variant, text)


async def picture(floor: Floor, chance: Random, variant: int) -> None:
    url = f"data:image/png;base64,{_PICTURES[variant % 2]}"
    parts = [{"type": "text", "text": "What colour is this picture?"}, {"type": "image_url", "image_url": {"url": url}}]
    body = {"model": "demo", "messages": [{"role": "user", "content": parts}], "temperature": 0, "max_tokens": 30}
    if variant < 2:
        answer = await floor.send("picture", CHAT, key="budi", json=body)
        if answer.status_code == 200:
            floor.same("picture", variant, answer.json()["choices"][0]["message"]["content"])
    else:
        body["session_id"] = floor.name("picture")
        reader = await followed(floor, chance, "picture stream", CHAT, body, "budi")
        floor.same("picture stream", variant, text_of(reader.blocks))


async def ollama(floor: Floor, chance: Random, variant: int) -> None:
    options = {"num_predict": 40, "temperature": 0}
    body = {"model": "demo", "messages": messages(variant), "options": options, "stream": variant < 2}
    answer = await floor.send("Ollama chat", "/ollama/api/chat", key="citra", json=body)
    if answer.status_code == 200:
        lines = [json.loads(line) for line in answer.text.splitlines()]
        floor.ledger.expect(lines[-1]["done"], "lost", "Ollama chat", f"no end: {lines[-1]}")
        floor.same("Ollama chat", variant, "".join(line["message"]["content"] for line in lines))


async def cancelled_stream(floor: Floor, chance: Random, variant: int) -> None:
    """What was shown before the cancel stays, and an end that was acknowledged is not undone."""
    session, key = floor.name("cancel"), chance.choice(ORDINARY)
    body = {"model": "demo", "messages": messages(variant), "max_tokens": 400, **_LONG, "session_id": session}
    reader = SoakReader(floor, "cancel", CHAT, body, key)
    while not reader.blocks:
        await reader.connect()
        await reader.read(blocks=chance.randrange(1, 20))
        await asyncio.sleep(0.1)
    answer = await floor.send("cancel", f"/v1/cancel/{session}", key=key)
    await reader.take(chance)
    seen = blocks_in_order(floor, reader)
    if answer.json()["status"] == "cancelled":
        text = "".join(seen.values())
        floor.ledger.expect('"cancelled":true' in text, "lost", "cancel", f"{session} was cancelled, and goes on")


async def left_stream(floor: Floor, chance: Random, variant: int) -> None:
    """Nobody comes back: the server has to stop it, and to forget the client."""
    body = {"model": "demo", "messages": messages(variant), "max_tokens": 300, **_LONG}
    reader = SoakReader(floor, "left", CHAT, body, "ada")
    await reader.connect(receive_buffer=4096)
    await reader.read(blocks=chance.randrange(1, 10))
    if reader.last.status:
        floor.ledger.answered("left", str(reader.last.status))
    reader.leave(rudely=chance.random() < 0.5)


async def refusals(floor: Floor, chance: Random, variant: int) -> None:
    body = {"model": "demo", "messages": messages(variant), "max_tokens": 2}
    if variant == 0:
        await floor.send("wrong key", CHAT, key="sk-of-nobody", json=body, expected=(401,))
    elif variant == 1:
        embedding = {"model": "demo-embedding", "input": "kopi"}
        await floor.send("model of others", "/v1/embeddings", key="narrow", json=embedding, expected=(403,))
    elif variant == 2:
        await floor.send("bad request", CHAT, content=b'{"messages": [', expected=(400,))
    else:
        answer = await floor.send("limited key", CHAT, key="paced", json=body, expected=(200, 429))
        if answer.status_code == 429:
            fact = 1 <= int(answer.headers.get("retry-after", "0")) <= 60
            floor.ledger.expect(fact, "status", "limited key", f"Retry-After: {answer.headers.get('retry-after')}")


async def reads(floor: Floor, chance: Random, variant: int) -> None:
    path = ("/v1/models", "/v1/usage", "/metrics", "/openapi.json")[variant]
    await floor.send(f"GET {path}", path, method="GET")


async def guest_key(floor: Floor, chance: Random, variant: int) -> None:
    """A key that is added to the file works within seconds, and ends when it is taken out."""
    for with_guest, wanted in ((True, 200), (False, 401)):
        floor.server.write_keys(with_guest=with_guest)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            answer = await floor.send("guest key", "/v1/models", method="GET", key="guest", expected=(200, 401))
            if answer.status_code == wanted:
                break
            await asyncio.sleep(0.5)
        floor.ledger.expect(answer.status_code == wanted, "status", "guest key", f"{answer.status_code}, not {wanted}")
        if answer.status_code != wanted:
            raise Unanswered("guest key")
