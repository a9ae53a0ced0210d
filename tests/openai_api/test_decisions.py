"""POST /v1/decisions with the client of OpenAI: probabilities of a forward pass, the same alone as in company."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import torch
import transformers
from openai import OpenAI

from tests.engine.batching.grammars import make_folder
from tests.openai_api.media_requests import data_uri, picture_file
from tests.serving import Served, served, settings_with
from tis.engine.local_engine import LocalEngine
from tis.engine.raw_requests import MAX_LISTED_TOKENS

pytestmark = [pytest.mark.model]

INPUT = "Pesanan saya terlambat tiga hari."
PREDICATE: Any = {"type": "predicate", "name": "late", "instructions": "The delivery was late."}
CHOICE: Any = {
    "type": "choice",
    "instructions": "What is it about?",
    "choices": [{"value": "delivery"}, {"value": True}, {"value": "true", "description": "the word"}],
}
SCORE: Any = {
    "type": "score",
    "name": "anger",
    "instructions": [{"type": "input_text", "text": "How angry?"}, {"type": "input_json", "data": {"scale": "rising"}}],
    "levels": [{"label": "calm"}, {"label": "annoyed"}, {"label": "furious", "description": "shouts"}],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("models") / "tiny", "Qwen3")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with served(settings_with(model_repo_id=str(folder), torch_dtype="float32", load_wait_seconds=120)) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Served) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def test_the_client_of_openai_gets_typed_answers_in_order(client: OpenAI) -> None:
    made = client.decisions.create(model="", input=INPUT, questions=[PREDICATE, CHOICE, SCORE])
    predicate, choice, score = made.answers
    assert predicate.type == "predicate" and predicate.name == "late" and 0 <= predicate.probability <= 1
    assert choice.type == "choice" and choice.name is None
    assert [one.value for one in choice.probabilities] == ["delivery", True, "true"]
    assert sum(one.probability for one in choice.probabilities) == pytest.approx(1)
    best = max(choice.probabilities, key=lambda one: one.probability)
    assert choice.choice == best.value and choice.confidence == pytest.approx((best.probability - 1 / 3) / (2 / 3))
    assert score.type == "score" and [one.value for one in score.probabilities] == [0, 1, 2]
    assert score.score == pytest.approx(sum(one.value * one.probability for one in score.probabilities))
    assert made.usage.output_tokens == 0 and made.usage.input_tokens == made.usage.total_tokens > 0


def test_a_question_is_decided_alone_as_in_company(client: OpenAI) -> None:
    questions: list[Any] = [
        PREDICATE,
        CHOICE,
        SCORE,
        *({**PREDICATE, "instructions": f"Statement {n}."} for n in range(60)),
    ]
    together = client.decisions.create(model="", input=INPUT, questions=questions).answers
    for at in (0, 1, 2, 40, 62):
        [alone] = client.decisions.create(model="", input=INPUT, questions=[questions[at]]).answers
        other = together[at]
        assert alone.to_dict().keys() == other.to_dict().keys()
        if alone.type == "predicate":
            assert other.type == "predicate" and alone.probability == pytest.approx(other.probability, abs=1e-5)
        elif alone.type == "score":
            assert other.type == "score" and alone.score == pytest.approx(other.score, abs=1e-5)


def test_the_probabilities_are_those_of_a_forward_pass(client: OpenAI, folder: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    [answer] = client.decisions.create(model="", input=INPUT, questions=[PREDICATE]).answers
    text = (
        f"{INPUT}\n\nIs this statement about the input true?\nThe delivery was late.\n\n"
        "Options:\nA. true\nB. false\n\nAnswer with the letter of one option, and nothing else."
    )
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], add_generation_prompt=True, enable_thinking=False, return_dict=False
    )
    with torch.inference_mode():
        logits = model(torch.tensor([ids])).logits[0, -1]
    labels = [tokenizer.encode(letter, add_special_tokens=False)[0] for letter in "AB"]
    expected = torch.softmax(logits[labels], -1)
    assert answer.type == "predicate" and answer.probability == pytest.approx(float(expected[0]), abs=1e-5)


def test_messages_calls_and_json_are_inputs(client: OpenAI) -> None:
    items: Any = [
        {"role": "system", "content": "You judge orders."},
        {
            "role": "user",
            "content": [{"type": "input_json", "data": {"order": 5}}, {"type": "input_text", "text": "!"}],
        },
        {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "three days late"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "note", "input": "late"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "noted"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "I see."}]},
    ]
    [answer] = client.decisions.create(model="", input=items, questions=[PREDICATE]).answers
    assert answer.type == "predicate"


def test_questions_about_a_picture_are_decided_in_their_order(demo_server: Served) -> None:
    """One at a time: alone, each gets the same."""
    parts = [{"type": "input_image", "image_url": data_uri(picture_file("red"))}, {"type": "input_text", "text": "?"}]
    questions = [PREDICATE, {**PREDICATE, "instructions": "It is a red square."}, CHOICE]

    def decided(some: list[Any]) -> dict[str, Any]:
        body = {"input": [{"role": "user", "content": parts}], "questions": some}
        answer = httpx2.post(f"{demo_server.url}/v1/decisions", json=body, timeout=120)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    together, alone = decided(questions), [decided([one]) for one in questions]
    assert together["usage"]["input_tokens"] == sum(one["usage"]["input_tokens"] for one in alone)
    for ours, theirs in zip(together["answers"], alone, strict=True):
        [expected] = theirs["answers"]
        assert ours["type"] == expected["type"]
        if ours["type"] == "predicate":
            assert ours["probability"] == pytest.approx(expected["probability"], abs=1e-4)


def test_questions_with_too_many_tokens_are_refused_before_all_are_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, lengths = LocalEngine.prepare, []

    async def counted(*given: Any, **more: Any) -> Any:
        prepared = await prepare(*given, **more)
        lengths.append(len(prepared.prompt_ids))
        return prepared

    monkeypatch.setattr(LocalEngine, "prepare", counted)
    with served(settings_with()) as running:
        body = {"input": "x" * 30_000, "questions": [PREDICATE] * 400}
        answer = httpx2.post(f"{running.url}/v1/decisions", json=body, timeout=60)
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "too_many_tokens"
    assert sum(lengths[:-1]) <= MAX_LISTED_TOKENS < sum(lengths)


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"questions": []}, "questions"),
        ({"questions": [PREDICATE] * 401}, "questions"),
        ({"questions": [{"type": "oracle", "instructions": "?"}]}, "questions.0"),
        ({"questions": [{"type": "predicate"}]}, "questions.0.predicate.instructions"),
        ({"questions": [{**PREDICATE, "instructions": " "}]}, "questions.0.instructions"),
        ({"questions": [{**CHOICE, "choices": [{"value": "a"}]}]}, "questions.0.choice.choices"),
        ({"questions": [{**CHOICE, "choices": [{"value": "a"}, {"value": "a"}]}]}, "questions.0.choices"),
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": [{"type": "function_call_output", "call_id": "x", "output": ""}]}, "input.0.call_id"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input.0.role"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input.0.type"),
        ({"input": [{"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}]}, "input.0.type"),
        ({"input": [{"type": "mcp_list_tools", "server_label": "a", "tools": []}]}, "input.0.type"),
        (
            {"input": [{"type": "apply_patch_call_output", "call_id": "c", "status": "failed"}]},
            "input.0.type",
        ),
    ],
)
def test_what_is_wrong_is_refused_by_name(server: Served, change: dict[str, Any], param: str) -> None:
    body = {"input": INPUT, "questions": [PREDICATE], **change}
    answer = httpx2.post(f"{server.url}/v1/decisions", json=body, timeout=60)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param, answer.text
