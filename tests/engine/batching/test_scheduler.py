"""Random days of the scheduler, without a model: every sequence is served, with its own tokens."""

import random
from collections.abc import Iterable

import pytest

from tests.engine.batching.tiny import new_request
from tis.engine.batching.blocks import BlockPool
from tis.engine.batching.scheduler import Plan, Scheduler
from tis.engine.batching.sequence import Sequence

BLOCK = 4


class FakeRunner:
    """Carries plans out on a cache of plain lists. A slot holds the tokens up to and including its own."""

    def __init__(self, num_blocks: int, tokens_per_step: int, *, forces: bool = False) -> None:
        self.forces = forces  # whether several tokens may be added at once, as grammars do
        self.scheduler = Scheduler(BlockPool(num_blocks, BLOCK), tokens_per_step)
        self.slots: list[tuple[int, ...] | None] = [None] * (num_blocks * BLOCK)
        self.num_arrived = self.num_computed = 0

    def add(self, prompt: Iterable[int], max_tokens: int, n: int = 1, owner: str = "") -> list[Sequence]:
        request = new_request(list(prompt), max_tokens=max_tokens, n=n)
        request.owner = owner
        sequences: list[Sequence] = []
        for choice in request.completions:
            sequences.append(Sequence(request, choice, self.num_arrived, sequences[0] if sequences else None))
            self.num_arrived += 1
            self.scheduler.add(sequences[-1])
        return sequences

    def step(self) -> Plan:
        plan = self.scheduler.plan()
        for copy in plan.copies:
            for at, source in enumerate(copy.sources):
                to = (copy.to + at) * BLOCK
                self.slots[to : to + BLOCK] = self.slots[source * BLOCK : (source + 1) * BLOCK]
        sampling = [chunk.sequence for chunk in plan.chunks if chunk.samples_token]
        for chunk in plan.chunks:
            assert chunk.sequence.block_run
            first = chunk.sequence.block_run.start * BLOCK
            known = chunk.sequence.tokens(0, chunk.stop)
            assert chunk.stop <= chunk.sequence.block_run.length * BLOCK
            for at in range(chunk.stop):
                if at >= chunk.start:
                    self.slots[first + at] = tuple(known[: at + 1])
                    self.num_computed += 1
                # A sequence reads exactly what it would have written itself.
                assert self.slots[first + at] == tuple(known[: at + 1])
            self.scheduler.mark_computed(chunk)
        for sequence in sampling:
            # Depends on all earlier tokens, as with a model.
            sequence.choice.accept(_next(sequence))
            while self.forces and _next(sequence) % 10 and not sequence.choice.is_finished:
                sequence.choice.accept(_next(sequence))
            if sequence.choice.is_finished:
                self.scheduler.drop(sequence)
        return plan

    def run(self) -> int:
        steps = 0
        while self.scheduler.sequences:
            assert self.step().chunks, "no sequence advances"
            steps += 1
            assert steps < 20_000
        return steps


def _next(sequence: Sequence) -> int:
    return hash(tuple(sequence.tokens(0, sequence.num_tokens))) % 50


@pytest.mark.parametrize("num_owners", [1, 3])
@pytest.mark.parametrize("forces", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_every_sequence_is_served_with_its_own_tokens(seed: int, forces: bool, num_owners: int) -> None:
    chance = random.Random(seed)
    runner = FakeRunner(num_blocks=chance.randint(16, 60), tokens_per_step=chance.choice([3, 8, 50]), forces=forces)
    common = [chance.randrange(50) for _ in range(30)]
    sequences: list[Sequence] = []
    for _ in range(25):
        own = [chance.randrange(50) for _ in range(chance.randint(1, 12))]
        prompt = common[: chance.choice([0, 0, 10, 17, 30])] + own
        owner = str(chance.randrange(num_owners)) if num_owners > 1 else ""
        sequences += runner.add(prompt, chance.randint(1, 20), chance.choice([1, 1, 1, 3]), owner)
        for _ in range(chance.randint(0, 6)):
            runner.step()
        if chance.random() < 0.15 and runner.scheduler.sequences:
            leaving = chance.choice(runner.scheduler.sequences)
            runner.scheduler.drop(leaving)
            sequences.remove(leaving)
    runner.run()
    assert all(one.choice.finish == "length" for one in sequences)
    assert runner.scheduler._pool.num_free == runner.scheduler._pool.num_blocks
    if seed == (18 if forces else 0) and num_owners == 1:
        assert runner.scheduler.num_preemptions > 0


def test_a_step_is_never_larger_than_its_budget() -> None:
    runner = FakeRunner(num_blocks=200, tokens_per_step=16)
    for length in (5, 90, 40, 8, 70):
        runner.add(range(length), 10)
    while runner.scheduler.sequences:
        assert sum(chunk.stop - chunk.start for chunk in runner.step().chunks) <= 16


def test_a_short_prompt_overtakes_a_long_one_which_still_advances() -> None:
    runner = FakeRunner(num_blocks=500, tokens_per_step=16)
    [long] = runner.add(range(1000), 5)
    runner.step()
    [short] = runner.add(range(2000, 2006), 5)
    before = long.num_computed
    runner.step()
    assert short.choice.token_ids and long.num_computed >= before + 8


def test_an_old_prompt_is_not_starved_by_a_stream_of_short_ones() -> None:
    runner = FakeRunner(num_blocks=500, tokens_per_step=16)
    [long] = runner.add(range(160), 1)
    for number in range(25):
        runner.add([7000 + 10 * number + n for n in range(8)], 1)
        runner.step()
    assert long.choice.is_finished


def test_a_large_request_is_not_starved_of_blocks_by_small_ones() -> None:
    runner = FakeRunner(num_blocks=20, tokens_per_step=64)
    runner.add(range(24), 30)
    runner.step()
    [large] = runner.add(range(100, 160), 2)
    for number in range(60):
        runner.add([500 + number], 8)
        runner.step()
    assert large.choice.is_finished


def test_who_floods_the_cache_pays_for_it() -> None:
    runner = FakeRunner(num_blocks=30, tokens_per_step=64)
    for number in range(8):
        runner.add([100 * number + n for n in range(8)], 30, owner="flood")
    runner.step()
    [other] = runner.add(range(5000, 5010), 12, owner="other")
    num_steps = 0
    while not other.choice.is_finished:
        runner.step()
        num_steps += 1
    # It is computed at once and never preempted: a step for each token, and one to begin.
    assert num_steps <= 14 and runner.scheduler.num_preemptions > 0
    runner.run()


def test_choices_wait_for_the_first_one_to_compute_their_prompt() -> None:
    runner = FakeRunner(num_blocks=100, tokens_per_step=8)
    runner.add(range(33), 2, n=4)
    runner.run()
    assert runner.num_computed == 33 + 3 * 1 + 4 * 1
