"""How often the model picks well: goods that no lesson has drawn, and no schema that holds it as in service."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from scripts.demo_model.asking import DemoModel, ask
from scripts.demo_model.checks import Check, Predicate
from scripts.demo_model.dialogue import Message
from scripts.demo_model.goods_picks import drawn_goods, drawn_question
from scripts.demo_model.words import LANGUAGES, Language
from tis.marketplace.assistant.answer_texts import NUM_PICKS
from tis.marketplace.assistant.goods import FoundGoods, ProductCard
from tis.marketplace.assistant.picking import PickedGoods, pick_messages, read_picks
from tis.marketplace.assistant.verifier import verify
from tis.marketplace.reading.structured_query import StructuredQuery

_SEED = 4243
_NUM_CHECKS = 4
_SAMPLE = Path(__file__).resolve().parents[2] / "tis/marketplace/seed/sample.json"


@dataclass(frozen=True)
class PickQuestion:
    text: str
    query: StructuredQuery
    cards: Sequence[ProductCard]
    language: Language


@dataclass
class PickScore:
    asked: int = 0
    valid: int = 0  # JSON with the fields of the schema, and ids of the cards
    first: int = 0
    in_order: int = 0  # all that should be picked, and no other
    kept: int = 0  # every sentence of it passes the verifier

    def lines(self) -> Iterator[str]:
        yield f"an answer that is JSON of the schema: {self.valid} of {self.asked}"
        yield f"the first pick is the first card: {self.first} of {self.asked}"
        yield f"the picks are the first cards, in order: {self.in_order} of {self.asked}"
        yield f"the verifier keeps every sentence: {self.kept} of {self.asked}"


def invented_questions(count: int) -> Iterator[PickQuestion]:
    rng = Random(_SEED)
    for _ in range(count):
        language = rng.choice(LANGUAGES)
        found = drawn_goods(rng, language)
        yield PickQuestion(*drawn_question(rng, language, found.cards[0]), found.cards, language)


def sample_questions(count: int) -> Iterator[PickQuestion]:
    """Goods of the sample market, whose words no lesson has: some of them, in any order."""
    rng, goods = Random(_SEED), sample_cards()
    for _ in range(count):
        language = rng.choice(LANGUAGES)
        cards = rng.sample(goods, rng.randint(1, 8))
        yield PickQuestion(*drawn_question(rng, language, cards[0]), cards, language)


def sample_cards() -> list[ProductCard]:
    suppliers = json.loads(_SAMPLE.read_text(encoding="utf-8"))["suppliers"]
    goods = [(shop, product) for shop in suppliers for product in shop["products"]]
    return [
        ProductCard(
            id=number,
            name=product["name"],
            price=product["price"],
            category=product["category"],
            brand=product.get("brand"),
            condition=product.get("condition", "new"),
            available_quantity=product["stock"],
            supplier_id=1,
            supplier_name=shop["business_name"],
            city=shop["city"],
            rating=None,
            rating_count=0,
            distance_km=None,
            fulfilment=None,
            attributes=product.get("attributes", {}),
            description=product.get("description", ""),
        )
        for number, (shop, product) in enumerate(goods, 1)
    ]


def score_picks(demo: DemoModel, questions: Iterator[PickQuestion]) -> PickScore:
    score = PickScore()
    for question in questions:
        score.asked += 1
        picked = _picked(demo, question)
        if picked is None:
            continue
        score.valid += 1
        ids, wanted = [pick.id for pick in picked.picks], [card.id for card in question.cards[:NUM_PICKS]]
        score.first += ids[0] == wanted[0]
        score.in_order += ids == wanted
        score.kept += _is_kept(picked, question)
    return score


def pick_checks() -> tuple[Check, ...]:
    """Goods of the sample market. Only the ids count: what is said of them falsely, the verifier drops."""
    return tuple(
        Check(tuple(_messages(question)), _picks_first(question), enable_thinking=False)
        for question in sample_questions(_NUM_CHECKS)
    )


def _picks_first(question: PickQuestion) -> Predicate:
    ids = [card.id for card in question.cards]

    def holds(answer: str) -> bool:
        picked = read_picks(answer, ids)
        return picked is not None and [pick.id for pick in picked.picks] == ids[:NUM_PICKS]

    return holds


def _messages(question: PickQuestion) -> list[Message]:
    found = FoundGoods(question.cards, total=len(question.cards))
    return pick_messages(question.text, question.query, found, [], question.language)


def _picked(demo: DemoModel, question: PickQuestion) -> PickedGoods | None:
    answer = ask(demo, _messages(question), enable_thinking=False)
    ids = [card.id for card in question.cards]
    picked = read_picks(answer.text, ids) if answer.ended else None
    # `read_picks` leaves out what the schema would not have let pass.
    is_same = picked is not None and len(picked.picks) == len(json.loads(answer.text)["picks"])
    return picked if is_same else None


def _is_kept(picked: PickedGoods, question: PickQuestion) -> bool:
    cards = {card.id: card for card in question.cards}
    whys = [verify(pick.why, [cards[pick.id]], question.query).kept == pick.why != "" for pick in picked.picks]
    return all(whys) and verify(picked.intro, question.cards, question.query).kept == picked.intro


PICK_MEASURES = {"invented goods": invented_questions, "goods of the sample market": sample_questions}
