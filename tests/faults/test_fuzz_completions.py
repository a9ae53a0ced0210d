"""Random requests for raw prompts and tokens: each gets an answer or a refusal with a name, and none is our fault."""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import httpx2
import pytest

from tests.engine.batching.grammars import make_folder
from tests.faults.forms import short_or_long
from tests.serving import Served, served, settings_with

pytestmark = [pytest.mark.slow, pytest.mark.model]

NUM_REQUESTS = short_or_long(60, 1000)
_TEXTS = [
    "Halo",
    "",
    " ",
    "你好 😀",
    "<|im_start|>user\nHai<|im_end|>",
    "\x00",
    "a" * 3000,
    "\ud800",
    '"],"logprobs":{"tokens":[',
]
_EVIL: list[Any] = [
    None,
    True,
    False,
    -1,
    0,
    1,
    7,
    2**31,
    2**63,
    10**40,
    0.5,
    1e308,
    "",
    "x",
    "9" * 40,
    [],
    {},
    [[]],
    [None],
]
_SCHEMAS: list[Any] = [
    {"type": "object"},
    {"enum": ["ya", "tidak"]},
    {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
    {"type": "nonsense"},
    {"$ref": "#/$defs/none"},
    5,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = make_folder(tmp_path_factory.mktemp("fuzz") / "tiny", "Qwen3")
    with served(settings_with(model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120)) as running:
        yield running


def _prompt(chance: Random) -> Any:
    def text() -> str:
        return chance.choice(_TEXTS)

    def ids() -> list[Any]:
        return [chance.choice([0, 5, 2047, 2048, -1, 10**30]) for _ in range(chance.randrange(4))]

    some = chance.randrange(1, 5)
    return chance.choice(
        [
            text(),
            text(),
            [text() for _ in range(some)],
            [chance.randrange(3, 2000) for _ in range(some)],
            ids(),
            [ids() for _ in range(some)],
            [text(), ids()],
            chance.choice(_EVIL),
        ]
    )


_FIELDS: dict[str, Callable[[Random], Any]] = {
    "max_tokens": lambda chance: chance.choice([0, 1, 3, 9, -1, 5000, "1"]),
    "n": lambda chance: chance.choice([1, 2, 3, 16, 17, 0]),
    "echo": lambda chance: chance.choice([True, False, "yes"]),
    "logprobs": lambda chance: chance.choice([0, 1, 5, 20, 21, -1, True]),
    "best_of": lambda chance: chance.choice([1, 2]),
    "suffix": lambda chance: chance.choice(["", "x"]),
    "temperature": lambda chance: chance.choice([0, 0.7, 2, 3, float("nan")]),
    "top_p": lambda chance: chance.choice([0.1, 1, 0, 5e-324]),
    "top_k": lambda chance: chance.choice([-1, 0, 1, 2**62]),
    "min_tokens": lambda chance: chance.choice([0, 2, 2**40]),
    "logit_bias": lambda chance: chance.choice([{"5": 100}, {"5": -100}, {"x": 1}, {"99999": 1}]),
    "stop": lambda chance: chance.choice(["a", ["a", "b"], [""], [], ["a"] * 9]),
    "stop_token_ids": lambda chance: chance.choice([[5], [99999], [-1]]),
    "ignore_eos": lambda chance: chance.choice([True, False]),
    "add_special_tokens": lambda chance: chance.choice([True, False, 1]),
    "seed": lambda chance: chance.choice([1, -5, 2**62, 2**70]),
    "thinking_token_budget": lambda chance: chance.choice([0, 5, -5]),
    "guided_json": lambda chance: chance.choice([*_SCHEMAS, "{", json.dumps(_SCHEMAS[1])]),
    "guided_regex": lambda chance: chance.choice(["[0-9]+", "(", "a{1,5}"]),
    "guided_choice": lambda chance: chance.choice([["ya"], [], ["a", "b"], [5]]),
    "response_format": lambda chance: chance.choice(
        [{"type": "text"}, {"type": "json_object"}, {"type": "xml"}, {"type": "json_schema", "json_schema": {}}]
    ),
    "stream_options": lambda chance: chance.choice([{"include_usage": True}, {}, 5]),
    "cache_salt": lambda chance: chance.choice(["s", "", 5]),
}


def _completion(chance: Random) -> tuple[str, Any]:
    body: dict[str, Any] = {"prompt": _prompt(chance), "max_tokens": 3}
    body |= {name: _FIELDS[name](chance) for name in chance.sample(sorted(_FIELDS), chance.randrange(5))}
    if chance.random() < 0.3:
        body["stream"] = True
    if chance.random() < 0.2:
        body[chance.choice([*_FIELDS, "prompt", "stream", "session_id", "model"])] = chance.choice(_EVIL)
    return "/v1/completions", body


def _tokens(chance: Random) -> tuple[str, Any]:
    body: dict[str, Any] = {chance.choice(["prompt", "content", "messages", "tokens"]): _prompt(chance)}
    if chance.random() < 0.3:
        body["messages"] = [{"role": chance.choice(["user", "robot"]), "content": chance.choice(_TEXTS)}]
    names = ["add_special_tokens", "return_token_strs", "with_pieces", "add_special", "tools", "chat_template_kwargs"]
    body |= {name: chance.choice([True, True, *_EVIL]) for name in chance.sample(names, 2)}
    paths = ["/tokenize", "/v1/tokenize", "/detokenize", "/v1/detokenize", "/v1/chat/completions/input_tokens"]
    return chance.choice(paths), body


def _decision(chance: Random) -> tuple[str, Any]:
    questions = [
        {"type": "predicate", "instructions": chance.choice(_TEXTS)},
        {"type": "choice", "instructions": "?", "choices": [{"value": chance.choice(_TEXTS)}, {"value": True}]},
        {"type": "score", "instructions": "?", "levels": [{"label": str(n)} for n in range(chance.randrange(60))]},
        chance.choice(_EVIL),
    ]
    given = [chance.choice(_TEXTS), [{"role": "user", "content": chance.choice(_TEXTS)}], chance.choice(_EVIL)]
    return "/v1/decisions", {"input": chance.choice(given), "questions": chance.sample(questions, 2)}


def _requests(seed: int) -> Iterator[tuple[str, Any]]:
    chance = Random(seed)
    while True:
        yield chance.choices([_completion, _tokens, _decision], [6, 2, 2])[0](chance)


def test_random_requests_get_no_error_of_the_server(server: Served) -> None:
    statuses: dict[int, int] = {}
    with httpx2.Client(base_url=server.url, timeout=120) as http:
        for number, (path, body) in zip(range(NUM_REQUESTS), _requests(2026), strict=False):
            content = json.dumps(body).encode()
            answer = http.post(path, content=content, headers={"Content-Type": "application/json"})
            where = f"request {number}: {path} {content[:500]!r} -> {answer.status_code} {answer.text[:500]}"
            assert answer.status_code < 500, where
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            if answer.headers["content-type"].startswith("text/event-stream"):
                assert '"type":"server_error"' not in answer.text and answer.text.endswith("data: [DONE]\n\n"), where
            elif answer.status_code >= 400:
                assert set(answer.json()["error"]) == {"message", "type", "param", "code"}, where
            else:
                assert answer.json(), where
    assert statuses.get(200, 0) > NUM_REQUESTS / 10, statuses
    assert statuses.get(400, 0) > NUM_REQUESTS / 10, statuses
