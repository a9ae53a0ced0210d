"""What prompt lookup drafts, without a model."""

import random

import pytest

from tests.engine.batching.test_scheduler import FakeRunner
from tis.engine.batching.lookup import MAX_DRAFT, Drafter, NgramIndex
from tis.engine.batching.scheduler import ScheduledChunk


def _steps(drafter: Drafter, answer: list[int]) -> tuple[int, int]:
    """How many steps the answer takes, and how many drafted tokens were wrong."""
    made, steps, wrong = 1, 1, 0
    while made < len(answer):
        draft = drafter.draft(answer[:made], MAX_DRAFT)
        right = 0
        while right < len(draft) and answer[made : made + right + 1] == draft[: right + 1]:
            right += 1
        made, steps, wrong = made + right + 1, steps + 1, wrong + len(draft) - right
    return steps, wrong


def _text(length: int, seed: int) -> list[int]:
    chance = random.Random(seed)
    return [chance.randrange(5000) for _ in range(length)]


def test_a_copy_of_the_prompt_takes_a_tenth_of_the_steps() -> None:
    text = _text(400, 1)
    assert _steps(Drafter([1, 2, *text, 3], [], 500), text)[0] < 40


def test_an_answer_that_copies_nothing_has_hardly_any_drafts() -> None:
    """Even where pairs of tokens come again, as in all language."""
    chance = random.Random(2)
    answer = [chance.randrange(40) for _ in range(1000)]
    _, wrong = _steps(Drafter(answer[:40], [], 1000), answer)
    assert wrong < 150


def test_a_prediction_is_drafted_from_its_first_token_on() -> None:
    predicted = _text(200, 3)
    drafter = Drafter(_text(50, 4), predicted, 300)
    assert drafter.draft([], 8) == predicted[: len(drafter.draft([], 8))] != []
    changed = [*predicted[:50], 7, 8, *predicted[52:120], *predicted[125:]]
    assert _steps(Drafter(_text(50, 4), predicted, 300), changed)[0] < 45


def test_the_answer_itself_is_a_source() -> None:
    rows = [token for number in range(30) for token in (*range(100, 112), 1000 + number)]
    assert _steps(Drafter([1], [], 500), rows)[0] < 130


def test_tokens_that_came_while_nothing_was_drafted_are_known() -> None:
    text = _text(300, 5)
    drafter = Drafter([1], [], 1000)
    drafter.draft([], 4)
    assert drafter.draft([*text, *text[100:110]], 4) == text[110:114]


@pytest.mark.parametrize("length", [1, 2, 3, 40, 3000])
def test_the_index_finds_what_a_search_finds(length: int) -> None:
    text = [random.Random(length).randrange(40) for _ in range(length)]
    index, grown = NgramIndex(length), NgramIndex(length)
    index.add(text, 0, length)
    for end in range(1, length):
        grown.add(text, end - 1, end)
    for place in (index.find(text), grown.find(text)):
        if place is not None:
            assert text[place - 2 : place] == text[-2:] and place < length
    has_pair = any(text[at : at + 2] == text[-2:] for at in range(length - 2)) and length > 2
    assert (index.find(text) is not None) == has_pair


class DraftingRunner(FakeRunner):
    """Some of its drafts are right: in this model, text repeats."""

    def __init__(self, num_blocks: int, tokens_per_step: int) -> None:
        super().__init__(num_blocks, tokens_per_step)
        self.scheduler._draft_width = 8
        self.num_drafted = 0

    def carry_out(self, seed: int) -> None:
        plan = self.scheduler.plan()
        for chunk in plan.chunks:
            self._check(chunk)
        self._finish(plan.chunks, seed)

    def _check(self, chunk: ScheduledChunk) -> None:
        run = chunk.sequence.block_run
        assert run and chunk.end <= run.length * self.scheduler._pool.block_size
        assert not chunk.draft or (chunk.samples_token and chunk.end < chunk.sequence.max_tokens)
        self.num_drafted += len(chunk.draft)

    def _finish(self, chunks: list[ScheduledChunk], seed: int) -> None:
        for chunk in chunks:
            self.scheduler.mark_computed(chunk)
            sequence = chunk.sequence
            if not chunk.samples_token:
                continue
            for drafted in [*chunk.draft, None]:
                token = len(sequence.choice.token_ids) % (3 + seed % 3)
                sequence.choice.accept(token)
                if sequence.choice.is_finished:
                    self.scheduler.drop(sequence)
                if token != drafted or sequence.choice.is_finished:
                    break
                self.scheduler.keep_drafted(sequence, 1)


@pytest.mark.parametrize("seed", range(6))
def test_drafts_take_no_room_from_anybody(seed: int) -> None:
    """Random days: no draft reaches beyond its blocks or its answer, and every sequence comes to its end."""
    chance = random.Random(seed)
    runner = DraftingRunner(num_blocks=chance.randint(16, 40), tokens_per_step=chance.choice([8, 50]))
    sequences = []
    for _ in range(12):
        sequences += runner.add([chance.randrange(50) for _ in range(chance.randint(1, 20))], chance.randint(4, 30))
        for _ in range(chance.randint(0, 4)):
            runner.carry_out(seed)
    while runner.scheduler.sequences:
        runner.carry_out(seed)
    assert all(one.choice.finish == "length" for one in sequences) and runner.num_drafted > 20
    assert runner.scheduler._pool.num_free == runner.scheduler._pool.num_blocks


def test_a_wide_batch_has_no_drafts() -> None:
    runner = DraftingRunner(num_blocks=200, tokens_per_step=50)
    for _ in range(9):
        runner.add([1, 2, 3, 1, 2, 3], 40)
    while runner.scheduler.sequences:
        was_wide = len(runner.scheduler.running) >= 8
        before = runner.num_drafted
        runner.carry_out(0)
        assert not was_wide or runner.num_drafted == before
