"""A text is cut where a speaker pauses; nothing of it is lost, and no sentence is too long."""

import random

import pytest

from tis.engine.voice.sentences import sentences_of


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Halo.", ["Halo."]),
        ("Selamat pagi semua orang di sini. Apa kabar?", ["Selamat pagi semua orang di sini.", "Apa kabar?"]),
        ("Ya. Selamat pagi.", ["Ya. Selamat pagi."]),
        ("Harga 3.500 rupiah saja untuk kamu", ["Harga 3.500 rupiah saja untuk kamu"]),
        ('Dia berkata "Selamat datang!" Lalu pergi.', ['Dia berkata "Selamat datang!"', "Lalu pergi."]),
        ("Judul yang cukup panjang begini\n\nIsi.", ["Judul yang cukup panjang begini", "Isi."]),
        (
            "今日は良い天気ですね、とても良い天気だと思います。はい。",
            ["今日は良い天気ですね、とても良い天気だと思います。", "はい。"],
        ),
        (" \n\t ", []),
    ],
)
def test_sentences(text: str, wanted: list[str]) -> None:
    assert sentences_of(text, 200) == wanted


def test_a_long_sentence_is_cut_at_a_pause_else_at_a_space_else_anywhere() -> None:
    assert sentences_of("satu dua tiga, empat lima enam tujuh", 20) == ["satu dua tiga,", "empat lima enam", "tujuh"]
    assert sentences_of("x" * 45, 20) == ["x" * 20, "x" * 20, "x" * 5]


def test_random_texts_lose_nothing_but_spaces() -> None:
    draw = random.Random(5)
    for _ in range(300):
        text = "".join(draw.choice("ab .!?,\n\"'。…") for _ in range(draw.randrange(400)))
        sentences = sentences_of(text, 50)
        assert "".join("".join(sentences).split()) == "".join(text.split())
        assert all(0 < len(sentence) <= 50 for sentence in sentences)
