"""A turn of the assistant that another process goes on with, cancels or cannot read."""

import json
from collections.abc import Sequence

import pytest
from sqlalchemy import delete, select

from tests.marketplace.assistant.test_chat_search import QUESTION, ScriptedModel, picks
from tests.marketplace.shop import Shop
from tis.admission.admission import Admission
from tis.errors import Forbidden, Unavailable
from tis.marketplace.assistant.conversations import add_message, open_conversation
from tis.marketplace.assistant.shopping_assistant import ShoppingAssistant
from tis.marketplace.assistant.turn import AssistantTurn, TurnSpec
from tis.marketplace.market import Market
from tis.marketplace.tables import Conversation, ConversationMessage, User
from tis.streaming.source import Block, Source

pytestmark = pytest.mark.anyio


class AskedMarket:
    """A market with two laptops, and a user who has asked for one."""

    def __init__(self, market: Market) -> None:
        self.market, self.model = market, ScriptedModel()
        market.assistant = ShoppingAssistant(market, self.model)
        shop = Shop(market)
        self.ids = [shop.product(name=name, price=9_000_000) for name in ("Acer laptop gaming", "Asus laptop gaming")]
        user = shop.user(ai_access_enabled=True, city="Jakarta")
        with market.writing() as session:
            market.search.refresh(session, self.ids)
            conversation = open_conversation(session, user, None)
            add_message(session, conversation, "turn", "user", QUESTION, {})
            number, session_id = conversation.id, conversation.session_id
        self.spec = TurnSpec("turn", user, session_id, number, QUESTION, "id")
        self.model.picks = picks((self.ids[1], ""), (self.ids[0], ""))

    def turn(self) -> AssistantTurn:
        return AssistantTurn(self.spec.to_json(), lambda: self.market, Admission(), Admission().ticket("user"))

    def resumed(self, blocks: Sequence[Block]) -> Source:
        states = [block.resume_state for block in blocks]
        return AssistantTurn(self.spec.to_json(), lambda: self.market, Admission(), None, states)

    def forget_answer(self) -> None:
        """As before the database had it."""
        with self.market.writing() as session:
            session.execute(delete(ConversationMessage).where(ConversationMessage.role == "assistant"))
            session.get_one(Conversation, self.spec.conversation_id).state = {}

    def answers(self) -> list[str]:
        with self.market.reading() as session:
            answers = select(ConversationMessage.content).where(ConversationMessage.role == "assistant")
            return list(session.scalars(answers))


@pytest.fixture
def asked(market: Market) -> AskedMarket:
    return AskedMarket(market)


async def all_of(source: Source) -> list[Block]:
    return [block async for blocks in source.events() for block in blocks]


async def test_another_process_goes_on_behind_every_event(asked: AskedMarket) -> None:
    whole = await all_of(asked.turn())
    data = [block.data for block in whole]
    assert len(data) > 5 and json.loads(data[-1])["response"]["answered_by"] == "model"
    for num_shown in range(len(whole) + 1):
        asked.forget_answer()
        turn = asked.resumed(whole[:num_shown])
        rest = await all_of(turn)
        assert [*data[:num_shown], *(block.data for block in rest)] == data
        assert turn.outcome == "finished"
        assert len(asked.answers()) == (num_shown <= len(whole) - 1)


async def test_a_kill_between_the_database_and_the_last_event_saves_no_second_answer(asked: AskedMarket) -> None:
    whole = await all_of(asked.turn())
    await all_of(asked.resumed(whole[:-1]))
    assert len(asked.answers()) == 1


async def test_no_model_is_asked_again_once_its_answer_is_shown(asked: AskedMarket) -> None:
    whole = await all_of(asked.turn())
    asked.model.tasks.clear()
    await all_of(asked.resumed(whole[:4]))
    assert not asked.model.tasks


async def test_a_cancelled_turn_says_so_and_keeps_the_question(asked: AskedMarket) -> None:
    turn = asked.turn()
    turn.cancel()
    blocks = await all_of(turn)
    assert json.loads(blocks[-1].data) == {"type": "chat.search.cancelled"}
    assert turn.outcome == "cancelled" and not asked.answers()
    assert await all_of(asked.resumed(blocks)) == []


async def test_a_fault_is_an_event_without_its_text(asked: AskedMarket) -> None:
    turn = asked.turn()
    failed = json.loads(turn.failure(RuntimeError("a secret")).data)
    assert (failed["type"], failed["status"]) == ("chat.search.failed", 500) and "secret" not in json.dumps(failed)
    assert json.loads(asked.turn().failure(Unavailable("Later.")).data)["status"] == 503


@pytest.mark.parametrize("request_of_turn", [b"{}", b"no json", b'{"kind": "marketplace_chat", "version": 99}'])
async def test_what_another_version_began_ends_with_its_reason(asked: AskedMarket, request_of_turn: bytes) -> None:
    turn = AssistantTurn(request_of_turn, lambda: asked.market, Admission(), None, [])
    with pytest.raises(Exception, match="cannot read"):
        await all_of(turn)


async def test_without_resuming_it_ends_with_its_reason(asked: AskedMarket) -> None:
    turn = AssistantTurn(asked.spec.to_json(), lambda: asked.market, Admission(), None, [], may_resume=False)
    with pytest.raises(Exception, match="RESUME_GENERATION"):
        await all_of(turn)


async def test_who_lost_ai_access_meanwhile_gets_no_answer(asked: AskedMarket) -> None:
    whole = await all_of(asked.turn())
    asked.forget_answer()
    with asked.market.writing() as session:
        session.get_one(User, asked.spec.user_id).ai_access_enabled = False
    with pytest.raises(Forbidden):
        await all_of(asked.resumed(whole[:1]))
    assert not asked.answers()
