"""Runs many requests at once. A step: plan, compute, sample a token for each sequence, hand out the pieces.

A sequence with a draft gets a token behind each token of the draft, as long as those sampled are those drafted.

A forward pass that fails is computed again by halves, until the rows that are to blame are alone. If memory runs out,
the cached features of images are dropped first. Where layers keep states, it may have changed some of them: its
sequences are computed again from their beginnings, each alone until it has its next token.
"""

import logging
import time
from collections.abc import Callable
from collections.abc import Sequence as Listing
from typing import Any

import torch

from tis.engine.batching.attention import NAME
from tis.engine.batching.batch import Batch, QueryRun
from tis.engine.batching.blocks import BlockPool
from tis.engine.batching.draft_model import DraftModel
from tis.engine.batching.features import PlacedFeatures, embed
from tis.engine.batching.kv_cache import PagedCache
from tis.engine.batching.long_ropes import LongRopes
from tis.engine.batching.picked_row import PickedRow, pick_first
from tis.engine.batching.positions import has_mrope, mrope_positions
from tis.engine.batching.prompt_scores import score_prompt
from tis.engine.batching.scheduled_runner import ScheduledRunner
from tis.engine.batching.scheduler import Plan, ScheduledChunk, Scheduler
from tis.engine.batching.sequence import Sequence
from tis.engine.batching.state_layers import replace_state_layers, state_layers
from tis.engine.batching.state_slots import StateSlots
from tis.engine.batching.step_budget import StepBudget
from tis.engine.batching.text_attention import PastOfRow, asks_for_past
from tis.engine.batching.towers import QwenTower, Tower
from tis.engine.batching.vision_encoder import VisionEncoder, vision_inputs_in
from tis.engine.faults import free_memory, is_out_of_memory
from tis.engine.kernels.native import NativeKernels
from tis.engine.request import Delivery, Request
from tis.engine.text.tokenizer import Tokenizer
from tis.engine.weights.adapted_linear import AdapterRows, adapting

log = logging.getLogger("tis.engine")


