"""Runs the vision tower for the batch, and caches its features by content: a repeated image costs nothing.

The tower runs between steps, for a bounded number of patches each time, so that decoding sequences do not wait for all
images at once. A video is encoded a few frames at a time, because its frames do not attend to each other there. An
image is always encoded whole, so its size must be limited before (`MAX_SHOWN_PIXELS`).
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tis.engine.batching.scheduler import ScheduledChunk
from tis.engine.batching.sequence import Sequence as SequenceOfTokens
from tis.engine.vision.vision_input import VisionInput


@dataclass(frozen=True, slots=True)
class Features:
    tokens: Any  # a row for each placeholder
    deep: Sequence[Any]  # further features, one tensor for each layer that gets some (deepstack)

    @property
    def num_bytes(self) -> int:
        return sum(int(tensor.nbytes) for tensor in (self.tokens, *self.deep))

    def part(self, start: int, stop: int) -> "Features":
        return Features(self.tokens[start:stop], [layer[start:stop] for layer in self.deep])


@dataclass(frozen=True, slots=True)
class EncodeJob:
    """The part of a vision input that is encoded at once: some of its steps in time."""

    vision_input: VisionInput
    start: int
    stop: int


class VisionEncoder:
    def __init__(self, model: Any, *, max_bytes: int, patches_per_step: int) -> None:
        self._model = model
        self._max_bytes = max_bytes
        self.patches_per_step = patches_per_step
        self.num_encoded = 0  # patches, ever
        self._cache: OrderedDict[bytes, Features] = OrderedDict()  # least recently used first
        self._partial: dict[bytes, list[Features]] = {}
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
        if self._partial:
            awaited = {vision_input.digest for sequence in sequences for vision_input in sequence.vision_inputs}
            self._partial = {digest: parts for digest, parts in self._partial.items() if digest in awaited}
        jobs = list(self._next_jobs(one for digest, one in needed.items() if digest not in self._cache))
        if jobs and may_run:
            self._run(jobs)
        self._evict_all_but(needed)
        return self._errors

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

    def _next_jobs(self, vision_inputs: Iterable[VisionInput]) -> Iterator[EncodeJob]:
        """Yields jobs in order until the step is full; at least one, however large."""
        budget = self.patches_per_step
        for vision_input in vision_inputs:
            size = _patches_per_time_step(vision_input)
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
        return num_tokens * vision_input.grid[0] // _num_tokens(vision_input)

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
        device = self._model.device
        patches = torch.cat([_patches_of(job) for job in jobs]).to(device)
        self.num_encoded += len(patches)
        grids = torch.tensor([(job.stop - job.start, *job.vision_input.grid[1:]) for job in jobs], device=device)
        # For these families a video is an image with several steps in time.
        out = self._model.base_model.get_image_features(patches, grids, return_dict=True)
        layers = getattr(out, "deepstack_features", None) or []
        return [Features(tokens, [layer[at] for layer in layers]) for at, tokens in enumerate(out.pooler_output)]

    def _add(self, vision_input: VisionInput, features: Features) -> None:
        parts = [*self._partial.pop(vision_input.digest, ()), features]
        if sum(len(part.tokens) for part in parts) < _num_tokens(vision_input):
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


def _num_tokens(vision_input: VisionInput) -> int:
    return sum(stop - start for start, stop in vision_input.spans)


def _patches_per_time_step(vision_input: VisionInput) -> int:
    return vision_input.grid[1] * vision_input.grid[2]


def _patches_of(job: EncodeJob) -> Any:
    size = _patches_per_time_step(job.vision_input)
    return job.vision_input.patches[job.start * size : job.stop * size]
