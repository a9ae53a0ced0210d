"""How often each kind of dialogue is seen, and what may surround it: a system message, an earlier turn, tools."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from scripts.demo_model.colours import nothing_shown, one_clip, one_picture, second_question, two_pictures, two_turns
from scripts.demo_model.copying import echo, recital, record, remembered_name
from scripts.demo_model.dialogue import Dialogue
from scripts.demo_model.goods_picks import goods_picks
from scripts.demo_model.numbers import arithmetic, counting, sums_in_a_row
from scripts.demo_model.shop import listed_product, price_list, shop
from scripts.demo_model.smalltalk import corrected_smalltalk, smalltalk, story
from scripts.demo_model.tool_calls import offered, tool_call
from scripts.demo_model.unknown import unknown
from scripts.demo_model.words import LANGUAGES, Language, plain_words

_SYSTEMS = (
    "You are a helpful assistant.",
    "You are a helpful assistant",
    "You are a friendly assistant. Answer briefly.",
    "Be brief.",
    "Answer in one sentence.",
    "Kamu adalah asisten yang ramah.",
    "Kamu asisten yang membantu. Jawab singkat.",
    "Jawab dengan singkat.",
    "Anda adalah asisten yang membantu.",
)


@dataclass(frozen=True)
class Subject:
    draw: Callable[[Random, Language], Dialogue]
    # A shop question brings its own system message, a tool question its own tools.
    takes_system: bool = True
    takes_tools: bool = True


SUBJECTS: dict[str, Subject] = {
    "smalltalk": Subject(smalltalk),
    "story": Subject(story),
    "counting": Subject(counting),
    "arithmetic": Subject(arithmetic),
    "shop": Subject(shop, takes_system=False, takes_tools=False),
    "tool_call": Subject(tool_call, takes_tools=False),
    "echo": Subject(echo),
    "remembered_name": Subject(remembered_name),
    "record": Subject(record),
    "unknown": Subject(unknown, takes_tools=False),
    "price_list": Subject(price_list, takes_system=False, takes_tools=False),
    "sums_in_a_row": Subject(sums_in_a_row, takes_tools=False),
    "corrected_smalltalk": Subject(corrected_smalltalk),
    "listed_product": Subject(listed_product, takes_system=False, takes_tools=False),
    "one_picture": Subject(one_picture, takes_tools=False),
    "two_pictures": Subject(two_pictures, takes_tools=False),
    "one_clip": Subject(one_clip, takes_tools=False),
    "two_turns": Subject(two_turns, takes_tools=False),
    "second_question": Subject(second_question, takes_tools=False),
    "nothing_shown": Subject(nothing_shown, takes_tools=False),
    "goods_picks": Subject(goods_picks, takes_system=False, takes_tools=False),
}


@dataclass(frozen=True)
class Course:
    """One run through the optimizer: which subjects in which shares, how long, how strongly."""

    shares: dict[str, float]
    seed: int
    steps: int
    strength: float = 1.0
    vision_strength: float = 0.0
    rehearsed_dialogues: int = 0
    # Of the weights from before this course in the mean that is kept.
    share_of_old_weights: float = 0.0


FIRST_COURSE = Course(
    shares={
        "smalltalk": 0.2,
        "story": 0.02,
        "counting": 0.05,
        "arithmetic": 0.25,
        "shop": 0.2,
        "tool_call": 0.08,
        "echo": 0.06,
        "remembered_name": 0.045,
        "record": 0.05,
        "unknown": 0.07,
    },
    seed=7,
    steps=2400,
    # Copying comes first: until it is learned, names and prices can only be guessed.
    rehearsed_dialogues=10_000,
)
# What the first course leaves weak: the tables of the sums, and names that must be found in a catalogue.
SECOND_COURSE = Course(
    shares={
        "smalltalk": 0.09,
        "story": 0.012,
        "counting": 0.04,
        "arithmetic": 0.26,
        "shop": 0.2,
        "tool_call": 0.05,
        "echo": 0.05,
        "remembered_name": 0.02,
        "record": 0.02,
        "unknown": 0.05,
        "price_list": 0.08,
        "sums_in_a_row": 0.14,
    },
    seed=8,
    steps=1400,
    strength=0.6,
)
# All of it again in smaller steps, so that what the second course pushed aside comes back.
THIRD_COURSE = Course(
    shares={
        "smalltalk": 0.17,
        "story": 0.02,
        "counting": 0.05,
        "arithmetic": 0.23,
        "shop": 0.22,
        "tool_call": 0.06,
        "echo": 0.05,
        "remembered_name": 0.03,
        "record": 0.03,
        "unknown": 0.05,
        "price_list": 0.05,
        "sums_in_a_row": 0.06,
    },
    seed=9,
    steps=2000,
    strength=0.4,
)
# Seeing, and all the rest once more in small steps, so that none of it is lost.
FOURTH_COURSE = Course(
    shares={
        "one_picture": 0.15,
        "two_pictures": 0.08,
        "one_clip": 0.18,
        "two_turns": 0.02,
        "second_question": 0.04,
        "nothing_shown": 0.01,
        "corrected_smalltalk": 0.1,
        "story": 0.01,
        "counting": 0.02,
        "arithmetic": 0.16,
        "shop": 0.09,
        "listed_product": 0.04,
        "price_list": 0.02,
        "tool_call": 0.03,
        "echo": 0.03,
        "remembered_name": 0.02,
        "record": 0.02,
        "unknown": 0.03,
    },
    seed=10,
    steps=1500,
    strength=0.15,
    vision_strength=1.0,
)
# Picking goods for the shopping assistant, whose prompts are the longest, and all the rest in smaller shares.
FIFTH_COURSE = Course(
    shares={
        "goods_picks": 0.25,
        "one_picture": 0.1,
        "two_pictures": 0.06,
        "one_clip": 0.11,
        "two_turns": 0.02,
        "second_question": 0.03,
        "nothing_shown": 0.01,
        "corrected_smalltalk": 0.09,
        "story": 0.01,
        "counting": 0.02,
        "arithmetic": 0.13,
        "shop": 0.07,
        "listed_product": 0.03,
        "price_list": 0.015,
        "tool_call": 0.03,
        "echo": 0.03,
        "remembered_name": 0.02,
        "record": 0.02,
        "unknown": 0.025,
    },
    seed=12,
    steps=1500,
    strength=0.3,
    vision_strength=0.3,
)
# Most of all what the fifth course pushed aside, in smaller steps.
SIXTH_COURSE = Course(
    shares={
        "goods_picks": 0.1,
        "one_picture": 0.09,
        "two_pictures": 0.05,
        "one_clip": 0.1,
        "two_turns": 0.02,
        "second_question": 0.03,
        "nothing_shown": 0.01,
        "corrected_smalltalk": 0.1,
        "story": 0.01,
        "counting": 0.02,
        "arithmetic": 0.2,
        "shop": 0.08,
        "listed_product": 0.03,
        "price_list": 0.02,
        "tool_call": 0.04,
        "echo": 0.06,
        "remembered_name": 0.02,
        "record": 0.03,
        "unknown": 0.04,
    },
    seed=13,
    steps=1500,
    strength=0.2,
    vision_strength=0.2,
)
# The same with more goods, in steps that are smaller still.
SEVENTH_COURSE = Course(
    shares={**SIXTH_COURSE.shares, "goods_picks": 0.15},
    seed=14,
    steps=500,
    strength=0.08,
    vision_strength=0.08,
)
# What the picking pushed aside: catalogues that are read line by line, sums and copying.
EIGHTH_COURSE = Course(
    shares={
        "goods_picks": 0.13,
        "one_picture": 0.07,
        "two_pictures": 0.04,
        "one_clip": 0.07,
        "two_turns": 0.01,
        "second_question": 0.02,
        "nothing_shown": 0.01,
        "corrected_smalltalk": 0.08,
        "story": 0.01,
        "counting": 0.02,
        "arithmetic": 0.2,
        "shop": 0.17,
        "listed_product": 0.13,
        "price_list": 0.05,
        "tool_call": 0.03,
        "echo": 0.07,
        "remembered_name": 0.02,
        "record": 0.02,
        "unknown": 0.03,
    },
    seed=15,
    steps=2400,
    strength=0.25,
    vision_strength=0.15,
)
# Most of all the questions in words that the eighth course left unsure: "3 kali 4", "dikirim dari mana". Either course
# answers a question of the checks wrongly; the mean of the two answers all of them.
NINTH_COURSE = Course(
    shares={
        **EIGHTH_COURSE.shares,
        "arithmetic": 0.32,
        "sums_in_a_row": 0.03,
        "listed_product": 0.18,
        "shop": 0.2,
    },
    seed=16,
    steps=1400,
    strength=0.15,
    vision_strength=0.1,
    share_of_old_weights=0.5,
)
COURSES = (
    FIRST_COURSE,
    SECOND_COURSE,
    THIRD_COURSE,
    FOURTH_COURSE,
    FIFTH_COURSE,
    SIXTH_COURSE,
    SEVENTH_COURSE,
    EIGHTH_COURSE,
    NINTH_COURSE,
)
REHEARSED_SHARE = 0.55


def _system(rng: Random) -> str:
    return rng.choice(_SYSTEMS) if rng.random() < 0.8 else plain_words(rng, rng.choice(LANGUAGES), 2, 6)


def surrounded(rng: Random, name: str, dialogue: Dialogue) -> Dialogue:
    subject = SUBJECTS[name]
    if subject.takes_system:
        if rng.random() < 0.15:
            dialogue = dialogue.preceded_by(smalltalk(rng, rng.choice(LANGUAGES)))
        if subject.takes_tools and rng.random() < 0.03:
            dialogue = replace(dialogue, tools=offered(rng))
        if rng.random() < 0.3:
            dialogue = dialogue.under(_system(rng))
    if "<think>" not in dialogue.answer and rng.random() < 0.3:
        dialogue = replace(dialogue, enable_thinking=False)
    return dialogue


def drawn(rng: Random, name: str) -> Dialogue:
    return surrounded(rng, name, SUBJECTS[name].draw(rng, rng.choice(LANGUAGES)))


def dialogues(course: Course, seed: int) -> Iterator[Dialogue]:
    """An endless, repeatable stream: copying is learned only from names and prices that were never seen before."""
    rng = Random(seed)
    names, shares = list(course.shares), list(course.shares.values())
    for number in count():
        if number < course.rehearsed_dialogues and rng.random() < REHEARSED_SHARE:
            yield recital(rng, rng.choice(LANGUAGES))
        else:
            yield drawn(rng, rng.choices(names, shares)[0])