class BatchRunner(ScheduledRunner):
    def __init__(
        self,
        model: Any,
        tokenizer: Tokenizer,
        cache: PagedCache,
        *,
        tokens_per_step: int = 512,
        step_seconds: float = 0,
        max_running: int = 32,
        vision_cache_bytes: int = 256 * 2**20,
        patches_per_step: int = 1024,  # an image of 512 x 512 pixels, or four of 256 x 256
        draft_width: int = 0,  # see Scheduler
        looks_up: bool = True,
        new_draft_model: Callable[[], DraftModel] | None = None,
        kernels: NativeKernels | None = None,
        tower: Tower | None = None,
        adapters: Listing[str] = (),
    ) -> None:
        """`adapters`: the names of those that lie beside the layers of the model, in their order."""
        self._tokens_per_step = tokens_per_step
        self._draft_width = 0 if cache.states else draft_width  # a state cannot go back
        self._looks_up = looks_up
        self._new_draft_model = new_draft_model
        self._draft_model: DraftModel | None = None
        self._num_answered = 0  # tokens of answers in this step and their drafts, if it has no others
        self._seconds = 0.0  # that their forward pass took
        self._cache = cache
        self._kernels = kernels
        tower = tower or QwenTower(model)
        self._looks_ahead = tower.looks_ahead
        self._vision = VisionEncoder(tower, max_bytes=vision_cache_bytes, patches_per_step=patches_per_step)
        self._budget = StepBudget(step_seconds, tokens_per_step, patches_per_step)
        self._prompts_waited = False  # in the last step, for images
        self._ropes = LongRopes(model)
        self._adapters = {name: number for number, name in enumerate(adapters)}
        self._asks_for_past = asks_for_past(model)
        replace_state_layers(model)
        self._starts_whole = not all(layer.continues for layer in state_layers(model))
        self._computes_whole = False
        super().__init__(model, tokenizer, max_running)
        model.set_attn_implementation({"text_config": NAME} if "text_config" in model.config.sub_configs else NAME)

    @property
    def has_bounded_steps(self) -> bool:
        return not self._computes_whole

    def _new_scheduler(self) -> Scheduler:
        pool = BlockPool(self._cache.num_blocks, self._cache.block_size)
        slots = None if self._cache.num_slots is None else StateSlots(self._cache.num_slots)
        self._draft_model = self._new_draft_model() if self._new_draft_model else None
        return Scheduler(
            *(pool, self._tokens_per_step, self._draft_width, slots, self._draft_model), looks_up=self._looks_up
        )

    def _new_sequences(self, request: Request) -> list[Sequence]:
        vision = request.prepared.vision
        vision_inputs = vision.inputs if vision else ()
        positions = None
        if vision_inputs and has_mrope(self._model):
            positions = mrope_positions(self._model, request.prompt_ids, vision_inputs)
        sequences: list[Sequence] = []
        for choice in request.unfinished:
            leader, arrival, border = (sequences[0] if sequences else None), next(self._arrivals), self._ropes.border
            sequences.append(
                Sequence(
                    *(request, choice, arrival, leader, positions, border),
                    looks_ahead=self._looks_ahead,
                    starts_whole=self._starts_whole,
                )
            )
        return sequences

    def _compute_step(self, deliveries: list[Delivery]) -> list[PickedRow]:
        size = self._budget.next
        plan = self.scheduler.plan(size.num_prompt_tokens)
        if not plan.chunks:
            return []
        self._set_cached_tokens(plan)
        self._cache.copy_blocks(plan.copies)
        self._encode_vision(plan, size.num_patches, deliveries)
        rows = self._compute_timed(plan.chunks) if plan.chunks else []
        deliveries += self._scores(plan.chunks)
        return rows

    def _remove(self, request: Request) -> None:
        super()._remove(request)
        self._vision.drop_unawaited(self._places.sequences)

    @staticmethod
    def _set_cached_tokens(plan: Plan) -> None:
        for chunk in plan.chunks:
            first_choice = chunk.sequence.leader is None
            if first_choice and not chunk.sequence.was_started:
                request = chunk.sequence.request
                # The cache may hold tokens of a resumed answer, too: only those of the prompt count.
                request.answer.cached_tokens = min(chunk.start, len(request.prompt_ids))
            chunk.sequence.was_started = True

    def _encode_vision(self, plan: Plan, max_patches: int, deliveries: list[Delivery]) -> None:
        """Encodes images for this step. Chunks whose images are not encoded yet are left for a later step.

        If the images take half the time of a step, all prompts wait for the next one, which then encodes none.
        """
        self._vision.patches_per_step = max_patches
        began, num_encoded = time.monotonic(), self._vision.num_encoded
        errors = self._vision.encode(plan.chunks, self.scheduler.sequences, may_run=not self._prompts_waited)
        num_encoded = self._vision.num_encoded - num_encoded
        if num_encoded:
            self._wait_for_device()
        self._prompts_waited = self._budget.encoded(num_encoded, time.monotonic() - began)
        if errors:
            self._require_device()
        failed: dict[Request, Exception] = {}
        for chunk in plan.chunks:
            for vision_input in vision_inputs_in(chunk):
                if vision_input.digest in errors:
                    failed[chunk.sequence.request] = errors[vision_input.digest]
        plan.chunks = [
            chunk for chunk in plan.chunks if chunk.sequence.request not in failed and self._vision.has_encoded(chunk)
        ]
        if self._prompts_waited:
            plan.chunks = [chunk for chunk in plan.chunks if chunk.sequence.is_decoding]
        for request, error in failed.items():
            deliveries.append(self._fail(request, error))

    def _compute_timed(self, chunks: list[ScheduledChunk]) -> list[PickedRow]:
        lengths = [chunk.stop - chunk.start for chunk in chunks]
        is_answers_alone = all(one.sequence.is_decoding and one.sequence.choice.token_ids for one in chunks)
        self._num_answered = sum(one.num_tokens for one in chunks) if is_answers_alone else 0
        began = time.monotonic()
        self._computes_whole = self._starts_whole and sum(lengths) > self._tokens_per_step + len(chunks)
        try:
            rows = self._compute_states(chunks) if self._cache.states else self._compute_or_halve(chunks)
        finally:
            self._computes_whole = False
        if not rows:
            self._wait_for_device()
        self._seconds = time.monotonic() - began
        self._budget.computed(sum(lengths) - lengths.count(1), self._seconds)
        return rows

    def _accept(self, rows: Listing[PickedRow], deliveries: list[Delivery]) -> None:
        began = time.monotonic()
        super()._accept(rows, deliveries)
        if self._draft_model and rows and self._num_answered:
            self._draft_model.policy.step_measured(self._num_answered, self._seconds + time.monotonic() - began)

    def _wait_for_device(self) -> None:
        """CUDA computes in the background, until something reads the results."""
        if self._budget.is_timed and self._model.device.type == "cuda":
            torch.cuda.synchronize(self._model.device)

    def _compute_states(self, chunks: list[ScheduledChunk]) -> list[PickedRow]:
        """Sequences that may be to blame for a failure are computed alone."""
        groups = [[chunk for chunk in chunks if not chunk.sequence.is_suspect]]
        groups += [[chunk] for chunk in chunks if chunk.sequence.is_suspect]
        rows: list[PickedRow] = []
        for group in filter(None, groups):
            try:
                picked = self._compute(group)
            except Exception as error:
                self._require_device()
                if is_out_of_memory(error):
                    error.__traceback__ = None  # its frames hold the tensors that did not fit
                    self._free_memory(group)
                if len(group) == 1 and (group[0].sequence.is_suspect or not is_out_of_memory(error)):
                    rows.append(PickedRow(group[0].sequence, error))
                else:
                    log.warning("a step failed, and its sequences are computed again: %s", error)
                    self._begin_again(group)
                continue
            for row in picked:
                row.sequence.is_suspect = False
            rows += picked
        return rows

    def _begin_again(self, chunks: list[ScheduledChunk]) -> None:
        for chunk in chunks:
            chunk.sequence.is_suspect = True
            self.scheduler.take_out(chunk.sequence)
            self.scheduler.add(chunk.sequence)

    def _compute_or_halve(self, chunks: list[ScheduledChunk]) -> list[PickedRow]:
        """A chunk may be computed again: it writes the same keys and values to the same places."""
        try:
            return self._compute(chunks)
        except Exception as fault:
            error = fault
        self._require_device()
        if is_out_of_memory(error):
            error.__traceback__ = None  # its frames hold the tensors that did not fit
            if self._free_memory(chunks):
                return self._compute_or_halve(chunks)
        if len(chunks) == 1:
            return [PickedRow(chunks[0].sequence, error)]
        middle = len(chunks) // 2
        return self._compute_or_halve(chunks[:middle]) + self._compute_or_halve(chunks[middle:])

    def _free_memory(self, chunks: Listing[ScheduledChunk]) -> bool:
        """Drops the features of all images but those that these chunks show. Returns whether there were any."""
        has_freed = self._vision.drop_all_but(chunks)
        free_memory()
        return has_freed

    def _compute(self, chunks: list[ScheduledChunk]) -> list[PickedRow]:
        """Computes the chunks, and samples the next token of every sequence whose tokens are all computed."""
        # Single tokens first: the attention handles them together, and so do layers with states.
        chunks.sort(key=lambda chunk: (chunk.num_tokens > 1, not chunk.start, chunk.sequence.state_slot or 0))
        first_read = [chunk.first_read for chunk in chunks]
        logits = self._forward(chunks)
        if logits is not None and any(chunk.sequence.scores_prompt for chunk in chunks):
            logits = self._score_prompts(chunks, first_read, logits)
        rows = [] if logits is None else pick_first(logits, [chunk for chunk in chunks if chunk.samples_token])
        for chunk in chunks:
            self.scheduler.mark_computed(chunk)
        return rows

    def _score_prompts(self, chunks: Listing[ScheduledChunk], first_read: Listing[int], logits: Any) -> Any | None:
        """Returns the rows of logits that tokens are sampled from; None if there are none."""
        sampled: list[int] = []
        end = 0
        for chunk, first in zip(chunks, first_read, strict=True):
            begin, end = end, end + chunk.num_tokens - first
            if chunk.sequence.scores_prompt:
                score_prompt(chunk.sequence, chunk.start, logits[begin:end], self._tokenizer)
            if chunk.samples_token:
                sampled += range(end - 1 - len(chunk.draft), end)
        return logits[self._numbers(sampled)] if sampled else None

    def _forward(self, chunks: Listing[ScheduledChunk]) -> Any | None:
        """Returns the logits behind the tokens of each chunk from `first_read` on; None if there are none."""
        query_runs: list[QueryRun] = []
        ids: list[int] = []
        slots: list[int] = []
        for chunk in chunks:
            assert chunk.sequence.block_run
            first_slot = chunk.sequence.block_run.start * self._cache.block_size
            pictures = chunk.sequence.pictures_between(chunk.start, chunk.stop)
            state_slot = chunk.sequence.state_slot or 0
            query_runs.append(QueryRun(len(ids), chunk.num_tokens, first_slot, chunk.start, pictures, state_slot))
            ids += chunk.token_ids
            slots += range(first_slot + chunk.start, first_slot + chunk.end)
        read = [
            query_run.begin + at
            for query_run, chunk in zip(query_runs, chunks, strict=True)
            for at in range(chunk.first_read, chunk.num_tokens)
        ]
        wanted = self._numbers(read) if len(read) < len(ids) else None
        batch = Batch(self._cache, query_runs, self._numbers(slots), self._kernels, wanted)
        inputs: dict[str, Any] = {
            # Without them, some models derive positions from earlier calls, which were about other requests.
            "position_ids": self._positions(chunks),
            "use_cache": False,
            "batch": batch,
        }
        if self._asks_for_past:
            places = [at for chunk in chunks for at in range(chunk.start, chunk.end)]
            inputs["past_key_values"] = PastOfRow(self._numbers(places))
        placed = self._features(chunks, query_runs)
        row = self._numbers(ids)
        inputs |= embed(self._model, row, placed) if placed else {"input_ids": row[None]}
        lengths = (one for chunk in chunks for one in chunk.sequence.rope_factors(chunk.start, chunk.end))
        with batch.computed_here(), self._ropes.with_lengths(lengths), adapting(self._adapted(chunks)):
            return self._logits(inputs, read, is_deep=bool(placed and placed[0].features.deep))

    def _adapted(self, chunks: Listing[ScheduledChunk]) -> list[AdapterRows]:
        """The rows of each adapter that this step has."""
        names = [chunk.sequence.request.prepared.adapter for chunk in chunks]
        if not any(names):
            return []
        if len({*names}) == 1:
            return [AdapterRows(self._adapters[names[0]], None)]
        rows: dict[str, list[int]] = {}
        begin = 0
        for name, chunk in zip(names, chunks, strict=True):
            if name:
                rows.setdefault(name, []).extend(range(begin, begin + chunk.num_tokens))
            begin += chunk.num_tokens
        return [AdapterRows(self._adapters[name], self._numbers(of_name)) for name, of_name in rows.items()]

    def _logits(self, inputs: dict[str, Any], read: list[int], *, is_deep: bool) -> Any | None:
        """`is_deep`: features for several layers are among the inputs, which only the decoder takes."""
        if not read:
            # Not the whole model: the integer kernels of a quantised head refuse a matrix without rows.
            self._model.get_decoder()(**inputs)
            return None
        if is_deep:
            hidden = self._model.get_decoder()(**inputs).last_hidden_state[0, self._numbers(read)]
            return self._model.get_output_embeddings()(hidden).float()
        return self._model(logits_to_keep=self._numbers(read), **inputs).logits[0].float()

    def _positions(self, chunks: Listing[ScheduledChunk]) -> Any:
        if all(chunk.sequence.positions is None for chunk in chunks):
            return self._numbers([at for chunk in chunks for at in range(chunk.start, chunk.end)])[None]
        per_chunk = [
            torch.arange(chunk.start, chunk.end).expand(3, -1)
            if chunk.sequence.positions is None
            else chunk.sequence.positions.between(chunk.start, chunk.end)
            for chunk in chunks
        ]
        return torch.cat(per_chunk, 1)[:, None].to(self._model.device)

    def _features(self, chunks: Listing[ScheduledChunk], query_runs: Listing[QueryRun]) -> list[PlacedFeatures]:
        """Returns the vision features of this step."""
        return [
            PlacedFeatures(query_run.begin + first - chunk.start, features)
            for chunk, query_run in zip(chunks, query_runs, strict=True)
            for first, features in self._vision.features(chunk)
        ]

    def _numbers(self, values: list[int]) -> Any:
        return torch.tensor(values, dtype=torch.long, device=self._model.device)
