"""Clients that create stored responses in a cluster: what they were told is there at the end, once, with its text."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx2
import psycopg

from tests.faults.cluster.machines import Front
from tests.faults.cluster.wanderers import tale

_TRY_SECONDS = 40.0
_SILENT_SECONDS = 4.0
_AGAIN_SECONDS = 60.0
_PAUSE_SECONDS = 0.2
_RESPONSES, _CONVERSATIONS = "/v1/responses", "/v1/conversations"
_COME_AGAIN = (0, 409, 429, 503)  # 409: a response of the conversation, whose client was cut off, still runs
_MAX_VISITS = 200
_AT_ONCE = 8
_OF_ENDS = ("completed_at",)
_NUMBERS_OF_ASKERS = 1_000_000  # apart from those of wanderers

Json = dict[str, Any]


def text_of(response: Json) -> str:
    return "".join(part["text"] for item in response["output"] for part in item.get("content") or ())


@dataclass
class AskedConversation:
    """A conversation of one asker, who asks one thing after the other."""

    id: str
    sure: list[str] = field(default_factory=list)  # texts of those responses that were answered
    unsure: set[str] = field(default_factory=set)  # of those whose client never got an answer


class ClusterAskers:
    def __init__(self, fronts: Sequence[Front], chance: Random, text_length: int, model: str) -> None:
        self.told: dict[str, str] = {}  # by the id of a response that was acknowledged: its text
        self.finished: dict[str, Json] = {}  # whose end was seen
        self.num_by_kind: Counter[str] = Counter()
        self.num_not_stored = 0
        self.statuses: Counter[int] = Counter()
        self.refusals: list[str] = []
        self.notes: list[str] = []
        self.is_open = True
        self._talks: list[AskedConversation] = []
        self._fronts, self._chance, self._text_length, self._model = fronts, chance, text_length, model
        self._num_asked = 0

    async def ask(self) -> None:
        """Until it is closed; what has begun then is brought to its end."""
        async with httpx2.AsyncClient(timeout=_TRY_SECONDS) as http:
            talk: AskedConversation | None = None
            while self.is_open:
                talk = talk or await self._new_talk(http)
                self._num_asked += 1
                text = tale(_NUMBERS_OF_ASKERS + self._num_asked, self._text_length).strip()
                kind = self._chance.choice(["whole", "streamed", "background", "in a conversation"])
                if kind == "streamed":
                    await self._stream(http, text)
                elif kind == "background":
                    await self._begin(http, text)
                elif kind == "whole" or talk is None:
                    await self._whole(http, text)
                else:
                    await self._in_talk(http, talk, text)
                await asyncio.sleep(self._chance.uniform(0, _PAUSE_SECONDS))

    async def faults(self, database_url: str) -> Counter[str]:
        """Reads everything again at each server, and counts the rows of the database."""
        counted: Counter[str] = Counter(refused=len(self.refusals))
        async with httpx2.AsyncClient(timeout=_TRY_SECONDS) as http:
            for front in self._fronts:
                reading = [self._check(http, front, one, text, counted) for one, text in self.told.items()]
                listing = [self._check_talk(http, front, talk, counted) for talk in self._talks]
                await _some_at_once([*reading, *listing])
        with psycopg.connect(database_url) as connection:
            rows = Counter(
                row[0]
                for row in connection.execute(
                    "SELECT id FROM stored_sessions WHERE kind = 'response' AND status != 'running' AND NOT is_deleted"
                )
            )
        counted["lost"] += sum(not rows[one] for one in self.told)
        counted["doubled"] += sum(number > 1 for number in rows.values())
        return +counted

    async def _new_talk(self, http: httpx2.AsyncClient) -> AskedConversation | None:
        made = await self._post(http, _CONVERSATIONS, {})
        if made is None:
            return None
        self._talks.append(AskedConversation(made["id"]))
        return self._talks[-1]

    async def _whole(self, http: httpx2.AsyncClient, text: str) -> None:
        if answer := await self._post(http, _RESPONSES, {"model": self._model, "input": text}):
            self._note_end("whole", answer, text)

    async def _begin(self, http: httpx2.AsyncClient, text: str) -> None:
        if answer := await self._post(http, _RESPONSES, {"model": self._model, "input": text, "background": True}):
            self.told[answer["id"]] = text
            self.num_by_kind["background"] += 1

    async def _in_talk(self, http: httpx2.AsyncClient, talk: AskedConversation, text: str) -> None:
        answer = await self._post(http, _RESPONSES, {"model": self._model, "input": text, "conversation": talk.id})
        if answer and answer["store"]:
            talk.sure.append(text)
            self._note_end("in a conversation", answer, text)
        else:
            talk.unsure.add(text)

    async def _stream(self, http: httpx2.AsyncClient, text: str) -> None:
        """Comes back wherever it is cut off."""
        events: list[Json] = []
        for visit in range(_MAX_VISITS):
            url = self._chance.choice(self._fronts).url
            if not events:
                asked = http.stream(
                    "POST", f"{url}{_RESPONSES}", json={"model": self._model, "input": text, "stream": True}
                )
            else:
                path = f"{_RESPONSES}/{events[0]['response']['id']}?stream=true"
                asked = http.stream("GET", f"{url}{path}&starting_after={events[-1]['sequence_number']}")
            status = await self._read_events(asked, events)
            self.statuses[status] += 1
            if events and events[-1]["type"] in ("response.completed", "response.failed", "response.incomplete"):
                break
            if status == 404 or not events:
                return  # it was begun while Redis was away from a server that was killed before it had told anybody
            if status not in (200, *_COME_AGAIN):
                self.refusals.append(f"stream, visit {visit}: {status}")
                return
            await asyncio.sleep(_PAUSE_SECONDS)
        numbers = [event["sequence_number"] for event in events]
        shown = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
        if numbers != list(range(len(numbers))) or (events[-1]["type"] == "response.completed" and shown != text):
            self.refusals.append(f"stream: events {numbers[:3]}..{numbers[-3:]} say {shown!r} instead of {text!r}")
        self._note_end("streamed", events[-1]["response"], text)

    async def _read_events(self, asked: Any, events: list[Json]) -> int:
        status = 0
        try:
            async with asked as answer:
                status = answer.status_code
                lines = answer.aiter_lines()
                while status == 200:
                    async with asyncio.timeout(_SILENT_SECONDS):
                        line = await anext(lines)
                    if line.startswith("data: {") and (event := json.loads(line[6:]))["type"] != "error":
                        events.append(event)  # an error is of this connection, not of the response
        except (httpx2.TransportError, StopAsyncIteration, TimeoutError):
            pass
        return status

    def _note_end(self, kind: str, response: Json, text: str) -> None:
        self.num_by_kind[kind] += 1
        if not response["store"]:
            self.num_not_stored += 1
            return
        self.told[response["id"]] = text
        self.finished[response["id"]] = response

    async def _post(self, http: httpx2.AsyncClient, path: str, body: Json) -> Json | None:
        """Once, at whatever server: nobody knows whether an answer that was cut off has been stored."""
        try:
            async with asyncio.timeout(_TRY_SECONDS):
                answer = await http.post(f"{self._chance.choice(self._fronts).url}{path}", json=body)
        except (httpx2.TransportError, TimeoutError):
            self.statuses[0] += 1
            return None
        self.statuses[answer.status_code] += 1
        if answer.status_code == 200:
            found: Json = answer.json()
            return found
        if answer.status_code not in _COME_AGAIN:
            self.refusals.append(f"{path}: {answer.status_code} {answer.text[:200]}")
        return None

    async def _check(
        self, http: httpx2.AsyncClient, front: Front, response_id: str, text: str, counted: Counter[str]
    ) -> None:
        found = await _read_again(http, f"{front.url}{_RESPONSES}/{response_id}", _is_over)
        if found is None:
            counted["lost"] += 1
            self.notes.append(f"{response_id} is not found again, or does not end")
        elif found["status"] == "failed":
            counted["ended with an error"] += 1
            self.notes.append(f"{response_id}: {found['error']}")
        elif text_of(found) != text or _differences(found, self.finished.get(response_id, found)):
            other = _differences(found, self.finished.get(response_id, found))
            counted["mixed"] += 1
            self.notes.append(
                f"{response_id}, background={found['background']}, is {found['status']}:"
                f" {text_of(found)!r} instead of {text!r}; not as its client saw it: {other}"
            )

    async def _check_talk(
        self, http: httpx2.AsyncClient, front: Front, talk: AskedConversation, counted: Counter[str]
    ) -> None:
        texts: list[str] = []
        path, after = f"{front.url}{_CONVERSATIONS}/{talk.id}/items?order=asc&limit=100", ""
        while True:
            page = await _read_again(http, f"{path}{after}", lambda found: True)
            if page is None:
                counted["lost"] += 1
                self.notes.append(f"{talk.id} is not found again")
                return
            texts += [part["text"] for item in page["data"] for part in item["content"]]
            if not page["has_more"]:
                break
            after = f"&after={page['last_id']}"
        inputs = texts[::2]
        known = [text for text in inputs if text in set(talk.sure)]
        if known != talk.sure or not set(inputs) <= {*talk.sure, *talk.unsure}:
            counted["mixed"] += 1
            self.notes.append(f"{talk.id} has {inputs}, not {talk.sure}")


def _differences(found: Json, seen: Json) -> Json:
    """`completed_at` is that of the server whose end is stored: where one was cut off from Redis, two may end it."""
    return {
        name: (value, seen.get(name))
        for name, value in found.items()
        if value != seen.get(name) and name not in _OF_ENDS
    }


def _is_over(response: Json) -> bool:
    return response["status"] not in ("queued", "in_progress")


async def _read_again(http: httpx2.AsyncClient, url: str, is_enough: Callable[[Json], bool]) -> Json | None:
    found: Json | None = None
    try:
        async with asyncio.timeout(_AGAIN_SECONDS):
            while found is None or not is_enough(found):
                try:
                    answer = await http.get(url)
                except httpx2.TransportError:
                    continue
                if answer.status_code == 404:
                    return None
                found = answer.json() if answer.status_code == 200 else None
                await asyncio.sleep(0 if found and is_enough(found) else _PAUSE_SECONDS)
    except TimeoutError:
        return None
    return found


async def _some_at_once(work: Sequence[Awaitable[None]]) -> None:
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(of: Awaitable[None]) -> None:
        async with places:
            await of

    await asyncio.gather(*map(one, work))
