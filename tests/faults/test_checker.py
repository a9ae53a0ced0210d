"""The checker is believed by all tests of faults: here it must see through histories that were doctored."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tests.faults.checker import End, Reference, Violation, check, check_cancelled
from tests.faults.cluster.calm import Calm
from tests.faults.cluster.wanderers import Wanderer, violations_of
from tests.faults.history import DONE, Client, Connection, Seen
from tests.openai_api.test_chat import said

SESSION = "/tale"
TEXT = "Halo"


def chunk(delta: dict[str, str], finish: str | None = None, answer: str = "chatcmpl-1", **more: Any) -> str:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, **more}
    return json.dumps({"id": answer, "choices": [choice], "usage": None})


def usage(num_tokens: int) -> str:
    return json.dumps({"id": "chatcmpl-1", "choices": [], "usage": {"completion_tokens": num_tokens}})


ERROR = '{"error":{"message":"It broke.","type":"server_error","param":null,"code":"generation_interrupted"}}'
ROLE = chunk({"role": "assistant", "content": ""})
PAYLOADS = [ROLE, *(chunk({"content": letter}) for letter in TEXT), chunk({}, "stop"), usage(4), DONE]


def seen(payloads: Sequence[str], first: int = 0, session: str | None = "tale") -> list[Seen]:
    return [
        Seen(float(index), session, None if session is None else index, payload)
        for index, payload in enumerate(payloads, first)
    ]


def connection(blocks: Sequence[Seen], after: int | None = None, turn: int = 0) -> Connection:
    return Connection(SESSION, turn, after, 200, blocks=list(blocks))


def verdict(*connections: Connection, text: str = TEXT, ends: Sequence[End] = ("finished",)) -> None:
    check(connections, {(SESSION, 0): Reference(text, ends)})


def test_a_stream_as_promised_passes() -> None:
    verdict(connection(seen(PAYLOADS)))


def test_so_does_one_that_was_read_in_pieces_by_several() -> None:
    verdict(
        connection(seen(PAYLOADS[:3])),
        connection(seen(PAYLOADS[3:5], first=3), after=2),
        connection([], after=4),
        connection(seen(PAYLOADS[5:], first=5), after=4),
        connection(seen(PAYLOADS)),
    )


def test_turns_go_on_with_the_indexes() -> None:
    connections = [connection(seen(PAYLOADS)), connection(seen(PAYLOADS, first=8), turn=1)]
    references = {(SESSION, turn): Reference(TEXT) for turn in (0, 1)}
    check(connections, references)
    connections[1] = connection(seen(PAYLOADS, first=9), turn=1)
    with pytest.raises(Violation, match="I1"):
        check(connections, references)


def without(index: int) -> list[Seen]:
    return [block for block in seen(PAYLOADS) if block.index != index]


def with_payload(index: int, payload: str) -> list[Seen]:
    return [replace(block, payload=payload) if block.index == index else block for block in seen(PAYLOADS)]


DOCTORED: dict[str, tuple[str, Callable[[], list[Connection]]]] = {
    "a hole": ("I1", lambda: [connection(without(3))]),
    "a hole at the start": ("I1", lambda: [connection(without(0))]),
    "a hole behind a cursor": ("I1", lambda: [connection(seen(PAYLOADS)), connection(seen(PAYLOADS[4:], 4), after=2)]),
    "an end nobody saw": ("I5", lambda: [connection(seen(PAYLOADS[:5]))]),
    "nothing at all": ("I5", lambda: [connection([])]),
    "a block twice": ("I3", lambda: [connection([*seen(PAYLOADS[:3]), *seen(PAYLOADS[2:], 2)])]),
    "what the cursor had": ("I3", lambda: [connection(seen(PAYLOADS)), connection(seen(PAYLOADS[2:], 2), after=2)]),
    "back in time": ("I3", lambda: [connection([*seen(PAYLOADS[:4]), *seen(PAYLOADS[1:], 1)])]),
    "readers that disagree": (
        "I2",
        lambda: [connection(seen(PAYLOADS)), connection(with_payload(2, chunk({"content": "A"})))],
    ),
    "a changed byte": ("I6", lambda: [connection(with_payload(2, chunk({"content": "A"})))]),
    "a repeated text": ("I6", lambda: [connection(with_payload(2, chunk({"content": "aa"})))]),
    "a lost text": ("I6", lambda: [connection(with_payload(4, chunk({"content": ""})))]),
    "a foreign id": ("I10", lambda: [connection([*seen(PAYLOADS[:2]), *seen(PAYLOADS[2:], 2, session="other")])]),
    "foreign words": ("I6", lambda: [connection(with_payload(3, chunk({"content": "other"})))]),
    "two ends": ("I5", lambda: [connection([*seen(PAYLOADS), *seen([DONE], 8)])]),
    "two ends on two connections": (
        "I5",
        lambda: [connection(seen(PAYLOADS)), connection(seen([DONE], 8), after=7)],
    ),
    "an error and a success": ("I5", lambda: [connection(seen(PAYLOADS)), connection(seen([ERROR], 8), after=7)]),
    "words after the end": ("I5", lambda: [connection([*seen(PAYLOADS), *seen([PAYLOADS[1]], 8)])]),
    "an error that was not expected": ("I5", lambda: [connection(seen([*PAYLOADS[:3], ERROR]))]),
    "no finish": ("I5", lambda: [connection(seen([*PAYLOADS[:5], DONE]))]),
    "two finishes": ("I5", lambda: [connection(seen([*PAYLOADS[:6], *PAYLOADS[5:]]))]),
    "two roles": ("I5", lambda: [connection(seen([ROLE, *PAYLOADS]))]),
    "made twice": ("I8", lambda: [connection(with_payload(2, chunk({"content": "a"}, answer="chatcmpl-2")))]),
    "usage that lies": ("I9", lambda: [connection(with_payload(6, usage(5)))]),
    "usage told twice": ("I9", lambda: [connection(seen([*PAYLOADS[:7], usage(4), DONE]))]),
    "a block without data": ("I5", lambda: [connection(with_payload(2, ""))]),
    "words without an id": ("I1", lambda: [connection([*seen(PAYLOADS[:2]), *seen(PAYLOADS[2:3], session=None)])]),
}


@pytest.mark.parametrize("name", DOCTORED)
def test_what_was_doctored_is_found(name: str) -> None:
    invariant, doctored = DOCTORED[name]
    with pytest.raises(Violation, match=invariant):
        verdict(*doctored())


def test_a_failed_turn_shows_a_beginning_and_one_error() -> None:
    failed = connection(seen([*PAYLOADS[:3], ERROR]))
    verdict(failed, ends=("failed",))
    with pytest.raises(Violation, match="I6"):
        verdict(failed, text="Hello", ends=("failed",))


def test_a_cancelled_turn_shows_a_beginning_and_says_so() -> None:
    verdict(connection(seen([*PAYLOADS[:3], chunk({}, "stop", cancelled=True), usage(2), DONE])), ends=("cancelled",))


def test_a_cut_text_is_not_taken_for_a_cancelled_one() -> None:
    with pytest.raises(Violation, match="I5"):
        verdict(connection(seen([*PAYLOADS[:3], chunk({}, "stop"), usage(2), DONE])), ends=("cancelled",))


def test_a_notice_to_one_reader_has_no_id_and_ends_his_connection() -> None:
    notice = seen([ERROR], session=None)
    verdict(connection([*seen(PAYLOADS[:3]), *notice]), connection(seen(PAYLOADS)))
    with pytest.raises(Violation, match="I5"):
        verdict(connection([*seen(PAYLOADS[:3]), *notice, *seen(PAYLOADS[3:], 3)]), connection(seen(PAYLOADS)))


def test_after_a_cancel_few_blocks_may_come() -> None:
    check_cancelled(connection(seen(PAYLOADS)), at=4.5, max_late_blocks=2)
    with pytest.raises(Violation, match="I7"):
        check_cancelled(connection(seen(PAYLOADS)), at=1.5, max_late_blocks=2)


def test_a_turn_nobody_expected_is_found() -> None:
    with pytest.raises(Violation, match="no references"):
        check([connection(seen(PAYLOADS))], {})


class NoFront:
    url = "http://127.0.0.1:1"


def wandered(*connections: Connection) -> Wanderer:
    wanderer = Wanderer(0, [NoFront()] * 2, Calm(), Random(1), 40)  # type: ignore[list-item]
    wanderer.client = client_with(*connections)
    return wanderer


def client_with(*connections: Connection) -> Client:
    client = Client(NoFront.url, said(TEXT, session_id="tale"))
    client.history = list(connections)
    return client


def test_the_proof_of_a_cluster_counts_what_is_lost_doubled_mixed_or_without_an_end() -> None:
    whole, other = connection(seen(PAYLOADS)), chunk({"content": "x"})
    not_found = Connection(SESSION, 0, None, 404, end="whole")
    doubled = [*seen(PAYLOADS[:3]), *seen(PAYLOADS[2:], first=2)]
    for expected, mine, again in (
        ({}, [whole], [whole]),
        ({"lost": 1}, [whole], [not_found]),
        ({"lost": 1}, [connection(seen(PAYLOADS[:2]) + seen(PAYLOADS[3:], first=3))], []),
        ({"doubled": 1}, [connection(doubled)], []),
        ({"mixed": 1}, [whole], [connection(seen([*PAYLOADS[:2], other, *PAYLOADS[3:]]))]),
        ({"without a proper end": 1}, [connection(seen(PAYLOADS[:-1]))], []),
        ({"ended with an error": 1}, [connection(seen([*PAYLOADS[:2], ERROR]))], []),
    ):
        counted, notes = violations_of([wandered(*mine)], [client_with(*again)] if again else [])
        assert counted == expected, notes
