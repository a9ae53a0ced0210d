"""The tokens of one step, packed into one row without padding, and what the attention knows of them."""

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

from tis.engine.batching.kv_cache import PagedCache
from tis.engine.batching.layer_states import StateRows
from tis.engine.kernels.native import NativeKernels


@dataclass(frozen=True, slots=True)
class QueryRun:
    """The new tokens of one sequence: where they are in the row, and which keys of the cache they attend to."""

    begin: int
    length: int
    first_slot: int  # of the sequence in the cache
    num_before: int  # tokens of the sequence that came before these
    # Tokens of the sequence that also attend to those behind them, up to the end of their picture.
    pictures: tuple[tuple[int, int], ...] = ()
    state_slot: int = 0  # of the sequence, if layers keep states

    @property
    def end(self) -> int:
        return self.begin + self.length

    @property
    def num_keys(self) -> int:
        return self.num_before + self.length

    def first_key(self, window: int | None, chunk: int | None) -> int:
        """The first one that its first token attends to, and so the first for all."""
        first = 0 if window is None else max(0, self.num_before + 1 - window)
        return first if chunk is None else max(first, self.num_before // chunk * chunk)


@dataclass
class Batch:
    """Reaches the attention function through the extra arguments of `model.forward`, or as the batch of its thread."""

    cache: PagedCache
    query_runs: list[QueryRun]
    slots: Any  # where in the cache each token of the row goes
    kernels: NativeKernels | None = None  # the native ones, if they take the cache
    wanted: Any | None = None  # rows whose output is read; None: all
    _masks: dict[tuple[int, int, int, int], Any] = field(default_factory=dict)
    _parts: dict[tuple[int, ...], tuple["Batch", Any]] = field(default_factory=dict)

    @contextmanager
    def computed_here(self) -> Iterator[None]:
        """Until its end this is the batch of this thread, for layers that do not hand on their arguments."""
        _OF_THREAD.batch = self
        try:
            yield
        finally:
            _OF_THREAD.batch = None

    @cached_property
    def num_single(self) -> int:
        """Runs of one token, which come first: they need no mask and share a rearrangement."""
        return sum(run.length == 1 for run in self.query_runs)

    @cached_property
    def looks_ahead(self) -> bool:
        return any(run.pictures for run in self.query_runs)

    @cached_property
    def state_rows(self) -> list[StateRows]:
        """The runs as layers with states compute them: single tokens behind a state together, wherever they can."""
        singles = [run for run in self.query_runs if run.length == 1 and run.num_before]
        are_first = singles == self.query_runs[: len(singles)]
        together = singles if are_first and len(singles) > 1 else []
        rows = [StateRows(0, len(together), [run.state_slot for run in together], is_first=False)] if together else []
        rest = self.query_runs[len(together) :]
        return rows + [StateRows(run.begin, run.end, [run.state_slot], is_first=not run.num_before) for run in rest]

    @cached_property
    def runs(self) -> Any:
        """The query runs as the native kernels take them."""
        return torch.tensor([(run.begin, run.length, run.first_slot, run.num_before) for run in self.query_runs])

    @cached_property
    def block_table(self) -> "BlockTable":
        return BlockTable(self)

    def without(self, runs: Collection[QueryRun]) -> tuple["Batch", Any]:
        """Returns the other runs as a batch, and which rows of this one it has."""
        key = tuple(run.begin for run in runs)
        if not key:
            return self, slice(None)
        if key not in self._parts:
            others: list[QueryRun] = []
            rows: list[int] = []
            for run in self.query_runs:
                if run not in runs:
                    others.append(replace(run, begin=len(rows)))
                    rows += range(run.begin, run.end)
            at = torch.tensor(rows, device=self.slots.device)
            self._parts[key] = Batch(self.cache, others, self.slots[at], self.kernels), at
        return self._parts[key]

    def mask(self, run: QueryRun, window: int | None, chunk: int | None, num_groups: int) -> Any:
        """Returns the mask from the first key on."""
        key = (run.begin, window or 0, chunk or 0, num_groups)
        if key not in self._masks:
            first = run.first_key(window, chunk)
            query = torch.arange(run.num_before, run.num_keys, device=self.slots.device)[:, None]
            keys = torch.arange(first, run.num_keys, device=self.slots.device)[None]
            last = query
            for start, stop in run.pictures:
                last = torch.where((query >= start) & (query < stop), stop - 1, last)
            visible = keys <= last
            if window is not None:
                visible &= keys > query - window
            if chunk is not None:
                visible &= keys // chunk == query // chunk
            self._masks[key] = visible.repeat(num_groups, 1)
        return self._masks[key]


class _ThreadBatch(threading.local):
    batch: Batch | None = None


_OF_THREAD = _ThreadBatch()


def batch_of_thread() -> Batch:
    if _OF_THREAD.batch is None:
        raise RuntimeError("the attention of the batch was called outside of a batch")
    return _OF_THREAD.batch


def batch_or_none() -> Batch | None:
    return _OF_THREAD.batch


class BlockTable:
    """The query runs as the paged kernel of CUDA takes them. The same for all layers of a step."""

    def __init__(self, batch: Batch) -> None:
        runs, block_size = batch.query_runs, batch.cache.block_size
        device = batch.slots.device

        def numbers(values: list[int]) -> Any:
            return torch.tensor(values, dtype=torch.int32, device=device)

        self.max_query = max(run.length for run in runs)
        self.max_keys = max(run.num_keys for run in runs)
        self.query_starts = numbers([0, *[run.end for run in runs]])
        self.num_keys = numbers([run.num_keys for run in runs])
        max_blocks = -(-self.max_keys // block_size)
        first_blocks = numbers([run.first_slot // block_size for run in runs])
        table = first_blocks[:, None] + torch.arange(max_blocks, dtype=torch.int32, device=device)
        # Shorter sequences have fewer blocks: the kernel never reads the entries behind them, but they must be blocks.
        self.blocks = table.clamp_(max=batch.cache.num_blocks - 1)
