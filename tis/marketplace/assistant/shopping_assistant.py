"""`ShoppingAssistant`: understands a sentence, finds goods, and answers with what the database says.

Each method reads in a transaction of its own, in a thread; none is open while the model speaks.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from typing import Protocol

from tis.admission.ticket import Ticket
from tis.chat.structured_answer import ModelReply, ModelTask
from tis.errors import Forbidden
from tis.marketplace.assistant.answer_texts import AnswerText, render_answer
from tis.marketplace.assistant.catalogue_tools import CatalogueDatabase, catalogue_tools
from tis.marketplace.assistant.chat_schemas import AnsweredBy, Interpretation
from tis.marketplace.assistant.conversations import find_conversation, newest_messages, state_of
from tis.marketplace.assistant.extraction import (
    MAX_EXTRACTED_TOKENS,
    extraction_messages,
    extraction_schema,
    merge,
    read_extraction,
)
from tis.marketplace.assistant.finding import find_for_talk, still_wanted
from tis.marketplace.assistant.goods import MAX_CARDS, FoundGoods, ProductCard
from tis.marketplace.assistant.goods_search import GoodsSearch
from tis.marketplace.assistant.picking import (
    MAX_HISTORY,
    MAX_PICK_TOKENS,
    PickedGoods,
    pick_messages,
    picks_schema,
    read_picks,
)
from tis.marketplace.assistant.verifier import verify
from tis.marketplace.assistant.viewers import Viewer, has_tokens_left, viewer_of
from tis.marketplace.columns import now
from tis.marketplace.kit.threads import in_thread
from tis.marketplace.products.delivery import Language
from tis.marketplace.reading.parse import parse_query
from tis.marketplace.reading.structured_query import KnownUser, QueryContext, ShownProduct, StructuredQuery
from tis.marketplace.reading.vocabulary import Vocabulary
from tis.marketplace.users.service import find_user

NO_AI_ACCESS = "AI access not enabled for this user"
_MODEL_INTENTS = ("search", "recommend")


class AssistantModel(Protocol):
    """A language model. `app` passes the engine's, tests pass a small one of their own."""

    async def ready_model(self) -> str | None:
        """The id of a model that can answer now."""
        ...

    async def ask(self, task: ModelTask, ticket: Ticket) -> ModelReply | None:
        """None if no answer comes in time or the model fails; the caller then goes on without."""
        ...


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
    may_use_model: bool  # within the quota of the day
    seen_ids: Sequence[int] = ()  # what the texts of answers to the same query have named


@dataclass(frozen=True)
class Asking:
    """A sentence, and whether a model may be asked. `owner`: whose cached prefixes it uses."""

    text: str
    owner: str
    ticket: Ticket
    uses_model: bool


