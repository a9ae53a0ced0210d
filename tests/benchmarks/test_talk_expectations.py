"""The rules that judge talks: each refuses a wrong answer and passes a right one."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from benchmarks.judged_talks.expectations import TalkJudge, fits, goods_of_catalogue, goods_of_sample
from benchmarks.talks import Talk

SAMPLE = goods_of_sample()
G15, G14, TIPIS = "Laptop Gaming Rinjani G15", "Laptop Gaming Rinjani G14", "Laptop Rinjani Tipis 14"


def answer(names: Sequence[str], said: str = "Ini barangnya.") -> dict[str, Any]:
    return {"products": [{"name": name, "price": SAMPLE[name].price} for name in names], "response": said}


@pytest.mark.parametrize(
    ("rules", "right", "wrong"),
    [
        ({"exactly": [G15, G14]}, answer([G14, G15]), answer([G14])),
        ({"first": [G15]}, answer([G15, G14]), answer([G14, G15])),
        ({"first_is": {"city": ["Bandung"]}}, answer([TIPIS]), answer([G15])),
        ({"all_of": [[G15, G14], TIPIS]}, answer([G14, TIPIS]), answer([G15, G14])),
        ({"only": {"max_price": 9000000}}, answer([TIPIS]), answer([TIPIS, G15])),
        ({"none": True}, answer([]), answer([G15])),
        ({"min_products": 2}, answer([G15, G14]), answer([G15])),
        ({"max_products": 1}, answer([G15]), answer([G15, G14])),
        ({"says": ["@nothing"]}, answer([], "Tidak ada kulkas."), answer([], "Ini kulkasnya.")),
        ({"says_not": ["Rp 1(?![.]?\\d)"]}, answer([], "Rp 11.799.000"), answer([], "Harganya Rp 1.")),
        ({"about": {"name": G15, "says": ["price"]}}, answer([G15], "Rp 11.799.000"), answer([G15], "Rp 1.799.000")),
        ({"about": {"name": G15, "says": ["stock"]}}, answer([G15], "stok 7"), answer([G15], "stok 17")),
        ({"about": {"name": G15}}, answer([], f"{G15} baru."), answer([G14], f"{G15} baru.")),
        ({"either": [{"none": True}, {"says": ["habis"]}]}, answer([G15], "habis"), answer([G15])),
    ],
)
def test_a_rule_tells_right_from_wrong(
    rules: Mapping[str, Any], right: Mapping[str, Any], wrong: Mapping[str, Any]
) -> None:
    assert TalkJudge(SAMPLE).problems({"query": "?", **rules}, right) == []
    assert TalkJudge(SAMPLE).problems({"query": "?", **rules}, wrong) != []


def test_a_place_means_the_list_of_the_turn_that_showed_it() -> None:
    judge = TalkJudge(SAMPLE)
    judge.problems({"query": "laptop"}, answer([G15, TIPIS]))
    second = {"query": "yang nomor dua", "about": {"turn": 0, "place": 2}}
    assert judge.problems(second, answer([TIPIS])) == []
    assert judge.problems(second, answer([G15])) != []


def test_the_extreme_is_of_what_was_shown_or_of_all_that_fit() -> None:
    judge = TalkJudge(SAMPLE)
    judge.problems({"query": "laptop"}, answer([G15, G14]))
    lightest = {"attribute": "weight_kg", "order": "least", "turn": 0, "where": {"category": ["laptop"]}}
    assert judge.problems({"query": "?", "extreme": lightest}, answer([G14])) == []
    assert judge.problems({"query": "?", "extreme": lightest}, answer([TIPIS])) == []
    assert judge.problems({"query": "?", "extreme": lightest}, answer([G15])) != []


def test_a_product_that_does_not_exist_or_costs_something_else_is_wrong() -> None:
    judge = TalkJudge(SAMPLE)
    assert judge.problems({"query": "?"}, {"products": [{"name": "Laptop Asus", "price": 1}], "response": "Ini."}) != []
    assert judge.problems({"query": "?"}, {"products": [{"name": G15, "price": 1}], "response": "Ini."}) != []


@pytest.mark.parametrize("half", ["seen", "unseen"])
def test_every_turn_has_rules_that_the_goods_can_fulfil(half: str) -> None:
    talks = Talk.read(half)
    goods = {"sample": SAMPLE, "catalogue": goods_of_catalogue()}
    assert [talk.market for talk in talks].count("sample") == len(talks) / 2 == 15
    for talk in talks:
        assert 2 <= len(talk.turns) <= 4
        judge = TalkJudge(goods[talk.market])
        for turn in talk.turns:
            judge.problems(turn, answer([]))  # an unknown rule is a KeyError
            for name in turn.get("exactly", ()):
                assert name in judge.goods
            for rule in ("only", "first_is"):
                assert rule not in turn or any(fits(good, turn[rule]) for good in judge.goods.values())
