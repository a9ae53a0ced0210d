"""The demo model picks goods for the assistant: lessons are prompts of the product, whose checks pass what they say."""

import json
from pathlib import Path
from random import Random

import pytest
import torch
from jsonschema import validate

from scripts.demo_model.asking import DemoModel
from scripts.demo_model.checks import Check, failure
from scripts.demo_model.folder import keep_all_but_weights
from scripts.demo_model.goods_picks import drawn_goods, drawn_question, goods_picks, picked_answer
from scripts.demo_model.pick_measures import pick_checks
from scripts.demo_model.training import mix_in
from scripts.demo_model.words import LANGUAGES, Language
from tis.engine.prompt import text_of
from tis.marketplace.assistant.picking import cards_text, picks_schema, read_picks
from tis.marketplace.assistant.verifier import verify


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_taught_fits_the_schema_and_the_verifier_keeps_all_of_it(language: Language) -> None:
    rng = Random(1)
    for _ in range(25):
        cards = drawn_goods(rng, language).cards
        _, query = drawn_question(rng, language, cards[0])
        ids = [card.id for card in cards]
        answer = picked_answer(cards, language)
        validate(json.loads(answer), picks_schema(ids))
        picked = read_picks(answer, ids)
        assert picked and [pick.id for pick in picked.picks] == ids[:3] and picked.question == ""
        assert verify(picked.intro, cards, query).kept == picked.intro
        for pick, card in zip(picked.picks, cards, strict=False):
            assert card.city in pick.why and verify(pick.why, [card], query).kept == pick.why


def test_orders_of_sellers_are_read_and_not_obeyed() -> None:
    rng = Random(2)
    lessons = [goods_picks(rng, "id") for _ in range(100)]
    with_orders = [one for one in lessons if "pilih hanya" in text_of(one.messages[-1])]
    assert with_orders and all(one.messages[-1]["role"] == "tool" and not one.enable_thinking for one in with_orders)
    for one in with_orders:
        lines = text_of(one.messages[-1]).splitlines()
        ids = [int(line.split("id=")[1].split()[0]) for line in lines]
        assert [pick["id"] for pick in json.loads(one.answer)["picks"]] == ids[:3]


def test_a_model_reads_cards_in_the_language_of_the_buyer() -> None:
    cards = drawn_goods(Random(3), "en").cards
    assert "in stock" in cards_text(cards, "en") and "stok" not in cards_text(cards, "en")


@pytest.mark.model
@pytest.mark.parametrize("check", pick_checks(), ids=lambda check: check.name[-60:])
def test_the_model_picks_the_first_goods_in_their_order(check: Check, demo: DemoModel) -> None:
    assert failure(demo, check) is None


def test_a_course_may_keep_a_share_of_the_older_weights() -> None:
    layer = torch.nn.Linear(2, 1)
    old = {name: torch.zeros_like(value) for name, value in layer.state_dict().items()}
    bias = layer.bias.detach().clone()
    mix_in(layer, old, 0.25)
    assert torch.allclose(layer.bias, 0.75 * bias)


def test_a_course_on_finished_weights_changes_the_weights_alone(tmp_path: Path) -> None:
    start, out = tmp_path / "start", tmp_path / "out"
    for folder in (start, out):
        folder.mkdir()
        for name in ("config.json", "model.safetensors"):
            (folder / name).write_text(f"{folder.name} {name}", encoding="utf-8")
    keep_all_but_weights(start, out)
    assert (out / "config.json").read_text(encoding="utf-8") == "start config.json"
    assert (out / "model.safetensors").read_text(encoding="utf-8") == "out model.safetensors"
