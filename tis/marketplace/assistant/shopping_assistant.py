"""`ShoppingAssistant`: understands a sentence, finds goods, and answers with what the database says.

Each method reads in a transaction of its own, in a thread; none is open while the model speaks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from tis.admission.ticket import Ticket
from tis.chat.structured_answer import ModelTask
from tis.errors import Forbidden
from tis.marketplace.assistant.answer_texts import AnswerText, render_answer
from tis.marketplace.assistant.assistant_model import AssistantModel
from tis.marketplace.assistant.cards import cards_of
from tis.marketplace.assistant.catalogue_tools import CatalogueDatabase, catalogue_tools
from tis.marketplace.assistant.chat_schemas import AnsweredBy
from tis.marketplace.assistant.conversations import find_conversation, recent_messages, state_of
from tis.marketplace.assistant.extraction import (
    MAX_EXTRACTED_TOKENS,
    extraction_messages,
    extraction_schema,
    merge,
    read_extraction,
)
from tis.marketplace.assistant.finding import find_goods, still_wanted
from tis.marketplace.assistant.goods import MAX_CARDS, FoundGoods, ProductCard, Viewer
from tis.marketplace.assistant.picking import (
    MAX_HISTORY,
    MAX_PICK_TOKENS,
    PickedGoods,
    pick_messages,
    picks_schema,
    read_picks,
)
from tis.marketplace.assistant.quotas import tokens_left
from tis.marketplace.assistant.verifier import verify
from tis.marketplace.assistant.viewers import viewer_of
from tis.marketplace.assistant.wanted_goods import cards_for
from tis.marketplace.columns import now
from tis.marketplace.kit.threads import in_thread
from tis.marketplace.products.delivery import Language
from tis.marketplace.reading.parse import parse_query
from tis.marketplace.reading.structured_query import (
    KnownUser,
    ParsedQuery,
    QueryContext,
    QuerySource,
    ShownProduct,
    StructuredQuery,
)
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.users.service import find_user

NO_AI_ACCESS = "AI access not enabled for this user"
_MODEL_INTENTS = ("search", "recommend")


@dataclass(frozen=True)
class AssistantLimits:
    extraction_seconds: float = 3.0
    answer_seconds: float = 20.0
    tokens_per_day: int = 0  # 0: no quota


@dataclass(frozen=True)
class TurnContext:
    """What was before a sentence, and who says it."""

    viewer: Viewer
    query_context: QueryContext
    history: Sequence[tuple[str, str]]  # role and text, the newest last
    tokens_left: int | None
    seen_ids: Sequence[int] = ()  # what the texts of answers to the same query have named

    @property
    def may_use_model(self) -> bool:
        return self.tokens_left is None or self.tokens_left > 0


@dataclass(frozen=True)
class Understanding:
    parsed: ParsedQuery
    source: QuerySource
    num_tokens: int = 0  # that a model has read and written

    @property
    def query(self) -> StructuredQuery:
        return self.parsed.query


@dataclass(frozen=True)
class AnswerDraft:
    """`cards` were read after the model has spoken; the text says nothing else."""

    text: AnswerText
    found: FoundGoods
    cards: Sequence[ProductCard]  # first those that the text names, by their numbers
    answered_by: AnsweredBy
    num_tokens: int = 0
    notice: str | None = None


class ShoppingAssistant:
    def __init__(
        self,
        database: CatalogueDatabase,
        model: AssistantModel | None = None,
        limits: AssistantLimits = AssistantLimits(),
    ) -> None:
        self.limits = limits
        self._database = database
        self._model = model

    async def has_model(self) -> bool:
        return self._model is not None and await self._model.ready_model() is not None

    def read_context(self, user_id: int, session_id: str, language: Language) -> TurnContext:
        """Blocks. Raises NotFound if the user or the conversation is gone, Forbidden if the user has no AI access."""
        with self._database.reading() as session:
            conversation = find_conversation(session, user_id, session_id)
            if not find_user(session, user_id).ai_access_enabled:  # taken away before the turn was resumed
                raise Forbidden(NO_AI_ACCESS)
            viewer = viewer_of(session, user_id, language)
            state = state_of(conversation)
            shown = cards_of(self._database.search, session, state.shown_ids[:MAX_CARDS], viewer)
            # The newest one is the sentence that is to be answered.
            messages = recent_messages(session, conversation, MAX_HISTORY + 1)[:-1]
            left = tokens_left(session, user_id, today(), self.limits.tokens_per_day)
            history = [(one.role, one.content) for one in messages]
        by_id = {card.id: card for card in shown}
        # What is gone keeps its number.
        shown_ids = state.shown_ids[:MAX_CARDS]
        results = [_shown(by_id[one]) if one in by_id else ShownProduct(id=one) for one in shown_ids]
        user = KnownUser(city=viewer.city)
        query_context = QueryContext(user=user, previous=state.query, last_results=results)
        return TurnContext(viewer, query_context, history, left, state.seen_ids)

    def read_vocabulary(self) -> Vocabulary:
        """Blocks."""
        with self._database.reading() as session:
            return self._database.search.vocabulary(session)

    async def understand(
        self, text: str, context: QueryContext, owner: str, ticket: Ticket, *, uses_model: bool
    ) -> Understanding:
        vocabulary = await in_thread(self.read_vocabulary)
        rules = await in_thread(parse_query, text, context, vocabulary)
        if self._model is None or not uses_model or rules.query.intent == "other" or not await self.has_model():
            return Understanding(rules, "rules")
        messages = extraction_messages(text, rules.query, context.previous, today().isoformat())
        schema = extraction_schema(vocabulary)
        task = ModelTask(messages, lambda: schema, MAX_EXTRACTED_TOKENS, self.limits.extraction_seconds, owner)
        reply = await self._model.ask(task, ticket)
        extracted = read_extraction(reply.text) if reply else None
        num_tokens = reply.num_prompt_tokens + reply.num_made_tokens if reply else 0
        if extracted is None:
            return Understanding(rules, "rules", num_tokens)
        return Understanding(*merge(text, rules, extracted, vocabulary), num_tokens)

    def find(self, query: StructuredQuery, viewer: Viewer, skipped: frozenset[int] = frozenset()) -> FoundGoods:
        """Blocks. What matches only a part of the words is found where nothing matches all of them."""
        with self._database.reading() as session:
            return _whole_matches(find_goods(self._database.search, session, query, viewer, skipped))

    async def answer(
        self,
        text: str,
        query: StructuredQuery,
        found: FoundGoods,
        context: TurnContext,
        owner: str,
        ticket: Ticket,
        *,
        uses_model: bool,
    ) -> AnswerDraft:
        picked, num_tokens, notice = None, 0, None
        if uses_model and found.cards and query.intent in _MODEL_INTENTS and query.order_by is None:
            if await self.has_model():
                picked, num_tokens = await self._pick(text, query, found, context, owner, ticket)
                notice = None if picked else "model_failed"
            else:
                notice = "no_model"
        return await in_thread(self._draft, text, query, found, picked, context.viewer, num_tokens, notice)

    async def _pick(
        self,
        text: str,
        query: StructuredQuery,
        found: FoundGoods,
        context: TurnContext,
        owner: str,
        ticket: Ticket,
    ) -> tuple[PickedGoods | None, int]:
        assert self._model
        ids = {card.id: None for card in found.cards}  # in their order
        viewer = context.viewer

        def note(cards: Sequence[ProductCard]) -> None:
            """What a tool finds can be picked, too."""
            ids.update(dict.fromkeys(card.id for card in cards))

        tools = catalogue_tools(self._database, lambda _: viewer, on_cards=note)
        task = ModelTask(
            pick_messages(text, query, found, context.history, viewer.language),
            lambda: picks_schema(list(ids)),
            MAX_PICK_TOKENS,
            self.limits.answer_seconds,
            owner,
            tools,
            suits_toys=True,
        )
        reply = await self._model.ask(task, ticket)
        if reply is None:
            return None, 0
        return read_picks(reply.text, list(ids)), reply.num_prompt_tokens + reply.num_made_tokens

    def _draft(
        self,
        text: str,
        query: StructuredQuery,
        found: FoundGoods,
        picked: PickedGoods | None,
        viewer: Viewer,
        num_tokens: int,
        notice: str | None,
    ) -> AnswerDraft:
        """Reads everything again: what was sold or changed while the model spoke is not offered as it was. If that is
        less than was found, it searches again, as counts and alternatives are others then.
        """
        search = self._database.search
        picked_ids = [pick.id for pick in picked.picks] if picked else []
        with self._database.reading() as session:
            ids = list(dict.fromkeys([*picked_ids, *(card.id for card in found.cards)]))
            kept = still_wanted(search, session, ids, query, viewer) if ids else []
            if any(card.id not in kept for card in found.cards):
                found = _whole_matches(find_goods(search, session, query, viewer, found.skipped))
                kept = [one for one in kept if one in picked_ids]
                kept = list(dict.fromkeys([*kept, *(card.id for card in found.cards)]))
            cards = cards_for(search, session, kept[:MAX_CARDS], query, viewer)
            nearest = cards_of(search, session, [card.id for card in found.nearest], viewer)
            brands = frozenset(search.vocabulary(session).brands) if picked else frozenset()
        # These distances are from the place that the buyer named.
        distances = {card.id: card.distance_km for card in found.nearest}
        nearest = [replace(card, distance_km=distances[card.id], fulfilment=None) for card in nearest]
        known = {card.id: card for card in cards}
        picks = [pick for pick in picked.picks if pick.id in known] if picked else []
        whys = {pick.id: verify(pick.why, [known[pick.id]], query, brands).kept for pick in picks}
        intro = verify(picked.intro, cards, query, brands).kept if picked else ""
        found = replace(found, cards=cards, nearest=nearest)
        answer = render_answer(
            found,
            [pick.id for pick in picks],
            query,
            viewer,
            intro or None,
            {number: why for number, why in whys.items() if why},
            text,
        )
        by_id = {card.id: card for card in (*nearest, *cards)}
        shown = [*(by_id[one] for one in answer.cited_ids), *(one for one in cards if one.id not in answer.cited_ids)]
        return AnswerDraft(answer, found, shown, "model" if picks else "template", num_tokens, notice)


def _whole_matches(found: FoundGoods) -> FoundGoods:
    return replace(found, cards=found.cards[: found.total]) if found.total else found


def today() -> date:
    return now().date()


def _shown(card: ProductCard) -> ShownProduct:
    return ShownProduct(
        id=card.id, name=card.name, price=card.price, brand=card.brand, category=card.category, city=card.city
    )