@dataclass(frozen=True)
class AnswerDraft:
    """`cards` were read after the model has spoken; the text says nothing else."""

    text: AnswerText
    found: FoundGoods
    cards: Sequence[ProductCard]  # first those that the text names, by their numbers
    answered_by: AnsweredBy
    notice: str | None


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

    def read_context(self, user_id: int, session_id: str, language: Language) -> TurnContext:
        """Blocks. Raises NotFound if the user or the conversation is gone, Forbidden if the user has no AI access."""
        with self._database.reading() as session:
            conversation = find_conversation(session, user_id, session_id)
            if not find_user(session, user_id).ai_access_enabled:  # taken away before the turn was resumed
                raise Forbidden(NO_AI_ACCESS)
            viewer = viewer_of(session, user_id, language)
            state = state_of(conversation)
            shown_ids = state.shown_ids[:MAX_CARDS]
            shown = {card.id: card for card in GoodsSearch(self._database.search, session, viewer).cards(shown_ids)}
            # The newest one is the sentence that is to be answered.
            messages = reversed(newest_messages(session, conversation, MAX_HISTORY + 1)[1:])
            history = [(one.role, one.content) for one in messages]
            may_use_model = has_tokens_left(session, user_id, today(), self.limits.tokens_per_day)
        # What is gone keeps its number.
        results = [
            ShownProduct.model_validate(shown[one], from_attributes=True) if one in shown else ShownProduct(id=one)
            for one in shown_ids
        ]
        user = KnownUser(city=viewer.city)
        query_context = QueryContext(user=user, previous=state.query, last_results=results)
        return TurnContext(viewer, query_context, history, may_use_model, state.seen_ids)

    async def understand(self, asking: Asking, context: QueryContext) -> tuple[Interpretation, int]:
        """With the number of tokens that a model has read and written."""
        vocabulary = await in_thread(self._read_vocabulary)
        rules = await in_thread(parse_query, asking.text, context, vocabulary)
        by_rules = Interpretation(query=rules.query, source="rules", explain=rules.explain)
        model = await self._ready_model() if asking.uses_model and rules.query.intent != "other" else None
        if model is None:
            return by_rules, 0
        messages = extraction_messages(asking.text, rules.query, context.previous, today().isoformat())
        schema = extraction_schema(vocabulary)
        seconds = self.limits.extraction_seconds
        task = ModelTask(messages, lambda: schema, MAX_EXTRACTED_TOKENS, seconds, asking.owner)
        reply = await model.ask(task, asking.ticket)
        if reply is None:
            return by_rules, 0
        extracted = read_extraction(reply.text)
        merged = merge(asking.text, rules, extracted, vocabulary) if extracted else by_rules
        return merged, reply.num_prompt_tokens + reply.num_made_tokens

    def find(self, query: StructuredQuery, viewer: Viewer, skipped: frozenset[int]) -> FoundGoods:
        """Blocks. What matches only a part of the words is found where nothing matches all of them."""
        with self._searching(viewer) as goods:
            return _whole_matches(find_for_talk(goods, query, skipped))

    async def answer(
        self, asking: Asking, query: StructuredQuery, found: FoundGoods, context: TurnContext
    ) -> tuple[AnswerDraft, int]:
        """With the number of tokens that a model has read and written."""
        picked, num_tokens, notice = None, 0, None
        if asking.uses_model and found.cards and query.intent in _MODEL_INTENTS and query.order_by is None:
            if model := await self._ready_model():
                picked, num_tokens = await self._pick(model, asking, query, found, context)
                notice = None if picked else "model_failed"
            else:
                notice = "no_model"
        draft = await in_thread(self._draft, asking.text, query, found, picked, context.viewer)
        return replace(draft, notice=notice if context.may_use_model else "quota_used_up"), num_tokens

    async def choose(self, task: ModelTask, ticket: Ticket) -> ModelReply | None:
        """For rooms that let a model choose among what they have read. None without a model, and where it fails."""
        model = await self._ready_model()
        return await model.ask(task, ticket) if model else None

    async def _ready_model(self) -> AssistantModel | None:
        return self._model if self._model and await self._model.ready_model() is not None else None

    async def _pick(
        self, model: AssistantModel, asking: Asking, query: StructuredQuery, found: FoundGoods, context: TurnContext
    ) -> tuple[PickedGoods | None, int]:
        ids = {card.id: None for card in found.cards}  # in their order
        viewer = context.viewer

        def note(cards: Sequence[ProductCard]) -> None:
            """What a tool finds can be picked, too."""
            ids.update(dict.fromkeys(card.id for card in cards))

        task = ModelTask(
            pick_messages(asking.text, query, found, context.history, viewer.language),
            lambda: picks_schema(list(ids)),
            MAX_PICK_TOKENS,
            self.limits.answer_seconds,
            asking.owner,
            catalogue_tools(self._database, lambda _: viewer, on_cards=note),
            suits_toys=True,
        )
        reply = await model.ask(task, asking.ticket)
        if reply is None:
            return None, 0
        return read_picks(reply.text, list(ids)), reply.num_prompt_tokens + reply.num_made_tokens

    def _draft(
        self, text: str, query: StructuredQuery, found: FoundGoods, picked: PickedGoods | None, viewer: Viewer
    ) -> AnswerDraft:
        """Reads everything again: what was sold or changed while the model spoke is not offered as it was. If that is
        less than was found, it searches again, as counts and alternatives are others then.
        """
        picked_ids = [pick.id for pick in picked.picks] if picked else []
        with self._searching(viewer) as goods:
            kept = still_wanted(goods, _once(picked_ids, found.cards), query)
            if any(card.id not in kept for card in found.cards):
                found = _whole_matches(find_for_talk(goods, query, found.skipped))
                kept = _once([one for one in kept if one in picked_ids], found.cards)
            cards = {card.id: card for card in goods.cards_for(kept[:MAX_CARDS], query)}
            # These distances are from the place that the buyer named.
            distances = {card.id: card.distance_km for card in found.nearest}
            nearest = [
                replace(card, distance_km=distances[card.id], fulfilment=None) for card in goods.cards(list(distances))
            ]
            brands = frozenset(goods.search.vocabulary(goods.session).brands) if picked else frozenset()
        picks = [pick for pick in picked.picks if pick.id in cards] if picked else []
        whys = {pick.id: verify(pick.why, [cards[pick.id]], query, brands).kept for pick in picks}
        intro = verify(picked.intro, list(cards.values()), query, brands).kept if picked else ""
        found = replace(found, cards=list(cards.values()), nearest=nearest)
        answer = render_answer(found, list(whys), query, viewer, intro, whys, text)
        by_id = {card.id: card for card in (*nearest, *found.cards)}
        shown = [by_id[one] for one in _once(answer.cited_ids, found.cards)]
        return AnswerDraft(answer, found, shown, "model" if picks else "template", None)

    @contextmanager
    def _searching(self, viewer: Viewer) -> Iterator[GoodsSearch]:
        with self._database.reading() as session:
            yield GoodsSearch(self._database.search, session, viewer)

    def _read_vocabulary(self) -> Vocabulary:
        with self._database.reading() as session:
            return self._database.search.vocabulary(session)


def today() -> date:
    return now().date()


def _once(ids: Sequence[int], cards: Sequence[ProductCard]) -> list[int]:
    """The ids, then those of the cards, each once."""
    return list(dict.fromkeys([*ids, *(card.id for card in cards)]))


def _whole_matches(found: FoundGoods) -> FoundGoods:
    return replace(found, cards=found.cards[: found.total]) if found.total else found
