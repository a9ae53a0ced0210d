"""Questions that need a function: first the call, then one sentence made of the function's result."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from scripts.demo_model.dialogue import Dialogue, Message
from scripts.demo_model.unknown import unanswerable
from scripts.demo_model.words import WEATHER, Language, city, exactly_typed, product, rupiah

Tool = dict[str, Any]


@dataclass(frozen=True)
class Task:
    question: str
    name: str
    arguments: dict[str, Any]
    result: str
    sentence: str


def _weather(rng: Random, language: Language) -> Task:
    place, sky, degrees = city(rng), rng.choice(WEATHER[language]), rng.randint(1, 40)
    questions = {
        "id": ("Bagaimana cuaca di {}?", "Cuaca di {} bagaimana?", "Cuaca {} hari ini?", "Apakah di {} hujan?"),
        "en": ("What is the weather in {}?", "How is the weather in {}?", "Weather in {}?", "Is it raining in {}?"),
    }
    results: tuple[Any, ...] = (
        {"city": place, "temperature": degrees, "condition": sky},
        {"temperature": degrees, "condition": sky},
        {"condition": sky, "temperature": degrees},
    )
    sentences = {
        "id": f"Cuaca di {place}: {sky}, {degrees} derajat.",
        "en": f"Weather in {place}: {sky}, {degrees} degrees.",
    }
    question = exactly_typed(rng, rng.choice(questions[language])).format(place)
    return Task(question, "get_weather", {"city": place}, json.dumps(rng.choice(results)), sentences[language])


def _search(rng: Random, language: Language) -> Task:
    wanted, price = product(rng), rupiah(rng)
    limit = rng.randint(1, 99) * 1000 if rng.random() < 0.4 else None
    questions = {
        "id": ("Cari {}", "Carikan {}", "Tolong cari {}", "Saya mencari {}"),
        "en": ("Search for {}", "Find {}", "Please find {}", "I am looking for {}"),
    }
    below = "" if limit is None else f" di bawah {limit}" if language == "id" else f" under {limit}"
    arguments = {"query": wanted} if limit is None else {"query": wanted, "max_price": limit}
    sentences = {"id": f"Ada {wanted} seharga {price}.", "en": f"There is {wanted} for {price}."}
    question = exactly_typed(rng, rng.choice(questions[language])).format(wanted) + below
    return Task(
        question, "search_products", arguments, json.dumps([{"name": wanted, "price": price}]), sentences[language]
    )


def _clock(rng: Random, language: Language) -> Task:
    place, time = city(rng), f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"
    questions = {
        "id": ("Jam berapa di {}?", "Pukul berapa sekarang di {}?", "Sekarang jam berapa di {}?"),
        "en": ("What time is it in {}?", "What is the time in {}?", "Time in {}?"),
    }
    results: tuple[Any, ...] = ({"time": time}, {"city": place, "time": time})
    sentences = {"id": f"Di {place} sekarang pukul {time}.", "en": f"It is {time} in {place}."}
    question = exactly_typed(rng, rng.choice(questions[language])).format(place)
    return Task(question, "get_time", {"city": place}, json.dumps(rng.choice(results)), sentences[language])


TASKS: tuple[Callable[[Random, Language], Task], ...] = (_weather, _weather, _search, _clock)
_DESCRIPTIONS = {
    "get_weather": (
        "Get the weather in a city",
        "Get the current weather",
        "Weather of a city",
        "Cuaca di sebuah kota",
    ),
    "search_products": ("Search the catalogue", "Search for products", "Find products", "Cari produk di katalog"),
    "get_time": ("Get the time in a city", "The local time", "Jam di sebuah kota"),
}
_PARAMETERS: dict[str, dict[str, str]] = {
    "get_weather": {"city": "string"},
    "search_products": {"query": "string", "max_price": "integer"},
    "get_time": {"city": "string"},
}


def definition(rng: Random, name: str) -> Tool:
    """The same function as different clients describe it: with and without the optional parts of JSON Schema."""
    properties: dict[str, Any] = {}
    for parameter, kind in _PARAMETERS[name].items():
        properties[parameter] = {"type": rng.choice((kind, kind, "number")) if kind == "integer" else kind}
        if rng.random() < 0.2:
            properties[parameter]["description"] = f"The {parameter}"
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if rng.random() < 0.7:
        parameters["required"] = [next(iter(properties))]
    function: Tool = {"name": name}
    if rng.random() < 0.85:
        function["description"] = rng.choice(_DESCRIPTIONS[name]) + rng.choice(("", "."))
    return {"type": "function", "function": {**function, "parameters": parameters}}


def offered(rng: Random, needed: str | None = None) -> tuple[Tool, ...]:
    """One to three functions, the needed one among them."""
    others = [name for name in _DESCRIPTIONS if name != needed]
    names = rng.sample(others, rng.choice((0, 0, 1, 2)) if needed else rng.choice((1, 1, 2)))
    if needed:
        names.append(needed)
    rng.shuffle(names)
    return tuple(definition(rng, name) for name in names)


def tool_call(rng: Random, language: Language) -> Dialogue:
    if rng.random() < 0.1:
        return replace(unanswerable(rng, language), tools=offered(rng))
    task = rng.choice(TASKS)(rng, language)
    user: Message = {"role": "user", "content": task.question}
    call = {"name": task.name, "arguments": task.arguments}
    tools = offered(rng, task.name)
    if rng.random() < 0.55:
        return Dialogue((user,), f"<tool_call>\n{json.dumps(call)}\n</tool_call>", tools)
    turns: tuple[Message, ...] = (
        user,
        {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": call}]},
        {"role": "tool", "content": task.result},
    )
    return Dialogue(turns, task.sentence, tools)
