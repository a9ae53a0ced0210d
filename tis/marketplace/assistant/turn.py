"""One turn of a conversation with the assistant, as a `Source` of recorded events.

Created, interpreted, products, text (a sentence per event), completed. The event that ends a stage carries what the
stage has found, so another process repeats no stage that clients have seen. The last one is shown after the database
has the answer.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self

from pydantic import TypeAdapter
from sqlalchemy.orm import Session

from tis.admission.admission import Admission
from tis.admission.ticket import Ticket
from tis.cancellation import Cancelled, race_cancel
from tis.engine.errors import GenerationInterrupted
from tis.errors import ServiceError
from tis.marketplace.assistant.chat_schemas import ChatSearchAnswer, Citation, Interpretation
from tis.marketplace.assistant.conversations import add_message, find_conversation, save_state, state_of
from tis.marketplace.assistant.goods import FoundProduct
from tis.marketplace.assistant.shopping_assistant import AnswerDraft, Asking, ShoppingAssistant, today
from tis.marketplace.assistant.viewers import count_tokens
from tis.marketplace.kit.threads import in_thread
from tis.marketplace.products.delivery import Language
from tis.marketplace.reading.follow_ups import OTHERS
from tis.marketplace.users.chat_streams import stream_owner
from tis.observability.logs import log_exception
from tis.observability.metrics import ASSISTANT_SECONDS, ASSISTANT_TURNS
from tis.observability.request_log import current_request_id
from tis.streaming.source import Block
from tis.streaming.stores.store import Status

KIND = "marketplace_chat"
_VERSION = 2
_UNREADABLE = "The server was restarted during this answer, and cannot read the stored part of it."
_PRODUCTS = TypeAdapter(list[FoundProduct])
# Of an answer, with its message: so it can be shown again as it was, with what proved it.
_KEPT = ("products_found", "citations", "interpreted", "answered_by", "suggestions")
_MAX_KEPT_PRODUCTS = 5
_NUM_BEFORE_TEXT = 3  # events: created, interpreted, products


@dataclass(frozen=True)
class TurnSpec:
    """All that another process needs to begin the turn anew. Who asks and where is read from the database."""

    turn_id: str
    user_id: int
    session_id: str
    conversation_id: int
    text: str
    language: Language

    def to_json(self) -> bytes:
        return json.dumps({"kind": KIND, "version": _VERSION, **asdict(self)}, ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Raises ValueError or TypeError if this version cannot read it."""
        fields = dict(given)
        if (fields.pop("kind", None), fields.pop("version", None)) != (KIND, _VERSION):
            raise ValueError("a turn of another version")
        return cls(**fields)


class TurnDatabase(Protocol):
    """The part of `Market` that a turn needs."""

    assistant: ShoppingAssistant

    def writing(self) -> AbstractContextManager[Session]: ...


