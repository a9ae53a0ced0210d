"""Decides what the next forward pass computes. Deterministic plain Python, no tensors.

Decoding sequences go first, with one token each. The rest of the token budget goes to prompts, in chunks: half of it to
the oldest prompt, so that it cannot starve, the other half to the shortest remaining prompts, so that a long prompt
delays the others by at most one chunk. When the cache is full, the youngest sequence of the owner who has most of it
is preempted: it frees its blocks and is computed again later.

What is left of the budget goes to drafts: tokens that may follow a sequence. They take nothing from anybody. Prompt
lookup goes first, as it costs nothing; a draft model, if there is one, drafts for the sequences that it finds none for.
"""

from collections.abc import Sequence as Listing
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from tis.engine.batching.blocks import BlockPool
from tis.engine.batching.sequence import Sequence
from tis.engine.batching.state_slots import StateSlots
from tis.observability.metrics import PREEMPTIONS

DraftedBy = Literal["prompt_lookup", "draft_model"]

# Reserved behind a sequence. When it has grown further and another sequence is in the way, it moves.
MAX_ROOM_TOKENS = 1024
# Tokens of prompts with log probabilities in a step: each has a row of logits, as long as the vocabulary.
_MAX_SCORED_TOKENS = 128


@dataclass(frozen=True, slots=True)
class ScheduledChunk:
    """The tokens of one sequence that this step computes."""

    sequence: Sequence
    start: int
    stop: int
    draft: Listing[int] = ()  # tokens that may follow
    drafted_by: DraftedBy = "prompt_lookup"

    @property
    def end(self) -> int:
        """Behind the draft."""
        return self.stop + len(self.draft)

    @property
    def num_tokens(self) -> int:
        return self.end - self.start

    @property
    def token_ids(self) -> list[int]:
        return [*self.sequence.tokens(self.start, self.stop), *self.draft]

    @property
    def samples_token(self) -> bool:
        return self.stop == self.sequence.num_tokens

    @property
    def first_read(self) -> int:
        """The logits are read behind its tokens from this one on."""
        if self.sequence.scores_prompt:
            return 0
        return self.num_tokens - (1 + len(self.draft) if self.samples_token else 0)


@dataclass(frozen=True, slots=True)
class BlockCopy:
    sources: list[int]
    to: int  # the first of as many blocks in a row


@dataclass(slots=True)
class Plan:
    chunks: list[ScheduledChunk] = field(default_factory=list)
    copies: list[BlockCopy] = field(default_factory=list)  # done in this order, before the forward pass


@dataclass(frozen=True, slots=True)
class AskedDraft:
    sequence: Sequence
    max_length: int


class DraftSource(Protocol):
    """Drafts for several sequences at once, and decides for which."""

    def draft(
        self, asked: Listing[AskedDraft], num_tokens: int, max_drafted: int, max_computed: int
    ) -> Listing[Listing[int]]:
        """Returns a draft for each, of at most `max_drafted` tokens together.

        `num_tokens`: of answers in this step, without these drafts. `max_computed`: tokens that the source computes.
        """
        ...

    def forget(self, sequence: Sequence) -> None:
        """It is no longer running."""
        ...


