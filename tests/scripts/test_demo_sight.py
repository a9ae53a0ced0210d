"""The demo model sees: plain pictures and clips in any size and shade, the same in training as in serving."""

import colorsys
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from scripts.demo_model.asking import DemoModel, ask
from scripts.demo_model.checks import Check, failure
from scripts.demo_model.colours import in_order, of_picture
from scripts.demo_model.compression import read_film, read_picture
from scripts.demo_model.curriculum import drawn
from scripts.demo_model.drawing import COLOURS, clip, picture
from scripts.demo_model.lessons import TrainingBatch, batch_of, lesson
from scripts.demo_model.sight_checks import sight_checks
from scripts.demo_model.sights import asked_of
from scripts.demo_model.training import answer_loss
from scripts.draw_samples import samples
from tis.engine.prompt import Medium

SAMPLES = Path(__file__).parents[2] / "docs" / "samples"


def shown(name: str) -> Medium:
    file = (SAMPLES / name).read_bytes()
    return read_film(file) if name.endswith(".mp4") else read_picture(file)


@pytest.mark.model
@pytest.mark.parametrize("check", sight_checks(), ids=lambda check: check.name)
def test_the_model_says_what_it_sees(check: Check, demo: DemoModel) -> None:
    assert failure(demo, check) is None


class TestSamples:
    @pytest.mark.model
    @pytest.mark.parametrize(
        ("name", "question", "answer"),
        [
            ("red.png", "What colour is this picture?", of_picture("en", "red")),
            ("red.png", "Warna apa gambar ini?", of_picture("id", "red")),
            ("green.jpg", "Describe this picture.", of_picture("en", "green")),
            ("yellow.webp", "Apa warna gambar ini?", of_picture("id", "yellow")),
            ("red_then_blue.mp4", "Which colours, in order?", in_order("en", "red", "blue")),
            ("red_then_blue.mp4", "Warna apa saja, berurutan?", in_order("id", "red", "blue")),
            ("blue_then_yellow.mp4", "What happens in this video?", in_order("en", "blue", "yellow")),
        ],
    )
    def test_the_model_answers_about_them(self, name: str, question: str, answer: str, demo: DemoModel) -> None:
        assert ask(demo, [asked_of(question, shown(name))]).text == answer

    def test_they_are_what_the_script_draws(self) -> None:
        # Another build of an encoder may write other bytes; what is to be seen stays.
        drawn_now = samples()
        assert {path.name for path in SAMPLES.iterdir()} == {
            *drawn_now,
            "ktp-specimen.jpg",
        }  # a script of its own draws it
        for name, file in drawn_now.items():
            now: Any = read_film(file).frames if name.endswith(".mp4") else read_picture(file).pixels
            there: Any = getattr(shown(name), "frames" if name.endswith(".mp4") else "pixels")
            assert now.shape == there.shape
            assert abs(now.astype(int) - there.astype(int)).max() <= 8


class TestDrawing:
    @pytest.mark.parametrize("colour", COLOURS)
    def test_a_shade_is_of_its_colour(self, colour: str) -> None:
        hues = {"red": 0.0, "yellow": 60.0, "green": 120.0, "blue": 240.0}
        rng = Random(1)
        for _ in range(20):
            red, green, blue = picture(rng, colour).pixels.mean(axis=(0, 1)) / 255
            hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
            if colour in hues:
                assert abs((hue * 360 - hues[colour] + 180) % 360 - 180) < 45
                assert saturation > 0.4 and value > 0.3
            else:
                assert (value < 0.25) if colour == "black" else (value > 0.75 and saturation < 0.2)

    def test_a_clip_begins_with_one_colour_and_ends_with_the_other(self) -> None:
        rng = Random(2)
        for _ in range(20):
            frames = clip(rng, "red", "blue").frames
            assert 4 <= len(frames) <= 16
            assert frames[0, ..., 0].mean() > frames[0, ..., 2].mean()
            assert frames[-1, ..., 2].mean() > frames[-1, ..., 0].mean()

    def test_the_same_seed_draws_the_same(self) -> None:
        assert picture(Random(3), "green").digest == picture(Random(3), "green").digest
        assert picture(Random(3), "green").digest != picture(Random(4), "green").digest


@pytest.mark.model
def test_in_a_batch_every_lesson_is_read_as_it_is_alone(demo: DemoModel) -> None:
    """Padding and neighbours change nothing, though all pictures of a batch are handed over in one piece."""
    rng = Random(5)
    subjects = ("one_picture", "one_clip", "two_pictures", "corrected_smalltalk", "two_turns")
    lessons = [lesson(demo.tokenizer, demo.vision, drawn(rng, name)) for name in subjects]

    def losses(batch: TrainingBatch) -> float:
        with torch.no_grad():
            return float(answer_loss(demo.model, batch))

    sizes = [len(one.token_ids) - one.answer_start for one in lessons]
    alone = [losses(batch_of([one], demo.tokenizer, demo.vision)) for one in lessons]
    together = losses(batch_of(lessons, demo.tokenizer, demo.vision))
    mean = sum(loss * size for loss, size in zip(alone, sizes, strict=True)) / sum(sizes)
    assert together == pytest.approx(mean, rel=1e-3, abs=1e-5)
