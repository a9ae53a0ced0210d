"""One turn of a conversation with the assistant, as a `Source` of recorded events.

Created, interpreted, products, text (a sentence per event), completed. The event that ends a stage carries what the
stage has found, so another process repeats no stage that clients have seen. The last one is shown after the database
has the answer.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self

from sqlalchemy.orm import Session

from tis.admission.admission import Admission
from tis.admission.ticket import Ticket
from tis.cancellation import Cancelled, race_cancel
from tis.errors import ServiceError
from tis.marketplace.assistant.chat_schemas import (
    ChatSearchAnswer,
    Interpretation,
    TriedFilter,
    citations_of,
    event_json,
    found_products,
)
from tis.marketplace.assistant.conversations import add_message, find_conversation, save_state, state_of
from tis.marketplace.assistant.quotas import count_tokens
from tis.marketplace.assistant.shopping_assistant import (
    AnswerDraft,
    ShoppingAssistant,
    TurnContext,
    Understanding,
    today,
)
from tis.marketplace.kit.threads import in_thread
from tis.marketplace.products.delivery import Language
from tis.marketplace.reading.follow_ups import OTHERS
from tis.marketplace.reading.structured_query import StructuredQuery
from tis.marketplace.users.chat_streams import stream_owner
from tis.observability.logs import log_exception
from tis.observability.request_log import current_request_id
from tis.streaming.source import Block
from tis.streaming.stores.store import Status

KIND = "marketplace_chat"
_VERSION = 1


@dataclass(frozen=True)
class TurnSpec:
    """All that another process needs to begin the turn anew. Who asks and where is read from the database."""

    turn_id: str
    user_id: int
    session_id: str
    conversation_id: int
    text: str
    language: Language
    uses_model: bool

    @property
    def owner(self) -> str:
        return stream_owner(self.user_id)

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
    may_be_repeated = True
    summary = b"{}"

    def __init__(
        self,
        spec: TurnSpec,
        market: Callable[[], TurnDatabase],
        admission: Admission,
        ticket: Ticket | None = None,
        resume_states: Sequence[bytes] | None = None,
    ) -> None:
        """`market` may import the marketplace: it is called in a thread. `ticket`: None in another process."""
        self.is_waiting_to_resume = resume_states is not None
        self.outcome: Status = "finished"
        self._spec = spec
        self._market = market
        self._admission = admission
        self._ticket = ticket
        self._cancelled = asyncio.Event()
        self.is_over = False
        self._interpreted: dict[str, Any] | None = None
        self._completed: dict[str, Any] | None = None
        self._num_shown = 0
        for state in resume_states or ():
            self._apply(json.loads(state or b"{}"))

    @property
    def request(self) -> bytes:
        return self._spec.to_json()

    def hold_ticket(self) -> None:
        """The turn has begun: its events will be read to their end."""
        if self._ticket:
            self._ticket.begin_run()

    def cancel(self) -> None:
        self._cancelled.set()

    def failure(self, error: Exception) -> Block:
        self.outcome, self.is_over = "failed", True
        if isinstance(error, ServiceError):
            detail, status = error.message, error.status
        else:
            log_exception("a turn of the assistant failed", error, current_request_id())
            detail, status = "The server failed on this request.", 500
        return event_block(event_json("failed", detail=detail, status=status), {"over": "failed"})

    async def events(self) -> AsyncGenerator[Sequence[Block], None]:
        if self.is_over:
            return
        if self._ticket is None:
            self._ticket = self._admission.resumed_ticket()
            self._ticket.begin_run()
        try:
            async for block in self._stages(self._ticket):
                self._num_shown += 1
                yield [block]
        except Cancelled:
            self.outcome, self.is_over = "cancelled", True
            yield [event_block(event_json("cancelled"), {"over": "cancelled"})]
        finally:
            self._ticket.end_run()
            self._ticket = None

    async def _stages(self, ticket: Ticket) -> AsyncGenerator[Block, None]:
        spec = self._spec
        if not self._num_shown:
            ids = {"session_id": spec.session_id, "conversation_id": spec.conversation_id, "turn_id": spec.turn_id}
            yield event_block(event_json("created", **ids))
        market = await in_thread(self._market)
        if self._completed is None:
            stages = self._answer(market.assistant, ticket)
            async for block in stages:
                yield block
        self.is_waiting_to_resume = False
        completed = self._completed
        assert completed
        sentences: list[str] = completed["sentences"]
        # Three events came before; the first text has the state of all that follows.
        for number in range(self._num_shown - 3, len(sentences)):
            end = "\n" if number + 1 < len(sentences) else ""
            delta = event_json("text.delta", delta=sentences[number] + end)
            yield event_block(delta, {"completed": completed} if not number else None)
        await in_thread(self._save, market, completed)
        self.is_over = True
        yield event_block(event_json("completed", response=completed["response"]), {"over": "finished"})

    async def _answer(self, assistant: ShoppingAssistant, ticket: Ticket) -> AsyncGenerator[Block, None]:
        spec = self._spec
        context = await in_thread(assistant.read_context, spec.user_id, spec.session_id, spec.language)
        uses_model = spec.uses_model and context.may_use_model
        if self._interpreted is None:
            reading = assistant.understand(spec.text, context.query_context, spec.owner, ticket, uses_model=uses_model)
            self._interpreted = _interpreted(await race_cancel(self._cancelled.wait(), reading))
            event = event_json("interpreted", **_shown(self._interpreted))
            yield event_block(event, {"interpreted": self._interpreted})
        query = StructuredQuery.model_validate(self._interpreted["query"])
        skipped = frozenset(context.seen_ids) if _wants_others(self._interpreted) else frozenset[int]()
        finding = in_thread(assistant.find, query, context.viewer, skipped)
        found = await race_cancel(self._cancelled.wait(), finding)
        if self._num_shown < 3:
            products = [one.model_dump(mode="json") for one in found_products(found.cards)]
            yield event_block(event_json("products", products=products, products_found=len(products)))
        answering = assistant.answer(spec.text, query, found, context, spec.owner, ticket, uses_model=uses_model)
        draft = await race_cancel(self._cancelled.wait(), answering)
        self._completed = self._complete(self._interpreted, draft, context)

    def _complete(self, interpreted: Mapping[str, Any], draft: AnswerDraft, context: TurnContext) -> dict[str, Any]:
        spec = self._spec
        found, cited = draft.found, {card.id: card for card in draft.cards}
        answer = ChatSearchAnswer(
            session_id=spec.session_id,
            response="\n".join(draft.text.sentences),
            products_found=len(draft.cards),
            conversation_id=spec.conversation_id,
            products=found_products(draft.cards),
            citations=citations_of([cited[one] for one in draft.text.cited_ids if one in cited]),
            interpreted=Interpretation.model_validate(_shown(interpreted)),
            suggestions=list(draft.text.suggestions),
            relaxations=[
                TriedFilter(without=one.without, count=one.count, count_is_exact=one.is_exact, query=one.query)
                for one in found.relaxations
            ],
            language=spec.language,
            answered_by=draft.answered_by,
            notice=draft.notice if context.may_use_model else "quota_used_up",
        )
        return {
            "response": answer.model_dump(mode="json"),
            "sentences": list(draft.text.sentences),
            "seen": [*(context.seen_ids if _wants_others(interpreted) else ()), *draft.text.cited_ids],
            "tokens": interpreted["tokens"] + draft.num_tokens,
        }

    def _save(self, market: TurnDatabase, completed: Mapping[str, Any]) -> None:
        """Once more after a kill: the message is there already then, and counts no tokens again."""
        spec, response = self._spec, completed["response"]
        details = {name: response[name] for name in ("products_found", "citations", "interpreted", "answered_by")}
        with market.writing() as session:
            conversation = find_conversation(session, spec.user_id, spec.session_id)
            message = add_message(session, conversation, spec.turn_id, "assistant", response["response"], details)
            if message.details.get("tokens") is None:
                message.details = {**message.details, "tokens": completed["tokens"]}
                shown = [product["id"] for product in response["products"]]
                query = StructuredQuery.model_validate(response["interpreted"]["query"])
                if query.intent != "other" and (shown or not query.product_ids):
                    # Where nothing is shown, the numbers are still those of the last list.
                    last = shown or state_of(conversation).shown_ids
                    save_state(session, conversation, query, last, completed["seen"])
                count_tokens(session, spec.user_id, today(), completed["tokens"])

    def _apply(self, state: Mapping[str, Any]) -> None:
        """What another process has shown."""
        self._num_shown += 1
        self._interpreted = state.get("interpreted", self._interpreted)
        self._completed = state.get("completed", self._completed)
        if over := state.get("over"):
            self.is_over, self.outcome = True, over


def _wants_others(interpreted: Mapping[str, Any]) -> bool:
    """The query is the one before, and what it showed is not what the buyer wants."""
    return any(one["rule"] == OTHERS for one in interpreted["explain"])


def _interpreted(understanding: Understanding) -> dict[str, Any]:
    return {
        "query": understanding.query.model_dump(mode="json"),
        "source": understanding.source,
        "explain": [one.model_dump() for one in understanding.parsed.explain],
        "tokens": understanding.num_tokens,
    }


def _shown(interpreted: Mapping[str, Any]) -> dict[str, Any]:
    return {name: interpreted[name] for name in ("query", "source", "explain")}


def event_block(event: Mapping[str, Any], state: Mapping[str, Any] | None = None) -> Block:
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    return Block(data, json.dumps(state, ensure_ascii=False).encode() if state else b"")
