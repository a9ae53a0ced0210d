"""Runs the vision tower for the batch, and caches its features by content: a repeated image costs nothing.

The tower runs between steps, for a bounded number of patches each time, so that decoding sequences do not wait for all
images at once. A video is encoded a few frames at a time, because its frames do not attend to each other there. An
image with more patches than a step may encode takes several steps, each of which computes some layers of the tower.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from tis.engine.batching.features import Features
from tis.engine.batching.scheduler import ScheduledChunk
from tis.engine.batching.sequence import Sequence as SequenceOfTokens
from tis.engine.batching.tower_run import TowerRun
from tis.engine.batching.towers import EncodeJob, Tower
from tis.engine.vision.vision_input import VisionInput


@dataclass(slots=True)
class UnfinishedJob:
    job: EncodeJob
    tower_run: TowerRun


class VisionEncoder:
    def __init__(self, tower: Tower, *, max_bytes: int, patches_per_step: int) -> None:
        self._tower = tower
        self._max_bytes = max_bytes
        self.patches_per_step = patches_per_step
        self.num_encoded = 0.0  # patches, ever; a layer of many counts as its share of the tower
        self._cache: OrderedDict[bytes, Features] = OrderedDict()  # least recently used first
        self._partial: dict[bytes, list[Features]] = {}
        self._unfinished: UnfinishedJob | None = None
        self._errors: dict[bytes, Exception] = {}

    def encode(
        self, chunks: Sequence[ScheduledChunk], sequences: Iterable[SequenceOfTokens], *, may_run: bool = True
    ) -> dict[bytes, Exception]:
        """Encodes what these chunks need, as far as one step goes. Returns the failures, by digest.

        Partial features are kept as long as one of the sequences needs them.
        """
        self._errors = {}
        needed = {vision_input.digest: vision_input for chunk in chunks for vision_input in vision_inputs_in(chunk)}
        for digest in needed:
            if digest in self._cache:
                self._cache.move_to_end(digest)
        self.drop_unawaited(sequences)
        missing = [one for digest, one in needed.items() if digest not in self._cache]
        if missing and may_run:
            self._run_step(missing)
        self._evict_all_but(needed)
        return self._errors

    def drop_unawaited(self, sequences: Iterable[SequenceOfTokens]) -> None:
        """Drops what is partly encoded, unless one of these sequences needs it."""
        if not (self._partial or self._unfinished):
            return
        awaited = {vision_input.digest for sequence in sequences for vision_input in sequence.vision_inputs}
        self._partial = {digest: parts for digest, parts in self._partial.items() if digest in awaited}
        if self._unfinished and self._unfinished.job.vision_input.digest not in awaited:
            self._unfinished = None

    def has_encoded(self, chunk: ScheduledChunk) -> bool:
        return all(vision_input.digest in self._cache for vision_input in vision_inputs_in(chunk))

    def features(self, chunk: ScheduledChunk) -> Iterator[tuple[int, Features]]:
        """Yields the features for the placeholders of a chunk, with the position of the first in its sequence."""
        for vision_input in vision_inputs_in(chunk):
            features, offset = self._cache[vision_input.digest], 0
            for start, stop in vision_input.spans:
                first, last = max(start, chunk.start), min(stop, chunk.stop)
                if first < last:
                    yield first, features.part(offset + first - start, offset + last - start)
                offset += stop - start

    def _run_step(self, missing: Sequence[VisionInput]) -> None:
        before = self.num_encoded
        if self._unfinished:
            self._advance(self._unfinished)
        budget = self.patches_per_step - round(self.num_encoded - before)
        if self._unfinished or budget <= 0:
            return
        missing = [one for one in missing if one.digest not in self._cache and one.digest not in self._errors]
        jobs = list(self._next_jobs(missing, budget))
        is_large = len(jobs) == 1 and jobs[0].num_patches > self.patches_per_step
        if is_large and (tower_run := self._tower.begin(jobs[0])):
            self._unfinished = UnfinishedJob(jobs[0], tower_run)
            self._advance(self._unfinished)
        elif jobs:
            self._run(jobs)

    def _advance(self, unfinished: UnfinishedJob) -> None:
        tower_run, self._unfinished = unfinished.tower_run, None
        num_layers = max(1, self.patches_per_step * tower_run.num_layers // tower_run.num_patches)
        num_before = tower_run.num_computed
        try:
            encoded = tower_run.advance(num_layers)
        except Exception as error:  # only the requests with this image fail
            self._errors[unfinished.job.vision_input.digest] = error
            return
        self.num_encoded += tower_run.num_patches * (tower_run.num_computed - num_before) / tower_run.num_layers
        if encoded is None:
            self._unfinished = unfinished
        else:
            self._add(unfinished.job.vision_input, encoded[0])

    def _next_jobs(self, vision_inputs: Iterable[VisionInput], budget: int) -> Iterator[EncodeJob]:
        """Yields jobs in order until the step is full; at least one, however large, if nothing else was in it."""
        for vision_input in vision_inputs:
            size = vision_input.patches_per_time_step
            start = self._num_encoded_time_steps(vision_input)
            while start < vision_input.grid[0]:
                if budget < size and budget < self.patches_per_step:
                    return
                stop = min(vision_input.grid[0], start + max(1, budget // size))
                yield EncodeJob(vision_input, start, stop)
                budget -= (stop - start) * size
                start = stop

    def _num_encoded_time_steps(self, vision_input: VisionInput) -> int:
        num_tokens = sum(len(part.tokens) for part in self._partial.get(vision_input.digest, ()))
        return num_tokens * vision_input.grid[0] // vision_input.num_tokens

    def _run(self, jobs: Sequence[EncodeJob]) -> None:
        try:
            encoded = self._run_tower(jobs)
        except Exception as error:  # each job is tried alone, so that only the requests with the bad image fail
            if len(jobs) == 1:
                self._errors[jobs[0].vision_input.digest] = error
                return
            for job in jobs:
                self._run([job])
            return
        for job, features in zip(jobs, encoded, strict=True):
            self._add(job.vision_input, features)

    def _run_tower(self, jobs: Sequence[EncodeJob]) -> list[Features]:
        self.num_encoded += sum(job.num_patches for job in jobs)
        return self._tower.encode(jobs)

    def _add(self, vision_input: VisionInput, features: Features) -> None:
        parts = [*self._partial.pop(vision_input.digest, ()), features]
        if sum(len(part.tokens) for part in parts) < vision_input.num_tokens:
            self._partial[vision_input.digest] = parts
            return
        layers = zip(*(part.deep for part in parts), strict=True)
        # Cloned, because a view would keep the whole larger tensor alive.
        self._cache[vision_input.digest] = Features(
            torch.cat([part.tokens for part in parts]).clone(), [torch.cat(layer).clone() for layer in layers]
        )

    def drop_all_but(self, chunks: Sequence[ScheduledChunk]) -> bool:
        """Drops the cached features that these chunks do not need. Returns whether there were any."""
        needed = {vision_input.digest for chunk in chunks for vision_input in vision_inputs_in(chunk)}
        dropped = [digest for digest in self._cache if digest not in needed]
        for digest in dropped:
            del self._cache[digest]
        return bool(dropped)

    def _evict_all_but(self, needed: Iterable[bytes]) -> None:
        needed, num_bytes = set(needed), sum(features.num_bytes for features in self._cache.values())
        for digest in [digest for digest in self._cache if digest not in needed]:
            if num_bytes <= self._max_bytes:
                return
            num_bytes -= self._cache.pop(digest).num_bytes


def vision_inputs_in(chunk: ScheduledChunk) -> Iterator[VisionInput]:
    """Yields the vision inputs with placeholders in a chunk, wholly or in part."""
    for vision_input in chunk.sequence.vision_inputs:
        if any(start < chunk.stop and chunk.start < stop for start, stop in vision_input.spans):
            yield vision_input
