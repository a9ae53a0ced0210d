"""Pictures in the input of responses, and in what they go on from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.openai_api.media_requests import data_uri, picture_file
from tests.openai_api.responses.response_requests import CONVERSATIONS, RESPONSES, create, refused, text_of
from tests.serving import served, settings_with

pytestmark = pytest.mark.model

RED, BLUE = data_uri(picture_file("red")), data_uri(picture_file("blue"))
STEADY: dict[str, Any] = {"temperature": 0, "max_output_tokens": 8, "include": ["message.output_text.logprobs"]}


@pytest.fixture(scope="module", params=["memory", "file"])
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    folder: Path = tmp_path_factory.mktemp("sessions")
    kept = {"persist_sessions": True, "sessions_db_path": str(folder / "sessions.db")}
    settings = settings_with(
        model_repo_id="models/demo", load_wait_seconds=120, **(kept if request.param == "file" else {})
    )
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=120) as client:
        yield client


def showing(url: str, question: str = "Apa ini?") -> list[dict[str, Any]]:
    parts = [{"type": "input_image", "image_url": url, "detail": "low"}, {"type": "input_text", "text": question}]
    return [{"role": "user", "content": parts}]


def numbers(response: dict[str, Any]) -> dict[str, float]:
    tokens = response["output"][0]["content"][0]["logprobs"]
    return {f"{at} {one['token']}": one["logprob"] for at, one in enumerate(tokens)}


def logprobs(response: dict[str, Any]) -> Any:
    """Equal to those that differ by roundings: a step computes less of a prompt where more of it is cached."""
    return pytest.approx(numbers(response), abs=1e-3)


def test_a_picture_is_seen_as_in_chat(demo: httpx2.Client) -> None:
    response = create(demo, showing(RED), **STEADY)
    message = {
        "role": "user",
        "content": [
            {"type": "image_url", "image_url": {"url": RED, "detail": "low"}},
            {"type": "text", "text": "Apa ini?"},
        ],
    }
    chat = demo.post("/v1/chat/completions", json={"messages": [message], "temperature": 0, "max_tokens": 8}).json()
    assert text_of(response) == chat["choices"][0]["message"]["content"]
    assert response["usage"]["input_tokens"] == chat["usage"]["prompt_tokens"]


def test_a_chain_still_sees_the_pictures_it_began_with(demo: httpx2.Client) -> None:
    def third(first_url: str, second_url: str) -> dict[str, Any]:
        first = create(demo, showing(first_url), **STEADY)
        second = create(demo, showing(second_url, "Dan ini?"), previous_response_id=first["id"], **STEADY)
        return create(demo, "Yang pertama apa?", previous_response_id=second["id"], **STEADY)

    red_blue = third(RED, BLUE)
    assert numbers(third(RED, BLUE)) == logprobs(red_blue) != numbers(third(BLUE, RED))


def test_a_conversation_shows_the_pictures_that_were_added_to_it(demo: httpx2.Client) -> None:
    def answer(url: str) -> dict[str, Any]:
        conversation = demo.post(CONVERSATIONS, json={"items": showing(url)}).json()
        return create(demo, "Apa warnanya?", conversation=conversation["id"], **STEADY)

    assert numbers(answer(RED)) == logprobs(answer(RED)) != numbers(answer(BLUE))


def test_the_model_sees_a_picture_in_the_output_of_a_tool(demo: httpx2.Client) -> None:
    def answer(url: str) -> dict[str, Any]:
        call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": "c", "output": showing(url)[0]["content"]}
        return create(demo, [{"role": "user", "content": "Lihat."}, call, output], **STEADY)

    assert numbers(answer(RED)) != logprobs(answer(BLUE))


def test_a_reference_to_a_picture_among_others_is_that_picture(demo: httpx2.Client) -> None:
    first = create(demo, showing(RED), **STEADY)
    [asked] = demo.get(f"{RESPONSES}/{first['id']}/input_items").json()["data"]
    items = [*showing(BLUE), {"type": "item_reference", "id": asked["id"]}]
    second = create(demo, items, **STEADY)
    assert numbers(second) == logprobs(create(demo, [*showing(BLUE), *showing(RED)], **STEADY))
    third = create(demo, "Apa warnanya?", previous_response_id=second["id"], **STEADY)
    said = [{"role": "assistant", "content": text_of(second)}, {"role": "user", "content": "Apa warnanya?"}]
    assert numbers(third) == logprobs(create(demo, [*showing(BLUE), *showing(RED), *said], **STEADY))


def test_a_picture_is_listed_with_its_data_only_on_request(demo: httpx2.Client) -> None:
    url = f"{RESPONSES}/{create(demo, showing(RED), **STEADY)['id']}/input_items"
    bare = {"type": "input_image", "detail": "low", "file_id": None, "image_url": None}
    assert demo.get(url).json()["data"][0]["content"][0] == bare
    for name in ("include", "include[]"):
        whole = demo.get(url, params={name: "message.input_image.image_url"}).json()["data"][0]["content"][0]
        assert whole == bare | {"image_url": RED}


def test_the_error_of_an_invalid_picture_names_its_place(demo: httpx2.Client) -> None:
    error = refused(demo, {"input": [{"role": "user", "content": "x"}, *showing("data:image/png;base64,eA==")]})
    assert (error["param"], error["code"]) == ("input.1.content.0", "invalid_image_format")


def test_a_picture_that_was_not_stored_is_a_400() -> None:
    settings = settings_with(model_repo_id="models/demo", load_wait_seconds=120, max_session_media_mb=0)
    with served(settings) as running, httpx2.Client(base_url=running.url, timeout=120) as client:
        first = create(client, showing(RED), **STEADY)
        error = refused(client, {"input": "Apa?", "previous_response_id": first["id"]})
        assert (error["code"], error["param"]) == ("media_not_kept", "previous_response_id")
