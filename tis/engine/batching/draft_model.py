"""A small model of the same vocabulary that drafts the next tokens of answers, for the model to check.

It has a cache of its own, of as many tokens as that of the model, in which a row lies as long as its sequence runs. A
draft may be wrong, so the cache is always behind: what follows the first wrong token is computed again. A row without
room, or longer than the context of the small model, has no drafts.

Tokens are drafted with the noise by which the model samples at the same positions, so where both expect much the same,
they pick the same token, also at high temperatures.
"""

import logging
import time
from collections.abc import Sequence as Listing
from dataclasses import dataclass
from typing import Any

import torch

from tis.engine.batching.attention import NAME
from tis.engine.batching.batch import Batch, QueryRun
from tis.engine.batching.blocks import BlockPool, BlockRun
from tis.engine.batching.draft_policy import MAX_MISSING, MAX_MODEL_DRAFT, DraftPolicy, DraftWish, RowChance
from tis.engine.batching.kv_cache import CacheShape, PagedCache
from tis.engine.batching.long_ropes import LongRopes
from tis.engine.batching.scheduler import MAX_ROOM_TOKENS, AskedDraft, BlockCopy
from tis.engine.batching.sequence import Sequence
from tis.engine.batching.text_attention import PastOfRow, asks_for_past
from tis.engine.faults import free_memory, is_out_of_memory
from tis.engine.kernels.native import NativeKernels
from tis.engine.sampling.pick import likeliest
from tis.engine.sampling.sample import sample_all

log = logging.getLogger("tis.engine")

_PAUSE_SECONDS = 60.0  # after a failure


@dataclass(frozen=True, slots=True)
class PreparedDraft:
    """A small model, ready to compute in batches."""

    name: str
    model: Any
    shape: CacheShape
    kernels: NativeKernels | None
    context_length: int
    vocabulary_size: int
    weight_bytes: int


@dataclass(slots=True, eq=False)
class _DraftRow:
    """What the draft model knows of a sequence."""

    sequence: Sequence
    chance: RowChance
    block_run: BlockRun | None = None
    num_computed: int = 0  # tokens that the sequence has, whose keys and values are in the cache
    num_cached_blocks: int = 0
    drafted_from: int = 0  # how many tokens the sequence had
    draft: list[int] | None = None  # the last one

    @property
    def num_missing(self) -> int:
        return self.sequence.num_tokens - self.num_computed


@dataclass(frozen=True, slots=True)
class _Pass:
    """Tokens of a row that are computed together."""

    row: _DraftRow
    start: int
    ids: list[int]
    is_read: bool  # a token is picked behind them


