"""Checks that the events of a response have the order and the names that clients rely on."""

from collections.abc import Iterable, Sequence
from typing import Any

Event = dict[str, Any]
ENDS = {
    "response.completed": ("completed",),
    "response.incomplete": ("incomplete",),
    "response.failed": ("failed",),
    "response.cancelled": ("cancelled",),
}
# Names of the text's events, of its part's events, of the index of the part, and of the list of parts.
_SAID = ("output_text", "content_part", "content_index", "content")
_THOUGHT = ("reasoning_text", "content_part", "content_index", "content")
_SUMMARY = ("reasoning_summary_text", "reasoning_summary_part", "summary_index", "summary")

_CALLS = {
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}
_WITHOUT_DELTAS = ("shell_call", "local_shell_call", "apply_patch_call", "tool_search_call")


def check_events(events: Sequence[Event]) -> Event:
    """The response that they end with."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = [event["type"] for event in events]
    begin = 3 if "response.queued" in kinds else 2
    expected = ["response.created", "response.queued", "response.in_progress"]
    assert kinds[:begin] == [kind for kind in expected if begin == 3 or kind != "response.queued"]
    assert kinds[-1] in ENDS and not ENDS.keys() & set(kinds[:-1])
    whole: Event = events[-1]["response"]
    assert whole["status"] in ENDS[kinds[-1]]
    lifecycle = [event["response"] for event in events if "response" in event]
    assert len({(one["id"], one["created_at"], one["model"]) for one in lifecycle}) == 1
    assert all(set(one) == set(whole) and one["output"] == [] for one in lifecycle[:-1])
    items = list(_items(events[begin:-1]))
    if whole["status"] != "failed":
        assert [item for item, _ in items] == whole["output"]
    summarises = bool(whole["reasoning"]["summary"])
    assert all(bool(item["summary"]) == summarises for item, _ in items if item["type"] == "reasoning")
    return whole


def _items(events: Sequence[Event]) -> Iterable[tuple[Event, Sequence[Event]]]:
    rest = list(events)
    while rest:
        added = rest[0]
        assert added["type"] == "response.output_item.added", added
        ends = [at for at, event in enumerate(rest) if event["type"] == "response.output_item.done"]
        if not ends:
            return  # it failed in the middle of it
        own, rest = rest[: ends[0] + 1], rest[ends[0] + 1 :]
        _check_item(own)
        yield own[-1]["item"], own


def _check_item(events: Sequence[Event]) -> None:
    first, done = events[0]["item"], events[-1]["item"]
    if first["type"] == "compaction":
        assert first == {**done, "encrypted_content": ""} and done["encrypted_content"]
        assert [event["type"] for event in events[1:-1]] == ["response.compaction.compacting"]
        assert (events[1]["item_id"], {event["output_index"] for event in events}) == (done["id"], {0})
        return
    assert (first["id"], first["type"], first["status"]) == (done["id"], done["type"], "in_progress")
    assert {event["output_index"] for event in events} == {events[0]["output_index"]}
    middle = [event["type"].removeprefix("response.") for event in events[1:-1]]
    if first["type"] in _WITHOUT_DELTAS:
        assert first["call_id"] == done["call_id"]
        _check_commands(events[1:-1], done)
        return
    assert {event["item_id"] for event in events[1:-1]} == {first["id"]}
    deltas = [event["delta"] for event in events if event["type"].endswith(".delta")]
    if first["type"] in _CALLS:
        kind, grows = _CALLS[first["type"]]
        assert middle == [f"{kind}.delta"] * len(deltas) + [f"{kind}.done"]
        assert first["name"] == done["name"] and first["call_id"] == done["call_id"] and first[grows] == ""
        assert first["type"] != "function_call" or events[-2]["name"] == first["name"]
        assert "".join(deltas) == events[-2][grows] == done[grows]
        return
    shape = _SAID if first["type"] == "message" else _SUMMARY if done["summary"] else _THOUGHT
    kind, part, index, among = shape
    cited = [event["annotation"] for event in events if event["type"].endswith(".annotation.added")]
    added = [f"{kind}.annotation.added"] * len(cited)
    assert middle == [f"{part}.added", *[f"{kind}.delta"] * len(deltas), *added, f"{kind}.done", f"{part}.done"]
    assert {event[index] for event in events[1:-1]} == {0} and first[among] == []
    empty = {"text": "", **({"annotations": [], "logprobs": []} if kind == "output_text" else {})}
    assert events[1]["part"] == {**done[among][0], **empty}
    assert "".join(deltas) == events[-3]["text"] == events[-2]["part"]["text"] == done[among][0]["text"]
    if kind == "output_text":
        assert cited == events[-2]["part"]["annotations"] == done["content"][0]["annotations"]
        told = [one for event in events if event["type"].endswith(".delta") for one in event["logprobs"]]
        assert told == events[-3]["logprobs"] == done["content"][0]["logprobs"]


def _check_commands(events: Sequence[Event], done: Event) -> None:
    """A shell has events for each of its commands."""
    commands = done["action"]["commands"] if done["type"] == "shell_call" else []
    kinds = [f"response.shell_call_command.{step}" for _ in commands for step in ("added", "delta", "done")]
    assert [event["type"] for event in events] == kinds
    assert [event["command"] for event in events[2::3]] == [event["delta"] for event in events[1::3]] == commands
    assert [event["command_index"] for event in events[::3]] == list(range(len(commands)))
