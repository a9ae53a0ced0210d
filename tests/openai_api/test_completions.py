"""POST /v1/completions with the client of OpenAI: raw prompts, lists of them, echo, log probabilities, grammars."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import torch
import transformers
from openai import BadRequestError, OpenAI

from tests.engine.batching.grammars import make_folder
from tests.serving import Served, served, settings_with
from tis.engine.text.detokenizer import BROKEN

pytestmark = [pytest.mark.model]

COMPLETIONS = "/v1/completions"
TEXTS = ["Ibu kota Indonesia adalah", "Satu, dua, tiga", "Halo! Apa kabar? Kopi susu gula aren."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("models") / "tiny", "Qwen3")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    settings = settings_with(model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120)
    with served(settings) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Served) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def http(server: Served) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=120) as client:
        yield client


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def generated(model: Any, tokenizer: Any, ids: list[int], length: int) -> str:
    """The text of `generate()` without a template."""
    prompt = torch.tensor([ids])
    out = model.generate(
        prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=length, eos_token_id=None
    )
    return str(tokenizer.decode(out[0, len(ids) :], skip_special_tokens=True))


def scores(model: Any, ids: list[int]) -> list[float]:
    """The log probability of each token but the first, by one forward pass in float32."""
    with torch.inference_mode():
        logprobs = torch.log_softmax(model(torch.tensor([ids])).logits[0], -1)
    return [float(logprobs[at, token]) for at, token in enumerate(ids[1:])]


def test_a_raw_prompt_is_continued_as_generate_does(client: OpenAI, model: Any, tokenizer: Any) -> None:
    for text in TEXTS:
        made = client.completions.create(
            model="", prompt=text, max_tokens=24, temperature=0, extra_body={"ignore_eos": True}
        )
        assert made.object == "text_completion" and made.id.startswith("cmpl-")
        [choice] = made.choices
        ids = tokenizer.encode(text)
        assert choice.text == generated(model, tokenizer, ids, 24)
        assert choice.finish_reason == "length" and choice.logprobs is None
        assert made.usage and made.usage.prompt_tokens == len(ids) and made.usage.completion_tokens == 24


def test_a_list_gets_what_each_prompt_gets_alone(client: OpenAI, tokenizer: Any) -> None:
    how: dict[str, Any] = {"max_tokens": 12, "temperature": 1.0, "seed": 7, "n": 2, "extra_body": {"ignore_eos": True}}
    alone = [client.completions.create(model="", prompt=text, **how) for text in TEXTS]
    listed = client.completions.create(model="", prompt=TEXTS, **how)
    assert [choice.index for choice in listed.choices] == [*range(6)]
    assert [choice.text for choice in listed.choices] == [one.text for made in alone for one in made.choices]
    assert listed.usage and listed.usage.prompt_tokens == sum(len(tokenizer.encode(text)) for text in TEXTS)
    ids = [tokenizer.encode(text) for text in TEXTS]
    assert client.completions.create(model="", prompt=ids, **how).choices == listed.choices
    [first, *_] = client.completions.create(model="", prompt=ids[0], **how).choices
    assert first == listed.choices[0]


def test_more_prompts_than_the_batch_has_places_for(client: OpenAI) -> None:
    prompts = [f"Nomor {number}:" for number in range(128)]
    how: dict[str, Any] = {"max_tokens": 3, "temperature": 0, "extra_body": {"ignore_eos": True}}
    made = client.completions.create(model="", prompt=prompts, **how)
    assert [choice.index for choice in made.choices] == [*range(128)]
    for at in (0, 63, 127):
        assert made.choices[at].text == client.completions.create(model="", prompt=prompts[at], **how).choices[0].text
    with pytest.raises(BadRequestError, match="128"):
        client.completions.create(model="", prompt=[*prompts, "one more"], **how)
    with pytest.raises(BadRequestError, match="256 choices"):
        client.completions.create(model="", prompt=prompts, n=3, **how)


def test_cached_tokens_of_a_list_are_those_of_its_prompts(client: OpenAI) -> None:
    prompts = [f"{number} {text}" * 12 for number, text in enumerate(TEXTS)]

    def num_cached(prompt: str | list[str]) -> int:
        usage = client.completions.create(model="", prompt=prompt, max_tokens=2, n=2, seed=1).usage
        assert usage and usage.prompt_tokens_details
        return usage.prompt_tokens_details.cached_tokens or 0

    num_cached(prompts)
    alone = list(map(num_cached, prompts))
    assert all(alone) and num_cached(prompts) == sum(alone)


def test_a_stream_has_the_text_of_the_whole_answer(client: OpenAI) -> None:
    how: dict[str, Any] = {"max_tokens": 16, "temperature": 1.0, "seed": 3, "n": 2, "logprobs": 2, "echo": True}
    whole = client.completions.create(model="", prompt=TEXTS[:2], **how)
    stream = client.completions.create(
        model="", prompt=TEXTS[:2], stream=True, stream_options={"include_usage": True}, **how
    )
    texts: dict[int, list[str]] = {index: [] for index in range(4)}
    tokens: dict[int, list[str]] = {index: [] for index in range(4)}
    offsets: dict[int, list[int]] = {index: [] for index in range(4)}
    finishes: dict[int, str] = {}
    usage = None
    for chunk in stream:
        assert chunk.object == "text_completion"
        usage = chunk.usage or usage
        for choice in chunk.choices:
            texts[choice.index].append(choice.text)
            if choice.logprobs:
                tokens[choice.index] += choice.logprobs.tokens or []
                offsets[choice.index] += choice.logprobs.text_offset or []
            if choice.finish_reason:
                finishes[choice.index] = choice.finish_reason
    for index, choice in enumerate(whole.choices):
        assert "".join(texts[index]) == choice.text
        assert choice.logprobs and tokens[index] == choice.logprobs.tokens
        assert offsets[index] == choice.logprobs.text_offset
        assert finishes[index] == choice.finish_reason
    assert usage and whole.usage and usage.total_tokens == whole.usage.total_tokens


def test_echoed_log_probabilities_are_those_of_a_forward_pass(client: OpenAI, model: Any, tokenizer: Any) -> None:
    long = " ".join(TEXTS) * 12
    for text in (*TEXTS, long, long + " Dan lagi."):  # the last has a cached prefix
        ids = tokenizer.encode(text)
        [choice] = client.completions.create(
            model="", prompt=text, max_tokens=4, temperature=0, echo=True, logprobs=3
        ).choices
        found = choice.logprobs
        assert found and found.tokens and found.token_logprobs and found.top_logprobs and found.text_offset
        assert choice.text.startswith(text)
        assert found.token_logprobs[0] is None and found.top_logprobs[0] is None
        assert found.token_logprobs[1 : len(ids)] == pytest.approx(scores(model, ids), abs=2e-4)
        assert len(found.tokens) == len(found.top_logprobs) == len(found.text_offset)
        assert [text[at:] for at in found.text_offset[: len(ids)]] == [
            "".join(found.tokens[at : len(ids)]) for at in range(len(ids))
        ]
        for token, logprob, top in zip(found.tokens[1:], found.token_logprobs[1:], found.top_logprobs[1:], strict=True):
            assert top and top[token] == logprob and 3 <= len(top) <= 4


def test_offsets_are_right_while_stop_strings_are_held_back(client: OpenAI) -> None:
    how: dict[str, Any] = {"max_tokens": 60, "temperature": 1.0, "seed": 11, "extra_body": {"ignore_eos": True}}
    text = client.completions.create(model="", prompt=TEXTS[0], **how).choices[0].text
    # Each begins in the text, at a place within a token, and never comes whole.
    stops = [f"{text[at : at + 5]}\0" for at in (3, 17, 40, 61)]
    for more in ({}, {"stop": stops}, {"stop": stops, "echo": True}):
        made = client.completions.create(model="", prompt=TEXTS[0], logprobs=0, **how, **more).choices[0]
        assert made.text.endswith(text) and made.logprobs and made.logprobs.text_offset
        pairs = list(zip(made.logprobs.tokens or (), made.logprobs.text_offset, strict=True))
        assert len(pairs) >= 60 and [at for _, at in pairs] == sorted(at for _, at in pairs)
        # Parts of characters and control tokens have no text.
        shown = [(token, at) for token, at in pairs if not token.startswith(("bytes:", "<|"))]
        # A token behind half a character begins with that.
        assert [one for one in shown if not made.text.startswith((one[0], BROKEN), one[1])] == []
        assert len(shown) > 50
    cut = client.completions.create(model="", prompt=TEXTS[0], logprobs=0, stop=[text[20:26]], **how).choices[0]
    assert cut.text == text[: text.index(text[20:26])] and cut.logprobs
    assert max(cut.logprobs.text_offset or [0]) <= len(cut.text)


@pytest.mark.parametrize("max_context", [0, 48])
def test_a_prompt_may_fill_the_context_if_nothing_follows(folder: Path, model: Any, max_context: int) -> None:
    settings = settings_with(
        model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120, max_context_tokens=max_context
    )
    ids = [5 + at % 1900 for at in range(max_context or 4096)]
    how: dict[str, Any] = {"max_tokens": 0, "echo": True, "logprobs": 0}
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=120) as http:
        found = http.post(COMPLETIONS, json={"prompt": ids, **how}).raise_for_status().json()
        assert found["choices"][0]["logprobs"]["token_logprobs"][1:] == pytest.approx(scores(model, ids), abs=1e-3)
        assert found["usage"]["prompt_tokens"] == len(ids) and found["usage"]["completion_tokens"] == 0
        for body in ({"prompt": ids, "max_tokens": 1}, {"prompt": [*ids, 5], **how}):
            refused = http.post(COMPLETIONS, json=body)
            assert refused.status_code == 400 and refused.json()["error"]["code"] == "context_length_exceeded"


def test_the_prompt_alone_is_scored_without_a_token(client: OpenAI, tokenizer: Any) -> None:
    """As evaluations of language models ask for it."""
    made = client.completions.create(model="", prompt=TEXTS, max_tokens=0, echo=True, logprobs=1)
    for text, choice in zip(TEXTS, made.choices, strict=True):
        assert choice.text == text and choice.finish_reason == "length"
        assert choice.logprobs and len(choice.logprobs.tokens or ()) == len(tokenizer.encode(text))
    assert made.usage and made.usage.completion_tokens == 0
    assert client.completions.create(model="", prompt="Halo", max_tokens=0, echo=True).choices[0].text == "Halo"


def test_echo_of_token_ids_is_their_text(client: OpenAI, tokenizer: Any) -> None:
    text = "<|im_start|>user\nHalo 你好 😀"
    ids = tokenizer.encode(text)
    how: dict[str, Any] = {"max_tokens": 0, "echo": True, "logprobs": 0}
    [of_ids] = client.completions.create(model="", prompt=ids, **how).choices
    [of_text] = client.completions.create(model="", prompt=text, **how).choices
    assert of_ids.text == of_text.text == text
    assert of_ids.logprobs and of_text.logprobs and of_ids.logprobs.tokens == of_text.logprobs.tokens
    assert (of_text.logprobs.text_offset or [])[0] == 0


def test_sixteen_tokens_are_the_default(client: OpenAI) -> None:
    made = client.completions.create(model="", prompt="Halo", extra_body={"ignore_eos": True})
    assert made.usage and made.usage.completion_tokens == 16


def test_grammars_stops_and_the_other_parameters(client: OpenAI, http: httpx2.Client) -> None:
    def text(**more: Any) -> str:
        made = client.completions.create(model="", prompt="Jawab:", temperature=1.0, seed=1, **more)
        return str(made.choices[0].text)

    assert text(max_tokens=30, extra_body={"guided_choice": ["ya", "tidak"]}) in ("ya", "tidak")
    assert text(max_tokens=30, extra_body={"guided_regex": "[0-9]{3}"}).isdigit()
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
    assert json.loads(text(max_tokens=60, extra_body={"guided_json": schema}))["a"] in (1, 2)
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert json.loads(text(max_tokens=60, extra_body={"response_format": form}))["a"] in (1, 2)
    plain = text(max_tokens=20, extra_body={"ignore_eos": True})
    stop = plain[5:8]
    assert text(max_tokens=20, stop=stop, extra_body={"ignore_eos": True}) == plain[: plain.index(stop)]
    listed = client.completions.create(
        model="", prompt=TEXTS, max_tokens=30, extra_body={"guided_choice": ["ya", "tidak"]}
    )
    assert {choice.text for choice in listed.choices} <= {"ya", "tidak"}
    answer = http.post(COMPLETIONS, json={"prompt": "Halo", "max_tokens": 1, "user": "x", "skip_special_tokens": True})
    assert answer.headers["X-Ignored-Parameters"] == "skip_special_tokens, user"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": ["Halo", ""]}, "prompt.1"),
        ({"prompt": [5, 2048]}, "prompt"),
        ({"prompt": [[5], [-1]]}, "prompt.1"),
        ({"prompt": {"text": "Halo"}}, "prompt"),
        ({"prompt": "Halo " * 5000}, "prompt"),
        ({"prompt": "Halo", "best_of": 2}, "best_of"),
        ({"prompt": "Halo", "n": 3, "best_of": 2}, "best_of"),
        ({"prompt": "Halo", "suffix": "!"}, "suffix"),
        ({"prompt": "Halo", "logprobs": 21}, "logprobs"),
        ({"prompt": "Halo", "logprobs": -1}, "logprobs"),
        ({"prompt": "Halo", "logprobs": True}, "logprobs"),
        ({"prompt": "Halo", "max_tokens": 0}, "max_tokens"),
        ({"prompt": "Halo", "max_tokens": -1}, "max_tokens"),
        ({"prompt": "Halo", "max_tokens": 100000}, "max_tokens"),
        ({"prompt": "Halo", "temperature": 9}, "temperature"),
        ({"prompt": "Halo", "n": 17}, "n"),
        ({"prompt": "Halo", "stream_options": {"include_usage": True}}, "stream_options"),
        ({"prompt": "Halo", "guided_regex": "a", "guided_choice": ["b"]}, "guided_choice"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(http: httpx2.Client, body: dict[str, Any], param: str) -> None:
    answer = http.post(COMPLETIONS, json=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error" and error["param"] == param, error


def test_a_session_of_a_chat_is_no_completion(http: httpx2.Client) -> None:
    chat = {"messages": [{"role": "user", "content": "Halo"}], "max_tokens": 2, "session_id": "mixed"}
    made = http.post("/v1/chat/completions", json=chat).json()
    foreign = http.post(COMPLETIONS, json={"session_id": "mixed"})
    assert foreign.status_code == 409 and foreign.json()["error"]["param"] == "session_id"
    continued = http.post(COMPLETIONS, json={"prompt": "Halo", "max_tokens": 2, "session_id": "mixed"}).json()
    assert http.post(COMPLETIONS, json={"session_id": "mixed"}).json() == continued
    assert http.post("/v1/chat/completions", json={"session_id": "mixed"}).status_code == 409
    assert http.post("/v1/chat/completions", json=chat).json() == made


def test_a_stream_is_resumed_behind_a_cursor(http: httpx2.Client) -> None:
    body = {"prompt": TEXTS, "max_tokens": 8, "session_id": "cut", "stream": True, "echo": True, "logprobs": 1}
    whole = http.post(COMPLETIONS, json=body).text
    blocks = whole.split("\n\n")[:-1]
    assert blocks[-1].endswith("data: [DONE]")
    for at in (0, 3, len(blocks) - 2):
        rest = http.post(COMPLETIONS, json=body, headers={"Last-Event-ID": f"cut:{at}"}).text
        assert rest.split("\n\n")[:-1] == blocks[at + 1 :]
        assert http.get("/v1/stream/cut", headers={"Last-Event-ID": f"cut:{at}"}).text == rest
    assert http.post(COMPLETIONS, json={**body, "stream": False}).json()["object"] == "text_completion"
