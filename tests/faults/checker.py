"""Reads what clients saw and says whether any promise was broken.

| | promise |
|---|---|
| I1 | the indexes of a connection follow its cursor without holes; without a cursor, they begin with their turn |
| I2 | any two readers agree on what a common index holds |
| I3 | within a connection indexes only grow |
| I4 | what was shown once is shown again: nobody saw an index that the whole turn does not have |
| I5 | a turn has exactly one terminal block, and nothing after it; every choice ends exactly once before it |
| I6 | the text is the reference, or a beginning of it if the turn was cancelled or failed |
| I7 | after the answer to a cancel only few more blocks come |
| I8 | one producer: all chunks of a turn carry one id |
| I9 | usage counts the tokens that were delivered |
| I10 | a stream of one session shows nothing of another |

I1 to I3 and I10 are asked of every connection, the rest of every turn, put together from all its readers.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.faults.history import DONE, Connection, Seen

End = Literal["finished", "cancelled", "failed", "unseen"]


@dataclass(frozen=True, slots=True)
class Reference:
    """What a turn says when nothing goes wrong, and how it may end here."""

    text: str | Sequence[str]  # one for each choice, or the same for all
    ends: Sequence[End] = ("finished",)
    finish_reason: str | None = None  # None: any
    num_tokens: int | None = None  # None: as many as characters, as the echo makes them

    def text_of(self, choice: int) -> str:
        return self.text if isinstance(self.text, str) else self.text[choice]


class Violation(AssertionError):
    pass


def check(connections: Iterable[Connection], references: Mapping[tuple[str, int], Reference]) -> None:
    """`references` by session and turn; the turns of a session are numbered from 0."""
    turns: dict[tuple[str, int], list[Connection]] = defaultdict(list)
    for connection in connections:
        check_connection(connection)
        if connection.blocks:
            turns[connection.session, connection.turn].append(connection)
    first_indexes: dict[tuple[str, int], int] = {}
    for session, turn in sorted(references):
        first = first_indexes.get((session, turn), 0 if turn == 0 else None)
        last = _check_turn(f"{session} turn {turn}", turns.pop((session, turn), []), references[session, turn], first)
        if last is not None:
            first_indexes[session, turn + 1] = last + 1
    if turns:
        raise Violation(f"There are no references for {sorted(turns)}.")


def check_cancelled(connection: Connection, at: float, max_late_blocks: int) -> None:
    """I7, of a reader that stayed."""
    late = [block for block in connection.blocks if block.at > at and not block.is_terminal]
    _hold(
        len(late) <= max_late_blocks,
        "I7",
        f"{connection.session}: {len(late)} more blocks after the answer to the cancel",
    )


def check_connection(connection: Connection) -> None:
    """What can be asked of one connection by itself."""
    where = f"{connection.session} turn {connection.turn}, after {connection.after}"
    own_id = connection.session.partition("/")[2]
    numbered = [block for block in connection.blocks if block.index is not None]
    for block in connection.blocks:
        _hold(bool(block.payload), "I5", f"{where}: a block without data")
        _hold(block.session in (own_id, None), "I10", f"{where}: a block of {block.session!r}")
    for before, block in zip(connection.blocks, connection.blocks[1:], strict=False):
        _hold(not before.is_terminal, "I5", f"{where}: {block} came after the terminal {before}")
        _hold(before.index is not None, "I5", f"{where}: {block} came after {before}, which has no id")
    for block in connection.blocks:
        _hold(block.index is not None or block.is_error, "I1", f"{where}: {block} has no id and is no error")
    expected = connection.after
    for block in numbered:
        assert block.index is not None
        if expected is not None:
            _hold(block.index > expected, "I3", f"{where}: {block.index} came after {expected}")
            _hold(block.index == expected + 1, "I1", f"{where}: {block.index} came after {expected}")
        expected = block.index


def _check_turn(where: str, connections: Sequence[Connection], reference: Reference, first: int | None) -> int | None:
    """Gives the index of the terminal block, if anybody saw it."""
    payloads: dict[int, Seen] = {}
    for connection in connections:
        _check_beginning(where, connection, first)
        for block in connection.blocks:
            if block.index is not None:
                known = payloads.setdefault(block.index, block)
                same = known.payload == block.payload
                _hold(same, "I2", f"{where}: index {block.index} is {known.payload} and {block.payload}")
    if not payloads:
        _hold("unseen" in reference.ends, "I5", f"{where}: nobody saw anything")
        return None
    blocks = [payloads[index] for index in sorted(payloads)]
    terminals = [block for block in blocks if block.is_terminal]
    _hold(len(terminals) <= 1, "I5", f"{where}: several terminal blocks: {terminals}")
    _hold(not terminals or blocks[-1] is terminals[0], "I5", f"{where}: {blocks[-1]} is behind {terminals[:1]}")
    beginning = first if first is not None else min(payloads)
    missing = set(range(beginning, max(payloads) + 1)) - set(payloads)
    _hold(not missing, "I4", f"{where}: nobody has ever seen {sorted(missing)}")
    _check_content(where, blocks, reference)
    return terminals[0].index if terminals else None


def _check_beginning(where: str, connection: Connection, first: int | None) -> None:
    if connection.after is None and connection.blocks and first is not None:
        index = connection.blocks[0].index
        _hold(index in (first, None), "I1", f"{where}: begins with {index} instead of {first}")


def _check_content(where: str, blocks: Sequence[Seen], reference: Reference) -> None:
    chunks = [block.chunk for block in blocks if not block.is_terminal]
    _hold(len({chunk["id"] for chunk in chunks}) <= 1, "I8", f"{where}: made twice: {[c['id'] for c in chunks]}")
    parts: dict[int, list[Any]] = defaultdict(list)
    for chunk in chunks:
        for part in chunk["choices"]:
            parts[part["index"]].append(part)
    end = _end(blocks[-1], parts)
    _hold(end in reference.ends, "I5", f"{where}: is {end}, not {reference.ends}; its last block: {blocks[-1]}")
    for choice, of_choice in sorted(parts.items()):
        _check_choice(f"{where}, choice {choice}", of_choice, reference, reference.text_of(choice), end)
    _check_usage(where, chunks, parts, reference, end)


def _end(last: Seen, parts: Mapping[int, Sequence[Any]]) -> End:
    if not last.is_terminal:
        return "unseen"
    if last.payload != DONE:
        return "failed"
    return "cancelled" if any(part.get("cancelled") for of in parts.values() for part in of) else "finished"


def _check_choice(where: str, parts: Sequence[Any], reference: Reference, text: str, end: End) -> None:
    said = _text(parts)
    _hold(text.startswith(said), "I6", f"{where}: {said!r} is no beginning of {text!r}")
    num_roles = sum("role" in part["delta"] for part in parts if "delta" in part)
    is_chat = "delta" in parts[0]
    _hold(num_roles == is_chat, "I5", f"{where}: the role is not said exactly once")
    finishes = [part["finish_reason"] for part in parts if part["finish_reason"]]
    if end in ("finished", "cancelled"):
        _hold(len(finishes) == 1 and bool(parts[-1]["finish_reason"]), "I5", f"{where}: ends with {finishes}")
    else:
        _hold(len(finishes) <= 1, "I5", f"{where}: ends with {finishes}")
    if end == "finished":
        _hold(said == text, "I6", f"{where}: {said!r} is not the whole of {text!r}")
        _hold(reference.finish_reason in (None, finishes[0]), "I6", f"{where}: finished by {finishes[0]}")


def _check_usage(
    where: str, chunks: Sequence[Any], parts: Mapping[int, Sequence[Any]], reference: Reference, end: End
) -> None:
    told = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    _hold(len(told) <= 1, "I9", f"{where}: usage is told {len(told)} times")
    if not told:
        return
    _hold(chunks[-1].get("usage") == told[0], "I9", f"{where}: usage is not the last chunk")
    counted = told[0]["completion_tokens"]
    if reference.num_tokens is None or end == "cancelled":
        delivered = sum(len(_text(of_choice)) for of_choice in parts.values())
    else:
        delivered = reference.num_tokens
    comparable = reference.num_tokens is None or end == "finished"
    _hold(not comparable or counted == delivered, "I9", f"{where}: {counted} tokens counted, {delivered} delivered")


def _text(parts: Sequence[Any]) -> str:
    """Of a chat, or of a text completion."""
    return "".join(part["delta"].get("content") or "" if "delta" in part else part["text"] for part in parts)


def _hold(fact: bool, invariant: str, otherwise: str) -> None:
    if not fact:
        raise Violation(f"{invariant}: {otherwise}")


def final_text(blocks: Sequence[Seen], choice: int = 0) -> str:
    """For comparing two runs of which neither is known beforehand."""
    chunks = [json.loads(block.payload) for block in blocks if not block.is_terminal]
    return _text([part for chunk in chunks for part in chunk["choices"] if part["index"] == choice])
