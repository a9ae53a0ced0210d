"""Responses that go on from earlier ones: what is shown to the model, and what is listed of it."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import httpx2
import pytest

from tests.openai_api.media_requests import data_uri, picture_file
from tests.openai_api.responses.response_requests import CONVERSATIONS, LONG, RESPONSES, begun, create, refused
from tests.openai_api.responses.response_requests import text_of as said_in
from tests.serving import served, settings_with
from tis.engine.models.echo import CharacterTokenizer, EchoOptions, EchoRunner, load_echo
from tis.engine.models.loaded_model import LoadedModel
from tis.engine.prompt import ChatPrompt, text_of
from tis.openai_api.routes import responses as routes
from tis.streaming.session import Session


class WholePrompt(CharacterTokenizer):
    """Answers with all messages, so that a test can see what the model was shown."""

    def encode_chat(self, prompt: ChatPrompt) -> list[int]:
        return [ord(letter) for message in prompt.messages for letter in f"{message['role'][0]}:{_told(message)};"]


def _told(message: Any) -> str:
    calls = [call["function"]["name"] for call in message.get("tool_calls", ())]
    return "+".join([*filter(None, [message.get("reasoning_content"), text_of(message)]), *calls])


@pytest.fixture(scope="module")
def parrot() -> Iterator[httpx2.Client]:
    def load(entry: Any, report: Any) -> LoadedModel:
        options = EchoOptions()
        return LoadedModel(
            tokenizer=WholePrompt(),
            new_runner=lambda: EchoRunner(options),
            context_length=32768,
            generation_defaults={},
            revision=load_echo("echo").revision,
        )

    with served(settings_with(), load=load) as running, httpx2.Client(base_url=running.url, timeout=30) as client:
        yield client


def test_the_model_sees_earlier_input_and_output_but_not_earlier_instructions(parrot: httpx2.Client) -> None:
    first = create(parrot, "one", instructions="kind")
    assert said_in(first) == "s:kind;u:one;"
    second = create(parrot, "two", previous_response_id=first["id"], instructions="short")
    assert said_in(second) == "s:short;u:one;a:s:kind;u:one;;u:two;"
    third = create(parrot, "three", previous_response_id=second["id"])
    assert said_in(third) == f"u:one;a:{said_in(first)};u:two;a:{said_in(second)};u:three;"
    assert (third["previous_response_id"], third["instructions"]) == (second["id"], None)


def test_two_responses_may_continue_the_same_response(parrot: httpx2.Client) -> None:
    first = create(parrot, "one")
    for _ in range(2):
        assert said_in(create(parrot, "two", previous_response_id=first["id"])) == "u:one;a:u:one;;u:two;"


def test_reasoning_text_and_calls_of_one_answer_become_one_message(parrot: httpx2.Client) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
    calls = [{"type": "function_call", "call_id": name, "name": name, "arguments": "{}"} for name in ("look", "listen")]
    outputs = [{"type": "function_call_output", "call_id": name, "output": f"{name}ed"} for name in ("look", "listen")]
    said = {"role": "assistant", "content": "I look."}
    response = create(parrot, [{"role": "user", "content": "go"}, thought, said, *calls, *outputs])
    assert said_in(response) == "u:go;a:hm+I look.+look+listen;t:looked;t:listened;"
    apart = create(parrot, [said, calls[0], thought, said, {"role": "user", "content": "?"}])
    assert said_in(apart) == "a:I look.+look;a:hm+I look.;u:?;"


def test_a_reference_is_replaced_by_its_item(parrot: httpx2.Client) -> None:
    first = create(parrot, "one")
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    second = create(parrot, [reference, {"role": "user", "content": "two"}])
    assert said_in(second) == "a:u:one;;u:two;"
    third = create(parrot, "three", previous_response_id=second["id"])
    assert said_in(third) == f"a:u:one;;u:two;a:{said_in(second)};u:three;"
    unknown = {"type": "item_reference", "id": f"msg_{'0' * 32}_0"}
    assert refused(parrot, {"input": [unknown]}, 404)["param"] == "input.0"


def test_references_are_limited(parrot: httpx2.Client) -> None:
    reference = {"type": "item_reference", "id": create(parrot, "one")["output"][0]["id"]}
    create(parrot, [reference] * 256)
    error = refused(parrot, {"input": [reference] * 257})
    assert (error["param"], error["code"]) == ("input", "too_many_references")


def test_a_response_is_read_once_however_many_references_name_it(
    parrot: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = create(parrot, [{"role": "user", "content": str(number)} for number in range(100)])
    items = parrot.get(f"{RESPONSES}/{first['id']}/input_items?limit=100&order=asc").json()["data"]
    reads, read = [], Session.document

    async def counting_read(session: Session) -> bytes | None:
        reads.append(session.id)
        return await read(session)

    monkeypatch.setattr(Session, "document", counting_read)
    references = [{"type": "item_reference", "id": item["id"]} for item in items]
    assert said_in(create(parrot, references)) == "".join(f"u:{number};" for number in range(100))
    assert reads == [first["id"]]


def test_the_text_of_a_history_is_limited(http: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    first = create(http, "x" * 3000)
    assert create(http, "y", previous_response_id=first["id"])
    monkeypatch.setattr(routes, "MAX_HISTORY_BYTES", 2000)
    error = refused(http, {"input": "y", "previous_response_id": first["id"]})
    assert (error["param"], error["code"]) == ("previous_response_id", "history_too_long")


def test_the_pictures_of_a_history_are_counted_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(session: Session, names: Collection[str]) -> Mapping[str, bytes]:
        pytest.fail("they were read")

    monkeypatch.setattr(Session, "attachments", refuse)
    with served(settings_with(max_media_items=2)) as running, httpx2.Client(base_url=running.url) as client:
        picture = {"type": "input_image", "image_url": data_uri(picture_file())}
        one = {"role": "user", "content": [picture]}
        conversation = client.post(CONVERSATIONS, json={"items": [one, one]}).json()["id"]
        client.post(f"{CONVERSATIONS}/{conversation}/items", json={"items": [one]}).raise_for_status()
        error = refused(client, {"input": "?", "conversation": conversation})
    assert (error["param"], error["code"]) == ("conversation", "too_many_media")


def test_an_unknown_previous_response_is_a_400_in_openais_words(http: httpx2.Client) -> None:
    unknown = f"resp_{'0' * 32}"
    assert refused(http, {"input": "x", "previous_response_id": unknown}) == {
        "message": f"Previous response with id '{unknown}' not found.",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }


def test_a_running_response_cannot_be_continued(slow_http: httpx2.Client) -> None:
    [first, *_] = begun(slow_http, LONG)
    error = refused(slow_http, {"input": "x", "previous_response_id": first["response"]["id"]})
    assert (error["param"], error["code"]) == ("previous_response_id", "response_in_progress")


def test_a_deleted_response_is_not_part_of_the_history(http: httpx2.Client) -> None:
    first = create(http, "one")
    second = create(http, "two", previous_response_id=first["id"])
    http.delete(f"{RESPONSES}/{first['id']}")
    error = refused(http, {"input": "three", "previous_response_id": second["id"]})
    assert error["code"] == "previous_response_not_found" and first["id"] in error["message"]


def test_input_items_are_listed_a_page_at_a_time_from_either_end(http: httpx2.Client) -> None:
    first = create(http, [{"role": "user", "content": f"{number}"} for number in range(3)])
    second = create(http, "3", previous_response_id=first["id"])
    url = f"{RESPONSES}/{second['id']}/input_items"
    expected = ["0", "1", "2", "2", "3"]

    def pages(order: str, limit: int) -> Iterator[dict[str, Any]]:
        after: str | None = None
        while True:
            query = {"order": order, "limit": str(limit)} | ({"after": after} if after else {})
            page = dict(http.get(url, params=query).json())
            assert (page["first_id"], page["last_id"]) == (page["data"][0]["id"], page["data"][-1]["id"])
            yield page
            if not page["has_more"]:
                return
            after = page["last_id"]

    for limit in (1, 2, 5, 100):
        for order, wanted in (("asc", expected), ("desc", expected[::-1])):
            items = [item for page in pages(order, limit) for item in page["data"]]
            assert [item["content"][0]["text"] for item in items] == wanted
    assert len({item["id"] for item in http.get(url).json()["data"]}) == 5
    assert http.get(url).json()["data"][0]["content"][0]["text"] == "3"  # newest first, if nobody says


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "order=up", "after=nothing", "include=x"])
def test_an_invalid_page_is_a_400(http: httpx2.Client, query: str) -> None:
    response = create(http, "Halo")
    assert http.get(f"{RESPONSES}/{response['id']}/input_items?{query}").status_code == 400
