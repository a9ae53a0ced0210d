"""What belongs to which item of a response when one piece has more than one of them."""

import json
from typing import Any

import httpx2
import pytest

from tests.chat.parse.parsing import as_tokens, parser_config
from tests.openai_api.responses.event_order import check_events
from tests.openai_api.responses.response_requests import create, stream
from tis.chat.run_log import RunLog
from tis.engine.answer import Piece, TokenLogprob
from tis.engine.resumable_request import ResumableRequest
from tis.engine.sampling.params import SamplingParams
from tis.engine.text.markers import split_markers
from tis.openai_api.wire.encoded_json import encode_json
from tis.openai_api.wire.response_writer import ResponseWriter

LOGPROBS = {"include": ["message.output_text.logprobs"]}
TOOL = {"type": "function", "name": "now", "parameters": {"type": "object"}}
CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


def message_after(*pieces: list[str]) -> dict[str, Any]:
    """Of an answer that came in pieces of several tokens."""
    config = parser_config(None, marked=True)
    numbers: dict[str, int] = {}
    for piece in pieces:
        for token in piece:
            numbers.setdefault(token, len(numbers))
    marker_ids = {marker: numbers[marker] for marker in config.marked if marker in numbers}
    request = ResumableRequest("m", "1", [], SamplingParams(), 0, visible_markers=marker_ids)
    writer = ResponseWriter({"id": f"resp_{'0' * 32}", "status": "in_progress"})
    log = RunLog(writer, None)
    log.begin_round(request, config)
    for piece in pieces:
        ids = tuple(numbers[token] for token in piece)
        logprobs = tuple(TokenLogprob(id_, token, token.encode(), 0.0) for id_, token in zip(ids, piece, strict=True))
        text, markers = split_markers(as_tokens("".join(piece)))
        log.add_piece(Piece(0, text, ids, logprobs, markers=markers), 0)
    [message] = [item for item in json.loads(encode_json(writer.snapshot()))["output"] if item["type"] == "message"]
    return dict(message["content"][0])


@pytest.mark.parametrize(
    "pieces",
    [
        [["<think>", "Hm", "."], ["No", ".", "</think>", "Yes", "!"]],
        [["<think>"], ["Hm"], ["</think>"], ["Yes"], ["!"]],
        [["<think>", "Hm"], ["</think>", "Yes"], ["!"]],
    ],
)
def test_logprobs_are_of_the_text_and_not_of_the_reasoning_in_the_same_piece(pieces: list[list[str]]) -> None:
    said = message_after(*pieces)
    assert said["text"] == "Yes!" and [one["token"] for one in said["logprobs"]] == ["Yes", "!"]


def test_markers_that_are_spelled_out_are_part_of_the_reasoning(hermes: httpx2.Client) -> None:
    """What may still become a stop string is held back, and comes together with what is behind it."""
    for text, stop in (("<think>Hm.</think>Yes.", "</think>Yes!"), ("<think>Hm.</think>Yes.", "Yes!")):
        [_, message] = create(hermes, text, stop=stop, **LOGPROBS)["output"]
        assert [one["token"] for one in message["content"][0]["logprobs"]] == list("Yes.")
        deltas = [event for event in stream(hermes, text, stop=stop, **LOGPROBS) if "logprobs" in event]
        assert [one["token"] for event in deltas[:-1] for one in event["logprobs"]] == list("Yes.")


@pytest.mark.parametrize("text", [f"<think>Hm.</think>\n{CALL}", "<think>Hm.</think>\n\n", CALL, "Yes."])
def test_logprobs_make_no_items(hermes: httpx2.Client, text: str) -> None:
    """The tokens of a marker that ends a call, or of blanks, are no message."""

    def kinds(**more: Any) -> list[str]:
        response = check_events(stream(hermes, text, tools=[TOOL], **more))
        return [item["type"] for item in response["output"]]

    assert kinds(**LOGPROBS) == kinds()