class Scheduler:
    def __init__(
        self,
        pool: BlockPool,
        tokens_per_step: int,
        draft_width: int = 0,
        state_slots: StateSlots | None = None,
        draft_source: DraftSource | None = None,
        *,
        looks_up: bool = True,
    ) -> None:
        """`draft_width`: a step with as many tokens of answers, those of drafts included, has no more drafts.

        `state_slots`: layers keep states of the sequences, so no cached prefix is enough to begin with.
        `looks_up`: drafts come from what prompts and answers have said before, too.
        """
        self._draft_source = draft_source
        self._looks_up = looks_up
        self._state_slots = state_slots
        self._pool = pool
        self._tokens_per_step = tokens_per_step
        self._draft_width = draft_width
        self.running: list[Sequence] = []  # they own blocks; oldest first
        self.waiting: list[Sequence] = []  # oldest first, preempted ones included
        self.num_preemptions = 0

    @property
    def sequences(self) -> list[Sequence]:
        return self.running + self.waiting

    @property
    def max_tokens(self) -> int:
        """Of one sequence. A longer one never fits."""
        return self._pool.max_tokens

    @property
    def cache_use(self) -> float:
        return 1 - self._pool.num_free / self._pool.num_blocks

    def add(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)
        self.waiting.sort(key=lambda one: one.arrival)

    def drop(self, sequence: Sequence) -> None:
        sequence.is_dropped = True
        self.take_out(sequence)

    def take_out(self, sequence: Sequence) -> None:
        """Frees its blocks. It can be added again, and is then computed again."""
        if sequence in self.waiting:
            self.waiting.remove(sequence)
            return
        self.running.remove(sequence)
        self._free_blocks(sequence)

    def plan(self, max_prompt_tokens: int | None = None) -> Plan:
        """Chooses what the next forward pass computes: a token of each decoding sequence, then chunks of prompts."""
        plan = Plan()
        for sequence in [one for one in self.running if one.has_outgrown_its_keys]:
            self._return_to_waiting(sequence)
        for sequence in list(self.running):
            if sequence.is_decoding and sequence.block_run and self._ensure_blocks(sequence, plan):
                plan.chunks.append(ScheduledChunk(sequence, sequence.num_computed, sequence.num_tokens))
        # Prompts advance even when more than a budget of sequences is decoding.
        budget = max(1, self._tokens_per_step - len(plan.chunks))
        left = self._plan_prompts(plan, budget if max_prompt_tokens is None else min(budget, max_prompt_tokens))
        num_drafted = self._add_drafts(plan, min(left, self._draft_width - len(plan.chunks)))
        if self._draft_source:
            self._ask_for_drafts(self._draft_source, plan, left - num_drafted)
        return plan

    def mark_computed(self, chunk: ScheduledChunk) -> None:
        """The keys and values of the chunk are in the cache now, so its full blocks can be shared."""
        sequence = chunk.sequence
        sequence.num_computed = chunk.stop
        self._cache_full_blocks(sequence)

    def keep_drafted(self, sequence: Sequence, num_tokens: int) -> None:
        """So many tokens of its draft have become tokens of its answer, and are computed already."""
        sequence.num_computed += num_tokens
        self._cache_full_blocks(sequence)

    def _plan_prompts(self, plan: Plan, budget: int) -> int:
        """Returns what is left of the budget."""
        # One that has begun goes on, also if its leader was preempted since.
        prompts = [one for one in self.sequences if not one.is_decoding and (one.block_run or not one.waits_for_leader)]
        if len(prompts) > 1:
            oldest = min(prompts, key=lambda one: one.arrival)
            budget -= self._schedule_chunk(plan, oldest, -(-budget // 2))
            prompts.remove(oldest)
        for sequence in sorted(prompts, key=lambda one: one.num_uncomputed):
            budget -= self._schedule_chunk(plan, sequence, budget)
        return budget

    def _add_drafts(self, plan: Plan, num_tokens: int) -> int:
        """Shares the tokens among the sequences; what one does not want is left for the next. Returns how many go."""
        left = num_tokens
        for at, chunk in enumerate(plan.chunks if self._looks_up else ()):
            if left <= 0:
                break
            sequence = chunk.sequence
            if not _follows_answer(chunk):
                continue
            share = -(-left // (len(plan.chunks) - at))
            draft = sequence.draft(min(share, _max_draft(sequence)))
            draft = draft[: self._room_for_draft(sequence, len(draft))]
            if draft:
                plan.chunks[at] = replace(chunk, draft=draft)
                left -= len(draft)
        return max(0, num_tokens) - max(0, left)

    def _ask_for_drafts(self, source: DraftSource, plan: Plan, max_computed: int) -> None:
        """For text alone: a small model of the same vocabulary does not see the same pictures."""
        answers = [chunk for chunk in plan.chunks if _follows_answer(chunk)]
        num_tokens = sum(chunk.num_tokens for chunk in answers)
        left = min(max_computed, self._draft_width - len(plan.chunks) - sum(len(chunk.draft) for chunk in answers))
        asking = [
            at
            for at, chunk in enumerate(plan.chunks)
            if _follows_answer(chunk) and not chunk.draft and not chunk.sequence.vision_inputs
        ]
        if left <= 0 or not asking:
            return
        asked = [AskedDraft(one, _max_draft(one)) for at in asking for one in [plan.chunks[at].sequence]]
        for at, draft in zip(asking, source.draft(asked, num_tokens, left, max_computed), strict=True):
            draft = draft[: self._room_for_draft(plan.chunks[at].sequence, len(draft))]
            if draft:
                plan.chunks[at] = replace(plan.chunks[at], draft=draft, drafted_by="draft_model")

    def _room_for_draft(self, sequence: Sequence, wanted: int) -> int:
        """How many tokens fit into its blocks, and into those reserved for it that nobody lacks."""
        pool, block_run = self._pool, sequence.block_run
        assert block_run
        while (
            block_run.length < pool.blocks_for(sequence.num_tokens + wanted)
            and block_run.end < block_run.reserved_until
            and pool.num_free > len(self.running)
            and pool.extend(block_run)
        ):
            pass
        return block_run.length * pool.block_size - sequence.num_tokens

    def _schedule_chunk(self, plan: Plan, sequence: Sequence, budget: int) -> int:
        if sequence.scores_prompt:
            scored = (chunk.num_tokens for chunk in plan.chunks if chunk.sequence.scores_prompt)
            budget = min(budget, _MAX_SCORED_TOKENS - sum(scored))
        if budget <= 0 or not (
            self._ensure_blocks(sequence, plan) if sequence.block_run else self._start(sequence, plan)
        ):
            return 0
        start, size = sequence.num_computed, sequence.num_uncomputed
        if start or not sequence.starts_whole:
            size = min(budget, size)
        stop = sequence.end_of_chunk(start, start + size)
        plan.chunks.append(ScheduledChunk(sequence, start, stop))
        return stop - start

    def _start(self, sequence: Sequence, plan: Plan) -> bool:
        """Allocates blocks for all tokens of a sequence, and reuses its cached prefix."""
        sequence.begin()
        pool = self._pool
        length = pool.blocks_for(sequence.num_tokens)
        if self._state_slots and not self._state_slots.num_free:
            return False
        if not self._may_start(sequence, length) and not self._make_room(sequence, length, plan):
            return False
        cached = self._find_cached(sequence)
        room = self._room(sequence)
        sequence.block_run = pool.adopt(cached, length, room)
        if sequence.block_run is None:
            sequence.block_run = pool.allocate(length, room, protected=frozenset(cached))
            if sequence.block_run and cached:
                plan.copies.append(BlockCopy(cached, sequence.block_run.start))
        if sequence.block_run is None:
            cached = []
            sequence.block_run = pool.allocate(length, room)
        if sequence.block_run is None:
            return False
        if self._state_slots:
            sequence.state_slot = self._state_slots.take()
        sequence.num_computed = len(cached) * pool.block_size
        self._cache_full_blocks(sequence)
        self.waiting.remove(sequence)
        self.running.append(sequence)
        self.running.sort(key=lambda one: one.arrival)
        return True

    def _find_cached(self, sequence: Sequence) -> list[int]:
        if self._state_slots or sequence.scores_prompt:
            return []
        # The last token is always computed, because the next one is sampled from its logits.
        num_blocks = (sequence.num_tokens - 1) // self._pool.block_size
        return self._pool.find_cached(sequence.hashes(num_blocks, self._pool.block_size))

    def _may_start(self, sequence: Sequence, length: int) -> bool:
        """Whether there are blocks for this and for all older waiting sequences: large ones must not starve.

        One with which its owner has at most an equal part of the cache waits for none with which its owner has more.
        """
        # Each running sequence may need a block soon, and a new one should not be preempted at once.
        needed, max_needed = length, self._pool.num_free - len(self.running)
        is_owed = self._is_owed(sequence)
        for older in self.waiting:  # in the order of their arrival
            if older.arrival >= sequence.arrival or needed > max_needed:
                break
            if is_owed and older.request.owner != sequence.request.owner and not self._is_owed(older):
                continue
            needed += self._pool.blocks_for(older.num_tokens)
        return needed <= max_needed or (not self.running and needed == length)

    def _ensure_blocks(self, sequence: Sequence, plan: Plan) -> bool:
        """Makes room for the next token, or for all that a grammar forced. False if it was preempted itself."""
        while sequence.block_run and self._pool.blocks_for(sequence.num_tokens) > sequence.block_run.length:
            if self._pool.extend(sequence.block_run) or self._move(sequence, plan):
                continue
            self._preempt(self._victim(), plan)
        return sequence.block_run is not None

    def _move(self, sequence: Sequence, plan: Plan) -> bool:
        """Moves to where there is room to grow."""
        old = sequence.block_run
        assert old
        new = self._pool.allocate(self._pool.blocks_for(sequence.num_tokens), self._room(sequence))
        if new is None:
            return False
        plan.copies.append(BlockCopy(list(old.blocks), new.start))
        self._pool.release(old)
        sequence.block_run, sequence.num_cached_blocks = new, 0
        self._cache_full_blocks(sequence)
        return True

    def _make_room(self, sequence: Sequence, length: int, plan: Plan) -> bool:
        """Preempts sequences of owners who have more than an equal part of the cache, for one who has less."""
        while self._is_owed(sequence) and len(self.running) > 1:
            victim, part = self._victim(), self._part()
            if self._blocks_of(victim.request.owner) <= part:
                return False
            self._preempt(victim, plan)
            if self._may_start(sequence, length):
                return True
        return False

    def _is_owed(self, sequence: Sequence) -> bool:
        owner = sequence.request.owner
        return self._blocks_of(owner) + self._pool.blocks_for(sequence.num_tokens) <= self._part()

    def _part(self) -> int:
        return self._pool.num_blocks // len({one.request.owner for one in self.sequences})

    def _blocks_of(self, owner: str) -> int:
        return sum(one.block_run.length for one in self.running if one.block_run and one.request.owner == owner)

    def _victim(self) -> Sequence:
        """The youngest of the owner who has most; never the oldest of all, which so gets to its end."""
        candidates = self.running[1:] or self.running
        return max(candidates, key=lambda one: (self._blocks_of(one.request.owner), one.arrival))

    def _preempt(self, sequence: Sequence, plan: Plan) -> None:
        self.num_preemptions += 1
        PREEMPTIONS.inc()
        self._return_to_waiting(sequence)
        plan.chunks[:] = [chunk for chunk in plan.chunks if chunk.sequence is not sequence]

    def _return_to_waiting(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self._free_blocks(sequence)
        self.waiting.append(sequence)
        self.waiting.sort(key=lambda one: one.arrival)

    def _free_blocks(self, sequence: Sequence) -> None:
        if self._draft_source:
            self._draft_source.forget(sequence)
        if sequence.block_run:
            self._pool.release(sequence.block_run)
        if self._state_slots and sequence.state_slot is not None:
            self._state_slots.give_back(sequence.state_slot)
        sequence.block_run = sequence.state_slot = None
        sequence.num_computed = sequence.num_cached_blocks = 0

    def _cache_full_blocks(self, sequence: Sequence) -> None:
        assert sequence.block_run
        full = sequence.num_computed // self._pool.block_size
        if self._state_slots or full == sequence.num_cached_blocks:
            return
        hashes = sequence.hashes(full, self._pool.block_size)
        for at in range(sequence.num_cached_blocks, full):
            self._pool.cache(sequence.block_run.start + at, hashes[at])
        sequence.num_cached_blocks = full

    def _room(self, sequence: Sequence) -> int:
        return self._pool.blocks_for(min(MAX_ROOM_TOKENS, sequence.max_tokens - sequence.num_tokens))


def _follows_answer(chunk: ScheduledChunk) -> bool:
    """Whether a draft may follow: the answer has begun, and all its tokens are computed behind this step."""
    return chunk.samples_token and bool(chunk.sequence.choice.token_ids)


def _max_draft(sequence: Sequence) -> int:
    return min(sequence.max_tokens - sequence.num_tokens - 1, sequence.max_draft)
