"""`POST /api/chat/search`: who may ask, what an answer says, streams, and a model that lies or fails."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from sqlalchemy.orm import Session

from tests.marketplace.conftest import SECRET
from tests.marketplace.shop import Shop
from tests.serving import Served, served, settings_with
from tis.admission.ticket import Ticket
from tis.chat.structured_answer import ModelReply, ModelTask
from tis.marketplace.assistant import chat_routes
from tis.marketplace.columns import now
from tis.marketplace.market import Market
from tis.marketplace.tables import Product
from tis.streaming.errors import SessionConflict

QUESTION = "Saya butuh laptop gaming di Jakarta, budget 12 juta"
Answerer = Callable[[ModelTask], str | None]


class ScriptedModel:
    """Answers as a test says; without a script it is not there."""

    def __init__(self) -> None:
        self.picks: Answerer | None = None
        self.extracts: Answerer | None = None
        self.tasks: list[ModelTask] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []  # of tools, before it answers
        self.speaking = asyncio.Event()
        self.may_end: asyncio.Event | None = None

    async def ready_model(self) -> str | None:
        return "scripted" if self.picks or self.extracts else None

    async def ask(self, task: ModelTask, ticket: Ticket) -> ModelReply | None:
        answer = self.picks if "picks" in task.schema()["properties"] else self.extracts
        if answer is None:
            return None
        self.tasks.append(task)
        for name, arguments in self.calls:
            [tool] = [one for one in task.tools if one.tool.name == name]
            await tool.call(arguments)
        text = answer(task)
        return None if text is None else ModelReply(text, 100, 20)


def picks(*chosen: tuple[int, str], intro: str = "", question: str = "") -> Answerer:
    reply = {"intro": intro, "picks": [{"id": one, "why": why} for one, why in chosen], "question": question}
    return lambda task: json.dumps(reply)


class AskableMarket:
    def __init__(self, running: Served, model: ScriptedModel) -> None:
        self.running, self.model = running, model
        self.shop = Shop(running.app.state.marketplace.market)
        place = {"latitude": -6.21, "longitude": 106.85, "city": "Jakarta"}
        self.user = self.shop.user(ai_access_enabled=True, **place)
        self.other = self.shop.user(ai_access_enabled=True)
        self.poor = self.shop.user()
        self.ids = [
            self.product("Acer Nitro 5 laptop gaming", 11_499_000, brand="Acer"),
            self.product("Asus TUF laptop gaming", 11_999_000, brand="Asus"),
            self.product("Rinjani G17 laptop gaming", 18_000_000, brand="Rinjani"),
        ]

    def product(self, name: str, price: int, **values: Any) -> int:
        number = self.shop.product(name=name, price=price, category="laptop", category_key="laptop", **values)
        market = self.shop.market
        with market.writing() as session:
            market.search.refresh(session, [number])
        return number

    def client(self, user: int | None) -> httpx2.Client:
        headers = self.shop.auth_headers(f"user:{user}") if user else {}
        return httpx2.Client(base_url=self.running.url, headers=headers, timeout=30)


@pytest.fixture(scope="module")
def market(database_url: str) -> Iterator[AskableMarket]:
    settings = settings_with(database_url=database_url, jwt_secret_key=SECRET, marketplace_auth="required")
    model = ScriptedModel()
    with served(settings, assistant_model=model) as running:
        running.app.state.marketplace.market.open()
        yield AskableMarket(running, model)


@pytest.fixture
def model(market: AskableMarket) -> Iterator[ScriptedModel]:
    market.model.tasks.clear()
    yield market.model
    market.model.picks = market.model.extracts = None
    market.model.calls = []


@pytest.fixture
def buyer(market: AskableMarket) -> Iterator[httpx2.Client]:
    with market.client(market.user) as client:
        yield client


def ask(client: httpx2.Client, query: str = QUESTION, **fields: Any) -> dict[str, Any]:
    response = client.post("/api/chat/search", json={"query": query, **fields})
    assert response.status_code == 200, response.text
    return dict(response.json())


def events_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


def test_the_question_of_the_documents_gets_what_is_there(buyer: httpx2.Client, market: AskableMarket) -> None:
    answer = ask(buyer)
    assert {product["id"] for product in answer["products"]} == set(market.ids[:2])
    assert answer["products_found"] == 2
    assert (answer["answered_by"], answer["notice"], answer["language"]) == ("template", "no_model", "id")
    assert answer["interpreted"]["query"]["max_price"] == 12_000_000
    assert answer["interpreted"]["source"] == "rules"
    assert {one["product_id"] for one in answer["citations"]} <= set(market.ids[:2])
    assert "11.499.000" in answer["response"] and "18.000.000" not in answer["response"]
    assert not {"latitude", "longitude", "email", "phone", "address"} & set(answer["products"][0])


def test_who_may_ask(market: AskableMarket) -> None:
    with market.client(None) as nobody, market.client(market.poor) as poor, market.client(market.other) as other:
        assert nobody.post("/api/chat/search", json={"query": QUESTION}).status_code == 401
        refused = poor.post("/api/chat/search", json={"query": QUESTION})
        assert (refused.status_code, refused.json()["detail"]) == (403, "AI access not enabled for this user")
        named = other.post("/api/chat/search", json={"query": QUESTION, "user_id": market.user})
        assert named.status_code == 404
        with market.client(market.user) as buyer:
            session_id = ask(buyer, user_id=market.user)["session_id"]
        body = {"query": QUESTION, "session_id": session_id}
        assert other.post("/api/chat/search", json=body).status_code == 404
        assert other.get(f"/api/chat/stream/{session_id}").status_code == 404
        assert other.post(f"/api/chat/cancel/{session_id}").json()["status"] == "unknown"


@pytest.mark.parametrize(
    "body",
    [{}, {"query": ""}, {"query": "   "}, {"query": "x" * 501}, {"query": "x", "session_id": "a b"}, {"query": 5}],
)
def test_a_bad_body_is_a_422(buyer: httpx2.Client, body: Mapping[str, Any]) -> None:
    assert buyer.post("/api/chat/search", json=body).status_code == 422


def test_the_model_picks_and_the_code_renders(
    buyer: httpx2.Client, market: AskableMarket, model: ScriptedModel
) -> None:
    second = market.ids[1]
    model.picks = picks((second, "Laptop gaming dari Asus."), intro="Ini pilihan untuk Anda.")
    answer = ask(buyer)
    assert answer["answered_by"] == "model" and answer["notice"] is None
    assert answer["citations"][0]["product_id"] == second == answer["products"][0]["id"]
    assert "11.999.000" in answer["response"]
    [task] = model.tasks
    assert task.schema()["properties"]["picks"]["items"]["properties"]["id"]["enum"] == sorted(market.ids[:2])
    sent = json.dumps(task.messages)
    assert "Acer Nitro" in sent and "106.8" not in sent and "@example.com" not in sent
    assert "Acer Nitro" not in task.messages[0]["content"]


def test_a_model_that_lies_is_not_heard(buyer: httpx2.Client, market: AskableMarket, model: ScriptedModel) -> None:
    first = market.ids[0]
    model.picks = picks((first, "Hanya Rp 5.000.000, diskon 50%, garansi resmi."), intro="Stok tinggal 99 unit.")
    answer = ask(buyer)
    assert answer["citations"][0]["product_id"] == first
    for lie in ("5.000.000", "50%", "garansi", "99 unit"):
        assert lie not in answer["response"]
    assert "11.499.000" in answer["response"]


@pytest.mark.parametrize(
    "reply", [None, "not json", '{"picks": []}', '{"intro":"","picks":[{"id":999,"why":""}],"question":""}']
)
def test_a_model_that_fails_leaves_the_template(
    buyer: httpx2.Client, market: AskableMarket, model: ScriptedModel, reply: str | None
) -> None:
    model.picks = lambda task: reply
    answer = ask(buyer)
    assert answer["answered_by"] == "template" and answer["notice"] == "model_failed"
    assert {product["id"] for product in answer["products"]} == set(market.ids[:2])


def test_what_was_sold_while_the_model_spoke_is_read_again(
    buyer: httpx2.Client, market: AskableMarket, model: ScriptedModel
) -> None:
    gone = market.product("Acer Aspire laptop gaming", 10_000_000)

    def sell(task: ModelTask) -> str:
        database = market.shop.market
        with database.writing() as session:
            session.get_one(Product, gone).deleted_at = now()
            session.get_one(Product, market.ids[1]).price = 11_111_000
            session.flush()
            database.search.refresh(session, [gone, market.ids[1]])
        return str(picks((gone, ""), (market.ids[1], ""))(task))

    model.picks = sell
    answer = ask(buyer)
    assert gone not in {product["id"] for product in answer["products"]} and answer["products_found"] == 2
    assert "10.000.000" not in answer["response"]
    assert "11.111.000" in answer["response"]


def test_a_price_that_rose_over_the_budget_meanwhile_is_not_offered(
    buyer: httpx2.Client, market: AskableMarket, model: ScriptedModel
) -> None:
    dear = market.product("Axioo laptop gaming", 10_500_000)

    def raise_price(task: ModelTask) -> str:
        database = market.shop.market
        with database.writing() as session:
            session.get_one(Product, dear).price = 13_000_000
            session.flush()
            database.search.refresh(session, [dear])
        return str(picks((dear, ""), (market.ids[0], ""))(task))

    model.picks = raise_price
    answer = ask(buyer)
    assert dear not in {product["id"] for product in answer["products"]}
    assert answer["citations"][0]["product_id"] == market.ids[0] and answer["products_found"] == 2


def test_a_conversation_goes_on(buyer: httpx2.Client, market: AskableMarket, model: ScriptedModel) -> None:
    first = ask(buyer)
    model.picks = picks((market.ids[0], ""))
    second = ask(buyer, "yang paling bagus", session_id=first["session_id"])
    assert second["session_id"] == first["session_id"]
    assert second["conversation_id"] == first["conversation_id"]
    roles = [message["role"] for message in model.tasks[0].messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "tool"]


@pytest.mark.parametrize(
    ("follow_up", "field", "value"),
    [
        ("di bawah 11 juta?", "max_price", 11_000_000),
        ("kalau di Bandung?", "cities", ["Bandung"]),
        ("jangan yang asus", "exclude_brands", ["asus"]),
        ("yang bekas aja", "condition", "used"),
    ],
)
def test_follow_ups_change_the_query_by_rules_alone(
    buyer: httpx2.Client, follow_up: str, field: str, value: object
) -> None:
    first = ask(buyer)
    second = ask(buyer, follow_up, session_id=first["session_id"])
    changed = second["interpreted"]["query"]
    assert changed[field] == value and second["interpreted"]["source"] == "rules"
    assert changed["category"] == "laptop" and changed["text"] == first["interpreted"]["query"]["text"]


def test_cheaper_is_cheaper_than_all_that_was_shown(buyer: httpx2.Client) -> None:
    first = ask(buyer)
    second = ask(buyer, "yang lebih murah?", session_id=first["session_id"])
    cheapest = min(product["price"] for product in first["products"])
    assert second["interpreted"]["query"]["max_price"] == cheapest - 1
    assert all(product["price"] < cheapest for product in second["products"])


def test_others_are_others_until_there_are_none(buyer: httpx2.Client, market: AskableMarket) -> None:
    umbrellas = [
        market.product(f"Payung lipat {color}", 19_000_000) for color in ("merah", "biru", "putih", "hijau", "kuning")
    ]
    first = ask(buyer, "payung lipat")
    session_id, seen = first["session_id"], {one["product_id"] for one in first["citations"]}
    assert len(seen) == 3
    second = ask(buyer, "ada yang lain?", session_id=session_id)
    assert {one["id"] for one in second["products"]} == set(umbrellas) - seen
    third = ask(buyer, "yang lain lagi", session_id=session_id)
    assert third["products"] == [] and third["products_found"] == 0
    assert "semuanya sudah" in third["response"]


def test_a_number_means_the_product_of_the_list(buyer: httpx2.Client) -> None:
    first = ask(buyer)
    second = ask(buyer, "yang nomor 2 masih ada stoknya?", session_id=first["session_id"])
    chosen = first["products"][1]
    assert [product["id"] for product in second["products"]] == [chosen["id"]]
    assert chosen["name"] in second["response"]
    both = ask(buyer, "bandingkan nomor 1 dan 2", session_id=ask(buyer)["session_id"])
    assert {product["id"] for product in both["products"]} == {product["id"] for product in first["products"]}


class CountingDatabase:
    """Counts the transactions of the assistant that are open."""

    def __init__(self, market: Market) -> None:
        self.search, self._market, self.num_open = market.search, market, 0

    @contextmanager
    def reading(self) -> Iterator[Session]:
        with self._market.reading() as session:
            self.num_open += 1
            yield session
            self.num_open -= 1


def test_no_transaction_is_open_while_the_model_speaks(
    buyer: httpx2.Client, market: AskableMarket, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = CountingDatabase(market.shop.market)
    monkeypatch.setattr(market.shop.market.assistant, "_database", database)
    num_open = []

    def noting(answer: Answerer) -> Answerer:
        def note(task: ModelTask) -> str | None:
            num_open.append(database.num_open)
            return answer(task)

        return note

    model.picks, model.extracts = noting(picks((market.ids[0], ""))), noting(extracted())
    assert ask(buyer)["answered_by"] == "model"
    assert num_open == [0, 0]


def test_a_greeting_needs_no_model(buyer: httpx2.Client, model: ScriptedModel) -> None:
    model.picks = picks()
    answer = ask(buyer, "halo")
    assert answer["products"] == [] and answer["interpreted"]["query"]["intent"] == "other"
    assert not model.tasks and answer["response"]


def test_a_stream_has_every_stage_and_can_be_read_again(buyer: httpx2.Client) -> None:
    response = buyer.post("/api/chat/search", json={"query": QUESTION, "stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    events = events_of(response.text)
    kinds = [event["type"].removeprefix("chat.search.") for event in events]
    assert kinds[:3] == ["created", "interpreted", "products"] and kinds[-1] == "completed"
    assert set(kinds[3:-1]) == {"text.delta"}
    answer = events[-1]["response"]
    assert "".join(event["delta"] for event in events[3:-1]) == answer["response"]
    session_id = answer["session_id"]
    again = buyer.get(f"/api/chat/stream/{session_id}")
    assert again.text == response.text
    blocks = response.text.split("\n\n")
    middle = buyer.get(f"/api/chat/stream/{session_id}", headers={"last-event-id": f"{session_id}:2"})
    assert middle.text == "\n\n".join(blocks[3:])
    end = buyer.get(f"/api/chat/stream/{session_id}", headers={"last-event-id": f"{session_id}:{len(events) - 1}"})
    assert end.status_code == 204


def test_a_retry_with_the_same_key_gets_the_same_answer(buyer: httpx2.Client) -> None:
    headers = {"Idempotency-Key": "one"}
    bodies = [buyer.post("/api/chat/search", json={"query": QUESTION}, headers=headers).json() for _ in range(2)]
    assert bodies[0] == bodies[1]
    another = buyer.post("/api/chat/search", json={"query": QUESTION}, headers={"Idempotency-Key": "two"}).json()
    assert another["session_id"] != bodies[0]["session_id"]


def test_the_same_question_later_is_a_new_one(buyer: httpx2.Client) -> None:
    session_id = ask(buyer)["session_id"]
    ask(buyer, session_id=session_id)
    messages = buyer.get(f"/api/chat/conversations/{session_id}").json()
    assert [message["role"] for message in messages] == ["assistant", "user"] * 2


def extracted(**fields: Any) -> Answerer:
    nothing = dict.fromkeys(
        ("category", "lowest_price", "highest_price", "condition", "fulfilment", "in_stock", "sort")
    )
    lists: dict[str, Any] = {"intent": "search", "words": "", "brands": [], "exclude": [], "places": []}
    return lambda task: json.dumps(nothing | lists | fields)


def test_a_model_adds_to_the_rules_for_users_with_ai_access(market: AskableMarket, model: ScriptedModel) -> None:
    sentence = {"query": "laptop yang kayak baru tapi second"}
    model.extracts = extracted(condition="used", highest_price="5 juta")
    sources = {}
    for name, user in (("nobody", None), ("poor", market.poor), ("buyer", market.user)):
        with market.client(user) as client:
            parsed = client.post("/api/search/parse", json=sentence).json()
            sources[name] = parsed["source"]
            assert parsed["query"]["max_price"] is None  # no such words stand in the sentence
    assert sources["nobody"] == sources["poor"] == "rules"
    assert len(model.tasks) == 1


def test_beyond_the_quota_of_a_day_the_rules_answer(market: AskableMarket, model: ScriptedModel) -> None:
    model.picks = picks((market.ids[0], ""))
    assistant = market.shop.market.assistant
    user = market.shop.user(ai_access_enabled=True)
    before = assistant.limits
    assistant.limits = replace(before, tokens_per_day=150)
    try:
        with market.client(user) as client:
            kinds = [(answer["answered_by"], answer["notice"]) for answer in (ask(client) for _ in range(3))]
            usage = client.get("/api/users/me/export").json()["chat_usage"]
    finally:
        assistant.limits = before
    assert kinds == [("model", None), ("model", None), ("template", "quota_used_up")]
    assert [day["tokens"] for day in usage] == [240]


def test_a_message_keeps_what_its_answer_showed(buyer: httpx2.Client) -> None:
    answer = ask(buyer)
    message, question = buyer.get(f"/api/chat/conversations/{answer['session_id']}").json()
    assert (question["role"], question["content"], question["details"]) == ("user", QUESTION, {})
    details = message["details"]
    assert message["content"] == answer["response"] and answer["products"]
    assert details["products"] == answer["products"][:5] and details["suggestions"] == answer["suggestions"]
    assert details["citations"] == answer["citations"]


def test_a_deleted_conversation_is_gone_with_its_stream(buyer: httpx2.Client) -> None:
    one, other = (ask(buyer)["session_id"] for _ in range(2))
    assert buyer.delete(f"/api/chat/conversations/{one}").status_code == 200
    for path in ("conversations", "stream"):
        assert buyer.get(f"/api/chat/{path}/{one}").status_code in (404, 410)
        assert buyer.get(f"/api/chat/{path}/{other}").status_code == 200
    assert buyer.delete("/api/chat/conversations").status_code == 200
    assert buyer.get(f"/api/chat/stream/{other}").status_code in (404, 410)
    assert buyer.post("/api/chat/search", json={"query": QUESTION, "session_id": one}).status_code == 404


def test_thanks_are_answered(buyer: httpx2.Client) -> None:
    assert ask(buyer, "makasih ya")["response"].startswith("Sama-sama")


def test_what_a_comparison_names_and_nobody_sells_is_no_other_product(
    buyer: httpx2.Client, market: AskableMarket
) -> None:
    both = ask(buyer, "bandingkan laptop toshiba dan sharp")
    assert both["products"] == [] and "toshiba" in both["response"] and "sharp" in both["response"]
    one = ask(buyer, "bandingkan acer nitro dan asus tuf 99")
    assert [product["id"] for product in one["products"]] == market.ids[:1]
    assert "Tidak saya temukan: asus tuf 99." in one["response"]
    assert "sharp" in ask(buyer, "compare a sharp with a toshiba")["response"]


def test_a_number_that_is_not_in_the_list_is_no_word_to_search_for(buyer: httpx2.Client) -> None:
    first = ask(buyer, "laptop asus", session_id=ask(buyer)["session_id"])
    for follow_up in ("nomor 5 masih ada?", "yang nomor 12", "bandingkan nomor 8 dan 9"):
        answer = ask(buyer, follow_up, session_id=first["session_id"])
        assert (answer["response"], answer["products"]) == ("Nomor itu tidak ada di daftar terakhir.", [])
    again = ask(buyer, "nomor 1", session_id=first["session_id"])
    assert again["products"][0]["id"] == first["products"][0]["id"]
    assert ask(buyer, "bandingkan nomor 1 dan 2")["products"] == []


def test_a_product_that_is_gone_keeps_its_number(buyer: httpx2.Client, market: AskableMarket) -> None:
    numbers = [market.product(f"Axioo Pongo {name} laptop", 7_000_000, brand="Axioo") for name in ("satu", "dua")]
    first = ask(buyer, "laptop axioo pongo")
    shown = [product["id"] for product in first["products"]]
    assert sorted(shown) == numbers
    with market.shop.market.writing() as session:
        session.get_one(Product, shown[0]).deleted_at = now()
        session.flush()
        market.shop.market.search.refresh(session, [shown[0]])
    gone = ask(buyer, "nomor 1 masih ada?", session_id=first["session_id"])
    assert gone["response"] == "Maaf, produk itu tidak ada lagi."
    there = ask(buyer, "nomor 2 masih ada?", session_id=first["session_id"])
    assert [product["id"] for product in there["products"]] == shown[1:]


def test_is_it_in_stock_is_not_answered_for_another_product(buyer: httpx2.Client, market: AskableMarket) -> None:
    answer = ask(buyer, "laptop acer nitro 77 masih ada stok?")
    assert "Ya," not in answer["response"] and answer["response"].startswith("Tidak ada produk yang cocok")


def test_a_price_that_rose_above_the_budget_while_the_model_spoke(
    buyer: httpx2.Client, market: AskableMarket, model: ScriptedModel
) -> None:
    risen = market.product("Acer Swift laptop gaming", 10_000_000)

    def raise_price(task: ModelTask) -> str:
        database = market.shop.market
        with database.writing() as session:
            session.get_one(Product, risen).price = 13_000_000
            session.flush()
            database.search.refresh(session, [risen])
        return str(picks((risen, ""))(task))

    model.picks = raise_price
    answer = ask(buyer)
    assert risen not in {product["id"] for product in answer["products"]}
    assert "13.000.000" not in answer["response"] and answer["products_found"] == 2
    assert answer["answered_by"] == "template"


def test_a_model_cannot_pick_what_its_tools_found_beyond_the_budget(
    buyer: httpx2.Client, market: AskableMarket, model: ScriptedModel
) -> None:
    dear = market.ids[2]

    model.calls = [("lookup_catalog", {"ids": [dear]})]
    model.picks = picks((dear, ""))
    assert dear not in {product["id"] for product in ask(buyer)["products"]}


def test_a_brand_of_the_catalogue_that_is_not_on_the_card_is_not_named(
    buyer: httpx2.Client, market: AskableMarket, model: ScriptedModel
) -> None:
    model.picks = picks((market.ids[0], "Lebih kencang dari rinjani."), intro="Pilihan yang lebih baik dari rinjani.")
    answer = ask(buyer)
    assert answer["answered_by"] == "model" and "rinjani" not in answer["response"]


def test_what_was_shown_from_elsewhere_is_not_said_to_be_gone(buyer: httpx2.Client, market: AskableMarket) -> None:
    first = ask(buyer, "laptop gaming di Papua")
    shown = [product["id"] for product in first["products"]]
    assert shown and [one["product_id"] for one in first["citations"]] == shown
    for follow_up in ("nomor 1 masih ada?", "yang nomor 1"):
        answer = ask(buyer, follow_up, session_id=first["session_id"])
        assert [product["id"] for product in answer["products"]] == shown[:1]


def test_an_unknown_field_is_ignored_with_a_warning(buyer: httpx2.Client) -> None:
    for stream in (False, True):
        body = {"query": QUESTION, "streem": True, "stream": stream}
        response = buyer.post("/api/chat/search", json=body)
        assert response.status_code == 200 and "streem" in response.headers["x-warnings"]
        if not stream:
            assert response.json()["warnings"] == ["Unknown field 'streem' was ignored."]
        else:
            assert events_of(response.text)[-1]["type"] == "chat.search.completed"


def test_a_key_of_another_question_is_refused(buyer: httpx2.Client) -> None:
    key = {"Idempotency-Key": "of a laptop"}
    first = buyer.post("/api/chat/search", json={"query": QUESTION}, headers=key)
    other = buyer.post("/api/chat/search", json={"query": "mouse"}, headers=key)
    assert first.status_code == 200 and other.status_code == 422
    assert other.json()["detail"] == "This Idempotency-Key was used for another question."


def test_a_post_with_last_event_id_goes_on_with_its_answer(buyer: httpx2.Client) -> None:
    body = {"query": QUESTION, "stream": True}
    whole = buyer.post("/api/chat/search", json=body).text
    session_id = events_of(whole)[0]["session_id"]
    body["session_id"] = session_id
    rest = buyer.post("/api/chat/search", json=body, headers={"last-event-id": f"{session_id}:1"})
    assert rest.text == "\n\n".join(whole.split("\n\n")[2:])
    end = buyer.post(
        "/api/chat/search", json=body, headers={"last-event-id": f"{session_id}:{whole.count('data: ') - 1}"}
    )
    assert end.status_code == 204
    never = buyer.post("/api/chat/search", json=body, headers={"last-event-id": f"{session_id}:99999"})
    assert never.status_code == 400
    assert len(buyer.get(f"/api/chat/conversations/{session_id}").json()) == 2
    another = buyer.post(
        "/api/chat/search", json=body | {"query": "laptop acer"}, headers={"last-event-id": f"{session_id}:1"}
    )
    assert events_of(another.text)[-1]["response"]["interpreted"]["query"]["brands"] == ["acer"]


def test_a_question_after_its_stream_has_ended_is_stored_again(buyer: httpx2.Client, market: AskableMarket) -> None:
    session_id = ask(buyer)["session_id"]
    sessions = market.running.app.state.sessions
    [session] = [one for one in sessions if one.id == session_id]
    sessions._held.forget(session)
    ask(buyer, session_id=session_id)
    assert len(buyer.get(f"/api/chat/conversations/{session_id}").json()) == 4


def test_a_conversation_that_is_deleted_before_the_question_is_stored_is_a_404(
    buyer: httpx2.Client, market: AskableMarket, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = ask(buyer)["session_id"]
    opened = chat_routes._open

    def open_and_lose(*args: Any) -> Any:
        found = opened(*args)
        assert buyer.delete(f"/api/chat/conversations/{session_id}").status_code == 200
        return found

    monkeypatch.setattr(chat_routes, "_open", open_and_lose)
    lost = buyer.post("/api/chat/search", json={"query": QUESTION, "session_id": session_id})
    assert (lost.status_code, lost.json()["detail"]) == (404, "Conversation not found")


def test_a_question_that_another_one_forestalled_is_not_kept(
    buyer: httpx2.Client, market: AskableMarket, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = ask(buyer)["session_id"]

    def busy(*args: Any) -> Any:
        raise SessionConflict("answering another request")

    monkeypatch.setattr(market.running.app.state.sessions, "start", busy)
    body = {"query": "mouse", "session_id": session_id}
    assert buyer.post("/api/chat/search", json=body).status_code == 409
    assert len(buyer.get(f"/api/chat/conversations/{session_id}").json()) == 2


def test_numbers_are_those_of_the_last_list_that_was_shown(buyer: httpx2.Client) -> None:
    first = ask(buyer)
    assert ask(buyer, "di bawah 1 juta", session_id=first["session_id"])["products"] == []
    again = ask(buyer, "nomor 2 masih ada?", session_id=first["session_id"])
    assert [product["id"] for product in again["products"]] == [first["products"][1]["id"]]
