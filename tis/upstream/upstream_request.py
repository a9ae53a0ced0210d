"""A chat at an upstream: what its readers have so far, and what another upstream would be asked to go on with."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from tis.admission.ticket import Ticket
from tis.engine.answer import Answer, Piece
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt_list import NewAnswer
from tis.engine.request import Delivery
from tis.engine.request_timing import RequestTiming
from tis.engine.resumable_request import EmittedTokens
from tis.engine.upstream_call import UpstreamCall, beyond_estimate
from tis.errors import ServiceError
from tis.observability.model_metrics import FinishedReason
from tis.observability.request_log import current_request_id
from tis.upstream.chat_body import continuing_fields
from tis.upstream.endpoints import prompt_blocks
from tis.upstream.kinds import UpstreamAbilities

_FORMS = ("response_format", "structured_outputs", "regex", "ebnf", "tool_choice")


class UpstreamRequest:
    """Lives on the event loop."""

    is_begun = False

    def __init__(
        self,
        prepared: PreparedRequest,
        call: UpstreamCall,
        on_cancel: "Callable[[UpstreamRequest], None]",
        ticket: Ticket | None,
        *,
        is_resumed: bool = False,
        emitted: Sequence[EmittedTokens] | None = None,
        new_answer: NewAnswer = Answer,
    ) -> None:
        """`emitted`: another process began it."""
        self.prepared = prepared
        self.label = current_request_id()
        self.is_resumed = is_resumed or emitted is not None
        self.owner = ticket.owner if ticket else ""
        self.owner_share = ticket.owner_share if ticket else 1.0
        self.timing = RequestTiming(ticket, is_continued=emitted is not None)
        self.blocks = prompt_blocks(call.body)
        self._call = call
        # Copies: the log of the run notes in its own what is delivered here.
        self._choices = [replace(one, texts=[*one.texts], reasoning=[*one.reasoning]) for one in emitted or ()] or [
            EmittedTokens() for _ in range(prepared.params.n)
        ]
        self.answer = new_answer(sum(one.finish is None for one in self._choices), self.cancel)
        self._num_counted = 0
        self._on_cancel = on_cancel
        self._cancelled = threading.Event()

    @property
    def model_name(self) -> str:
        return self.prepared.model_id

    @property
    def num_prompt_tokens(self) -> int:
        return self._call.num_prompt_tokens

    @property
    def files(self) -> Mapping[str, bytes]:
        """By digest."""
        return self.prepared.upstream_media

    @property
    def path(self) -> str:
        return self._call.path

    @property
    def num_choices(self) -> int:
        return len(self._choices)

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    @property
    def is_over(self) -> bool:
        return all(one.finish for one in self._choices)

    @property
    def has_begun(self) -> bool:
        return any(one.num_pieces or one.finish for one in self._choices)

    @property
    def num_made(self) -> int:
        return self._choices[0].num_pieces

    @property
    def num_continued(self) -> int:
        """Of these, how many another upstream gets: it makes tokens again that are dropped as blanks."""
        choice = self._choices[0]
        if "prompt" in self._call.body:
            return choice.num_pieces
        return choice.num_pieces - sum(1 for _ in takewhile(str.isspace, reversed(choice.texts)))

    def cancel(self) -> None:
        self._cancelled.set()
        self._on_cancel(self)

    def cancel_completions(self) -> list[Delivery]:
        open_ones = [number for number, one in enumerate(self._choices) if one.finish is None]
        return [(self, Piece(number, "", (), finish="cancelled")) for number in open_ones]

    def receive(self, item: Piece | ServiceError, now: float) -> None:
        if isinstance(item, ServiceError):
            self.timing.finished("error", item.code)
            self.answer.put(item)
            return
        self._note(item, now)
        self.answer.put(item)

    def deliver(self, pieces: Sequence[Piece], num_before: int) -> None:
        """`num_before`: of the pieces that this try goes on with."""
        now = time.monotonic()
        for piece in pieces:
            if piece.usage and num_before:
                usage = piece.usage
                of_prompt = max(0, usage.num_prompt - num_before)
                piece = replace(piece, usage=replace(usage, num_prompt=of_prompt, num_made=num_before + usage.num_made))
            self.receive(piece, now)

    def why_not_continued(self, abilities: UpstreamAbilities) -> str | None:
        """Why no other upstream can go on behind what clients have."""
        body, choice = self._call.body, self._choices[0]
        if len(self._choices) > 1:
            return "it has several choices"
        if choice.num_calls:
            return "it had begun a tool call"
        if any(name in body for name in _FORMS):
            return "it is held to a format, which cannot be entered in the middle"
        if "prompt" in body:
            if not abilities.has_raw_prompts:
                return "its kind puts prompts into a template"
            return None if isinstance(body["prompt"], str) else "its prompt are tokens, and its text is not"
        if choice.reasoning and not abilities.continues_behind_reasoning:
            return "its kind cannot go on behind reasoning"
        if not abilities.continues:
            return "its kind cannot go on with an answer that has begun"
        return None if "".join(choice.texts).strip() else "it was still reasoning"

    def body_now(self, abilities: UpstreamAbilities) -> tuple[dict[str, Any], str]:
        """With the blanks that clients have and templates drop, behind what is to be continued."""
        body, choice = self._call.body, self._choices[0]
        if not self.has_begun:
            return body, ""
        text, num_before = "".join(choice.texts), self.num_continued
        continued = {**body, "max_tokens": max(1, self.prepared.params.max_tokens - num_before)}
        if "min_tokens" in body:
            continued["min_tokens"] = max(0, body["min_tokens"] - num_before)
        if "prompt" in body:
            return {**continued, "prompt": body["prompt"] + text}, ""
        messages = list(body["messages"])
        if body.get("continue_final_message"):
            text = str(messages.pop().get("content") or "") + text
        final = {"role": "assistant", "content": text.rstrip()}
        if reasoning := "".join(choice.reasoning):
            final["reasoning_content"] = reasoning
        return (
            {**continued, "messages": [*messages, final], **continuing_fields(abilities)},
            text[len(text.rstrip()) :],
        )

    def _note(self, piece: Piece, now: float) -> None:
        choice = self._choices[piece.choice]
        if piece.text or piece.deltas:
            choice.num_pieces += 1
            self._num_counted += 1
            choice.num_calls += sum(delta.kind == "call" for delta in piece.deltas)
            texts = [piece.text, *(delta.text for delta in piece.deltas if delta.kind == "text")]
            choice.texts += filter(None, texts)
            choice.reasoning += [delta.text for delta in piece.deltas if delta.kind == "reasoning"]
            self.timing.tokens(1, now, 0)
        if piece.usage and (more := piece.usage.num_made - self._num_counted) > 0:
            self._num_counted += more
            self.timing.tokens(more, now, piece.usage.num_cached)
        if piece.usage and self._call.is_estimate:
            self.timing.more_of_prompt(beyond_estimate(self.num_prompt_tokens, piece.usage.num_prompt))
        if piece.finish:
            choice.finish = piece.finish
            reason: FinishedReason = "abort" if piece.finish == "cancelled" else piece.finish
            self.timing.finished(reason, is_last=self.is_over)