class DraftModel:
    """Of one scheduler."""

    def __init__(self, prepared: PreparedDraft, cache: PagedCache, policy: DraftPolicy, vocabulary_size: int) -> None:
        """`vocabulary_size`: of the model that checks the drafts."""
        self.policy = policy
        self._prepared = prepared
        self._model = prepared.model
        self._cache = cache
        self._vocabulary_size = min(vocabulary_size, prepared.vocabulary_size)
        self._ropes = LongRopes(prepared.model)
        border = self._ropes.border
        self._context_length = min(prepared.context_length, border.length) if border else prepared.context_length
        self._asks_for_past = asks_for_past(prepared.model)
        self._paused_until = 0.0
        self._forget_all()
        config = self._model.config
        self._model.set_attn_implementation({"text_config": NAME} if "text_config" in config.sub_configs else NAME)

    @property
    def num_free_blocks(self) -> int:
        return self._pool.num_free

    def forget(self, sequence: Sequence) -> None:
        """It is finished, or waits to be computed again."""
        if row := self._rows.pop(sequence, None):
            self._release(row)

    def draft(
        self, asked: Listing[AskedDraft], num_tokens: int, max_drafted: int, max_computed: int
    ) -> list[list[int]]:
        """See DraftSource. A failure costs drafts and no request."""
        if time.monotonic() < self._paused_until:
            return [[] for _ in asked]
        try:
            return self._draft(asked, num_tokens, max_drafted, max_computed)
        except Exception as error:
            log.warning("nothing is drafted by %s for %.0f s: %r", self._prepared.name, _PAUSE_SECONDS, error)
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            self._forget_all()
            if is_out_of_memory(error):
                error.__traceback__ = None  # its frames hold the tensors that did not fit
                free_memory()
            return [[] for _ in asked]

    def _forget_all(self) -> None:
        self._rows: dict[Sequence, _DraftRow] = {}
        self._pool = BlockPool(self._cache.num_blocks, self._cache.block_size)

    def _draft(
        self, asked: Listing[AskedDraft], num_tokens: int, max_drafted: int, max_computed: int
    ) -> list[list[int]]:
        rows = [self._followed(one.sequence) for one in asked]
        wishes = [
            DraftWish(
                row.chance.share,
                max(0, min(one.max_length, MAX_MODEL_DRAFT, self._context_length - row.sequence.num_tokens)),
                row.num_missing,
                len(row.sequence.choice.token_ids),
                row.sequence.max_tokens - row.sequence.num_tokens,
                row.chance.is_due(len(row.sequence.choice.token_ids)),
            )
            for row, one in zip(rows, asked, strict=True)
        ]
        choice = self.policy.choose(wishes, num_tokens, max_drafted, max_computed)
        passes: list[_Pass] = []
        lengths: dict[_DraftRow, int] = {}
        for at, row in enumerate(rows):
            if choice.are_trials[at]:
                row.chance.tried(len(row.sequence.choice.token_ids))
            if length := choice.lengths[at]:
                if row.num_missing <= max_computed and self._has_room(row, row.sequence.num_tokens + length):
                    max_computed -= row.num_missing
                    lengths[row] = length
                    passes.append(self._pass(row, row.sequence.num_tokens, is_read=True))
        for at in sorted(range(len(rows)), key=lambda at: rows[at].num_missing):
            row, stop = rows[at], rows[at].sequence.num_tokens - 1
            if choice.catch_up[at] and max_computed > 0 and self._has_room(row, stop + 1 + wishes[at].max_length):
                some = self._pass(row, min(stop, row.num_computed + max_computed), is_read=False)
                max_computed -= len(some.ids)
                if some.ids:  # else all of them are in a prefix that the cache has
                    passes.append(some)
        drafts = self._drafts(passes, lengths)
        return [drafts.get(row, []) for row in rows]

    def _followed(self, sequence: Sequence) -> _DraftRow:
        """The row of a sequence, up to the first of its tokens that was drafted wrong."""
        row = self._rows.get(sequence)
        if row is None:
            row = self._rows[sequence] = _DraftRow(sequence, self.policy.new_row(len(sequence.choice.prompt_ids)))
        if row.draft is not None:
            new_ids = sequence.tokens(row.drafted_from, min(sequence.num_tokens, row.drafted_from + len(row.draft)))
            num_right = 0
            while num_right < len(new_ids) and new_ids[num_right] == row.draft[num_right]:
                num_right += 1
            self.policy.observed(row.chance, num_right, is_wrong_behind=num_right < len(new_ids))
            # The newest token is computed again if need be, as the next one is picked from its logits.
            row.num_computed = min(row.num_computed, row.drafted_from + num_right, sequence.num_tokens - 1)
            row.draft = None
        return row

    def _drafts(self, passes: list[_Pass], lengths: dict[_DraftRow, int]) -> dict[_DraftRow, list[int]]:
        drafts: dict[_DraftRow, list[int]] = {row: [] for row in lengths}
        while passes:
            read = self._computed(passes)
            if not read:
                break
            passes = []
            for row, token_id in read:
                if token_id in row.sequence.choice.ending_ids:  # the answer may end here, which needs no draft
                    continue
                drafts[row].append(token_id)
                if len(drafts[row]) < lengths[row]:
                    passes.append(_Pass(row, row.num_computed, [token_id], is_read=True))
        for row, draft in drafts.items():
            row.drafted_from, row.draft = row.sequence.num_tokens, draft
        return drafts

    def _pass(self, row: _DraftRow, stop: int, *, is_read: bool) -> _Pass:
        return _Pass(row, row.num_computed, row.sequence.tokens(row.num_computed, stop), is_read)

    def _computed(self, passes: list[_Pass]) -> list[tuple[_DraftRow, int]]:
        """Computes the tokens, and picks one behind each pass that is read."""
        passes.sort(key=lambda one: len(one.ids) > 1)  # see Batch
        began = time.monotonic()
        logits = self._forward(passes)
        read = [one for one in passes if one.is_read]
        picked = self._picked(logits, read) if read else []
        seconds = time.monotonic() - began
        for one in passes:
            one.row.num_computed += len(one.ids)
            self._cache_full_blocks(one.row)
        num_read, num_tokens = sum(len(one.ids) for one in read), sum(len(one.ids) for one in passes)
        if num_read == num_tokens <= MAX_MISSING:
            self.policy.passes.measured(num_tokens, seconds)
        elif num_tokens - num_read > MAX_MISSING:
            of_read = self.policy.passes.seconds(num_read) if num_read else 0.0
            self.policy.prompt_measured(num_tokens - num_read, max(seconds / 2, seconds - of_read))
        return list(zip([one.row for one in read], picked, strict=True))

    def _forward(self, passes: Listing[_Pass]) -> Any:
        """The logits behind the passes that are read, None if there are none."""
        runs: list[QueryRun] = []
        ids: list[int] = []
        slots: list[int] = []
        places: list[int] = []
        read: list[int] = []
        last_id = self._prepared.vocabulary_size - 1
        for one in passes:
            assert one.row.block_run
            first_slot, end = one.row.block_run.start * self._cache.block_size, one.start + len(one.ids)
            runs.append(QueryRun(len(ids), len(one.ids), first_slot, one.start))
            ids += [min(token_id, last_id) for token_id in one.ids]
            slots += range(first_slot + one.start, first_slot + end)
            places += range(one.start, end)
            if one.is_read:
                read.append(len(ids) - 1)
        wanted = self._numbers(read) if len(read) < len(ids) else None
        batch = Batch(self._cache, runs, self._numbers(slots), self._prepared.kernels, wanted)
        inputs: dict[str, Any] = {
            "input_ids": self._numbers(ids)[None],
            "position_ids": self._numbers(places)[None],
            "use_cache": False,
            "batch": batch,
        }
        if self._asks_for_past:
            inputs["past_key_values"] = PastOfRow(self._numbers(places))
        with batch.computed_here(), self._ropes.with_lengths(iter([1] * len(ids))):
            if not read:  # see BatchRunner
                self._model.get_decoder()(**inputs)
                if self._model.device.type == "cuda":  # else its time would be that of the next pass
                    torch.cuda.synchronize(self._model.device)
                return None
            logits = self._model(logits_to_keep=self._numbers(read), **inputs).logits[0]
        return logits[:, : self._vocabulary_size].float().contiguous()

    def _picked(self, logits: Any, passes: Listing[_Pass]) -> list[int]:
        ids, _ = likeliest(logits)
        choices = [one.row.sequence.choice for one in passes]
        sampled = [at for at, choice in enumerate(choices) if not choice.params.is_greedy]
        if sampled:
            positions = [passes[at].start + len(passes[at].ids) - len(choices[at].prompt_ids) for at in sampled]
            keys = [choices[at].noise_key_at(position) for at, position in zip(sampled, positions, strict=True)]
            rows = logits if len(sampled) == len(passes) else logits[sampled]
            drawn = sample_all(rows, [choices[at].params for at in sampled], keys)
            for at, token_id in zip(sampled, drawn, strict=True):
                ids[at] = token_id
        return ids

    def _has_room(self, row: _DraftRow, num_tokens: int) -> bool:
        """Makes room for so many tokens in the cache, among what other rows leave."""
        needed, pool = self._pool.blocks_for(num_tokens), self._pool
        if row.block_run is None:
            self._begin(row, needed)
        while row.block_run and row.block_run.length < needed:
            if pool.extend(row.block_run):
                continue
            new, old = pool.allocate(needed, self._room(row)), row.block_run
            if new is None:
                self._release(row)
                return False
            self._cache.copy_blocks([BlockCopy(list(old.blocks), new.start)])
            pool.release(old)
            row.block_run, row.num_cached_blocks = new, 0
            self._cache_full_blocks(row)
        return row.block_run is not None

    def _begin(self, row: _DraftRow, length: int) -> None:
        """Reuses the prefix of another row, if the cache has it."""
        pool, sequence = self._pool, row.sequence
        cached = pool.find_cached(sequence.hashes((sequence.num_tokens - 1) // pool.block_size, pool.block_size))
        room = self._room(row)
        block_run = pool.adopt(cached, length, room)
        if block_run is None:
            block_run = pool.allocate(length, room, protected=frozenset(cached))
            if block_run and cached:
                self._cache.copy_blocks([BlockCopy(cached, block_run.start)])
        if block_run is None:
            cached, block_run = [], pool.allocate(length, room)
        if block_run is not None:
            row.block_run, row.num_computed = block_run, len(cached) * pool.block_size
            self._cache_full_blocks(row)

    def _release(self, row: _DraftRow) -> None:
        if row.block_run:
            self._pool.release(row.block_run)
        row.block_run, row.draft = None, None
        row.num_computed = row.num_cached_blocks = 0

    def _cache_full_blocks(self, row: _DraftRow) -> None:
        """Only what the sequence has is ever found by others, never what is merely drafted."""
        assert row.block_run
        full = min(row.num_computed, row.sequence.num_tokens) // self._pool.block_size
        hashes = row.sequence.hashes(full, self._pool.block_size)
        for at in range(row.num_cached_blocks, full):
            self._pool.cache(row.block_run.start + at, hashes[at])
        row.num_cached_blocks = max(row.num_cached_blocks, full)

    def _room(self, row: _DraftRow) -> int:
        sequence = row.sequence
        return self._pool.blocks_for(max(0, min(MAX_ROOM_TOKENS, sequence.max_tokens - sequence.num_tokens)))

    def _numbers(self, values: list[int]) -> Any:
        return torch.tensor(values, dtype=torch.long, device=self._model.device)