class AssistantTurn:
    attachments: Mapping[str, bytes] = {}
    traceparent = ""
    may_be_repeated = True
    summary = b"{}"

    def __init__(
        self,
        request: bytes,
        market: Callable[[], TurnDatabase],
        admission: Admission,
        ticket: Ticket | None = None,
        resume_states: Sequence[bytes] | None = None,
        *,
        may_resume: bool = True,
    ) -> None:
        """`market` may import the marketplace: it is called in a thread. In another process there is no `ticket`, and
        `resume_states` are those of the events that were shown.
        """
        self.request = request
        self.is_waiting_to_resume = resume_states is not None
        self.outcome: Status = "finished"
        self._market = market
        self._admission = admission
        self._ticket = ticket
        self._resume_states = resume_states or ()
        self._may_resume = may_resume
        self._cancelled = asyncio.Event()
        self._spec: TurnSpec | None = None
        self._state: dict[str, Any] = {}  # what the stages have found, as JSON
        self._num_shown = 0

    def hold_ticket(self) -> None:
        """The turn has begun: its events will be read to their end."""
        if self._ticket:
            self._ticket.begin_run()

    def cancel(self) -> None:
        self._cancelled.set()

    def failure(self, error: Exception) -> Block:
        self.outcome = "failed"
        ASSISTANT_TURNS.labels("failed").inc()
        if isinstance(error, ServiceError):
            detail, status = error.message, error.status
        else:
            log_exception("a turn of the assistant failed", error, current_request_id())
            detail, status = "The server failed on this request.", 500
        return _block({"over": "failed"}, "failed", detail=detail, status=status)

    async def events(self) -> AsyncGenerator[Sequence[Block], None]:
        if self._spec is None:
            self._spec = self._restored()
        if over := self._state.get("over"):
            self.outcome = over
            return
        if self._ticket is None:
            self._ticket = self._admission.resumed_ticket()
            self._ticket.begin_run()
        try:
            began_at = time.monotonic()
            async for block in self._stages(self._spec, self._ticket):
                self._num_shown += 1
                yield [block]
            ASSISTANT_TURNS.labels("finished").inc()
            ASSISTANT_SECONDS.observe(time.monotonic() - began_at)
        except Cancelled:
            self.outcome = "cancelled"
            ASSISTANT_TURNS.labels("cancelled").inc()
            yield [_block({"over": "cancelled"}, "cancelled")]
        finally:
            self._ticket.end_run()
            self._ticket = None

    def _restored(self) -> TurnSpec:
        try:
            spec = TurnSpec.from_json(json.loads(self.request))
            for state in self._resume_states:
                self._state |= json.loads(state or b"{}")
        except (ValueError, KeyError, TypeError) as fault:
            log_exception("an interrupted turn of the assistant cannot be read", fault, "-")
            raise GenerationInterrupted(_UNREADABLE) from None
        self._num_shown = len(self._resume_states)
        if not self._may_resume and "over" not in self._state:
            raise GenerationInterrupted("The server was restarted during this answer, and RESUME_GENERATION is 0.")
        return spec

    async def _stages(self, spec: TurnSpec, ticket: Ticket) -> AsyncGenerator[Block, None]:
        if not self._num_shown:
            ids = {"session_id": spec.session_id, "conversation_id": spec.conversation_id, "turn_id": spec.turn_id}
            yield _block(None, "created", **ids)
        market = await in_thread(self._market)
        if "completed" not in self._state:
            async for block in self._find_and_answer(spec, market.assistant, ticket):
                yield block
        self.is_waiting_to_resume = False
        completed = self._state["completed"]
        sentences: list[str] = completed["sentences"]
        for number in range(self._num_shown - _NUM_BEFORE_TEXT, len(sentences)):
            end = "\n" if number + 1 < len(sentences) else ""
            # The first text has the state of all that follows.
            state = None if number else {"completed": completed}
            yield _block(state, "text.delta", delta=sentences[number] + end)
        await in_thread(_save, market, spec, completed)
        yield _block({"over": "finished"}, "completed", response=completed["response"])

    async def _find_and_answer(
        self, spec: TurnSpec, assistant: ShoppingAssistant, ticket: Ticket
    ) -> AsyncGenerator[Block, None]:
        state = self._state
        context = await in_thread(assistant.read_context, spec.user_id, spec.session_id, spec.language)
        asking = Asking(spec.text, stream_owner(spec.user_id), ticket, context.may_use_model)
        if "interpreted" not in state:
            understanding = assistant.understand(asking, context.query_context)
            interpretation, num_tokens = await race_cancel(self._cancelled.wait(), understanding)
            state |= {"interpreted": interpretation.model_dump(mode="json"), "tokens": num_tokens}
            yield _block(dict(state), "interpreted", **state["interpreted"])
        interpretation = Interpretation.model_validate(state["interpreted"])
        query = interpretation.query
        # The query is then the one before, and what it showed is not what the buyer wants.
        wants_others = any(one.rule == OTHERS for one in interpretation.explain)
        seen_ids = list(context.seen_ids) if wants_others else []
        finding = in_thread(assistant.find, query, context.viewer, frozenset(seen_ids))
        found = await race_cancel(self._cancelled.wait(), finding)
        if self._num_shown < _NUM_BEFORE_TEXT:
            products = _PRODUCTS.dump_python(list(found.cards), mode="json")
            yield _block(None, "products", products=products, products_found=len(products))
        answering = assistant.answer(asking, query, found, context)
        draft, num_tokens = await race_cancel(self._cancelled.wait(), answering)
        state["completed"] = {
            "response": _response(spec, interpretation, draft).model_dump(mode="json"),
            "sentences": draft.text.sentences,
            "seen": [*seen_ids, *draft.text.cited_ids],
            "tokens": state["tokens"] + num_tokens,
        }


def _response(spec: TurnSpec, interpretation: Interpretation, draft: AnswerDraft) -> ChatSearchAnswer:
    cited = draft.cards[: len(draft.text.cited_ids)]
    return ChatSearchAnswer(
        session_id=spec.session_id,
        response="\n".join(draft.text.sentences),
        products_found=len(draft.cards),
        conversation_id=spec.conversation_id,
        products=list(draft.cards),
        citations=[Citation(product_id=one.id, name=one.name, url=f"/api/products/{one.id}") for one in cited],
        interpreted=interpretation,
        suggestions=draft.text.suggestions,
        relaxations=list(draft.found.relaxations),
        language=spec.language,
        answered_by=draft.answered_by,
        notice=draft.notice,
    )


def _save(market: TurnDatabase, spec: TurnSpec, completed: Mapping[str, Any]) -> None:
    """Once more after a kill: the message is there already then, and counts no tokens again."""
    response = completed["response"]
    details = {name: response[name] for name in _KEPT} | {"products": response["products"][:_MAX_KEPT_PRODUCTS]}
    with market.writing() as session:
        conversation = find_conversation(session, spec.user_id, spec.session_id)
        message = add_message(session, conversation, spec.turn_id, "assistant", response["response"], details)
        if message.details.get("tokens") is not None:
            return
        message.details = {**message.details, "tokens": completed["tokens"]}
        shown = [product["id"] for product in response["products"]]
        query = Interpretation.model_validate(response["interpreted"]).query
        if query.intent != "other" and (shown or not query.product_ids):
            # Where nothing is shown, the numbers are still those of the last list.
            before = state_of(conversation).shown_ids
            is_of_list = bool(query.product_ids) and set(query.product_ids) <= set(before)  # number 2, then number 3
            last = before if is_of_list or not shown else shown
            save_state(session, conversation, query, last, completed["seen"])
        count_tokens(session, spec.user_id, today(), completed["tokens"])


def event_json(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"chat.search.{kind}", **fields}


def _block(state: Mapping[str, Any] | None, kind: str, **fields: Any) -> Block:
    data = json.dumps(event_json(kind, **fields), ensure_ascii=False, separators=(",", ":")).encode()
    return Block(data, json.dumps(state, ensure_ascii=False).encode() if state else b"")
